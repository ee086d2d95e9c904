"""PodClient writes bindings, statuses and deletions of pods, and statuses of pod groups.

Upstream: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go,
          pkg/scheduler/util/utils.go, plugins/dynamicresources/extendeddynamicresources.go (v1.36)
Differs:  no retries; callers retry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.scheduling import PodGroup
from kubesched.api.scheme import kind_of
from kubesched.api.times import moment_at, second_time
from kubesched.client.requests import STRATEGIC_MERGE_PATCH, Request, Rest, path_of
from kubesched.client.status_patches import (
    WantedCondition,
    WantedGroupCondition,
    difference_of,
    pod_group_status_patch,
    pod_status_patch,
)

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
        """Set up.

        Args:
            rest: Sends the requests.
            now_ns: Returns the time of day in nanoseconds since the epoch.
        """
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
        condition: WantedCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Set a condition and the nominated node; sends nothing if nothing changes.

        Args:
            pod: As last observed; the patch is the difference to it.
            condition: None leaves the conditions alone.
            nominated_node_name: "" clears it, None leaves it alone.
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

    async def patch_pod_group_status(
        self, group: PodGroup, condition: WantedGroupCondition
    ) -> None:
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
