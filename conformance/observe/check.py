"""Checks dashboards, alerts and their documentation against what a broker really exports.

usage: check.py --broker PROGRAM [--write]
--write renews the table of metrics in docs/monitoring.md instead of comparing it.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import boards
import exposition
import load
import promql
import style
import yaml
from broker import Broker, until

HERE = pathlib.Path(__file__).resolve().parent
ROOT = boards.ROOT
RULES = ROOT / "alerts" / "oncelog.rules.yml"
RUNBOOKS = ROOT / "docs" / "runbooks"
MONITORING = ROOT / "docs" / "monitoring.md"
TABLE = ("<!-- metrics: written by conformance/observe/check --write -->", "<!-- end of metrics -->")
# What Prometheus itself knows of a target.
OWN = {"up": exposition.Family("up", "gauge", "", {})}
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation")
# Whose values are not a fixed set, or a long one.
OPEN_LABELS = {"topic", "group", "api"}
OPEN_FAMILIES = {"oncelog_build_info", "oncelog_durability_info", "oncelog_request_errors_total"}


def scrape(program):
    """The text of a broker that nobody has asked for anything, and of one that was asked for a little of everything."""
    with tempfile.TemporaryDirectory() as folder, Broker(program, folder, settings=["log.level=warn"]) as broker:
        idle = broker.metrics()
        topic, group = load.some_of_everything(broker.bootstrap)
        # Gauges are filled in at intervals; those of what was done last must be in.
        wanted = (f'topic="{topic}"', f'group="{group}"')
        until("topic and group in the metrics", lambda: all(each in broker.metrics() for each in wanted), 10)
        return idle, broker.metrics()


def alerts():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions():
    """Every PromQL expression of the repository: where it is, and the text."""
    for name, board in boards.dashboards():
        for panel, target in boards.queries(board):
            yield f"{name}: {panel['title']}", target["expr"]
        for each in board["annotations"]["list"]:
            yield f"{name}: annotation {each['name']}", each["expr"]
        for variable in boards.variables(board):
            selector, _ = boards.label_query(variable) if variable["type"] == "query" else (None, None)
            if selector:
                yield f"{name}: variable {variable['name']}", selector
    for rule in alerts():
        yield f"rule {rule.get('alert') or rule.get('record')}", rule["expr"]
    for path in sorted([MONITORING, *RUNBOOKS.glob("*.md")]):
        for block in re.findall(r"```promql\n(.*?)```", path.read_text(), re.S):
            yield path.name, block


def recorded(families):
    """What recording rules make, with the labels they keep."""
    made = {}
    for rule in alerts():
        if "record" in rule:
            labels = promql.grouped_by(promql.parse(rule["expr"])) or set()
            made[rule["record"]] = exposition.Family(rule["record"], "gauge", "", {label: None for label in labels})
    return {**families, **OWN, **made}


def parses():
    for where, expr in expressions():
        try:
            promql.parse(boards.filled(expr))
        except ValueError as error:
            yield f"{where}: {error}: {expr}"


def asks_for_what_there_is(families):
    """Metrics, labels and label values."""
    known = recorded(families)
    for where, expr in expressions():
        try:
            tree = promql.parse(re.sub(r"\[\$\w+\]", "[1m]", expr))
        except ValueError:
            continue
        for use in promql.uses(tree):
            family = exposition.of(known, use.metric)
            if family is None:
                yield f"{where}: no broker exports {use.metric}"
                continue
            yield from (f"{where}: {wrong}" for wrong in unmatched(use, family))
        for label, inside in promql.groupings(tree):
            if not all(has(exposition.of(known, use.metric), label, use.metric) for use in inside):
                yield f"{where}: grouped by {label}, which {[use.metric for use in inside]} do not all have"


def has(family, label, metric):
    return family is None or label in ("job", "instance") or label in family.labels or (
        label == "le" and metric.endswith("_bucket")
    )


def unmatched(use, family):
    for label, how, value in use.matchers:
        if label in ("job", "instance"):
            continue
        if not has(family, label, use.metric):
            yield f"{use.metric} has no label {label}"
        elif not value.startswith("$") and family.labels.get(label):
            wanted = value.split("|") if how in ("Re", "NotRe") else [value]
            for each in set(wanted) - family.labels[label]:
                yield f"{use.metric} has no {label}={each}"


def shown(families):
    """Where each family is used: names of dashboards and alerts."""
    where = {name: set() for name in families}
    for place, expr in expressions():
        if place.endswith(".md"):
            continue
        for use in promql.uses(promql.parse(boards.filled(expr))):
            family = exposition.of(families, use.metric)
            if family:
                where[family.name].add(place.split(":")[0] if not place.startswith("rule") else place)
    return where


def is_all_shown(families, excused):
    where = shown(families)
    for name, places in where.items():
        on_boards = {place for place in places if not place.startswith("rule")}
        if not on_boards and name not in excused:
            yield f"{name} is on no dashboard and not excused"
        if on_boards and name in excused:
            yield f"{name} is excused and shown"
    for name in set(excused) - set(families):
        yield f"{name} is excused and not exported"


def is_there_at_once(families, idle, excused):
    """A broker without any traffic has every family: a panel shows 0 and not that there is nothing."""
    late = set(families) - set(idle)
    yield from (f"{name} has no series before its first event" for name in sorted(late - set(excused)))
    yield from (f"{name} is excused and there from the start" for name in sorted(set(excused) - late))


def dashboards_are_in_style(families, exceptions):
    unused = [dict(each) for each in exceptions]
    for name, board in boards.dashboards():
        for rule, where, panel, sentence in style.wrong(name, board, families):
            excuse = [e for e in unused if (e["rule"], e["dashboard"], e["panel"]) == (rule, where, panel)]
            for each in excuse:
                each["used"] = True
            if not excuse:
                yield f"{where}: {panel or 'as a whole'}: {rule}: {sentence}"
    yield from (f"exceptions.yml: nothing needs {e}" for e in unused if not e.get("used"))


def links_lead_somewhere():
    """Between dashboards, from alerts to dashboards and runbooks; alerts and runbooks one to one."""
    uids = {board["uid"] for _, board in boards.dashboards()}
    for name, board in boards.dashboards():
        others = {f"/d/{uid}" for uid in uids - {board["uid"]}}
        found = {link["url"] for link in board["links"]}
        if found != others:
            yield f"{name}: links to {sorted(found)}, the others are {sorted(others)}"
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    for rule in (rule for rule in alerts() if "alert" in rule):
        name, notes = rule["alert"], rule["annotations"]
        if set(notes) != {"summary", "description", "dashboard", "runbook_url"}:
            yield f"{name}: summary, description, dashboard and runbook_url, and nothing else: {sorted(notes)}"
            continue
        if notes["dashboard"].removeprefix("/d/") not in uids:
            yield f"{name}: there is no dashboard {notes['dashboard']}"
        if notes["runbook_url"] != f"docs/runbooks/{name}.md" or name not in pages:
            yield f"{name}: its runbook is docs/runbooks/{name}.md"
        if rule["labels"].get("severity") not in ("critical", "warning", "info"):
            yield f"{name}: severity is critical, warning or info"
        # An alert on what is absent or broken at all says all there is to say.
        if "$value" not in notes["description"] and not re.search(r"== [01]|> 0$|absent|predict", rule["expr"]):
            yield f"{name}: its description says the value"
        pages.discard(name)
    yield from (f"docs/runbooks/{page}.md: there is no such alert" for page in sorted(pages))


def runbooks_are_whole():
    for path in sorted(set(RUNBOOKS.glob("*.md")) - {RUNBOOKS / "README.md"}):
        text = path.read_text()
        if not text.startswith(f"# {path.stem}\n"):
            yield f"{path.name}: begins with its name"
        found = re.findall(r"^## (.*)$", text, re.M)
        if tuple(found) != SECTIONS:
            yield f"{path.name}: {', '.join(SECTIONS)}, not {found}"
        for target, place in re.findall(r"\]\(([^)#:]+)(?:#([^)]*))?\)", text):
            page = path.parent / target
            if not page.exists() or place and place not in headings(page):
                yield f"{path.name}: {target} {place} does not exist"


def headings(page):
    """Of a page, as links name them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def table(families):
    where = shown(families)
    lines = ["| metric | kind | labels | meaning | seen on |", "|---|---|---|---|---|"]
    for name, family in sorted(families.items()):
        shown_labels = sorted((label, values) for label, values in family.labels.items() if label != "le")
        labels = ", ".join(described(name, *each) for each in shown_labels)
        on = sorted(place for place in where[name] if not place.startswith("rule"))
        rules = sorted(place.removeprefix("rule ") for place in where[name] if place.startswith("rule Oncelog"))
        meaning = family.help.rstrip(".").replace("|", "\\|")
        lines.append(f"| `{name}` | {family.kind} | {labels} | {meaning} | {', '.join(on + rules)} |")
    return "\n".join(lines)


def described(family, label, values):
    """Values are named where they are a fixed set, and not where this broker happens to have had some of them."""
    closed = family not in OPEN_FAMILIES and label not in OPEN_LABELS
    return f"`{label}`: {', '.join(sorted(values))}" if closed else f"`{label}`"


def metrics_are_documented(families, write):
    text = MONITORING.read_text()
    head, _, rest = text.partition(TABLE[0])
    _, _, tail = rest.partition(TABLE[1])
    wanted = f"{head}{TABLE[0]}\n{table(families)}\n{TABLE[1]}{tail}"
    if write:
        MONITORING.write_text(wanted)
    elif text != wanted:
        yield "docs/monitoring.md: its table is not what the broker exports: run conformance/observe/check --write"


def runs(*command, given=None, limit_s=120):
    """What a program has against it, in lines."""
    ended = subprocess.run(command, input=given, capture_output=True, text=True, cwd=ROOT, timeout=limit_s)
    if ended.returncode:
        yield from [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--broker", required=True)
    words.add_argument("--schema", required=True, help="folder with check.mjs and its modules")
    words.add_argument("--write", action="store_true")
    given = words.parse_args()
    exceptions = yaml.safe_load((HERE / "exceptions.yml").read_text())
    idle, text = scrape(given.broker)
    families = exposition.read(text)
    files = [str(path) for path in sorted(boards.FOLDER.glob("*.json"))]
    checks = {
        "dashboards are as they are generated": runs("dashboards/generate", "--check"),
        "dashboards have Grafana's shape": runs("node", f"{given.schema}/check.mjs", *files),
        "dashboards are in style": dashboards_are_in_style(families, exceptions["panels"]),
        "PromQL parses": parses(),
        "what is asked for is exported": asks_for_what_there_is(families),
        "what is exported is shown": is_all_shown(families, exceptions["unshown"] or {}),
        "what is shown is there from the start": is_there_at_once(families, exposition.read(idle), exceptions["later"]),
        "links lead somewhere": links_lead_somewhere(),
        "runbooks are whole": runbooks_are_whole(),
        "every metric is documented": metrics_are_documented(families, given.write),
        "promtool: rules": runs("promtool", "check", "rules", "--lint=all", "--lint-fatal", str(RULES)),
        "promtool: tests of rules": runs("promtool", "test", "rules", str(RULES.with_suffix(".test.yml"))),
        "promtool: metrics": runs("promtool", "check", "metrics", given=text),
        "yamllint": runs(sys.executable, "-m", "yamllint", "-s", "-c", str(HERE / "yamllint.yml"), "alerts",
                         str(HERE / "exceptions.yml")),
    }
    failed = 0
    for name, found in checks.items():
        wrong = list(found)
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'passed'}  {name}")
        for line in wrong:
            print(f"        {line}")
    queries = sum(len(boards.queries(board)) for _, board in boards.dashboards())
    print(f"metrics {len(families)} queries {queries} rules {len(alerts())} checks {len(checks)} failed {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
