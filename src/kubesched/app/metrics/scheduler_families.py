"""The scheduler's own families, as recorded from kube-scheduler: names, labels, help, buckets.

Upstream: pkg/scheduler/metrics/metrics.go (v1.36)
Differs:  the families in `ABSENT` are missing, for the reasons given there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesched.app.metrics.family import Family, MetricType, exponential

_MILLISECONDS: Final = exponential(0.001, 2, 15)
_POINT: Final = exponential(0.0001, 2, 12)
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
_HINT: Final = exponential(0.00001, 2, 12)
_WAIT: Final = exponential(0.01, 2, 20)


def _counter(name: str, labels: tuple[str, ...], text: str) -> Family:
    return Family(f"scheduler_{name}", MetricType.COUNTER, labels, text)


def _gauge(name: str, labels: tuple[str, ...], text: str) -> Family:
    return Family(f"scheduler_{name}", MetricType.GAUGE, labels, text)


def _histogram(name: str, labels: tuple[str, ...], text: str, bounds: tuple[float, ...]) -> Family:
    return Family(f"scheduler_{name}", MetricType.HISTOGRAM, labels, text, bounds)


SCHEDULE_ATTEMPTS: Final = _counter(
    "schedule_attempts_total",
    ("result", "profile"),
    "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod "
    "could not be scheduled, while 'error' means an internal scheduler problem.",
)
EVENT_HANDLING: Final = _histogram(
    "event_handling_duration_seconds",
    ("event",),
    "[ALPHA] Event handling latency in seconds.",
    _POINT,
)
ATTEMPT_DURATION: Final = _histogram(
    "scheduling_attempt_duration_seconds",
    ("result", "profile"),
    "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)",
    _MILLISECONDS,
)
ALGORITHM_DURATION: Final = _histogram(
    "scheduling_algorithm_duration_seconds",
    (),
    "[ALPHA] Scheduling algorithm latency in seconds",
    _MILLISECONDS,
)
PREEMPTION_VICTIMS: Final = _histogram(
    "preemption_victims",
    (),
    "[STABLE] Number of selected preemption victims",
    exponential(1, 2, 7),
)
PREEMPTION_ATTEMPTS: Final = _counter(
    "preemption_attempts_total", (), "[STABLE] Total preemption attempts in the cluster till now"
)
PENDING_PODS: Final = _gauge(
    "pending_pods",
    ("queue",),
    "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in "
    "activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods "
    "in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the "
    "number of unschedulable pods that the scheduler never attempted to schedule because they "
    "are gated.",
)
IN_FLIGHT_EVENTS: Final = _gauge(
    "inflight_events",
    ("event",),
    "[ALPHA] Number of events currently tracked in the scheduling queue.",
)
GOROUTINES: Final = _gauge(
    "goroutines",
    ("operation",),
    "[BETA] Number of running goroutines split by the work they do such as binding.",
)
SLI_DURATION: Final = _histogram(
    "pod_scheduling_sli_duration_seconds",
    ("attempts",),
    "[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
    "queue and might involve multiple scheduling attempts.",
    _WAIT,
)
POD_ATTEMPTS: Final = _histogram(
    "pod_scheduling_attempts",
    (),
    "[STABLE] Number of attempts to successfully schedule a pod.",
    exponential(1, 2, 5),
)
SCHEDULED_AFTER_FLUSH: Final = _counter(
    "pod_scheduled_after_flush_total",
    (),
    "[ALPHA] Number of pods that were successfully scheduled after being flushed from "
    "unschedulablePods due to timeout. This metric helps detect potential queueing hint "
    "misconfigurations or event handling issues.",
)
POINT_DURATION: Final = _histogram(
    "framework_extension_point_duration_seconds",
    ("extension_point", "status", "profile"),
    "[STABLE] Latency for running all plugins of a specific extension point.",
    _POINT,
)
PLUGIN_DURATION: Final = _histogram(
    "plugin_execution_duration_seconds",
    ("plugin", "extension_point", "status"),
    "[ALPHA] Duration for running a plugin at a specific extension point.",
    _PLUGIN,
)
HINT_DURATION: Final = _histogram(
    "queueing_hint_execution_duration_seconds",
    ("plugin", "event", "hint"),
    "[ALPHA] Duration for running a queueing hint function of a plugin.",
    _PLUGIN,
)
INCOMING_PODS: Final = _counter(
    "queue_incoming_pods_total",
    ("queue", "event"),
    "[STABLE] Number of pods added to scheduling queues by event and queue type.",
)
PERMIT_WAIT: Final = _histogram(
    "permit_wait_duration_seconds",
    ("result",),
    "[BETA] Duration of waiting on permit.",
    _MILLISECONDS,
)
CACHE_SIZE: Final = _gauge(
    "cache_size",
    ("type",),
    "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
)
UNSCHEDULABLE_PODS: Final = _gauge(
    "unschedulable_pods",
    ("plugin", "profile"),
    "[BETA] The number of unschedulable pods broken down by plugin name. A pod will increment "
    "the gauge for all plugins that caused it to not schedule and so this metric have meaning "
    "only when broken down by plugin.",
)
PLUGIN_EVALUATIONS: Final = _counter(
    "plugin_evaluation_total",
    ("plugin", "extension_point", "profile"),
    "[BETA] Number of attempts to schedule pods by each plugin and the extension point (available "
    "only in PreFilter, Filter, PreScore, and Score).",
)
PREEMPTION_DURATION: Final = _histogram(
    "preemption_goroutines_duration_seconds",
    ("result",),
    "[ALPHA] Duration in seconds for running goroutines for the preemption.",
    _WAIT,
)
PREEMPTION_EXECUTIONS: Final = _counter(
    "preemption_goroutines_execution_total",
    ("result",),
    "[ALPHA] Number of preemption goroutines executed.",
)
GROUP_ATTEMPTS: Final = _counter(
    "podgroup_schedule_attempts_total",
    ("result", "profile"),
    "[ALPHA] Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod "
    "group could not be scheduled, while 'error' means an internal scheduler problem.",
)
GROUP_ATTEMPT_DURATION: Final = _histogram(
    "podgroup_scheduling_attempt_duration_seconds",
    ("result", "profile"),
    "[ALPHA] Pod group scheduling attempt latency in seconds (scheduling algorithm + binding)",
    _MILLISECONDS,
)
GROUP_ALGORITHM_DURATION: Final = _histogram(
    "podgroup_scheduling_algorithm_duration_seconds",
    (),
    "[ALPHA] Pod group scheduling algorithm latency in seconds",
    _MILLISECONDS,
)
BATCH_ATTEMPTS: Final = _counter(
    "batch_attempts_total",
    ("profile", "result"),
    "[ALPHA] Counts of results when we attempt to use batching.",
)
NODE_HINT_DURATION: Final = _histogram(
    "get_node_hint_duration_seconds",
    ("hinted", "profile"),
    "[ALPHA] Latency for getting a node hint.",
    _HINT,
)
CLAIM_CREATES: Final = _counter(
    "resourceclaim_creates_total",
    ("status",),
    "[ALPHA] Number of ResourceClaims creation requests within scheduler",
)
BINDING_CONDITIONS: Final = _counter(
    "dra_bindingconditions_allocations_total",
    ("profile", "driver", "status"),
    "[ALPHA] Number of allocations using devices with BindingConditions, counted per driver per "
    "scheduling attempt",
)
BINDING_WAIT: Final = _histogram(
    "dra_bindingconditions_wait_duration_seconds",
    ("profile", "driver", "status"),
    "[ALPHA] Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
    exponential(0.1, 2, 14),
)
VOLUME_ERRORS: Final = _counter(
    "volume_scheduling_stage_error_total",
    ("operation",),
    "[ALPHA] Volume scheduling stage error count",
)

FAMILIES: Final = (
    SCHEDULE_ATTEMPTS,
    EVENT_HANDLING,
    ATTEMPT_DURATION,
    ALGORITHM_DURATION,
    PREEMPTION_VICTIMS,
    PREEMPTION_ATTEMPTS,
    PENDING_PODS,
    IN_FLIGHT_EVENTS,
    GOROUTINES,
    SLI_DURATION,
    POD_ATTEMPTS,
    SCHEDULED_AFTER_FLUSH,
    POINT_DURATION,
    PLUGIN_DURATION,
    HINT_DURATION,
    INCOMING_PODS,
    PERMIT_WAIT,
    CACHE_SIZE,
    UNSCHEDULABLE_PODS,
    PLUGIN_EVALUATIONS,
    PREEMPTION_DURATION,
    PREEMPTION_EXECUTIONS,
    GROUP_ATTEMPTS,
    GROUP_ATTEMPT_DURATION,
    GROUP_ALGORITHM_DURATION,
    BATCH_ATTEMPTS,
    NODE_HINT_DURATION,
    CLAIM_CREATES,
    BINDING_CONDITIONS,
    BINDING_WAIT,
    VOLUME_ERRORS,
)

_ASYNC_API: Final = (
    "upstream registers it with the gate SchedulerAsyncAPICalls, which is off unless configured; "
    "here the gate has no effect: calls are tasks of the event loop, without a dispatcher"
)

ABSENT: Final[Mapping[str, str]] = {
    "scheduler_batch_cache_flushed_total": (
        "answers are remembered for many signatures and updated row by row: none of "
        "upstream's reasons invalidates them, an unsigned pod in between included"
    ),
    "scheduler_store_schedule_results_duration_seconds": (
        "nothing is stored after a cycle: answers are stored when plugins give them, within "
        "scheduler_get_node_hint_duration_seconds"
    ),
    "scheduler_async_api_call_execution_total": _ASYNC_API,
    "scheduler_async_api_call_execution_duration_seconds": _ASYNC_API,
    "scheduler_pending_async_api_calls": _ASYNC_API,
    "scheduler_volume_binder_cache_requests_total": "upstream registers it and never counts",
}
"""Missing families of kube-scheduler, and the reasons."""
