"""Node selectors matched against all rows at once, by label code instead of row by row.

Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go (v1.36)
Reads:    nodes.labels, nodes.metadata.name
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.requirements import parse_int64
from kubesched.api.selectors import (
    can_match,
    matches_required_node_affinity,
    required_node_selector,
)
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_NAME_FIELD: Final = "metadata.name"


def match_required_node_affinity(pod: PodInfo, nodes: NodeTable) -> NDArray[np.bool_]:
    """Return bool per row: whether the pod's nodeSelector and required node affinity match.

    A term that cannot be parsed matches no row.
    """
    spec = pod.spec
    if len(nodes) == 1:
        # One row, as for each pod of a DaemonSet, needs no columns.
        return np.array([matches_required_node_affinity(spec, nodes.nodes[0])])
    matched = np.ones(len(nodes), np.bool_)
    for key, wanted in (spec.node_selector or {}).items():
        matched &= nodes.label(key).equals(wanted)
    if (required := required_node_selector(spec)) is not None:
        matched &= match_node_selector(required, nodes)
    return matched


def match_node_selector(selector: NodeSelector, nodes: NodeTable) -> NDArray[np.bool_]:
    """Return bool per row: whether one of the terms matches.

    A term that is empty or cannot be parsed matches no row; so does a selector without terms.
    """
    matched = np.zeros(len(nodes), np.bool_)
    for term in selector.node_selector_terms:
        matched |= match_node_selector_term(term, nodes)
    return matched


def match_node_selector_term(term: NodeSelectorTerm, nodes: NodeTable) -> NDArray[np.bool_]:
    """Return bool per row: whether all expressions on labels and fields match.

    A term that is empty or cannot be parsed matches no row.
    """
    if not can_match(term):
        return np.zeros(len(nodes), np.bool_)
    matched = np.ones(len(nodes), np.bool_)
    for requirement in term.match_expressions:
        matched &= _match_label(requirement, nodes.label(requirement.key))
    for requirement in term.match_fields:
        matched &= _match_field(requirement, nodes)
    return matched


def _match_label(
    requirement: NodeSelectorRequirement, column: Coded[str | None]
) -> NDArray[np.bool_]:
    match requirement.operator:
        case "In":
            return column.is_in(requirement.values)
        case "NotIn":
            # A node without the label has none of the values.
            return ~column.is_in(requirement.values)
        case "Exists":
            return ~column.equals(None)
        case "DoesNotExist":
            return column.equals(None)
        case operator:
            return _compare(column, requirement.values[0], greater=operator == "Gt")


def _compare(column: Coded[str | None], text: str, *, greater: bool) -> NDArray[np.bool_]:
    bound = parse_int64(text)
    assert bound is not None, "terms with other bounds cannot be parsed"

    def holds(label: str | None) -> bool:
        number = None if label is None else parse_int64(label)
        return number is not None and (number > bound if greater else number < bound)

    return column.map(holds, np.bool_)


def _match_field(requirement: NodeSelectorRequirement, nodes: NodeTable) -> NDArray[np.bool_]:
    value = requirement.values[0]
    if requirement.key == _NAME_FIELD:
        matched = np.zeros(len(nodes), np.bool_)
        row = nodes.row_of.get(value)
        if row is not None:
            matched[row] = True
    else:
        # Nodes have no other field; one that is missing counts as empty.
        matched = np.full(len(nodes), value == "")
    return matched if requirement.operator == "In" else ~matched
