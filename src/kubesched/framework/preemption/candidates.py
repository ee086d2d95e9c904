"""Candidates: a dry run of preemption on nodes until enough candidates are found.

Upstream: pkg/scheduler/framework/preemption/preemption.go, DryRunPreemption (v1.36)
Invariants: nodes are tried in a fixed order from a random offset; the batch size does not change
            the result.
Differs:  nodes are tried in table order, where upstream tries several in parallel in map order; a
          run that does not try all nodes may therefore stop at other nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.preemption.candidate import (
    Candidate,
    CandidateChoice,
    select_candidate,
)
from kubesched.framework.preemption.eligibility import has_lower_priority_pods
from kubesched.framework.preemption.verdict_memory import VerdictMemory, Verdicts
from kubesched.framework.preemption.victims import NO_VICTIMS, Question
from kubesched.framework.status import Code, NodeToStatus, Status

_BATCH_ROWS_MIN: Final = 32
"""The smallest batch; one more row costs little. Each batch is as large as all before it."""


class Sampling(msgspec.Struct, frozen=True):
    """How many candidates end the dry run.

    Attributes:
        percentage: Of the potential nodes, 0 to 100.
        absolute: The minimum number.
    """

    percentage: int = 10
    absolute: int = 100

    def wanted(self, potential_nodes: int) -> int:
        """Return the number of candidates that ends the dry run."""
        share = potential_nodes * self.percentage // 100
        return min(potential_nodes, max(share, self.absolute))


class DryRun(msgspec.Struct, frozen=True):
    """The result of a dry run.

    Attributes:
        candidates: Nodes where evicting helps, those that violate no budget first.
        choice: The choice among them; None if there is no candidate.
        node_statuses: Node name -> why it is not a candidate, for the other nodes tried.
    """

    candidates: tuple[Candidate, ...] = ()
    choice: CandidateChoice | None = None
    node_statuses: dict[str, Status] = msgspec.field(default_factory=dict)


def potential_rows(statuses: NodeToStatus) -> NDArray[np.intp]:
    """Return the rows whose rejection evicting pods may resolve."""
    helpful = np.array([status.code is Code.UNSCHEDULABLE for status in statuses.statuses])
    return np.flatnonzero(helpful[statuses.index])


def find_candidates(
    question: Question,
    statuses: NodeToStatus,
    sampling: Sampling,
    memory: VerdictMemory,
) -> DryRun:
    """Try the potential nodes until there are enough candidates.

    Args:
        question: The preemptor and the cluster.
        statuses: Why each row was rejected.
        sampling: How many candidates are enough.
        memory: Verdicts for earlier preemptors, which may be used for this one.
    """
    rows = potential_rows(statuses)
    if not len(rows):
        return DryRun()
    names = question.snapshot.nodes.names
    if not has_lower_priority_pods(question.pod, question.snapshot.nodes):
        statuses_of_all = dict.fromkeys([names[row] for row in rows.tolist()], NO_VICTIMS)
        return DryRun(node_statuses=statuses_of_all)
    wanted = sampling.wanted(len(rows))
    offset = question.handle.random.randrange(len(rows))
    rows = np.concatenate((rows[offset:], rows[:offset]))
    verdicts = memory.about(question)
    judged, size = 0, max(wanted, _BATCH_ROWS_MIN)
    while judged < len(rows):
        verdicts.judge(question, rows[judged:size])
        judged, size = size, 2 * size
        if enough := rows_needed(verdicts.costs[0, rows[:judged]], wanted):
            return collect(verdicts, rows[:enough], wanted, names)
    return collect(verdicts, rows, wanted, names)


def rows_needed(violations: NDArray[np.int64], wanted: int) -> int:
    """Return how many rows to try for `wanted` candidates, at least one without a violation.

    Args:
        violations: The number of violations of each candidate, -1 for other rows.
        wanted: The number of candidates, 0 for none.

    Returns:
        0 if there are not enough candidates among these rows.
    """
    candidates = np.flatnonzero(violations >= 0)
    if not wanted or len(candidates) < wanted:
        return 0
    clean = np.flatnonzero(violations == 0)
    return int(max(candidates[wanted - 1], clean[0])) + 1 if len(clean) else 0


def collect(
    verdicts: Verdicts, rows: NDArray[np.intp], wanted: int, names: Sequence[str]
) -> DryRun:
    """Return at most `wanted` candidates without and `wanted` with a violation.

    Args:
        verdicts: The verdicts.
        rows: The rows that were tried, in this order.
        wanted: The number of candidates.
        names: The node names per row of the table.
    """
    violations = verdicts.costs[0, rows]
    kept = np.concatenate((rows[violations == 0][:wanted], rows[violations > 0][:wanted]))
    candidates = tuple(verdicts.found[kept].tolist())
    choice = select_candidate(candidates, verdicts.costs[:, kept]) if candidates else None
    others = rows[violations < 0]
    whose = [names[row] for row in others.tolist()]
    statuses = dict(zip(whose, verdicts.found[others].tolist(), strict=True))
    return DryRun(candidates, choice, statuses)
