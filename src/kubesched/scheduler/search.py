"""Attempt is a pod on its way through a cycle; Search collects what its search for rows finds.

Upstream: pkg/scheduler/schedule_one.go, findNodesThatFitPod (v1.36)
Invariants: a row counts once, however often it is evaluated.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import Status, unresolvable
from kubesched.scheduler.answers import Answers
from kubesched.scheduler.first_rejections import Filtering, FirstRejections
from kubesched.scheduler.plan import Plan, Skip
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_NO_ROWS: Final = np.zeros(0, np.bool_)


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """What every phase of a cycle needs.

    Attributes:
        pod: The pod.
        snapshot: The cluster.
        known: The answers that the cycle starts with.
        plan: Which plugins to ask.
        cycle: The states of the plugins, which the phases add to.
        trace: Records what the plugins answer; None for no record.
        skips: The lasting answers Skip that the phases add.
    """

    pod: PodInfo
    snapshot: Snapshot
    known: Answers
    plan: Plan
    cycle: CycleState
    trace: Trace | None = None
    skips: list[Skip] = []


class Feasible(msgspec.Struct, frozen=True, gc=False):
    """The rows that can take the pod.

    Attributes:
        count: Number of feasible rows.
        evaluated: Number of rows evaluated.
        passed: Bool per row of the table: whether it is feasible, if all rows were evaluated.
        some: The feasible rows, ascending, if not all were evaluated; else None.
    """

    count: int
    evaluated: int
    passed: NDArray[np.bool_] = _NO_ROWS
    some: NDArray[np.intp] | None = None

    @property
    def first(self) -> int:
        """The first feasible row."""
        return int(self.passed.argmax()) if self.some is None else self.some.item(0)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The feasible rows, ascending."""
        return np.flatnonzero(self.passed) if self.some is None else self.some


class Search:
    """The results of one search.

    Attributes:
        names: Node names that PreFilter plugins allow; None if any.
        contributors: The plugins that restricted the nodes, and the one that rejected the nominated
            node, which is tried first; messages name both, as upstream.
    """

    __slots__ = ("_everywhere", "_nodes", "_parts", "contributors", "names")

    def __init__(
        self, nodes: NodeColumns, names: frozenset[str] | None, contributors: tuple[str, ...]
    ) -> None:
        self.names = names
        self.contributors = contributors
        self._nodes = nodes
        # Most searches find a row, and then their answers are never read.
        self._everywhere: Filtering | None = None
        self._parts: list[tuple[NDArray[np.intp], FirstRejections]] = []

    def answers(self) -> FirstRejections:
        """Return the first rejection per row of the table."""
        if self._everywhere is not None:
            return self._everywhere.own_answers()
        every = FirstRejections.all_passed(len(self._nodes))
        for rows, answers in self._parts:
            codes = np.array([every.code(status) for status in answers.codes], np.int32)
            every.failed_at[rows] = answers.failed_at
            every.index[rows] = codes[answers.index]
        return every

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Bool per row: whether a filter rejected it."""
        return np.not_equal(self.answers().index, 0)

    @property
    def tried(self) -> NDArray[np.bool_]:
        """Bool per row: whether filters ran on it."""
        tried = np.full(len(self._nodes), self._everywhere is not None)
        for rows, _ in self._parts:
            tried[rows] = True
        return tried

    @property
    def evaluated(self) -> int:
        """Number of rows evaluated."""
        if self._everywhere is not None:
            return len(self._nodes)
        if len(self._parts) == 1:
            return len(self._parts[0][0])
        return int(np.count_nonzero(self.tried))

    def candidates(self) -> NDArray[np.intp] | None:
        """Return the rows that PreFilter plugins allow, ascending; None if all."""
        if self.names is None:
            return None
        row_of = self._nodes.row_of
        return np.array(sorted([row_of[name] for name in self.names if name in row_of]), np.intp)

    def add_all(self, filtering: Filtering) -> None:
        """Add the answers for all rows; they count instead of earlier ones."""
        self._everywhere = filtering
        self._parts.clear()

    def add(self, rows: NDArray[np.intp], answers: FirstRejections) -> None:
        """Add the answers for `rows`; they count instead of earlier ones."""
        self._parts.append((rows, answers))

    def diagnosis(self, last: Diagnosis | None = None) -> Diagnosis:
        """Return why no row is feasible; `last` if the reasons are those of an earlier search."""
        absent: Status | None = None
        if last is not None and self._is_as_before(last):
            return last
        if self.names is not None:
            listed = " ".join(sorted(set(self.contributors)))
            absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")
        return Diagnosis.of_filter(
            self._nodes.all_names, self.answers().statuses(), absent, self.contributors
        )

    def _is_as_before(self, last: Diagnosis) -> bool:
        """Whether each row has its status of an earlier search of all rows."""
        if self._everywhere is None or last.node_names is not self._nodes.all_names:
            return False
        now, before = self._everywhere.answers(), last.node_to_status
        return [*now.codes] == before.statuses and np.array_equal(now.index, before.index)
