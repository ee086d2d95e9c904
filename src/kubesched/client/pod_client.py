"""PodClient binds and deletes pods, patches their statuses, and records events about them.

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

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod, PodCondition, PodExtendedResourceClaimStatus
from kubesched.api.media_types import STRATEGIC_MERGE_PATCH
from kubesched.api.meta import Condition, ObjectMeta
from kubesched.api.scheduling import PodGroup
from kubesched.api.scheme import Kind, kind_of
from kubesched.api.times import moment_at, second_time
from kubesched.client.requests import Request, Rest, path_of

Plain = dict[str, Any]

_NEVER_OMITTED: Final[dict[type, Plain]] = {
    PodCondition: {"type": "", "status": "", "lastProbeTime": None, "lastTransitionTime": None},
    Condition: {"type": "", "status": "", "lastTransitionTime": None, "reason": "", "message": ""},
    PodExtendedResourceClaimStatus: {"requestMappings": [], "resourceClaimName": ""},
}
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
    patch = _conditions_patch(before, after)
    if is_nominated:
        patch[_NOMINATED] = nominated_node_name or None
    return patch


def _conditions_patch(
    before: Sequence[PodCondition | Condition], after: Sequence[PodCondition | Condition]
) -> Plain:
    """Return the patch between two lists of conditions; the second begins with the same types."""
    changed = []
    for old, new in zip(before, after, strict=False):
        difference = difference_of(_plain(old), _plain(new))
        if difference:
            changed.append(difference | {"type": new.type})
    changed += map(_plain, after[len(before) :])
    if not changed:
        return {}
    order = {_ORDER: [{"type": one.type} for one in after]} if before else {}
    return order | {_CONDITIONS: changed}


def _plain(item: PodCondition | Condition | PodExtendedResourceClaimStatus) -> Plain:
    """Return JSON values as Go writes them, with the empty fields that it does not omit."""
    kept: Plain = msgspec.to_builtins(item)
    return _NEVER_OMITTED[type(item)] | kept


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

    def __init__(
        self, rest: Rest, now_ns: Callable[[], int], record_event: Callable[[EventRecord], None]
    ) -> None:
        """Set up.

        `now_ns` returns the time of day in nanoseconds since the epoch; `record_event` queues an
        event for writing.
        """
        self._rest = rest
        self._now_ns = now_ns
        self._record_event = record_event

    def now(self) -> str:
        """Return the time of day, RFC 3339."""
        return second_time(moment_at(self._now_ns()))

    def record_event(self, event: EventRecord) -> None:
        """Queue an event for writing; returns at once."""
        self._record_event(event)

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
        status = pod_status_patch(pod, condition, nominated_node_name, self.now())
        await self._patch_status(_PODS, pod.metadata, status)

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set the claim that provides the pod's extended resources."""
        name = "extendedResourceClaimStatus"
        old = pod.status.extended_resource_claim_status
        changed = difference_of({} if old is None else _plain(old), _plain(status))
        await self._patch_status(_PODS, pod.metadata, {name: changed} if changed else {})

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Set a condition of a pod group; sends nothing if nothing changes."""
        metadata, before = group.metadata, group.status.conditions
        after = condition.set_in(before, Condition, metadata.generation, self.now())
        await self._patch_status(_POD_GROUPS, metadata, _conditions_patch(before, after))

    async def _patch_status(self, kind: Kind, metadata: ObjectMeta, status: Plain) -> None:
        if not status:
            return
        path = path_of(kind, metadata.namespace, metadata.name, "status")
        body = _encode_patch({"status": status})
        await self._rest.send(
            Request(method="PATCH", path=path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        )
