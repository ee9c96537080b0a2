"""What a PromQL expression asks for."""

import dataclasses

import promql_parser as p

RATES = {"rate", "irate", "increase", "changes", "resets"}


@dataclasses.dataclass(frozen=True)
class Use:
    """One metric in an expression."""

    metric: str
    matchers: tuple
    inside: tuple
    """Names of the functions around it, outermost first."""

    def matcher(self, label):
        return next((m for m in self.matchers if m[0] == label), None)


def parse(expr):
    """The tree; a ValueError says what is wrong."""
    return p.parse(expr)


def uses(node, inside=()):
    """Every metric that is asked for."""
    if isinstance(node, p.VectorSelector):
        found = tuple((m.name, str(m.op).rsplit(".", 1)[-1], m.value) for m in node.matchers.matchers)
        return [Use(node.name, found, inside)]
    if isinstance(node, p.MatrixSelector):
        return uses(node.vector_selector, inside)
    if isinstance(node, p.Call):
        return [use for each in node.args for use in uses(each, (*inside, node.func.name))]
    if isinstance(node, p.AggregateExpr):
        return uses(node.expr, (*inside, str(node.op)))
    if isinstance(node, p.BinaryExpr):
        return uses(node.lhs, inside) + uses(node.rhs, inside)
    if isinstance(node, (p.UnaryExpr, p.ParenExpr, p.SubqueryExpr)):
        return uses(node.expr, inside)
    return []


def grouped_by(node):
    """Labels that an expression's result has, or None if it has those of its metric."""
    if isinstance(node, p.AggregateExpr):
        if str(node.op) in ("topk", "bottomk"):
            return grouped_by(node.expr)
        return set(node.modifier.labels) if node.modifier else set()
    if isinstance(node, p.Call):
        vectors = [each for each in node.args if not isinstance(each, (p.NumberLiteral, p.StringLiteral))]
        found = grouped_by(vectors[0]) if vectors else set()
        return found - {"le"} if found and node.func.name == "histogram_quantile" else found
    if isinstance(node, p.BinaryExpr):
        left = isinstance(node.lhs, p.NumberLiteral) or uses(node.lhs) == []
        return grouped_by(node.rhs if left else node.lhs)
    if isinstance(node, (p.UnaryExpr, p.ParenExpr, p.SubqueryExpr)):
        return grouped_by(node.expr)
    return None


def groupings(node):
    """Labels of every `by` in the tree, with the metrics below it."""
    if isinstance(node, p.AggregateExpr):
        own = [(label, uses(node.expr)) for label in (node.modifier.labels if node.modifier else [])]
        return own + groupings(node.expr)
    if isinstance(node, p.Call):
        return [each for arg in node.args for each in groupings(arg)]
    if isinstance(node, p.BinaryExpr):
        return groupings(node.lhs) + groupings(node.rhs)
    if isinstance(node, (p.UnaryExpr, p.ParenExpr, p.SubqueryExpr)):
        return groupings(node.expr)
    return []
