"""Removes the pod fields of disabled features before the scheduler reads the pod.

Upstream: pkg/scheduler/framework/types.go, CalculateResource (v1.36)
Differs:  upstream passes the gates to every sum of requests; here queueing hints, too, compare
          pods without the fields.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.config.feature_gates import FeatureGates


def without_disabled_fields(pod: Pod, gates: FeatureGates) -> Pod:
    """Return the pod without fields of disabled features; the same object if none is set."""
    if pod.spec.resources is None:
        return pod
    if not gates.enabled("PodLevelResources"):
        return replace(pod, spec=replace(pod.spec, resources=None))
    if gates.enabled("InPlacePodLevelResourcesVerticalScaling"):
        return pod
    status = replace(pod.status, resources=None, allocated_resources=None)
    return replace(pod, status=status)
