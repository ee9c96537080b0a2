"""The chart's `config` and the broker's settings: one table, in src/config/settings.rs, from which the schema's part is made."""

import pathlib
import re

SOURCE = pathlib.Path("src/config/settings.rs")
# What the chart sets by itself.
OWN = ("data_dir", "listeners.", "admin.")
CONSTANTS = {"INT": 2**31 - 1, "YEARS": 10 * 365 * 24 * 3_600_000, "MIB": 1 << 20, "i64::MAX": 2**63 - 1}


def number(text):
    text = text.strip()
    if text in CONSTANTS:
        return CONSTANTS[text]
    base, _, shift = text.replace("_", "").partition("<<")
    return int(base) << int(shift or 0)


def value_of(accepts):
    """What a setting accepts, as JSON schema."""
    if accepts == "Switch":
        return {"type": "boolean"}
    choice = re.fullmatch(r"Choice\(&\[(.*)\]\)", accepts)
    if choice:
        return {"enum": re.findall(r'"([^"]+)"', choice[1])}
    bounds = re.fullmatch(r'(ms|bytes|count)\((?:"[^"]*", )?(.+), (.+)\)', accepts)
    if bounds:
        schema = {"type": "integer", "minimum": number(bounds[2])}
        # JSON carries numbers as floating point: beyond 2^53 there is nothing to compare.
        return schema | ({"maximum": number(bounds[3])} if number(bounds[3]) < 2**53 else {})
    ratio = re.fullmatch(r"(Ratio|Fraction|Share).*", accepts)
    return {"type": "number", "minimum": 0, "maximum": 1} if ratio else {"type": "string"}


def rows():
    text = re.sub(r"\s+", " ", SOURCE.read_text())
    table = text.split("pub(super) const SETTINGS", 1)[1].split("];", 1)[0]
    for part in table.split("row(")[1:]:
        key, accepts, meaning = re.match(r'\s*"([^"]+)", (.*), "((?:[^"\\]|\\.)*)",?\s*\)', part).groups()
        yield key, accepts, meaning


def schema():
    """`config` in values.schema.json."""
    tree = {"type": "object", "additionalProperties": False, "properties": {}}
    for key, accepts, meaning in rows():
        if key.startswith(OWN):
            continue
        here = tree
        *groups, name = key.split(".")
        for group in groups:
            here = here["properties"].setdefault(group, {"type": "object", "additionalProperties": False, "properties": {}})
        here["properties"][name] = value_of(accepts) | {"description": meaning}
    return tree
