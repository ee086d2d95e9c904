"""QueuedPodInfo: a pod in the scheduling queue, with its attempts.

Upstream: pkg/scheduler/framework/types.go, QueuedPodInfo (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubesched.snapshot.pod_info import PodInfo


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pending pod. Mutable; owned by the queue, or by the cycle while the pod is in flight.

    Attributes:
        pod_info: The pod; a newer version has the same name.
        key: `namespace/name`.
        arrival: Its place in the queue among pods that are equally urgent.
        timestamp: When it last entered a queue, in seconds.
        attempts: How often it was tried.
        backoff_expiration: When its backoff ends, in seconds; None if not computed.
        unschedulable_count: Failed attempts that plugins rejected.
        consecutive_errors_count: Failed attempts in a row that ended in an error.
        was_flushed: Whether a timeout moved it last.
        initial_attempt_timestamp: When it first entered the active queue, in seconds.
        initial_attempt: Its number among all pods that entered it, in that order.
        standing_message: The message of its last rejection, if an equal one would change nothing
            but counts and times: its condition is written, and a cycle that rejects one pod of its
            template rejects all of them; else "".
        unschedulable_plugins: Plugins that rejected it in the last attempt.
        pending_plugins: Plugins that returned Pending and will activate the pod themselves.
        gating_plugin: The PreEnqueue plugin that rejects it; "" if none does.
    """

    pod_info: PodInfo
    timestamp: float = 0.0
    attempts: int = 0
    backoff_expiration: float | None = None
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    was_flushed: bool = False
    initial_attempt_timestamp: float | None = None
    initial_attempt: int = 0
    standing_message: str = ""
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    gating_plugin: str = ""
    key: str = field(init=False)
    arrival: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.key = self.pod_info.key

    @property
    def is_gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps the pod out of the active queue."""
        return bool(self.gating_plugin)

    @property
    def rejecting_plugins(self) -> frozenset[str]:
        """The plugins whose events may make the pod schedulable."""
        if not self.pending_plugins:
            return self.unschedulable_plugins
        return self.unschedulable_plugins | self.pending_plugins
