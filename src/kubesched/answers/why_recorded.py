"""What a running scheduler recorded about a pod: where it is in the queue, and who evicted it.

Reads:    the answer of `/debug/decisions`
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubesched.answers.why import PodState, WhyReport
from kubesched.explain.decision_records import DecisionRecord, DecisionRecords, RecordedOutcome
from kubesched.framework.preemption.report import Criterion

_NOT_LEADING: Final = (
    "The scheduler that was asked does not lead; the one that does has the queue and the records."
)


def with_records(report: WhyReport, found: DecisionRecords, uid: str) -> WhyReport:
    """Add the queue's state and the records of a pod, and who evicted it."""
    sentence, notes = report.sentence, report.notes
    eviction = _eviction(report.pod, uid, found)
    if eviction is not None and report.state is PodState.TERMINATING:
        sentence = f"Pod {report.pod} is being deleted: {_evicted(eviction)}."
    earlier = _eviction(report.pod, "", found)
    if eviction is None and earlier is not None:
        notes = (*notes, f"An earlier pod of this name is gone: {_evicted(earlier)}.")
    if not found.leads:
        notes = (*notes, _NOT_LEADING)
    return replace(report, sentence=sentence, notes=notes, queue=found.queue, records=found.records)


def why_gone(pod: str, found: DecisionRecords) -> WhyReport | None:
    """Answer for a pod that does not exist any more; None if there is no record of it."""
    if not found.records:
        return None
    newest = found.records[0]
    if newest.evicts(pod):
        words = _evicted(newest)
    else:
        words = f"the scheduler's last decision about it was at {newest.time}: {outcome_of(newest)}"
    return WhyReport(
        pod=pod,
        state=PodState.GONE,
        sentence=f"Pod {pod} is gone: {words}.",
        notes=() if found.leads else (_NOT_LEADING,),
        records=found.records,
    )


def outcome_of(record: DecisionRecord) -> str:
    """Return the outcome in a few words."""
    match record.outcome:
        case RecordedOutcome.PLACED:
            return f"placed on {record.node}"
        case RecordedOutcome.BINDING_FAILED:
            return f"not bound to {record.node}: {record.message}"
        case RecordedOutcome.FAILED:
            return f"failed: {record.message}"
    by_whom = f" by {', '.join(record.rejecting_plugins)}" if record.rejecting_plugins else ""
    if record.nominated_node:
        return f"rejected{by_whom}; nominated to {record.nominated_node}"
    return f"rejected{by_whom}" if by_whom else f"rejected: {record.message}"


def _eviction(pod: str, uid: str, found: DecisionRecords) -> DecisionRecord | None:
    """Return the newest record that evicts a pod; `uid` is "" for any of its name."""
    return next(
        (
            record
            for record in found.records
            for victim in record.victims
            if victim.pod == pod and uid in ("", victim.uid)
        ),
        None,
    )


def _evicted(record: DecisionRecord) -> str:
    node = record.nominated_node
    words = f"the scheduler evicted it from {node} at {record.time} to make room for {record.pod}"
    if record.criterion == Criterion.ONLY_CANDIDATE:
        return f"{words}; evicting pods helped on no other node"
    return f"{words}; {node} was chosen for its {record.criterion}" if record.criterion else words
