"""InstantServer is an object server in whose cluster nothing takes time.

A bound pod runs in the same write, a deleted pod is gone at once. Objects of a real cluster are
taken over as they are, and every change is passed to a handler before the write returns.

Differs:  pods never end by themselves; a pod that is deleted releases its ResourceClaims at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.errors import NotFoundError
from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.kubelets import FINISHED
from kubesched.cluster.store import Change, ChangeType
from kubesched.simulator.informer import EventHandler
from kubesched.simulator.object_server import ObjectServer, key_of
from kubesched.simulator.timestamps import timestamp
from kubesched.snapshot.objects import KubernetesObject

_SECONDS_PER_POD: Final = 1.0


class InstantServer(ObjectServer):
    """Objects, and what may be done to them, at once.

    Attributes:
        changes: Number of writes, without those that only report the status of a pod or group.
        on_pod_deleted: Called with each pod that is gone.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """Start empty; `now` returns seconds since the start of virtual time."""
        super().__init__(lambda: self._start_seconds + now())
        self.changes = 0
        self.on_pod_deleted: Callable[[Pod], None] = lambda _pod: None
        self._start_seconds = 0.0
        self._handler: EventHandler | None = None

    def restore(self, objects: Iterable[KubernetesObject], start_seconds: float) -> None:
        """Take over the objects of a cluster.

        Args:
            objects: The objects, each with the fields that its API server gave it.
            start_seconds: The time; pods start after it, each a second after the one before.
        """
        self._start_seconds = start_seconds
        found = list(objects)
        newest = max((_version_of(item) for item in found), default=0)
        known = ((key_of(item), item, _version_of(item)) for item in found)
        self.store.restore(known, max(newest, 1))

    def connect(self, handler: EventHandler) -> None:
        """Pass every change from now on to a handler."""
        self._handler = handler
        self.store.on_write = self._deliver

    def _deliver(self, change: Change[KubernetesObject]) -> None:
        handler = self._handler
        assert handler is not None, "it was connected"
        before, after = change.previous, change.value
        self.changes += not _is_report(before, after)
        if change.type is ChangeType.DELETED:
            if not _is_finished(after):
                handler.deleted(after)
            if isinstance(after, Pod):
                self.on_pod_deleted(after)
        elif before is None or _is_finished(before):
            handler.added(after)
        else:
            handler.updated(before, after)

    def bind(
        self, namespace: str, name: str, uid: str, node_name: str, *, runs: bool = True
    ) -> Pod:
        """Assign a pod to a node, where it runs; see `ObjectServer.bind`."""
        # The order in which pods started decides which of them are evicted.
        self._start_seconds += _SECONDS_PER_POD
        return super().bind(namespace, name, uid, node_name, runs=runs)

    def delete_pod(
        self, namespace: str, name: str, uid: str = "", grace_seconds: int | None = 0
    ) -> None:
        """Delete a pod, without grace; see `ObjectServer.delete_pod`."""
        pod = self.pod(namespace, name, uid)
        super().delete_pod(namespace, name, uid, 0)
        if pod is not None and pod.spec.resource_claims:
            for claim in self.all(ResourceClaim):
                self.release_claim(claim, pod)

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove a pod from a claim, whose last pod takes the devices along."""
        found = self.store.find(key_of(claim))
        if isinstance(found, ResourceClaim):
            users = found.status.reserved_for
            left = tuple(user for user in users if user.uid != pod.metadata.uid)
            if len(left) < len(users):
                allocation = found.status.allocation if left else None
                status = replace(found.status, reserved_for=left, allocation=allocation)
                self.update(replace(found, status=status))

    def timestamp(self) -> str:
        """Return the time as Kubernetes writes it."""
        return timestamp(self._now())

    @staticmethod
    def soon(write: Callable[[], object]) -> None:
        """Write after the current callback, which may be in the middle of a scheduling cycle."""

        def attempt() -> None:
            with suppress(NotFoundError):
                write()

        asyncio.get_running_loop().call_soon(attempt)


def _version_of(item: KubernetesObject) -> int:
    version = item.metadata.resource_version
    return int(version) if version.isdecimal() else 0


def _is_finished(item: KubernetesObject) -> bool:
    return isinstance(item, Pod) and item.status.phase in FINISHED


def _is_report(before: KubernetesObject | None, after: KubernetesObject) -> bool:
    """Whether a write changed nothing but the status of a pod or pod group."""
    if not isinstance(before, (Pod, PodGroup)) or not isinstance(after, (Pod, PodGroup)):
        return False
    old, new = before.metadata, after.metadata
    return (
        before.spec is after.spec
        and old.labels is new.labels
        and old.deletion_timestamp == new.deletion_timestamp
    )
