"""Compares alert rules, dashboard and documentation with scrapes of real nodes. scripts/monitoring-check runs it."""

import json
import re
import sys

RULES = "deploy/prometheus/tollgate.rules.yml"
TESTS = "deploy/prometheus/tollgate.rules.test.yml"
DASHBOARD = "deploy/grafana/tollgate.json"
PAGE = "docs/OPERATING.md"

# Metrics of Tollgate and of the process. The lookarounds exclude recording rules, whose names contain a colon.
NAME = re.compile(r"(?<![\w:])((?:ratelimiter|rate_limit|tollgate|process)_[a-z_]+)(?![\w:])")
SELECTED = re.compile(r"(?<![\w:])((?:ratelimiter|rate_limit|tollgate|process)_[a-z_]+)\{([^}]*)\}")
LABEL = re.compile(r'(\w+)\s*=\s*"([^"$]*)"')

problems = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def metrics(texts):
    """Returns every metric of the scrapes with its labels and their values."""
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
    """Checks that every metric, label and label value in the expressions exists."""
    added_by_prometheus = {"job", "instance"}
    for expression in expressions:
        for name in NAME.findall(expression):
            if base_of(name, known) not in known:
                problems.append(f"{where}: {name} is not in /metrics: {expression}")
        for name, selector in SELECTED.findall(expression):
            labels = known.get(base_of(name, known), {})
            for label, value in LABEL.findall(selector):
                if label in added_by_prometheus or "$" in value or label == "rule":
                    continue
                if value not in labels.get(label, ()):
                    problems.append(f'{where}: {name} has no {label}="{value}"')


def section(page, heading):
    parts = page.split(f"\n## {heading}\n")
    if len(parts) != 2:
        problems.append(f"{PAGE}: expected exactly one heading {heading}")
        return ""
    return parts[1].split("\n## ")[0]


def check_page(page, known):
    """Checks that the metrics table lists exactly the metrics and labels of /metrics."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", section(page, "Metrics"), re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    for name in sorted(known.keys() - documented.keys()):
        problems.append(f"{PAGE}: the Metrics table lacks {name}")
    for name in sorted(documented.keys() - known.keys()):
        problems.append(f"{PAGE}: the Metrics table has {name}, which is not in /metrics")
    for name in sorted(documented.keys() & known.keys()):
        labels = set(known[name]) - {"le"}
        if documented[name] != labels:
            problems.append(f"{PAGE}: {name} has the labels {sorted(labels)}, the table has {sorted(documented[name])}")


def check_alerts(rules, tests, page):
    """Checks that every alert has annotations, a runbook section, and tests for firing and not firing."""
    headings = {line[4:] for line in section(page, "Alerts").splitlines() if line.startswith("### ")}
    tested = {}
    for test in tests.split("\n  - name: ")[1:]:
        results = {}
        for alert, expected in re.findall(r"alertname: (\w+)\n\s+exp_alerts:(.*)", test):
            results.setdefault(alert, []).append("[]" not in expected)
        for alert, fired in results.items():
            # A test counts as "does not fire" only if the alert fires at no time of the test.
            tested.setdefault(alert, set()).add("fires" if any(fired) else "does not fire")
    alerts = {}
    for block in re.split(r"\n\s+- (?=alert: |record: )", rules)[1:]:
        name = re.match(r"alert: (\w+)", block)
        if not name:
            continue
        alerts[name[1]] = block
        for annotation in ["summary", "description", "runbook"]:
            if f" {annotation}: " not in block:
                problems.append(f"{RULES}: {name[1]} has no {annotation}")
        runbook = re.search(r"runbook: (\S+)", block)
        if runbook and runbook[1] != f"{PAGE}#{name[1].lower()}":
            problems.append(f"{RULES}: wrong runbook of {name[1]}: {runbook[1]}")
        for result in sorted({"fires", "does not fire"} - tested.get(name[1], set())):
            problems.append(f"{TESTS}: no test in which {name[1]} {result}")
    for name in sorted(alerts.keys() - headings):
        problems.append(f"{PAGE}: no heading for the alert {name}")
    for name in sorted(headings - alerts.keys()):
        problems.append(f"{PAGE}: the heading {name} has no alert")
    return alerts


def expressions_of_rules(rules):
    """Returns the expressions of all rules, including folded ones."""
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
    """Checks layout, units, descriptions and data sources. Returns the expressions of the dashboard."""
    for field in ["uid", "title", "schemaVersion"]:
        if not board.get(field):
            problems.append(f"{DASHBOARD}: no {field}")
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    if variables.get("datasource", {}).get("type") != "datasource":
        problems.append(f"{DASHBOARD}: the data source is not a variable")
    for variable in variables.values():
        if variable.get("datasource", {"uid": "${datasource}"}).get("uid") != "${datasource}":
            problems.append(f"{DASHBOARD}: ${variable['name']} does not use $datasource")
    expressions, ids, taken = [], set(), {}
    for panel in board["panels"]:
        title = panel["title"]
        if panel["id"] in ids:
            problems.append(f"{DASHBOARD}: {title}: duplicate panel id {panel['id']}")
        ids.add(panel["id"])
        grid = panel["gridPos"]
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                if taken.setdefault((x, y), title) != title:
                    problems.append(f"{DASHBOARD}: {title} overlaps {taken[x, y]}")
        if grid["x"] + grid["w"] > 24:
            problems.append(f"{DASHBOARD}: {title} exceeds the grid width of 24")
        if panel["type"] == "row":
            continue
        if not panel["fieldConfig"]["defaults"].get("unit"):
            problems.append(f"{DASHBOARD}: {title} has no unit")
        if not panel.get("description"):
            problems.append(f"{DASHBOARD}: {title} has no description")
        for source in [panel["datasource"]] + [target["datasource"] for target in panel["targets"]]:
            if source.get("uid") != "${datasource}":
                problems.append(f"{DASHBOARD}: {title} does not use $datasource")
        for target in panel["targets"]:
            expressions.append(target["expr"])
            for name in re.findall(r"\b((?:job|instance):\w+:\w+)", target["expr"]):
                if name not in recorded:
                    problems.append(f"{DASHBOARD}: {title}: no recording rule {name}")
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
    for line in dict.fromkeys(problems):
        print(line, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
