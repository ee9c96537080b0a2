"""How a dashboard has to be made, one function a rule. Each gives what is wrong: rule, panel and sentence.

The rules are those that Grafana's dashboard linter checks, and some of ours, in our own words.
"""

import re

import boards
import exposition
import promql

UNITS = {
    "none", "short", "percentunit", "s", "bytes", "Bps", "ops", "opm", "reqps",
}
OVERRIDES = {"custom.lineStyle", "custom.fillOpacity", "color"}
WIDTH = 24


def has_variables(board, _):
    """A data source to choose, then job and instance, each with any number chosen."""
    listed = {variable["name"]: variable for variable in boards.variables(board)}
    source = listed.get("datasource", {})
    if (source.get("type"), source.get("query"), source.get("label")) != ("datasource", "prometheus", "Data source"):
        yield "template-datasource", None, "a variable `datasource` lists the data sources of type prometheus"
    for name in ("job", "instance"):
        one = listed.get(name, {})
        if not (one.get("multi") and one.get("includeAll") and one.get("allValue") == ".+" and one.get("label")):
            yield f"template-{name}", None, f"a variable `{name}`: labelled, several or all, all being .+"
    if list(listed)[:3] != ["datasource", "job", "instance"]:
        yield "template-order", None, "the first variables are datasource, job, instance"


def variables_ask_well(board, _):
    for variable in boards.variables(board):
        if variable["type"] != "query":
            continue
        name = variable["name"]
        if variable["refresh"] != 2:
            yield "template-on-time-change", None, f"variable {name}: asked anew when the time range changes"
        if variable["datasource"]["uid"] != "${datasource}":
            yield "template-datasource", None, f"variable {name}: asks the data source that was chosen"
        selector, _ = boards.label_query(variable)
        if selector is None or variable["definition"] != variable["query"]["query"]:
            yield "template-label-promql", None, f"variable {name}: its query is label_values(METRIC, LABEL)"


def is_no_draft(board, _):
    if board["editable"]:
        yield "uneditable", None, "it is not edited where it is shown: changes would be lost with the next start"
    if "__inputs" in board or "__requires" in board:
        yield "no-inputs", None, "__inputs are for imports by hand; provisioning does not fill them in"
    if not 30 <= board["schemaVersion"] <= 42:
        yield "schema-version", None, "one that every Grafana in use can read"
    if not re.fullmatch(r"oncelog-[a-z]{3,20}", board["uid"]):
        yield "uid", None, "a short name that stays"
    if board["graphTooltip"] != 1 or "oncelog" not in board["tags"]:
        yield "common", None, "a crosshair that all panels share, and the tag oncelog"


def asks_the_chosen_source(board, _):
    for panel in boards.panels(board):
        sources = [panel["datasource"], *(target["datasource"] for target in panel.get("targets", []))]
        if any(source != {"type": "prometheus", "uid": "${datasource}"} for source in sources):
            yield "panel-datasource", panel, "asks the data source that was chosen, and no other"


def says_what_it_shows(board, _):
    seen = set()
    for panel in boards.panels(board):
        if not panel["title"] or len(panel["description"]) < 15:
            yield "panel-title-description", panel, "a title, and a description that says more"
        if panel["title"] in seen:
            yield "panel-title-once", panel, "two panels of one name"
        seen.add(panel["title"])


def has_a_unit(board, _):
    for panel in boards.panels(board):
        if panel["type"] != "text" and panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
            yield "panel-units", panel, "a unit that Grafana knows and we have chosen to use"


def asks_something(board, _):
    for panel in boards.panels(board):
        if panel["type"] != "text" and not panel.get("targets"):
            yield "panel-no-targets", panel, "a panel asks something"
        letters = [target["refId"] for target in panel.get("targets", [])]
        if len(set(letters)) != len(letters):
            yield "panel-ref-ids", panel, "each query has its own letter"


def queries_are_right(board, families):
    for panel, target in boards.queries(board):
        expr = target["expr"]
        try:
            tree = promql.parse(boards.filled(expr))
        except ValueError as error:
            yield "target-promql", panel, f"{error}: {expr}"
            continue
        ranges = set(re.findall(r"\[([^\]]+)\]", expr))
        allowed = {"$__rate_interval"} | ({"$__range"} if target["instant"] else set())
        if ranges - allowed:
            yield "target-rate-interval", panel, f"a rate goes over $__rate_interval: {expr}"
        # Read with the variables left in: what is asked for is `$job`, not what happens to be chosen.
        for use in promql.uses(promql.parse(re.sub(r"\[\$\w+\]", "[1m]", expr))):
            for label in ("job", "instance"):
                if use.matcher(label) != (label, "Re", f"${label}"):
                    yield f"target-{label}", panel, f'{use.metric} without {label}=~"${label}": {expr}'
            if exposition.counts(families, use.metric) and not promql.RATES & set(use.inside):
                yield "counter-in-rate", panel, f"{use.metric} only grows: its rate says something, it does not"
        yield from legend(panel, target, tree, families)


def legend(panel, target, tree, families):
    """A label in a legend that the result does not have shows as its name in braces."""
    wanted = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    by = promql.grouped_by(tree)
    if by is None:
        metrics = [exposition.of(families, use.metric) for use in promql.uses(tree)]
        by = {label for family in metrics if family for label in family.labels} | {"job", "instance"}
    if wanted - by:
        yield "legend", panel, f"no label {sorted(wanted - by)} in {target['expr']}"


def overrides_strike(board, _):
    for panel in boards.panels(board):
        legends = {target["legendFormat"] for target in panel.get("targets", [])}
        for each in panel.get("fieldConfig", {}).get("overrides", []):
            if each["matcher"]["id"] != "byName" or each["matcher"]["options"] not in legends:
                yield "override", panel, f"no line is called {each['matcher']['options']}"
            if not {one["id"] for one in each["properties"]} <= OVERRIDES:
                yield "override", panel, "a property that is not known here"


def lies_on_the_grid(board, _):
    taken = {}
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        yield "grid", None, "each panel has its own id"
    for panel in board["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > WIDTH:
            yield "grid", panel, "ends beyond the last column"
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in taken:
                    yield "grid", panel, f"lies on {taken[x, y]}"
                    return
                taken[x, y] = panel["title"]


RULES = [
    has_variables,
    variables_ask_well,
    is_no_draft,
    asks_the_chosen_source,
    says_what_it_shows,
    has_a_unit,
    asks_something,
    queries_are_right,
    overrides_strike,
    lies_on_the_grid,
]


def wrong(name, board, families):
    """Rule, dashboard, panel's title or None, sentence."""
    for rule in RULES:
        for what, panel, sentence in rule(board, families):
            yield what, name, panel and panel["title"], sentence
