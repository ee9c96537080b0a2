"""Pieces of a Grafana dashboard in its classic JSON, and how they are laid out.

In a query, `@` stands for the matchers of job and instance, and `[~]` for a range as long as a rate needs at the zoom
that is looked at. Everything that all our dashboards have in common is said here and nowhere else.
"""

PREFIX = "oncelog-"
SCHEMA_VERSION = 39
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
MATCHERS = 'job=~"$job",instance=~"$instance"'
COLUMNS = 24

GREEN, YELLOW, RED, BLUE, PLAIN = "green", "yellow", "red", "blue", "text"


def promql(short):
    return short.replace("@", MATCHERS).replace("[~]", "[$__rate_interval]")


def quantile(q, family, by="le", matchers="@"):
    return f"histogram_quantile({q}, sum by ({by}) (rate({family}_bucket{{{matchers}}}[~])))"


def steps(*pairs, base=GREEN):
    """Thresholds: the colour below all of them, then pairs of a value and the colour from there on."""
    found = [{"color": base, "value": None}]
    return found + [{"color": color, "value": value} for value, color in pairs]


def targets(queries, instant=False, table=False):
    found = []
    for number, query in enumerate(queries):
        expr, legend = query if isinstance(query, tuple) else (query, "")
        found.append(
            {
                "datasource": DATASOURCE,
                "editorMode": "code",
                "expr": promql(expr),
                "format": "table" if table else "time_series",
                "instant": instant,
                "legendFormat": legend or "__auto",
                "range": not instant,
                "refId": chr(ord("A") + number),
            }
        )
    return found


def panel(kind, title, description, width, height, **rest):
    return {
        "datasource": DATASOURCE,
        "description": description,
        "gridPos": {"h": height, "w": width, "x": 0, "y": 0},
        "title": title,
        "type": kind,
        **rest,
    }


def nan_says(text):
    """What is shown where there is nothing to divide by."""
    return [{"type": "special", "options": {"match": "nan", "result": {"text": text, "color": PLAIN, "index": 0}}}]


def yes_or_no(yes, no):
    """1 and 0 in words, each in its colour."""
    named = {"0": {"text": "no", "color": no, "index": 0}, "1": {"text": "yes", "color": yes, "index": 1}}
    return [{"type": "value", "options": named}]


def stat(title, description, query, unit="short", at=None, width=4, mappings=(), decimals=None, spark=True):
    defaults = {
        "color": {"mode": "thresholds"},
        "mappings": list(mappings),
        "noValue": "N/A",
        "thresholds": {"mode": "absolute", "steps": at or steps(base=BLUE)},
        "unit": unit,
    }
    if decimals is not None:
        defaults["decimals"] = decimals
    queries = query if isinstance(query, list) else [query]
    return panel(
        "stat",
        title,
        description,
        width,
        4,
        fieldConfig={"defaults": defaults, "overrides": []},
        options={
            "colorMode": "value",
            "graphMode": "area" if spark else "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "showPercentChange": False,
            "textMode": "auto",
            "wideLayout": True,
        },
        targets=targets(queries, instant=not spark),
    )


def series(title, description, queries, unit="short", width=12, stack=False, at=None, least=0, most=None, dashed=()):
    """Lines over time. `dashed` names the legends that are limits, not measurements."""
    custom = {
        "drawStyle": "line",
        "fillOpacity": 30 if stack else 8,
        "lineInterpolation": "linear",
        "lineWidth": 1 if stack else 2,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stack else "none"},
        "thresholdsStyle": {"mode": "area" if at else "off"},
    }
    defaults = {
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "mappings": [],
        "noValue": "N/A",
        "thresholds": {"mode": "absolute", "steps": at or steps()},
        "unit": unit,
    }
    if least is not None:
        defaults["min"] = least
    if most is not None:
        defaults["max"] = most
    overrides = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [
                {"id": "custom.lineStyle", "value": {"dash": [8, 6], "fill": "dash"}},
                {"id": "custom.fillOpacity", "value": 0},
                {"id": "color", "value": {"fixedColor": RED, "mode": "fixed"}},
            ],
        }
        for name in dashed
    ]
    return panel(
        "timeseries",
        title,
        description,
        width,
        8,
        fieldConfig={"defaults": defaults, "overrides": overrides},
        options={
            "legend": {
                "calcs": ["lastNotNull", "max"],
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        targets=targets(queries),
    )


def bars(title, description, query, unit="short", width=12, at=None, height=8):
    """What is largest right now."""
    return panel(
        "bargauge",
        title,
        description,
        width,
        height,
        fieldConfig={
            "defaults": {
                "color": {"mode": "thresholds"},
                "mappings": [],
                "min": 0,
                "noValue": "N/A",
                "thresholds": {"mode": "absolute", "steps": at or steps(base=BLUE)},
                "unit": unit,
            },
            "overrides": [],
        },
        options={
            "displayMode": "basic",
            "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
            "maxVizHeight": 32,
            "minVizHeight": 12,
            "minVizWidth": 8,
            "namePlacement": "left",
            "orientation": "horizontal",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "showUnfilled": True,
            "sizing": "manual",
            "valueMode": "color",
        },
        targets=targets([query], instant=True),
    )


def table(title, description, queries, hidden=(), named=None, unit="none", width=12, height=8):
    """One line a series, its labels as columns."""
    return panel(
        "table",
        title,
        description,
        width,
        height,
        fieldConfig={
            "defaults": {
                "color": {"mode": "thresholds"},
                "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False},
                "mappings": [],
                "noValue": "N/A",
                "thresholds": {"mode": "absolute", "steps": steps(base=PLAIN)},
                "unit": unit,
            },
            "overrides": [],
        },
        options={"cellHeight": "sm", "showHeader": True},
        targets=targets(queries, instant=True, table=True),
        transformations=[
            {
                "id": "organize",
                "options": {
                    "excludeByName": {name: True for name in ("Time", "__name__", *hidden)},
                    "indexByName": {},
                    "renameByName": named or {},
                },
            }
        ],
    )


def text(title, description, content, width=12, height=8):
    return panel(
        "text",
        title,
        description,
        width,
        height,
        options={
            "code": {"language": "plaintext", "showLineNumbers": False, "showMiniMap": False},
            "content": content,
            "mode": "markdown",
        },
    )


def laid_out(rows):
    """Gives every panel its place and number: rows from top to bottom, panels from left to right."""
    found, y = [], 0
    for title, panels in rows:
        found.append(
            {"collapsed": False, "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}, "panels": [], "title": title,
             "type": "row"}
        )
        y += 1
        x = height = 0
        for each in panels:
            place = each["gridPos"]
            if x + place["w"] > COLUMNS:
                x, y, height = 0, y + height, 0
            place["x"], place["y"] = x, y
            x += place["w"]
            height = max(height, place["h"])
            found.append(each)
        y += height
    for number, each in enumerate(found):
        each["id"] = number + 1
    return found


def variable(name, label, query):
    return {
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "datasource": DATASOURCE,
        "definition": promql(query),
        "hide": 0,
        "includeAll": True,
        "label": label,
        "multi": True,
        "name": name,
        "options": [],
        "query": {"qryType": 1, "query": promql(query), "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
        "type": "query",
    }


def variables(*more):
    source = {
        "current": {"selected": False, "text": "default", "value": "default"},
        "hide": 0,
        "includeAll": False,
        "label": "Data source",
        "multi": False,
        "name": "datasource",
        "options": [],
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
        "type": "datasource",
    }
    return [
        source,
        variable("job", "Job", "label_values(oncelog_build_info, job)"),
        variable("instance", "Instance", 'label_values(oncelog_build_info{job=~"$job"}, instance)'),
        *more,
    ]


# Both lists of topics have a series for what is folded together from the start, so neither is ever empty.
TOPIC = ("topic", "Topic", "label_values(oncelog_produced_records_total{@}, topic)")
GROUP = ("group", "Group", "label_values(oncelog_group_lag_records{@}, group)")


def annotation(name, query, color, title, by_value=False):
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": promql(query),
        "hide": False,
        "iconColor": color,
        "name": name,
        "step": "10s",
        "titleFormat": title,
        "useValueForTime": by_value,
    }


def annotations():
    return [
        annotation("Starts", "process_start_time_seconds{@} * 1000", BLUE, "Broker started", by_value=True),
        annotation("Operators", "changes(oncelog_operator_actions_total{@}[~]) > 0", RED, "Operator: {{action}}"),
    ]


def link(name):
    return {
        "asDropdown": False,
        "icon": "dashboard",
        "includeVars": True,
        "keepTime": True,
        "tags": [],
        "targetBlank": False,
        "title": name.capitalize(),
        "tooltip": "",
        "type": "link",
        "url": f"/d/{PREFIX}{name}",
    }


ALL = ("transactions", "broker", "consumers")


def dashboard(name, description, rows, more=()):
    return {
        "annotations": {"list": annotations()},
        "description": description,
        "editable": False,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "links": [link(other) for other in ALL if other != name],
        "liveNow": False,
        "panels": laid_out(rows),
        "refresh": "10s",
        "schemaVersion": SCHEMA_VERSION,
        "tags": ["oncelog", "kafka"],
        "templating": {"list": variables(*[variable(*each) for each in more])},
        "time": {"from": "now-30m", "to": "now"},
        "timepicker": {},
        "timezone": "",
        "title": f"oncelog / {name.capitalize()}",
        "uid": PREFIX + name,
        "version": 1,
        "weekStart": "",
    }
