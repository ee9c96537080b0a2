"""The rules of this repository, faster: every `for`, window, offset and look ahead is a fraction of what it is.

Thresholds stay as they are, those in seconds too.
"""

import re

import yaml

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Less than two scrapes is no window.
LEAST_WINDOW_S = 4


def seconds(text):
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text))


def window(text, factor):
    return f"{max(LEAST_WINDOW_S, round(seconds(text) / factor))}s"


def scaled(text, factor):
    """The same file with the same rules, by the factor faster."""
    rules = yaml.safe_load(text)
    for group in rules["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            expr = re.sub(r"\[(\d+[smhd])\]", lambda found: f"[{window(found[1], factor)}]", rule["expr"])
            expr = re.sub(r"offset (\d+[smhd])", lambda found: f"offset {window(found[1], factor)}", expr)
            rule["expr"] = re.sub(r"(\d+) \* 3600\)", lambda found: f"{int(found[1]) * 3600 // factor})", expr)
            if "for" in rule:
                rule["for"] = f"{max(1, round(seconds(rule['for']) / factor))}s"
    return yaml.safe_dump(rules, sort_keys=False)
