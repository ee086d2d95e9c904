"""Candidates: a dry run of preemption on nodes until enough candidates are found.

Upstream: pkg/scheduler/framework/preemption/preemption.go, DryRunPreemption (v1.36)
Invariants: nodes are tried in a fixed order from a random offset; the batch size does not change
            the result.
Differs:  nodes are tried in table order, where upstream tries several in parallel in map order; a
          run that does not try all nodes may therefore stop at other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.preemption.eligibility import has_lower_priority_pods
from kubesched.framework.preemption.report import PreemptionReport, select_candidate
from kubesched.framework.preemption.verdict_memory import VerdictMemory, Verdicts
from kubesched.framework.preemption.victims import NO_VICTIMS, Question
from kubesched.framework.status import Code, NodeToStatus

_BATCH_ROWS_MIN: Final = 32
"""The smallest batch; one more row costs little. Each batch is twice as large as the one before."""


def potential_rows(statuses: NodeToStatus) -> NDArray[np.intp]:
    """Return the rows whose rejection evicting pods may resolve."""
    helpful = [status.code is Code.UNSCHEDULABLE for status in statuses.statuses]
    if all(helpful[1:]):
        return np.flatnonzero(statuses.index)
    return np.flatnonzero(np.array(helpful).take(statuses.index))


def find_candidates(
    question: Question,
    statuses: NodeToStatus,
    wanted_among: Callable[[int], int],
    memory: VerdictMemory,
) -> PreemptionReport:
    """Try the potential nodes until there are enough candidates.

    `statuses` say why each row was rejected; `wanted_among` returns how many candidates are enough
    for a number of potential nodes; `memory` has verdicts for earlier preemptors, which may be used
    for this one.
    """
    nodes = question.snapshot.nodes
    rows = potential_rows(statuses)
    if not len(rows):
        return PreemptionReport()
    if not has_lower_priority_pods(question.pod, nodes):
        return PreemptionReport(others=NO_VICTIMS, other_rows=rows, names=nodes.all_names)
    wanted = wanted_among(len(rows))
    offset = question.handle.random.randrange(len(rows))
    rows = np.concatenate((rows[offset:], rows[:offset]))
    verdicts = memory.about(question)
    size = max(wanted, _BATCH_ROWS_MIN)
    while True:
        enough = _rows_to_try(verdicts.costs[0], rows, wanted)
        unknown = verdicts.unknown(nodes, rows[:enough])
        if not len(unknown):
            return collect(verdicts, rows[:enough], wanted, nodes.all_names)
        verdicts.judge(question, unknown[:size])
        size *= 2


def _rows_to_try(violations: NDArray[np.int64], rows: NDArray[np.intp], wanted: int) -> int:
    # The first rows mostly have enough candidates.
    for some in (rows[: 2 * wanted], rows):
        if enough := rows_needed(violations.take(some), wanted):
            return enough
    return len(rows)


def rows_needed(violations: NDArray[np.int64], wanted: int) -> int:
    """Return how many rows to try for `wanted` candidates, at least one without a violation.

    `violations` has the number for each candidate, -1 for other rows. Returns 0 if there are not
    enough candidates among these rows.
    """
    candidates = np.flatnonzero(violations >= 0)
    if not wanted or len(candidates) < wanted:
        return 0
    clean = np.flatnonzero(violations == 0)
    return int(max(candidates[wanted - 1], clean[0])) + 1 if len(clean) else 0


def collect(
    verdicts: Verdicts, rows: NDArray[np.intp], wanted: int, names: Sequence[str]
) -> PreemptionReport:
    """Return at most `wanted` candidates without and `wanted` with a violation.

    The rows were tried in this order; `names` has the node of each row of the table.
    """
    violations = verdicts.costs[0].take(rows)
    kept = rows[violations == 0][:wanted]
    others = rows[violations < 0]
    if len(kept) + len(others) < len(rows):
        kept = np.concatenate((kept, rows[violations > 0][:wanted]))
    candidates = verdicts.found.take(kept)
    costs = verdicts.costs.take(kept, axis=1)
    choice, ties, decided_by = select_candidate(candidates, costs)
    return PreemptionReport(
        kept=candidates,
        choice=choice,
        ties=ties,
        decided_by=decided_by,
        others=verdicts.found.take(others),
        other_rows=others,
        names=names,
    )
