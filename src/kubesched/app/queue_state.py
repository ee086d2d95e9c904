"""Where a pod is in the queue of a running scheduler, computed when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kubesched.api.times import micro_time, moment_at
from kubesched.explain.decision_records import QueuePart, QueueState
from kubesched.explain.explain import retry_events
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.moves import QueuePlace
from kubesched.scheduler.loop import Scheduler
from kubesched.snapshot.pod_info import uid_of

_PARTS: Final = {
    QueuePlace.ACTIVE: QueuePart.ACTIVE,
    QueuePlace.BACKOFF: QueuePart.BACKOFF,
    QueuePlace.UNSCHEDULABLE: QueuePart.UNSCHEDULABLE,
    QueuePlace.IN_FLIGHT: QueuePart.IN_FLIGHT,
}


def queue_state(scheduler: Scheduler, namespace: str, name: str, now_ns: int) -> QueueState | None:
    """Return where a pod is in the queue; None if the scheduler does not hold it.

    Args:
        scheduler: The running scheduler.
        namespace: The pod's namespace.
        name: The pod's name.
        now_ns: The time of day in nanoseconds since the epoch.
    """
    now = scheduler.now()

    def text_of(seconds: float) -> str:
        return micro_time(moment_at(now_ns + round((seconds - now) * 1e9)))

    pod = scheduler.pods.get(namespace, name)
    uid = "" if pod is None else uid_of(pod)
    waiting = scheduler.waiting_pods.get(uid)
    flying = _in_flight(scheduler, uid)
    if waiting is not None:
        return QueueState(
            part=QueuePart.WAITING_ON_PERMIT,
            attempts=0 if flying is None else flying.attempts,
            since="" if flying is None else text_of(flying.timestamp),
            node=waiting.node_name,
            waits_for=tuple(waiting.pending_plugins),
        )
    if scheduler.cache.is_assumed(uid):
        there = scheduler.cache.get_pod(uid)
        assert there is not None, "an assumed pod is in the cache"
        return QueueState(
            part=QueuePart.BINDING,
            attempts=0 if flying is None else flying.attempts,
            node=there.node_name,
        )
    key = f"{namespace}/{name}"
    queued = flying or scheduler.queue.get_pod(key)
    if queued is None:
        return None
    place = QueuePlace.IN_FLIGHT if flying else scheduler.queue.place_of(key)
    return _queued_state(scheduler, queued, place, text_of)


def _in_flight(scheduler: Scheduler, uid: str) -> QueuedPodInfo | None:
    if not scheduler.queue.is_in_flight(uid):
        return None
    flying: Iterable[QueuedPodInfo] = scheduler.queue.pods(QueuePlace.IN_FLIGHT)
    return next(queued for queued in flying if queued.pod_info.uid == uid)


def _queued_state(
    scheduler: Scheduler,
    queued: QueuedPodInfo,
    place: QueuePlace,
    text_of: Callable[[float], str],
) -> QueueState:
    profile = scheduler.profiles.get(queued.pod_info.scheduler_name)
    plugins = [queued.gating_plugin] if queued.is_gated else sorted(queued.rejecting_plugins)
    in_backoff = place is QueuePlace.BACKOFF
    return QueueState(
        part=QueuePart.GATED if queued.is_gated else _PARTS[place],
        attempts=queued.attempts,
        since=text_of(queued.timestamp),
        node=queued.pod_info.pod.status.nominated_node_name,
        retry_after=() if profile is None else retry_events(profile, plugins),
        backoff_ends=text_of(scheduler.queue.backoff_end(queued)) if in_backoff else "",
    )
