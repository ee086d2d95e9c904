"""Fields of pods that feature gates turn off are taken away before the scheduler looks at a pod.

Upstream: pkg/scheduler/framework/types.go, CalculateResource (v1.36)
Differs:  upstream passes the gates to every sum of requests; queueing hints compare pods without
          the fields, too.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.config.feature_gates import FeatureGates


def without_disabled_fields(pod: Pod, gates: FeatureGates) -> Pod:
    """Return a pod as the scheduler reads it: the same object unless a gate is off."""
    if pod.spec.resources is None:
        return pod
    if not gates.enabled("PodLevelResources"):
        return replace(pod, spec=replace(pod.spec, resources=None))
    if gates.enabled("InPlacePodLevelResourcesVerticalScaling"):
        return pod
    status = replace(pod.status, resources=None, allocated_resources=None)
    return replace(pod, status=status)
