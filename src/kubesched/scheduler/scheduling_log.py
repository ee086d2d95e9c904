"""Log lines of the loop, the event handlers and the queue, at upstream's verbosities.

Upstream: pkg/scheduler/{schedule_one,eventhandlers}.go,
          pkg/scheduler/backend/queue/{active_queue,backoff_queue,scheduling_queue}.go (v1.36)
Differs:  a pod that goes into the queue's unschedulable part is logged without its hint; scores of
          extenders are logged before those of plugins; attempts of a pod group's members are logged
          as those of other pods, and lines do not name the group. Attempts and outcomes of groups
          are not logged; a group's condition PodGroupScheduled has the outcome.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from kubesched.api.core import Node, Pod
from kubesched.framework.structured_log import V2, V3, V5, V10, ObjectRef, write
from kubesched.queue.moves import QueueMove, QueuePlace
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import NO_NODES, NOBODY_REJECTED, FailedAttempt
from kubesched.scheduler.pod_group_outcome import UNSCHEDULABLE
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

log: Final = logging.getLogger(__name__)

# Upstream names the parts of the queue differently in logs and metrics.
_QUEUES: Final = {
    QueuePlace.ACTIVE: "Active",
    QueuePlace.BACKOFF: "Backoff",
    QueuePlace.UNSCHEDULABLE: "Unschedulable",
}


def log_attempt(pod: PodInfo) -> Trace | None:
    """Log an attempt; return a trace to fill if scores are to be logged."""
    if log.isEnabledFor(V3):
        write(log, V3, "Attempting to schedule pod", pod=_ref(pod))
        if log.isEnabledFor(V10):
            return Trace()
    return None


def log_scores(pod: PodInfo, trace: Trace | None, snapshot: Snapshot) -> None:
    """Log the scores of each plugin for each feasible node, and the totals, if there is a trace."""
    if trace is None or trace.totals is None:
        return
    names = [snapshot.nodes.names[row] for row in trace.feasible_rows.tolist()]
    ref = _ref(pod)
    for at, name in enumerate(names):
        for scores in trace.scores:
            write(
                log,
                V10,
                "Plugin scored node for pod",
                pod=ref,
                plugin=scores.plugin,
                node=name,
                score=int(scores.weighted[at]),
            )
    for name, total in zip(names, trace.totals.tolist(), strict=True):
        write(log, V10, "Calculated node's final score for pod", pod=ref, node=name, score=total)


def log_extender_scores(pod: PodInfo, extender: str, priorities: Iterable[tuple[str, int]]) -> None:
    """Log an extender's scores by node name, before they are scaled and weighed."""
    if log.isEnabledFor(V10):
        text = "Extender scored node for pod"
        for name, score in priorities:
            write(log, V10, text, pod=_ref(pod), extender=extender, node=name, score=score)


def log_bound(assumed: Assumed) -> None:
    """Log that a pod was bound."""
    if log.isEnabledFor(V2):
        write(
            log,
            V2,
            "Successfully bound pod to node",
            pod=_ref(assumed.pod),
            node=assumed.pod.node_name,
            evaluatedNodes=assumed.evaluated,
            feasibleNodes=assumed.feasible,
        )


def logs_failures() -> bool:
    """Whether rejections are logged."""
    return log.isEnabledFor(V2)


def log_failure(pod: PodInfo, attempt: FailedAttempt) -> None:
    """Log why a pod was not scheduled: it or its group fits nowhere, or an error occurred."""
    status = attempt.status
    if not _fits_nowhere(attempt):
        text = "Error scheduling pod; retrying"
        # Upstream logs errors that no caller handles under this name.
        write(log, logging.ERROR, text, err=status.message, logger="UnhandledError", pod=_ref(pod))
    elif logs_failures():
        if status.message == NO_NODES:
            text = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
            write(log, V2, text, pod=_ref(pod))
        else:
            text = "Unable to schedule pod; no fit; waiting"
            if status.error == UNSCHEDULABLE:
                text = "Unable to schedule pod belonging to a pod group; waiting"
            write(log, V2, text, pod=_ref(pod), err=status.message)


def _fits_nowhere(attempt: FailedAttempt) -> bool:
    """Whether the pod or its group was tried on nodes, or there are none.

    As upstream, other rejections count as errors: that of a group without placements.
    """
    status = attempt.status
    return status.is_rejected and (
        attempt.diagnosis is not NOBODY_REJECTED
        or status.error == UNSCHEDULABLE
        or status.message == NO_NODES
    )


def log_observed(level: int, text: str, item: Node | Pod) -> None:
    """Log a watch event of a node or pod."""
    if not log.isEnabledFor(level):
        return
    if isinstance(item, Node):
        write(log, level, text, node=item.metadata.name)
    else:
        write(log, level, text, pod=ObjectRef(item.metadata.name, item.metadata.namespace))


def log_move(move: QueueMove) -> None:
    """Log the part of the queue that pods moved to; an observer of the queue."""
    if not log.isEnabledFor(V5):
        return
    queue = _QUEUES.get(move.destination)
    if queue is not None:
        text = "Pod moved to an internal scheduling queue"
        if move.gating_plugin:
            text += ", because the pod is gated"
        for pod in (move.pod, *move.followers):
            write(log, V5, text, pod=ObjectRef.of(pod), event=move.event, queue=queue)


def _ref(pod: PodInfo) -> ObjectRef:
    return ObjectRef(pod.pod.metadata.name, pod.namespace)
