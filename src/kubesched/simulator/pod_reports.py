"""Kubelets' reports as the simulator stores them: the phase, and whether the pod is ready.

Upstream: pkg/kubelet/status (v1.36)
Differs:  containers have no statuses, pods no addresses.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.simulator.object_server import ObjectServer

RUN_SECONDS: Final = "simulation/run-seconds"
"""The annotation that sets for how many seconds a pod runs."""


def with_run_seconds(metadata: ObjectMeta, seconds: float) -> ObjectMeta:
    """Return the metadata of a pod that runs for some seconds."""
    return replace(metadata, annotations={**metadata.annotations, RUN_SECONDS: repr(seconds)})


def run_seconds_of(pod: Pod) -> float | None:
    """Return for how long a pod runs, None if until it is deleted."""
    text = pod.metadata.annotations.get(RUN_SECONDS)
    return None if text is None else float(text)


class PhaseReports:
    """Writes phases; nothing else of a report is stored."""

    def __init__(self, server: ObjectServer) -> None:
        self._server = server

    def started(self, pod: Pod) -> Pod:
        """All containers run."""
        return self._server.set_phase(pod, "Running")

    def restarted(self, pod: Pod, exit_code: int) -> Pod:
        """All containers ended, and run again."""
        return pod

    def ended(self, pod: Pod, exit_code: int) -> Pod:
        """All containers ended for good."""
        return self._server.set_phase(pod, "Failed" if exit_code else "Succeeded")

    def resized(self, pod: Pod) -> None:
        """A running pod changed."""

    def forget(self, pod_uid: str) -> None:
        """A pod is gone."""
