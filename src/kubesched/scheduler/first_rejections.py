"""FirstRejections collects the first rejection of each row.

Invariants: `failed_at[row]` is the position of the first filter of the profile that rejected the
            row, or PASSED; `index[row]` points to that filter's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.status import SUCCESS, NodeToStatus, Status
from kubesched.scheduler.plugin_failure import PluginFailure, failed_with

PASSED: Final = 32_767


class FirstRejections:
    """The first rejection per row.

    Attributes:
        codes: The distinct statuses and their codes, which are counted from 0. Answers that are
            combined share them.
    """

    __slots__ = ("codes", "failed_at", "index")

    def __init__(
        self, failed_at: NDArray[np.int16], index: NDArray[np.int32], codes: dict[Status, int]
    ) -> None:
        self.failed_at = failed_at
        self.index = index
        self.codes = codes

    @classmethod
    def all_passed(cls, rows: int) -> FirstRejections:
        """Return answers before any filter has run: every row passes."""
        return cls(np.full(rows, PASSED, np.int16), np.zeros(rows, np.int32), {SUCCESS: 0})

    def copy(self) -> FirstRejections:
        """Return an independent copy."""
        return FirstRejections(self.failed_at.copy(), self.index.copy(), self.codes)

    def take(self, rows: NDArray[np.intp] | slice) -> FirstRejections:
        """Return the answers for these rows: an independent copy, or a view of a slice."""
        return FirstRejections(self.failed_at[rows], self.index[rows], self.codes)

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Bool per row: whether nothing rejected it."""
        return np.equal(self.failed_at, PASSED)

    def code(self, status: Status) -> int:
        """Return the code of a status, adding it if it is new."""
        return self.codes.setdefault(status, len(self.codes))

    def add(self, position: int, plugin: str, answers: NodeToStatus) -> bool:
        """Add one filter's answers for all rows; return whether it was first to reject any row.

        Raises PluginFailure if it failed on a row that no earlier filter rejected.
        """
        if len(answers.statuses) == 1:
            return False
        rejects = (answers.index != 0) & (self.failed_at > position)
        if not np.count_nonzero(rejects):
            # Only statuses of filters that were first to reject a row get a code.
            return False
        np.putmask(self.failed_at, rejects, position)
        codes = np.array([self.code(each.by(plugin)) for each in answers.statuses], np.int32)
        np.putmask(self.index, rejects, codes.take(answers.index))
        self._raise_failures(position, plugin, answers)
        return True

    def _raise_failures(self, position: int, plugin: str, answers: NodeToStatus) -> None:
        for status in answers.statuses[1:]:
            if not status.is_rejected:
                code = self.codes.get(status.by(plugin))
                if ((self.index == code) & (self.failed_at == position)).any():
                    raise PluginFailure(failed_with("filter", plugin, status))

    def statuses(self) -> NodeToStatus:
        """Return the answers as one status per row."""
        return NodeToStatus(self.index, [*self.codes])


class Filtering:
    """The answers of a cycle's filters for all of its rows, on top of known answers.

    The first rejection per row is computed lazily: it is seldom needed if some row passes.

    Attributes:
        passed: Bool per row: whether nothing rejected it.
    """

    __slots__ = ("_answers", "_is_own", "_later", "passed")

    def __init__(self, known: FirstRejections, passed: NDArray[np.bool_]) -> None:
        self.passed = passed
        self._answers = known
        self._is_own = False
        self._later: list[tuple[int, str, NodeToStatus]] = []

    @classmethod
    def all_passed(cls, rows: int) -> Filtering:
        """Return a filtering without known answers: every row passes."""
        return cls(FirstRejections.all_passed(rows), np.ones(rows, np.bool_))

    def add(self, position: int, plugin: str, found: NodeToStatus) -> None:
        """Add a filter's answers for all rows.

        Raises PluginFailure if it failed on a row that no earlier filter rejected.
        """
        if len(found.statuses) == 1 or not np.count_nonzero(found.index):
            return
        if all(status.is_rejected for status in found.statuses[1:]):
            self.passed = self.passed & found.passed
            self._later.append((position, plugin, found))
            return
        answers = self.own_answers()
        answers.add(position, plugin, found)
        self.passed = answers.passed

    def fail(self, position: int, status: Status) -> None:
        """Record that the filter at `position` failed, on every row if the failure names none."""
        answers = self.own_answers()
        if not (answers.failed_at == position).any():
            rows = answers.failed_at > position
            answers.failed_at[rows] = position
            answers.index[rows] = answers.code(status)
        self.passed = answers.passed

    def override(self, rejections: Mapping[int, Status]) -> None:
        """Replace the statuses of some rows by rejections that were computed elsewhere."""
        answers, rows = self.own_answers(), list(rejections)
        answers.failed_at[rows] = -1
        answers.index[rows] = [answers.code(status) for status in rejections.values()]
        self.passed = answers.passed

    @property
    def answers_so_far(self) -> FirstRejections:
        """The first rejections as far as they have been computed."""
        return self._answers

    def answers(self) -> FirstRejections:
        """Return the first rejection per row; callers must not write to it."""
        if self._later:
            later, self._later = self._later, []
            answers = self.own_answers()
            for position, plugin, found in later:
                answers.add(position, plugin, found)
        return self._answers

    def own_answers(self) -> FirstRejections:
        """Return the first rejection per row; the known answers do not share it."""
        self.answers()
        if not self._is_own:
            self._answers, self._is_own = self._answers.copy(), True
        return self._answers
