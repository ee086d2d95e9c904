"""Latencies of a simulated cluster; the defaults are those of a healthy one."""

from __future__ import annotations

import msgspec

from kubesched.config.durations import DurationSeconds


class Latencies(msgspec.Struct, frozen=True, rename="camel"):
    """Latencies; each that is drawn is between 0.5 and 1.5 times the value.

    Attributes:
        request: Round trip of a request to the API server.
        watch: Maximum delay between a write and its watch event.
        pod_start: From a pod's binding until it runs.
        pod_stop: From a pod's deletion until it has ended; limited by its grace period.
        controller: From a change until a controller reacts.
        node_failure_detection: From a node's last heartbeat until it is tainted.
        pod_garbage_collection: From a node's deletion until its pods are deleted.
    """

    request: DurationSeconds = 0.004
    watch: DurationSeconds = 0.01
    pod_start: DurationSeconds = 2.0
    pod_stop: DurationSeconds = 1.0
    controller: DurationSeconds = 0.1
    node_failure_detection: DurationSeconds = 40.0
    pod_garbage_collection: DurationSeconds = 40.0
