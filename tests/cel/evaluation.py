"""Evaluate expressions as device selectors do."""

from kubesched.cel.checker import check
from kubesched.cel.declarations import DYN
from kubesched.cel.evaluator import plan
from kubesched.cel.parser import parse


def evaluate(expression: str, **variables: object) -> object:
    """Compile with all checks, then evaluate."""
    node = parse(expression)
    check(expression, node, dict.fromkeys(variables, DYN), {})
    return plan(node)(variables)
