"""Matches the node selectors of slices, devices and allocations with one node.

Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go (v1.36)
Reads:    node.metadata.name, node.metadata.labels
Differs:  nothing.
"""

from kubesched.api import selectors
from kubesched.api.core import Node, NodeSelector


class NodeSelectorError(ValueError):
    """A node selector is invalid; the text is upstream's."""


def check_node_selector(selector: NodeSelector) -> None:
    """Raise NodeSelectorError if a term is invalid."""
    errors = tuple(dict.fromkeys(selectors.node_selector_errors(selector)))
    if errors:
        raise NodeSelectorError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def matches_node_selector(selector: NodeSelector, node: Node) -> bool:
    """Whether one of the terms matches the node. Raises NodeSelectorError."""
    check_node_selector(selector)
    return selectors.matches_node_selector(selector, node.metadata.labels, node.metadata.name)
