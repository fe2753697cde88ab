"""Rules, dashboard and documentation against what nodes really tell: scripts/watching runs it over their /metrics."""

import json
import re
import sys

RULES = "deploy/prometheus/tollgate.rules.yml"
TESTS = "deploy/prometheus/tollgate.rules.test.yml"
DASHBOARD = "deploy/grafana/tollgate.json"
PAGE = "docs/OPERATING.md"

# Names that are ours, or of the process; recorded sums (with a colon) are told apart by what precedes.
NAME = re.compile(r"(?<![\w:])((?:ratelimiter|rate_limit|tollgate|process)_[a-z_]+)(?![\w:])")
SELECTED = re.compile(r"(?<![\w:])((?:ratelimiter|rate_limit|tollgate|process)_[a-z_]+)\{([^}]*)\}")
LABEL = re.compile(r'(\w+)\s*=\s*"([^"$]*)"')

wrong = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def metrics(texts):
    """Every metric with its labels and their values, of several scrapes."""
    found = {}
    for text in texts:
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                found.setdefault(line.split()[2], {})
            elif not line.startswith("#"):
                name, labels = re.match(r"(\w+)(\{.*\})?", line).groups()
                base = re.sub(r"_(bucket|sum|count)$", "", name)
                values = found[base if base in found else name]
                for label, value in re.findall(r'(\w+)="([^"]*)"', labels or ""):
                    values.setdefault(label, set()).add(value)
    return found


def base_of(name, known):
    stem = re.sub(r"_(bucket|sum|count)$", "", name)
    return stem if name not in known and stem in known else name


def check_names(where, expressions, known):
    """What is asked for is there, with the labels and values that are asked for."""
    recorded = {"job", "instance"}
    for expression in expressions:
        for name in NAME.findall(expression):
            if base_of(name, known) not in known:
                wrong.append(f"{where}: {name} is in no /metrics: {expression}")
        for name, selector in SELECTED.findall(expression):
            labels = known.get(base_of(name, known), {})
            for label, value in LABEL.findall(selector):
                if label in recorded or "$" in value or label == "rule":
                    continue
                if value not in labels.get(label, ()):
                    wrong.append(f'{where}: {name} never has {label}="{value}"')


def section(page, heading):
    parts = page.split(f"\n## {heading}\n")
    if len(parts) != 2:
        wrong.append(f"{PAGE}: there is no single heading: {heading}")
        return ""
    return parts[1].split("\n## ")[0]


def check_page(page, known):
    """The table names every metric, its labels, and nothing else."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", section(page, "Watching"), re.MULTILINE)
    told = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    for name in sorted(known.keys() - told.keys()):
        wrong.append(f"{PAGE}: {name} is in /metrics and not in the table below Watching")
    for name in sorted(told.keys() - known.keys()):
        wrong.append(f"{PAGE}: {name} is in the table below Watching and in no /metrics")
    for name in sorted(told.keys() & known.keys()):
        labels = set(known[name]) - {"le"}
        if told[name] != labels:
            wrong.append(f"{PAGE}: {name} has the labels {sorted(labels)}, the table says {sorted(told[name])}")


def check_alerts(rules, tests, page):
    """Every alert says what it is and what to do, and is tested both ways."""
    headings = {line[4:] for line in section(page, "Alerts").splitlines() if line.startswith("### ")}
    tested = {}
    for test in tests.split("\n  - name: ")[1:]:
        looks = {}
        for alert, expected in re.findall(r"alertname: (\w+)\n\s+exp_alerts:(.*)", test):
            looks.setdefault(alert, []).append("[]" not in expected)
        for alert, fired in looks.items():
            # Not yet is not never: a test in which it does not fire is one in which it never does.
            tested.setdefault(alert, set()).add("fires" if any(fired) else "does not fire")
    alerts = {}
    for block in re.split(r"\n\s+- (?=alert: |record: )", rules)[1:]:
        name = re.match(r"alert: (\w+)", block)
        if not name:
            continue
        alerts[name[1]] = block
        for annotation in ["summary", "description", "runbook"]:
            if f" {annotation}: " not in block:
                wrong.append(f"{RULES}: {name[1]} has no {annotation}")
        runbook = re.search(r"runbook: (\S+)", block)
        if runbook and runbook[1] != f"{PAGE}#{name[1].lower()}":
            wrong.append(f"{RULES}: {name[1]} points at {runbook[1]}")
        for way in sorted({"fires", "does not fire"} - tested.get(name[1], set())):
            wrong.append(f"{TESTS}: no test in which {name[1]} {way}")
    for name in sorted(alerts.keys() - headings):
        wrong.append(f"{PAGE}: there is no heading for the alert {name}")
    for name in sorted(headings - alerts.keys()):
        wrong.append(f"{PAGE}: there is a heading for {name}, which is no alert")
    return alerts


def expressions_of_rules(rules):
    """The expressions, folded ones too."""
    lines, found = rules.splitlines(), []
    for at, line in enumerate(lines):
        head = re.match(r"(\s+)expr: ?(.*)", line)
        if not head:
            continue
        text = [head[2].removeprefix(">-")]
        for more in lines[at + 1 :]:
            if len(more) - len(more.lstrip()) <= len(head[1]):
                break
            text.append(more.strip())
        found.append(" ".join(text).strip())
    return found


def check_dashboard(board, recorded):
    """Usable wherever it is imported: nothing of one machine in it. Its expressions."""
    for field in ["uid", "title", "schemaVersion"]:
        if not board.get(field):
            wrong.append(f"{DASHBOARD}: no {field}")
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    if variables.get("datasource", {}).get("type") != "datasource":
        wrong.append(f"{DASHBOARD}: the data source is no variable")
    for variable in variables.values():
        if variable.get("datasource", {"uid": "${datasource}"}).get("uid") != "${datasource}":
            wrong.append(f"{DASHBOARD}: ${variable['name']} has a data source of its own")
    expressions, ids, taken = [], set(), {}
    for panel in board["panels"]:
        title = panel["title"]
        if panel["id"] in ids:
            wrong.append(f"{DASHBOARD}: {title}: its id is another's too")
        ids.add(panel["id"])
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if taken.setdefault((x, y), title) != title:
                    wrong.append(f"{DASHBOARD}: {title} lies over {taken[x, y]}")
        if place["x"] + place["w"] > 24:
            wrong.append(f"{DASHBOARD}: {title} is beyond the edge")
        if panel["type"] == "row":
            continue
        if not panel["fieldConfig"]["defaults"].get("unit"):
            wrong.append(f"{DASHBOARD}: {title} has no unit")
        if not panel.get("description"):
            wrong.append(f"{DASHBOARD}: {title} does not say what it shows")
        for source in [panel["datasource"]] + [target["datasource"] for target in panel["targets"]]:
            if source.get("uid") != "${datasource}":
                wrong.append(f"{DASHBOARD}: {title} has a data source of its own")
        for target in panel["targets"]:
            expressions.append(target["expr"])
            for name in re.findall(r"\b((?:job|instance):\w+:\w+)", target["expr"]):
                if name not in recorded:
                    wrong.append(f"{DASHBOARD}: {title}: nothing records {name}")
    queries = [v["query"]["query"] for v in variables.values() if isinstance(v.get("query"), dict)]
    return expressions + queries


def main(scrapes):
    known = metrics(read(path) for path in scrapes)
    rules, page = read(RULES), read(PAGE)
    recorded = set(re.findall(r"- record: (\S+)", rules))
    check_names(RULES, expressions_of_rules(rules), known)
    check_names(DASHBOARD, check_dashboard(json.loads(read(DASHBOARD)), recorded), known)
    check_page(page, known)
    check_alerts(rules, read(TESTS), page)
    for line in dict.fromkeys(wrong):
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
