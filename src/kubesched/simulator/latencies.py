"""How long things take in a simulated cluster; the defaults are those of a healthy one."""

from __future__ import annotations

import msgspec

from kubesched.config.durations import DurationSeconds


class Latencies(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds; a drawn time is between half and one and a half times what stands here.

    Attributes:
        request: A request to the API server and back.
        watch: From a write to the watchers' hearing of it, at most.
        pod_start: From a pod's binding to its running.
        pod_stop: From a pod's deletion to its end; its grace period is the limit.
        controller: From a change to a controller's answer.
        node_failure_detection: From a node's last sign of life to its taints.
        pod_garbage_collection: From a node's removal to that of the pods it leaves behind.
    """

    request: DurationSeconds = 0.004
    watch: DurationSeconds = 0.01
    pod_start: DurationSeconds = 2.0
    pod_stop: DurationSeconds = 1.0
    controller: DurationSeconds = 0.1
    node_failure_detection: DurationSeconds = 40.0
    pod_garbage_collection: DurationSeconds = 40.0
