"""GpuQuotas: a custom resource says how many GPUs the pods of a namespace may use."""

from typing import ClassVar

from kubesched.framework import (
    ASSIGNED_POD,
    PRE_FILTER_SKIP,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    CycleState,
    KubeObject,
    KubeStruct,
    Pod,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    Snapshot,
    custom_resource,
    unresolvable,
)

GPU = "nvidia.com/gpu"


class GpuQuotaSpec(KubeStruct):
    """What is read of the spec; other fields are ignored."""

    gpus: int = 0


@custom_resource("example.com/v1", "gpuquotas")
class GpuQuota(KubeObject):
    """How many GPUs the pods of its namespace may use."""

    spec: GpuQuotaSpec = GpuQuotaSpec()


class GpuQuotas(PreFilterPlugin[None]):
    """Pods that ask for GPUs wait while they exceed a quota of their namespace."""

    name: ClassVar = "GpuQuotas"

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[None]:
        """Compare the GPUs in use, and those that the pod asks for, with each quota."""
        wanted = pod.template.requests.get(GPU, 0)
        quotas = list(snapshot.objects.list(GpuQuota, pod.namespace))
        if not wanted or not quotas:
            return PRE_FILTER_SKIP
        on_nodes = (other for pods in snapshot.nodes.pods for other in pods.values())
        used = sum(
            other.template.requests.get(GPU, 0)
            for other in on_nodes
            if other.namespace == pod.namespace
        )
        for quota in quotas:
            if used + wanted > quota.spec.gpus:
                name, allowed = quota.metadata.name, quota.spec.gpus
                why = f"GpuQuota {name} allows {allowed} GPUs, {used} are in use"
                return PreFilterResult(status=unresolvable(why))
        return PRE_FILTER_SKIP

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A pod is tried again when a quota of its namespace changes, or one of its pods goes."""
        quotas = ClusterEvent("gpuquotas.v1.example.com", Action.ALL)
        gone = ClusterEvent(ASSIGNED_POD, Action.DELETE)
        return [
            ClusterEventWithHint(quotas, _is_in_namespace),
            ClusterEventWithHint(gone, _is_in_namespace),
        ]


def _is_in_namespace(waiting: Pod, old: object | None, new: object | None) -> bool:
    changed = old if new is None else new
    return (
        isinstance(changed, KubeObject) and changed.metadata.namespace == waiting.metadata.namespace
    )
