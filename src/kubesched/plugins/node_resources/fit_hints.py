"""The queueing hints of NodeResourcesFit.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go, isSchedulableAfter… (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.core import Node, Pod
from kubesched.api.pod_requests import pod_requests
from kubesched.api.quantity import milli_value, value
from kubesched.api.resource import IMPLICIT_EXTENDED_RESOURCE_PREFIX, DeviceClass
from kubesched.api.resource_names import is_scalar_resource_name
from kubesched.plugins.node_resources.scoring import NATIVE

IsBacked = Callable[[str], bool]
"""Resource name -> whether a device class backs it."""


def counted_requests(requests: dict[str, int]) -> list[tuple[str, int]]:
    """Return the requests that nodes account for: native resources first, then by name."""
    counted = [(name, requests[name]) for name in NATIVE if requests.get(name, 0) > 0]
    if len(counted) < len(requests):
        counted += [
            (name, requests[name])
            for name in sorted(requests)
            if requests[name] != 0 and name not in NATIVE and is_scalar_resource_name(name)
        ]
    return counted


def after_pod_deleted(deleted: Pod) -> bool:
    """Whether the deleted pod had a node, or was nominated to one."""
    return bool(deleted.spec.node_name or deleted.status.nominated_node_name)


def after_pod_scaled_down(target: Pod, old: Pod, new: Pod) -> bool:
    """Whether the waiting pod requests less, or a bound pod frees a resource it requests."""
    if new.metadata.uid == target.metadata.uid:
        return True
    if not new.spec.node_name:
        return False
    before, after = pod_requests(old, use_status=True), pod_requests(new, use_status=True)
    wanted = pod_requests(target, use_status=True)
    return any(before.get(name, 0) > after.get(name, 0) for name, _ in counted_requests(wanted))


def after_node_changed(target: Pod, old: Node | None, new: Node, is_backed: IsBacked) -> bool:
    """Whether the pod would fit on the empty node, and the node has grown or is new."""
    requests = tuple(counted_requests(pod_requests(target)))
    if _allowed_pods(new) < 1:
        return False
    for name, amount in requests:
        offered = _offered(new, name)
        if amount > offered and not _delegated(name, offered, is_backed):
            return False
    if old is None or _allowed_pods(new) > _allowed_pods(old):
        return True
    return any(
        _offered(new, name) > _offered(old, name)
        or _delegated(name, _offered(new, name), is_backed)
        for name, _ in requests
    )


def after_device_class_changed(target: Pod, old: DeviceClass | None, new: DeviceClass) -> bool:
    """Whether the class newly backs a resource that the pod requests."""
    name = new.spec.extended_resource_name
    requests = pod_requests(target)
    if old is None:
        if IMPLICIT_EXTENDED_RESOURCE_PREFIX + new.metadata.name in requests:
            return True
    elif (old.spec.extended_resource_name or "") == (name or ""):
        return False
    return name is not None and name in requests


def _delegated(name: str, offered: int, is_backed: IsBacked) -> bool:
    return name not in NATIVE and offered <= 0 and is_backed(name)


def _allowed_pods(node: Node) -> int:
    return value(node.status.allocatable.get("pods", 0))


def _offered(node: Node, resource: str) -> int:
    amount = node.status.allocatable.get(resource, 0)
    return milli_value(amount) if resource == "cpu" else value(amount)
