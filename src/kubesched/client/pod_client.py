"""PodClient reads pods, binds and deletes them, and patches their statuses.

A status is written as a strategic merge patch: the difference between the old and the wanted one.
Conditions are merged by type. The patch of a non-empty list also has the order of its elements; a
removed field is null.

Upstream: pkg/scheduler/util/utils.go, PatchPodStatus, PatchPodGroupStatus; pkg/api/v1/pod/util.go,
          UpdatePodCondition; staging/src/k8s.io/apimachinery/pkg/api/meta/conditions.go,
          SetStatusCondition; staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go;
          pkg/scheduler/framework/plugins/defaultbinder/default_binder.go;
          plugins/dynamicresources/extendeddynamicresources.go (v1.36)
Differs:  no retries; callers retry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubesched.api.media_types import STRATEGIC_MERGE_PATCH
from kubesched.api.meta import Condition
from kubesched.api.scheduling import PodGroup
from kubesched.api.scheme import kind_of
from kubesched.api.times import moment_at, second_time
from kubesched.client.requests import Request, Rest, path_of

Plain = dict[str, Any]

_CONDITIONS: Final = "conditions"
_ORDER: Final = "$setElementOrder/conditions"
_NOMINATED: Final = "nominatedNodeName"


def pod_status_patch(
    pod: Pod, wanted: ConditionPatch | None, nominated_node_name: str | None, now: str
) -> Plain:
    """Return the patch of the status of a pod as last observed, empty if nothing changes.

    None leaves conditions or nomination alone; "" clears the nomination. `now` is the transition
    time of a condition whose status changes.
    """
    status = pod.status
    before = status.conditions
    is_nominated = nominated_node_name not in {None, status.nominated_node_name}
    if (wanted is None or wanted.is_in(before)) and not is_nominated:
        return {}
    generation = pod.metadata.generation
    after = before if wanted is None else wanted.set_in(before, PodCondition, generation, now)
    # The patch also has differences that alone would be no reason to write.
    patch = _conditions_patch(
        [_plain_pod_condition(one) for one in before], [_plain_pod_condition(one) for one in after]
    )
    if is_nominated:
        patch[_NOMINATED] = nominated_node_name or None
    return patch


def _plain_pod_condition(condition: PodCondition) -> Plain:
    plain: Plain = {
        "type": condition.type,
        "status": condition.status,
        "lastProbeTime": condition.last_probe_time,
        "lastTransitionTime": condition.last_transition_time,
    }
    optional = {
        "observedGeneration": condition.observed_generation,
        "reason": condition.reason,
        "message": condition.message,
    }
    return plain | {name: value for name, value in optional.items() if value}


def pod_group_status_patch(group: PodGroup, wanted: ConditionPatch, now: str) -> Plain:
    """Return the patch of a pod group's status, empty if nothing changes."""
    before = group.status.conditions
    after = wanted.set_in(before, Condition, group.metadata.generation, now)
    return _conditions_patch(
        [_plain_condition(one) for one in before], [_plain_condition(one) for one in after]
    )


def _plain_condition(condition: Condition) -> Plain:
    plain: Plain = {
        "type": condition.type,
        "status": condition.status,
        "lastTransitionTime": condition.last_transition_time,
        "reason": condition.reason,
        "message": condition.message,
    }
    generation = condition.observed_generation
    return plain | ({"observedGeneration": generation} if generation else {})


def _conditions_patch(before: list[Plain], after: list[Plain]) -> Plain:
    """Return the patch between two lists of conditions; the second begins with the same types."""
    if not before:
        return {_CONDITIONS: after} if after else {}
    changed = []
    for old, new in zip(before, after, strict=False):
        difference = difference_of(old, new)
        if difference:
            changed.append(difference | {"type": new["type"]})
    changed += after[len(before) :]
    if not changed:
        return {}
    return {_ORDER: [{"type": one["type"]} for one in after], _CONDITIONS: changed}


def difference_of(old: Plain, new: Plain) -> Plain:
    """Return fields that are new or different, and null for removed ones."""
    changed = {name: value for name, value in new.items() if name not in old or old[name] != value}
    return changed | dict.fromkeys(name for name in old if name not in new)


# Pods.

_PODS: Final = kind_of(Pod)
_POD_GROUPS: Final = kind_of(PodGroup)
_DELETE_OPTIONS: Final = b'{"kind":"DeleteOptions","apiVersion":"v1"}'
# Go writes the keys of a patch in order.
_encode_patch: Final = msgspec.json.Encoder(order="sorted").encode


class PodClient:
    """Writes pods, and the statuses of pod groups.

    All methods raise `ApiError` if the request fails.
    """

    def __init__(self, rest: Rest, now_ns: Callable[[], int]) -> None:
        """Set up; `now_ns` returns the time of day in nanoseconds since the epoch."""
        self._rest = rest
        self._now_ns = now_ns

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod to a node; the server refuses if the pod was replaced by another one."""
        metadata = pod.metadata
        binding = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                **({"uid": metadata.uid} if metadata.uid else {}),
            },
            "target": {"kind": "Node", "name": node_name},
        }
        path = path_of(_PODS, metadata.namespace, metadata.name, "binding")
        await self._rest.send(Request(method="POST", path=path, body=msgspec.json.encode(binding)))

    async def delete_pod(self, pod: Pod) -> None:
        """Begin to delete a pod, with its own grace period."""
        path = path_of(_PODS, pod.metadata.namespace, pod.metadata.name)
        await self._rest.send(Request(method="DELETE", path=path, body=_DELETE_OPTIONS))

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Set a condition and the nominated node; sends nothing if nothing changes.

        The patch is the difference to the pod as last observed. None leaves conditions or
        nomination alone; "" clears the nomination.
        """
        status = pod_status_patch(
            pod, condition, nominated_node_name, second_time(moment_at(self._now_ns()))
        )
        await self._patch_status(
            path_of(_PODS, pod.metadata.namespace, pod.metadata.name, "status"), status
        )

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set the claim that provides the pod's extended resources."""
        name = "extendedResourceClaimStatus"
        new = _claim_status(status)
        old = pod.status.extended_resource_claim_status
        changed = new if old is None else difference_of(_claim_status(old), new)
        await self._patch_status(
            path_of(_PODS, pod.metadata.namespace, pod.metadata.name, "status"),
            {name: changed} if changed else {},
        )

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Set a condition of a pod group; sends nothing if nothing changes."""
        metadata = group.metadata
        await self._patch_status(
            path_of(_POD_GROUPS, metadata.namespace, metadata.name, "status"),
            pod_group_status_patch(group, condition, second_time(moment_at(self._now_ns()))),
        )

    async def _patch_status(self, path: str, status: dict[str, Any]) -> None:
        if not status:
            return
        body = _encode_patch({"status": status})
        await self._rest.send(
            Request(method="PATCH", path=path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        )


def _claim_status(status: PodExtendedResourceClaimStatus) -> dict[str, Any]:
    """Return the status as Go writes it, with all fields."""
    mappings = [
        {
            "containerName": mapping.container_name,
            "resourceName": mapping.resource_name,
            "requestName": mapping.request_name,
        }
        for mapping in status.request_mappings
    ]
    return {"requestMappings": mappings, "resourceClaimName": status.resource_claim_name}
