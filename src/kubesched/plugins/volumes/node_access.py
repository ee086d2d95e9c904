"""NodeAccess: which rows can use a volume, a topology or a storage pool.

Upstream: component-helpers/storage/volume/helpers.go (CheckNodeAffinity),
          pkg/apis/core/v1/helper/helpers.go (MatchTopologySelectorTerms) (v1.36)
Reads:    nodes.labels
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kubesched.api.meta import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorTerm,
)
from kubesched.api.selectors import label_selector_error, node_selector_term_errors
from kubesched.api.volume import PersistentVolume, VolumeNodeAffinity
from kubesched.snapshot.node_selection import match_node_selector_term
from kubesched.snapshot.node_table import NodeTable

_EVERY_ROW: Final = (NodeSelectorTerm(),)
_ANSWERS_MAX: Final = 1024


class NodeAccess:
    """The accessible rows of one table; caches results.

    A cluster may have many local volumes, each accessible from one node. A result is therefore an
    array of row numbers, found by the value of a label if possible.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._answers: dict[tuple[NodeSelectorTerm, ...], NDArray[np.intp]] = {}
        self._rows_by_value: dict[str, dict[str | None, NDArray[np.intp]]] = {}

    @cached_property
    def every_row(self) -> NDArray[np.intp]:
        """All rows, in ascending order."""
        return np.arange(len(self.nodes))

    def mask_of_selector(self, required: NodeSelector | None) -> NDArray[np.bool_]:
        """Return, as bool per row, whether it can use a volume with this node affinity."""
        rows = self.of_terms(label_terms(required))
        if rows is self.every_row:
            return np.ones(len(self.nodes), np.bool_)
        mask = np.zeros(len(self.nodes), np.bool_)
        mask[rows] = True
        return mask

    def of_terms(self, terms: tuple[NodeSelectorTerm, ...]) -> NDArray[np.intp]:
        """Return the rows that match one of the terms on labels, in ascending order."""
        if terms is _EVERY_ROW:
            return self.every_row
        if len(terms) == 1 and len(terms[0].match_expressions) == 1:
            [only] = terms[0].match_expressions
            if only.operator == "In":
                return self._with_label(only.key, only.values)
        rows = self._answers.get(terms)
        if rows is None:
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            mask = np.zeros(len(self.nodes), np.bool_)
            for term in terms:
                mask |= match_node_selector_term(term, self.nodes)
            rows = self._answers[terms] = np.flatnonzero(mask)
        return rows

    def of_topologies(self, topologies: tuple[TopologySelectorTerm, ...]) -> NDArray[np.intp]:
        """Return the rows in one of the topologies; all rows if there are none."""
        return self.of_terms(_topology_terms(topologies)) if topologies else self.every_row

    def of_labels(self, selector: LabelSelector | None) -> NDArray[np.intp]:
        """Return the rows that a label selector matches; none if it is absent or invalid."""
        if selector is None or label_selector_error(selector) is not None:
            return self.every_row[:0]
        return self.of_terms(_selector_terms(selector))

    def _with_label(self, key: str, values: Iterable[str]) -> NDArray[np.intp]:
        """Return the rows whose label has one of the values."""
        by_value = self._rows_by_value.get(key)
        if by_value is None:
            column = self.nodes.label(key)
            rows = np.argsort(column.codes, kind="stable")
            codes, starts = np.unique(column.codes[rows], return_index=True)
            occurring = [column.values[code] for code in codes.tolist()]
            by_value = dict(zip(occurring, np.split(rows, starts)[1:], strict=True))
            self._rows_by_value[key] = by_value
        parts = [by_value[value] for value in dict.fromkeys(values) if value in by_value]
        if len(parts) == 1:
            return parts[0]
        return np.sort(np.concatenate([*parts, self.every_row[:0]]))


Pairs: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Items, and a row in reach of each."""


def pairs_of(reached: Sequence[NDArray[np.intp]]) -> Pairs:
    """Return each pair of an item and a row, given the rows that each item reaches."""
    items = np.repeat(np.arange(len(reached)), [len(rows) for rows in reached])
    return items, np.concatenate([*reached, np.empty(0, np.intp)])


@lru_cache(maxsize=16_384)
def label_terms(required: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    """Reduce a volume's node affinity to terms on labels, of which a node must match one.

    Upstream matches the selector with a node that has labels but no name. Field expressions are
    then ignored, but must be valid.
    """
    if required is None:
        return _EVERY_ROW
    terms: list[NodeSelectorTerm] = []
    for term in required.node_selector_terms:
        if not term.match_expressions and not term.match_fields:
            continue
        if node_selector_term_errors(term):
            continue
        if not term.match_expressions:
            return _EVERY_ROW
        terms.append(NodeSelectorTerm(match_expressions=term.match_expressions))
    return tuple(terms)


def terms_of_volume(volume: PersistentVolume) -> tuple[NodeSelectorTerm, ...]:
    """Return the terms on labels of which a node must match one to use the volume."""
    return label_terms(required_of(volume.spec.node_affinity))


def required_of(affinity: VolumeNodeAffinity | None) -> NodeSelector | None:
    """Return the selector of nodes that can use a volume, or None if all can."""
    return None if affinity is None else affinity.required


@lru_cache(maxsize=1024)
def _topology_terms(
    topologies: tuple[TopologySelectorTerm, ...],
) -> tuple[NodeSelectorTerm, ...]:
    terms = [
        NodeSelectorTerm(
            match_expressions=tuple(
                NodeSelectorRequirement(key=one.key, operator="In", values=one.values)
                for one in topology.match_label_expressions
            )
        )
        for topology in topologies
        if topology.match_label_expressions
    ]
    return tuple(term for term in terms if not node_selector_term_errors(term))


def _selector_terms(selector: LabelSelector) -> tuple[NodeSelectorTerm, ...]:
    equalities = (
        NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    )
    expressions = (
        NodeSelectorRequirement(key=one.key, operator=one.operator, values=one.values)
        for one in selector.match_expressions
    )
    term = NodeSelectorTerm(match_expressions=(*equalities, *expressions))
    return (term,) if term.match_expressions else _EVERY_ROW
