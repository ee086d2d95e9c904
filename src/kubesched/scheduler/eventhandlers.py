"""Event handlers apply watch events to the cache and the queue.

Changes that arrive while a cycle waits for extenders are applied when that cycle ends:

    object                        cache           queue
    pod with a node      added    add_pod         move_all AssignedPodAdd
                         changed  update_pod      move_all per changed property
                         deleted  remove_pod      move_all AssignedPodDelete
    pod without, ours    added    -               add; move_all UnschedulablePodAdd, with gangs
                         changed  -               update
                         deleted  -               delete
    pod gets its node             add_pod         move_all AssignedPodAdd; delete
    node                 added    add_node        move_all NodeAdd
                         changed  add_node        move_all per changed property
                         deleted  remove_node     move_all NodeDelete, before the cache forgets it
    anything else                 put, delete     move_all Add, Update, Delete

Upstream: pkg/scheduler/eventhandlers.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubesched.api.scheduling import PodGroup
from kubesched.api.scheme import custom_name_of
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.cache.cache import CacheError
from kubesched.framework import cluster_event as resources
from kubesched.framework.cluster_event import Action, ClusterEvent, node_events, pod_events
from kubesched.framework.disabled_fields import without_disabled_fields
from kubesched.framework.dra.devices import with_taints
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.structured_log import V3, V4
from kubesched.queue.moves import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
)
from kubesched.scheduler.observer import Instruments
from kubesched.scheduler.pod_scheduling import PodScheduling, assumed_pod
from kubesched.scheduler.scheduling_log import log_observed
from kubesched.snapshot.pod_info import PodInfo, scheduler_name_of, uid_of

log = logging.getLogger(__name__)


_RESOURCES: Final[Mapping[type, str]] = {
    PersistentVolume: resources.PERSISTENT_VOLUME,
    PersistentVolumeClaim: resources.PERSISTENT_VOLUME_CLAIM,
    CSINode: resources.CSI_NODE,
    CSIDriver: resources.CSI_DRIVER,
    VolumeAttachment: resources.VOLUME_ATTACHMENT,
    CSIStorageCapacity: resources.CSI_STORAGE_CAPACITY,
    StorageClass: resources.STORAGE_CLASS,
    ResourceClaim: resources.RESOURCE_CLAIM,
    ResourceSlice: resources.RESOURCE_SLICE,
    DeviceClass: resources.DEVICE_CLASS,
    PodGroup: resources.POD_GROUP,
}
_NODE_ADD: Final = ClusterEvent(resources.NODE, Action.ADD)
_ASSIGNED_POD_UPDATE: Final = ClusterEvent(resources.ASSIGNED_POD, Action.UPDATE)
_NODE_DELETE: Final = ClusterEvent(resources.NODE, Action.DELETE)


class EventHandlers:
    """Applies observed changes to cache and queue and wakes the loop."""

    def __init__(self, steps: PodScheduling, instruments: Instruments) -> None:
        self._steps = steps
        self._now = instruments.now
        self._handling = instruments.handling
        # All profiles share them.
        self._gates = next(iter(steps.profiles.values())).feature_gates
        self._has_gangs = self._gates.enabled("GangScheduling")
        self._has_declared_features = self._gates.enabled("NodeDeclaredFeatures")
        self._has_taint_rules = self._gates.enabled("DRADeviceTaintRules")

    def added(self, item: KubeObject) -> None:
        """Apply an added object."""
        if self._steps.defers(self.added, item):
            return
        match item:
            case Pod():
                self._pod_added(item)
            case Node():
                log_observed(V3, "Add event for node", item)
                with self._handling(_NODE_ADD):
                    self._steps.cache.add_node(item)
                    self._move(_NODE_ADD, None, item)
            case _:
                self._steps.cache.put(item)
                self._other(Action.ADD, None, item)

    def take_over(self, pods: Iterable[Pod]) -> None:
        """Apply pods on nodes that were there before the scheduler: no pod is pending yet."""
        for pod in pods:
            if pod.status.phase not in FINISHED:
                found = without_disabled_fields(pod, self._gates)
                self._steps.pods.put(found)
                self._steps.cache.add_pod(found)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Apply a changed object."""
        if self._steps.defers(self.updated, old, new):
            return
        match new:
            case Pod() if isinstance(old, Pod):
                self._pod_updated(old, new)
            case Node() if isinstance(old, Node):
                log_observed(V4, "Update event for node", new)
                began = self._now()
                self._steps.cache.add_node(new)
                events = node_events(old, new, declared_features=self._has_declared_features)
                self._move_each(events, old, new, began)
            case _:
                self._steps.cache.put(new)
                self._other(Action.UPDATE, old, new)

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply a deletion; `item` is the last observed state."""
        if self._steps.defers(
            partial(self.deleted, item, is_final_state_known=is_final_state_known)
        ):
            return
        match item:
            case Pod():
                self._pod_deleted(item, is_final_state_known=is_final_state_known)
            case Node():
                log_observed(V3, "Delete event for node", item)
                with self._handling(_NODE_DELETE):
                    self._move(_NODE_DELETE, item, None)
                    self._steps.cache.remove_node(item.metadata.name)
            case _:
                self._steps.cache.delete(item)
                self._other(Action.DELETE, item, None)

    # Pods.

    def _is_ours(self, pod: Pod) -> bool:
        return scheduler_name_of(pod) in self._steps.profiles

    def _pod_added(self, pod: Pod) -> None:
        pod = without_disabled_fields(pod, self._gates)
        if pod.status.phase in FINISHED:
            return
        self._steps.pods.put(pod)
        if pod.spec.node_name:
            self._assigned(pod)
        elif self._is_ours(pod):
            log_observed(V3, "Add event for unscheduled pod", pod)
            with self._handling(UNSCHEDULED_POD_ADD):
                info = PodInfo(pod)
                self._steps.cache.pod_groups.add(info)
                if self._steps.queue.add(info, self._steps.now()):
                    self._steps.wake()
                if self._has_gangs:
                    # It may complete its gang.
                    self._move(UNSCHEDULED_POD_ADD, None, pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        old, new = (
            without_disabled_fields(old, self._gates),
            without_disabled_fields(new, self._gates),
        )
        if new.status.phase in FINISHED:
            # The scheduler watches only unfinished pods, so this one counts as deleted.
            self._pod_deleted(old, is_final_state_known=True)
            return
        if old.metadata.uid != new.metadata.uid:
            self._pod_deleted(old, is_final_state_known=True)
            self._pod_added(new)
            return
        self._steps.pods.put(new)
        if old.spec.node_name:
            self._assigned_updated(old, new)
        elif new.spec.node_name:
            before = self._on_node(old)
            self._assigned(new)
            if self._is_ours(new):
                log_observed(V3, "Delete event for unscheduled pod", new)
                with self._handling(UNSCHEDULED_POD_DELETE):
                    self._steps.queue.delete(before, self._steps.now())
        elif self._is_ours(new):
            self._unscheduled_updated(old, new)

    def _pod_deleted(self, pod: Pod, *, is_final_state_known: bool) -> None:
        pod = without_disabled_fields(pod, self._gates)
        self._steps.pods.delete(pod)
        is_assigned = bool(pod.spec.node_name)
        if is_assigned or not is_final_state_known:
            # The final state was missed, so the pod may have been bound in between.
            log_observed(V3, "Delete event for scheduled pod", pod)
            with self._handling(ASSIGNED_POD_DELETE):
                if self._steps.cache.remove_pod(uid_of(pod)) is None and is_final_state_known:
                    log.warning("Deleted pod %s was not in the cache", pod.metadata.name)
                self._move(ASSIGNED_POD_DELETE, pod, None)
        if not is_assigned and self._is_ours(pod):
            self._unscheduled_deleted(pod)

    def _assigned(self, pod: Pod) -> None:
        log_observed(V3, "Add event for scheduled pod", pod)
        with self._handling(ASSIGNED_POD_ADD):
            try:
                self._steps.cache.add_pod(pod)
            except CacheError as error:
                log.error("Failed to add pod to the cache: %s", error)
            self._move(ASSIGNED_POD_ADD, None, pod)

    def _on_node(self, pod: Pod) -> PodInfo:
        """Return the cache's PodInfo of this version of a pod, or a new one."""
        known = self._steps.cache.get_pod(uid_of(pod))
        return known if known is not None and known.pod is pod else PodInfo(pod)

    def _assigned_updated(self, old: Pod, new: Pod) -> None:
        log_observed(V4, "Update event for scheduled pod", old)
        began = self._now()
        with self._handling(_ASSIGNED_POD_UPDATE):
            before = self._on_node(old)
            try:
                after = self._steps.cache.update_pod(new)
            except CacheError as error:
                log.error("Failed to update pod in the cache: %s", error)
                after = PodInfo(new)
            self._move_each(pod_events(before, after), old, new, began)

    def _unscheduled_updated(self, old: Pod, new: Pod) -> None:
        version = new.metadata.resource_version
        if version and version == old.metadata.resource_version:
            return
        log_observed(V4, "Update event for unscheduled pod", new)
        before = PodInfo(old)
        info = PodInfo(new, before)
        with self._handling(*dict.fromkeys((UNSCHEDULED_POD_UPDATE, *pod_events(before, info)))):
            self._steps.cache.pod_groups.update(before, info)
            if self._steps.cache.is_assumed(info.uid):
                if info.is_terminating and not before.is_terminating:
                    self._assumed_deleted(info)
                return
            if self._steps.queue.update(before, info, self._steps.now()):
                self._steps.wake()
            nominated = old.status.nominated_node_name
            if nominated and nominated != new.status.nominated_node_name:
                self._nomination_freed(before)

    def _unscheduled_deleted(self, pod: Pod) -> None:
        log_observed(V3, "Delete event for unscheduled pod", pod)
        with self._handling(UNSCHEDULED_POD_DELETE):
            info = PodInfo(pod)
            self._steps.queue.delete(info, self._steps.now())
            self._steps.cache.pod_groups.delete(info)
            if self._steps.cache.is_assumed(info.uid):
                self._assumed_deleted(info)
            elif pod.status.nominated_node_name:
                self._nomination_freed(info)

    def _assumed_deleted(self, info: PodInfo) -> None:
        """Handle the deletion of an assumed pod, whose binding is expected to fail."""
        assumed = self._steps.cache.get_pod(info.uid)
        assert assumed is not None, "an assumed pod is in the cache"
        waiting = self._steps.waiting_pods.get(info.uid)
        if waiting is not None:
            waiting.reject("", "removed")
        else:
            self._steps.cache.forget_pod(assumed)
        self._move(ASSIGNED_POD_DELETE, assumed_pod(assumed), None)

    def _nomination_freed(self, info: PodInfo) -> None:
        """Wake pods of at most its priority, which may use the node it was nominated to."""

        def may_use(queued: QueuedPodInfo) -> bool:
            return queued.pod_info.priority <= info.priority

        self._move(ASSIGNED_POD_DELETE, info.pod, None, may_use)

    # The queue.

    def _other(self, action: Action, old: object | None, new: object | None) -> None:
        kind = type(old if new is None else new)
        resource = _RESOURCES.get(kind) or custom_name_of(kind)
        if kind is DeviceTaintRule and self._has_taint_rules:
            self._taint_rule_changed(old, new)
        elif resource is not None:
            event = ClusterEvent(resource, action)
            with self._handling(event):
                self._move(event, old, new)

    def _taint_rule_changed(self, old: object | None, new: object | None) -> None:
        """Treat a changed rule as a change of every slice whose device taints it affects."""
        rules_before, rules_after = (
            [rule] if isinstance(rule, DeviceTaintRule) else [] for rule in (old, new)
        )
        for item in tuple(self._steps.cache.objects.list(ResourceSlice)):
            before = next(with_taints([item], rules_before))
            after = next(with_taints([item], rules_after))
            if before.spec != after.spec:
                event = ClusterEvent(resources.RESOURCE_SLICE, Action.UPDATE)
                with self._handling(event):
                    self._move(event, before, after)

    def _move_each(
        self, events: Sequence[ClusterEvent], old: object, new: object, began: float
    ) -> None:
        """Move pods for each event of one change; each duration includes the common preparation."""
        prepared_seconds = self._now() - began
        for event in events:
            with self._handling(event, prepared_seconds=prepared_seconds):
                self._move(event, old, new)

    def _move(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        pre_check: Callable[[QueuedPodInfo], bool] | None = None,
    ) -> None:
        if self._steps.queue.move_all(event, old, new, self._steps.now(), pre_check):
            self._steps.wake()
