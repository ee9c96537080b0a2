"""The dashboards of this repository: their panels and queries, and what Grafana puts in for variables."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "dashboards"


def dashboards():
    """Name and content of each."""
    return [(path.stem, json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]


def panels(board):
    """All but the rows' titles."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def variables(board):
    return board["templating"]["list"]


def label_query(variable):
    """Selector and label of a variable that lists the values of a label."""
    found = re.fullmatch(r"label_values\((.*), *(\w+)\)", variable["query"]["query"])
    return found.groups() if found else (None, None)


def filled(expr, rate_interval="1m", span="30m", values=None):
    """The query as Grafana sends it. A variable set to all is what `allValue` says: any text but the empty one."""
    chosen = {"__rate_interval": rate_interval, "__range": span, "__interval": "5s", **(values or {})}

    def put(found):
        return chosen.get(found.group(1) or found.group(2), ".+")

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", put, expr)


def queries(board):
    """Panel and target of each query."""
    return [(panel, target) for panel in panels(board) for target in panel.get("targets", [])]
