"""Search collects what one pod's search for feasible rows has found, try by try.

Upstream: pkg/scheduler/schedule_one.go, findNodesThatFitPod (v1.36)
Invariants: a row counts as tried once, however often it is looked at.
Differs:  nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import Status, unresolvable
from kubesched.scheduler.row_answers import RowAnswers
from kubesched.snapshot.node_table import NodeTable


class Search:
    """The tries of one search.

    Attributes:
        names: Node names that PreFilter plugins allow; None if any.
        contributors: The plugins that restricted the nodes.
        answers: The first rejection per row of the table.
        tried: Bool per row: whether the filters were asked about it.
    """

    __slots__ = ("answers", "contributors", "names", "tried")

    def __init__(
        self, rows: int, names: frozenset[str] | None, contributors: tuple[str, ...]
    ) -> None:
        self.names = names
        self.contributors = contributors
        self.answers = RowAnswers.nothing_asked(rows)
        self.tried = np.zeros(rows, np.bool_)

    @property
    def evaluated(self) -> int:
        """How many rows were looked at."""
        return int(np.count_nonzero(self.tried))

    def candidates(self, nodes: NodeTable) -> NDArray[np.intp]:
        """Return the rows that PreFilter plugins allow, ascending."""
        if self.names is None:
            return np.arange(len(nodes))
        row_of = nodes.row_of
        return np.array(sorted(row_of[name] for name in self.names if name in row_of), np.intp)

    def take_in(self, rows: NDArray[np.intp], answers: RowAnswers) -> None:
        """Write the answers for `rows` into those for all rows."""
        code = self.answers.table.code
        codes = np.array([code(status) for status in answers.table.statuses], np.int32)
        self.answers.failed_at[rows] = answers.failed_at
        self.answers.index[rows] = codes[answers.index]
        self.tried[rows] = True

    def diagnosis(self, nodes: NodeTable) -> Diagnosis:
        """Return why no row is feasible."""
        absent: Status | None = None
        if self.names is not None:
            listed = " ".join(sorted(self.contributors))
            absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")
        return Diagnosis.of_filter(
            tuple(nodes.names), self.answers.statuses(), absent, self.contributors
        )
