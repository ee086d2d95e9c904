"""Describes why a node does not match a node selector.

Differs:  not in upstream; for explain.
"""

from __future__ import annotations

from kubesched.api.core import Node
from kubesched.api.field_errors import aggregate
from kubesched.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.selectors import matches_node_selector_term, node_selector_term_errors


def describe_selector(selector: NodeSelector, node: Node) -> str:
    """Return a text with, for each term, the first requirement that the node does not meet."""
    if not selector.node_selector_terms:
        return "there is no term that could match"
    return "; ".join(_describe_term(term, node) for term in selector.node_selector_terms)


def shown_label(key: str, label: str | None) -> str:
    """Return `key=label`, or a text for a missing label."""
    return f"no label {key}" if label is None else f"{key}={label}"


def _describe_term(term: NodeSelectorTerm, node: Node) -> str:
    if errors := node_selector_term_errors(term):
        return aggregate(errors)
    for field in term.match_fields:
        if not _is_met(NodeSelectorTerm(match_fields=(field,)), node):
            return f"wants {_written(field)}"
    for expression in term.match_expressions:
        if not _is_met(NodeSelectorTerm(match_expressions=(expression,)), node):
            key = expression.key
            label = shown_label(key, node.metadata.labels.get(key))
            return f"wants {_written(expression)}, node has {label}"
    return "an empty term matches no node"


def _is_met(term: NodeSelectorTerm, node: Node) -> bool:
    return matches_node_selector_term(term, node.metadata.labels, node.metadata.name)


def _written(requirement: NodeSelectorRequirement) -> str:
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"
