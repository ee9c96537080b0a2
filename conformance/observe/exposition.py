"""What a broker exports, read from its own text."""

import dataclasses
import re

SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
PARTS = ("_bucket", "_sum", "_count")


@dataclasses.dataclass
class Family:
    name: str
    kind: str
    help: str
    labels: dict = dataclasses.field(default_factory=dict)
    """Each label with the values it was seen with."""


def read(text):
    """Families by name."""
    families, helps = {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            helps[name] = words
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split()
            families[name] = Family(name, kind, helps.get(name, ""))
        elif line:
            name, labels, _ = SAMPLE.fullmatch(line).groups()
            family = of(families, name)
            for label, value in LABEL.findall(labels or ""):
                family.labels.setdefault(label, set()).add(value)
    return families


def of(families, name):
    """The family that a sample belongs to, or None."""
    if name in families:
        return families[name]
    for part in PARTS:
        base = name.removesuffix(part)
        if base != name and base in families and families[base].kind == "histogram":
            return families[base]
    return None


def counts(families, name):
    """Whether it only grows, so that its value by itself says nothing."""
    family = of(families, name)
    return family is not None and (family.kind == "counter" or name != family.name)
