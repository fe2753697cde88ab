#!/usr/bin/env python3
"""Writes the tables of docs/SCALE.md between its markers, and its plots.

usage: fleet_page.py RESULTS DOCS

RESULTS is a folder with the JSON files that `scripts/simulate-fleet page` writes.
"""

import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

SCENARIOS = ["steady", "few-nodes", "spread", "hot", "exceeded", "moving", "flash", "lan", "far", "failover", "partition", "rolling"]
LEASES = ["off", "auto", "fixed"]
COLOURS = [("#bc4c00", "#f0883e"), ("#0969da", "#58a6ff"), ("#1a7f37", "#3fb950")]
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 48, 44


def load(folder):
    return {path.stem: json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))}


def percent(part, digits=2):
    return f"{100 * part:.{digits}f} %"


def micros(value):
    return f"{value / 1000:.1f} ms" if value >= 1000 else f"{value} µs"


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(head, rows):
    return "\n".join([row(head), "|" + "---|" * len(head), *map(row, rows)])


def size_of(scenario):
    return f"{scenario['nodes']} nodes, {scenario['keys']:,} keys, {scenario['rate']:,.0f}/s"


def main_table(results):
    rows = []
    for name in SCENARIOS:
        for lease in LEASES:
            figures = results.get(f"{name}-{lease}")
            if not figures:
                continue
            used = percent(figures["used_part"], 1) if figures["possible"] else "none exceeded"
            p50, p99, p999, _ = map(micros, figures["latency_us"])
            rows.append([
                name, lease,
                f"{figures['requests_per_decision']:.4f}",
                f"{figures['hot_tenth']['requests_per_decision']:.4f}" if figures["hot_tenth"]["keys"] else "",
                used,
                percent(figures["wrongly_refused"] / figures["below_limit"]) if figures["below_limit"] else "",
                f"{figures['fairness']:.3f}" if figures["scenario"]["spread"] > 1 else "",
                f"{p50} / {p99} / {p999}",
                percent(figures["store"]["busy_part"], 1),
            ])
    head = ["scenario", "leases", "requests per decision", "hot tenth", "limits used", "refused below the limit", "fairness", "p50 / p99 / p99.9", "store busy"]
    return table(head, rows)


def total_line(results):
    runs = [figures for figures in results.values() if "checked" in figures]
    decisions = sum(figures["all_decisions"] for figures in runs)
    checked = sum(figures["checked"] for figures in runs)
    above = sum(figures["violations"] + figures["share_violations"] for figures in runs)
    return f"{len(runs)} simulations, {decisions:,} decisions, {checked:,} admissions checked, **{above} above a limit**."


def sizes_table(results):
    rows = [[name, size_of(results[key]["scenario"]), results[key]["scenario"]["seed"]]
            for name in SCENARIOS + ["large"] for key in [f"{name}-auto"] if key in results]
    return table(["scenario", "fleet", "seed"], rows)


def sizing_table(results):
    """Computes the decisions of one and of 16 primaries that are 60 % busy."""
    traffic = [("steady-off", "leases off"), ("spread-auto", "`auto`, a key's requests at all of 100 nodes"), ("few-nodes-auto", "`auto`, at 8 nodes"),
               ("steady-auto", "`auto`, at one node"), ("hot-auto", "`auto`, at one node, 80 times the traffic (*hot*)")]
    rows = []
    for key, text in traffic:
        if key in results:
            requests = results[key]["requests_per_decision"]
            one = 0.6 / (requests * 10.2e-6)
            rows.append([text, f"{requests:.3f}", f"{one / 1000:,.0f} k", f"{16 * one / 1e6:.1f} M"])
    return table(["traffic", "requests per decision", "one primary, decisions/s", "16 primaries, decisions/s"], rows)


def regions_table(results):
    rows = [[run["demand"], f"{run['load']:g}", run["design"], percent(run["used"], 1), percent(run["waits_a_round_trip"], 1),
             run["calls_per_key_and_second"], run["violations"]] for run in results["regions"]["runs"]]
    return table(["demand", "demand ÷ limit", "design", "limit used", "decisions that wait 100 ms", "messages between regions per key and second", "above the limit"], rows)


def large_table(results):
    rows = []
    for name in ("large-auto", "large-failover"):
        figures = results.get(name)
        if figures:
            leases, store = figures["leases"], figures["store"]
            rows.append([name.removeprefix("large-").replace("auto", "steady"), size_of(figures["scenario"]), f"{figures['requests_per_decision']:.4f}",
                         f"{store['mean_requests']:.0f} / {store['peak_requests']}", f"{leases['held']:,}", f"{leases['grants']:,}",
                         percent(leases["dropped"] / max(1, leases["granted"]))])
    return table(["scenario", "fleet", "requests per decision", "requests in 10 ms, mean / peak", "keys leased at the end", "leases", "leased quota dropped"], rows)


class Plot:
    """A plot with a logarithmic or linear scale, in the style of the other plots of docs/."""

    def __init__(self, title, x_label, y_label):
        self.parts = [f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>',
                      f'<text class="dim" x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>',
                      f'<text class="dim" x="{LEFT}" y="40">{escape(y_label)}</text>']
        self.title = title

    def y_axis(self, ticks, place):
        for value, label in ticks:
            y = place(value)
            self.parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            self.parts.append(f'<text class="dim" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')

    def x_axis(self, ticks, place):
        for value, label in ticks:
            self.parts.append(f'<text class="dim" x="{place(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>')

    def curve(self, series, points, label):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline class="curve{series}" points="{joined}"/>')
        x = WIDTH - RIGHT - 220 + 75 * series
        self.parts.append(f'<text class="label{series}" x="{x}" y="24">{escape(label)}</text>')

    def write(self, path):
        def theme(dark, card, frame, text, dim):
            css = f".card{{fill:{card};stroke:{frame}}}.title{{fill:{text}}}.dim{{fill:{dim}}}.grid{{stroke:{frame}}}"
            for number, colour in enumerate(COLOURS):
                css += f".label{number}{{fill:{colour[dark]}}}.curve{number}{{stroke:{colour[dark]}}}"
            return css

        light = theme(0, "#ffffff", "#d0d7de", "#1f2328", "#57606a")
        dark = theme(1, "#0d1117", "#30363d", "#e6edf3", "#8b949e")
        path.write_text("\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="{escape(self.title)}">',
            f"<style>.title{{font-weight:600}}.dim{{font-size:12px}}polyline{{fill:none;stroke-width:2}}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
            *self.parts, "</svg>\n"]))


def plot_ranks(results, path):
    plot = Plot("Store requests per decision, by rank of the key", "rank of the key (1: most requests)", "requests per decision")
    place_x = lambda rank: LEFT + 10 + (WIDTH - LEFT - RIGHT - 20) * math.log10(rank) / 5
    place_y = lambda value: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(max(value, 1e-3)) + 3) / 3
    plot.y_axis([(10 ** -power, f"{10 ** -power:g}") for power in range(4)], place_y)
    plot.x_axis([(10 ** power, f"{10 ** power:,}") for power in range(6)], place_x)
    for series, lease in enumerate(LEASES):
        figures = results.get(f"steady-{lease}")
        if figures:
            points = [(place_x(math.sqrt(first * last)), place_y(part["keys"]["requests_per_decision"]))
                      for part in figures["by_rank"] for first, last in [part["ranks"]]]
            plot.curve(series, points, lease)
    plot.write(path)


def plot_timeline(runs, title, path):
    """Draws requests per 100 ms. `runs` are the names and figures."""
    plot = Plot(title, "seconds", "requests to the store per second")
    highest = max(max(figures["timeline"][10:]) * 10 for _, figures in runs)
    step = 10 ** math.floor(math.log10(highest))
    top = math.ceil(highest / step) * step
    length = max(len(figures["timeline"]) for _, figures in runs) / 10
    place_x = lambda seconds: LEFT + (WIDTH - LEFT - RIGHT) * seconds / length
    place_y = lambda value: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value, top) / top
    plot.y_axis([(top * part / 4, f"{top * part / 4:,.0f}") for part in range(5)], place_y)
    plot.x_axis([(second, second) for second in range(0, int(length) + 1, 2)], place_x)
    for name, figures in runs:
        points = [(place_x(number / 10), place_y(count * 10)) for number, count in enumerate(figures["timeline"])]
        plot.curve(LEASES.index(name), points, name)
    plot.write(path)


def write_section(text, name, section):
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = text.split(begin, 1)
    return before + begin + "\n" + section + "\n" + end + rest.split(end, 1)[1]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results, docs = load(sys.argv[1]), Path(sys.argv[2])
    page = docs / "SCALE.md"
    text = page.read_text()
    sections = {"total": total_line, "sizes": sizes_table, "figures": main_table, "large": large_table, "sizing": sizing_table, "regions": regions_table}
    for name, section in sections.items():
        text = write_section(text, name, section(results))
    page.write_text(text)
    plot_ranks(results, docs / "scale-ranks.svg")
    flash = [(lease, results[f"flash-{lease}"]) for lease in ("off", "auto") if f"flash-{lease}" in results]
    if flash:
        plot_timeline(flash, "A flash crowd of 15 times the demand of ten keys", docs / "scale-flash.svg")
    failover = results.get("large-failover") or results["failover-auto"]
    plot_timeline([("auto", failover)], f"A failover of two seconds, {failover['scenario']['nodes']:,} nodes", docs / "scale-failover.svg")


if __name__ == "__main__":
    main()
