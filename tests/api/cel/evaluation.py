"""Evaluate expressions as device selectors do."""

from kubesched.api.cel.checker import CheckedTypes, check
from kubesched.api.cel.declarations import DYN
from kubesched.api.cel.evaluator import plan
from kubesched.api.cel.parser import parse


def evaluate(expression: str, **variables: object) -> object:
    """Compile with all checks, then evaluate."""
    node = parse(expression)
    check(expression, node, dict.fromkeys(variables, DYN), CheckedTypes())
    return plan(node)(variables)
