"""Builds the explanation of a preemption from its report.

Upstream: pkg/scheduler/framework/preemption (v1.36): the decisions explained
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.explain.report import (
    Answer,
    NotHelped,
    PreemptionCandidate,
    PreemptionExplanation,
    Victim,
)
from kubesched.framework.preemption.candidate import Candidate
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.status import Code, NodeToStatus, Status


def explain_preemption(
    report: PreemptionReport, statuses: NodeToStatus, answer_of: Callable[[Status], Answer]
) -> PreemptionExplanation:
    """Explain which pods to evict on which node, and why.

    Args:
        report: The plugin's report.
        statuses: The rejection of each row.
        answer_of: Converts a status to a part of the explanation.
    """
    if not report.eligible:
        return PreemptionExplanation(eligible=False, reason=report.reason)
    return PreemptionExplanation(
        eligible=True,
        candidates=tuple(
            _candidate(found) for found in sorted(report.candidates, key=lambda c: c.node_name)
        ),
        chosen=report.chosen,
        decided_by="" if report.decided_by is None else str(report.decided_by),
        ties=report.best if len(report.best) > 1 else (),
        not_helped=tuple(
            NotHelped(name, answer_of(status))
            for name, status in sorted(report.node_statuses.items())
        ),
        not_tried=_incurable(statuses),
    )


def _candidate(found: Candidate) -> PreemptionCandidate:
    victims = tuple(Victim(victim.key, victim.priority) for victim in found.victims)
    return PreemptionCandidate(found.node_name, victims, found.pdb_violations)


def _incurable(statuses: NodeToStatus) -> int:
    """Count the rows where no eviction can help."""
    curable = np.array([status.code is Code.UNSCHEDULABLE for status in statuses.statuses])
    return int(np.count_nonzero(~curable[statuses.index]))
