"""NodeAccess: which rows can use a volume, a topology or a storage pool.

Upstream: component-helpers/storage/volume/helpers.go (CheckNodeAffinity),
          pkg/apis/core/v1/helper/helpers.go (MatchTopologySelectorTerms) (v1.36)
Reads:    nodes.labels
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final

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
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_selection import match_node_selector_term
from kubesched.snapshot.node_table import NodeTable

_EVERY_ROW: Final = (NodeSelectorTerm(),)
_QUESTIONS_WITHOUT_INDEX: Final = 8
_ANSWERS_MAX: Final = 1024


class NodeAccess:
    """The accessible rows of one table; caches results.

    A cluster may have many local volumes, each accessible from one node. A result is therefore an
    array of row numbers, taken from an index of the label if possible.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._answers: dict[tuple[NodeSelectorTerm, ...], NDArray[np.intp]] = {}
        self._indexes: dict[str, _LabelIndex] = {}
        self._questions: dict[str, int] = {}

    @cached_property
    def every_row(self) -> NDArray[np.intp]:
        """All rows, in ascending order."""
        return np.arange(len(self.nodes))

    def mask_of_selector(self, required: NodeSelector | None) -> NDArray[np.bool_]:
        """Return, as bool per row, whether it can use a volume with this node affinity."""
        rows = self.of_selector(required)
        if rows is self.every_row:
            return np.ones(len(self.nodes), np.bool_)
        mask = np.zeros(len(self.nodes), np.bool_)
        mask[rows] = True
        return mask

    def of_selector(self, required: NodeSelector | None) -> NDArray[np.intp]:
        """Return the rows that can use a volume with this node affinity, in ascending order."""
        return self.every_row if required is None else self._rows(label_terms(required))

    def of_terms(self, terms: tuple[NodeSelectorTerm, ...]) -> NDArray[np.intp]:
        """Return the rows that match one of the terms, which `terms_of_volume` returned."""
        return self._rows(terms)

    def of_topologies(self, topologies: tuple[TopologySelectorTerm, ...]) -> NDArray[np.intp]:
        """Return the rows in one of the topologies; all rows if there are none."""
        return self._rows(_topology_terms(topologies)) if topologies else self.every_row

    def of_labels(self, selector: LabelSelector | None) -> NDArray[np.intp]:
        """Return the rows that a label selector matches; none if it is absent or invalid."""
        if selector is None or label_selector_error(selector) is not None:
            return self.every_row[:0]
        return self._rows(_selector_terms(selector))

    def _rows(self, terms: tuple[NodeSelectorTerm, ...]) -> NDArray[np.intp]:
        if terms is _EVERY_ROW:
            return self.every_row
        index = self._index_for(terms)
        if index is not None:
            return index.rows_with(terms[0].match_expressions[0].values)
        rows = self._answers.get(terms)
        if rows is None:
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            rows = self._answers[terms] = np.flatnonzero(self._mask(terms))
        return rows

    def _index_for(self, terms: tuple[NodeSelectorTerm, ...]) -> _LabelIndex | None:
        """Return the index of the label on which alone the terms depend, or None."""
        if len(terms) != 1 or len(terms[0].match_expressions) != 1:
            return None
        [expression] = terms[0].match_expressions
        return self._index(expression.key) if expression.operator == "In" else None

    def _mask(self, terms: tuple[NodeSelectorTerm, ...]) -> NDArray[np.bool_]:
        matched = np.zeros(len(self.nodes), np.bool_)
        for term in terms:
            matched |= match_node_selector_term(term, self.nodes)
        return matched

    def _index(self, key: str) -> _LabelIndex | None:
        """Return the index of a label, or None if building one is not worthwhile yet."""
        index = self._indexes.get(key)
        if index is None:
            asked = self._questions[key] = self._questions.get(key, 0) + 1
            if asked <= _QUESTIONS_WITHOUT_INDEX:
                return None
            index = self._indexes[key] = _LabelIndex(self.nodes, key)
        return index


class TableAccess:
    """A cache of the accessible rows of one table."""

    def __init__(self) -> None:
        self._made_for: tuple[NodeColumns, int] | None = None
        self._access: NodeAccess | None = None

    def of(self, table: NodeColumns) -> NodeAccess:
        """Return the accessible rows of the table as it is."""
        made_for = (table, table.epoch)
        if self._access is None or made_for != self._made_for:
            self._made_for, self._access = made_for, NodeAccess(table)
        return self._access


class _LabelIndex:
    """The rows of each value of a label."""

    def __init__(self, nodes: NodeTable, key: str) -> None:
        column = nodes.label(key)
        self._positions = column.positions
        self._rows = np.argsort(column.codes, kind="stable")
        codes = column.codes[self._rows]
        # Code -> start of its rows, which end where those of the next code start.
        self._starts: list[int] = codes.searchsorted(np.arange(len(column.values) + 1)).tolist()

    def rows_with(self, values: Iterable[str]) -> NDArray[np.intp]:
        """Return the rows that have one of the values, in ascending order."""
        parts: list[NDArray[np.intp]] = []
        for value in dict.fromkeys(values):
            code = self._positions.get(value)
            if code is not None:
                parts.append(self._rows[self._starts[code] : self._starts[code + 1]])
        if len(parts) == 1:
            return parts[0]
        return np.sort(np.concatenate(parts)) if parts else self._rows[:0]


@lru_cache(maxsize=16_384)
def label_terms(required: NodeSelector) -> tuple[NodeSelectorTerm, ...]:
    """Reduce a volume's node affinity to terms on labels.

    Upstream matches the selector with a node that has labels but no name. Field expressions are
    then ignored, but must be valid.
    """
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
    required = required_of(volume.spec.node_affinity)
    return _EVERY_ROW if required is None else label_terms(required)


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
