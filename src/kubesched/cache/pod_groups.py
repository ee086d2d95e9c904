"""PodGroupStore holds the pods of every pod group, each as unscheduled, assumed or assigned.

    add(pod without a node) ─▶ unscheduled ── assume ─▶ assumed ── add(pod on a node) ─▶ assigned
                                    ▲                      │
                                    └─────── forget ───────┘

The cache updates it for pods on nodes, the event handlers for pods without a node.

Upstream: pkg/scheduler/backend/cache/podgroupstate.go and cache.go (v1.36)
Reads:    pod.spec.schedulingGroup, pod.spec.nodeName
Invariants: every group has at least one pod; every pod has at least one state (`check()`).
Differs:  pods are listed in the order of their arrival, where upstream iterates over maps; a
          snapshot has no copy of the states: during a group's cycle, tentatively placed pods are
          assumed here; a pod is not assumed if its whole group was deleted, where upstream creates
          the group again and never removes it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kubesched.framework.pod_groups import PodGroupStates, pod_group_name_of
from kubesched.snapshot.pod_info import PodInfo

log = logging.getLogger(__name__)


class PodGroupMembers:
    """The pods of one group, by uid, as last observed."""

    __slots__ = ("_assigned", "_assumed", "_unscheduled", "all_pods")

    def __init__(self) -> None:
        self.all_pods: dict[str, PodInfo] = {}
        # Dictionaries without values, because sets have no order.
        self._unscheduled: dict[str, None] = {}
        self._assumed: dict[str, PodInfo] = {}
        self._assigned: dict[str, None] = {}

    # Queries: framework.pod_groups.PodGroupState.

    @property
    def all_pods_count(self) -> int:
        """The number of pods in all states."""
        return len(self.all_pods)

    @property
    def scheduled_pods_count(self) -> int:
        """The number of assumed and assigned pods."""
        return len(self._assumed) + len(self._assigned)

    @property
    def unscheduled_pods(self) -> Sequence[PodInfo]:
        """The pods that have no node."""
        return [self.all_pods[uid] for uid in self._unscheduled]

    @property
    def assumed_pods(self) -> Sequence[PodInfo]:
        """The pods that are assumed and not bound yet, with the nodes they are assumed on."""
        return list(self._assumed.values())

    @property
    def assigned_pods(self) -> Sequence[PodInfo]:
        """The pods that are bound."""
        return [self.all_pods[uid] for uid in self._assigned]

    # Changes.

    def add(self, info: PodInfo) -> None:
        """Add a pod, as assigned if it has a node, else as unscheduled.

        A pod that was unscheduled and now has a node is in both states until its next update, as
        upstream.
        """
        self.all_pods[info.uid] = info
        if _is_assigned(info):
            self._assigned[info.uid] = None
        else:
            self._unscheduled[info.uid] = None

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Update a pod; it becomes assigned if it got its node."""
        self.all_pods[new.uid] = new
        if not _is_assigned(old) and _is_assigned(new):
            self._assigned[new.uid] = None
            self._unscheduled.pop(new.uid, None)
            self._assumed.pop(new.uid, None)

    def delete(self, uid: str) -> None:
        """Delete a pod; unknown pods are ignored."""
        self.all_pods.pop(uid, None)
        self._unscheduled.pop(uid, None)
        self._assumed.pop(uid, None)
        self._assigned.pop(uid, None)

    def assume(self, assumed: PodInfo) -> None:
        """Mark a pod as assumed; unknown pods are ignored."""
        known = self.all_pods.get(assumed.uid)
        if known is None:
            return
        if _is_assigned(known):
            self._assigned[assumed.uid] = None
        else:
            self._assumed[assumed.uid] = assumed
        self._unscheduled.pop(assumed.uid, None)

    def forget(self, uid: str) -> None:
        """Undo `assume`; unknown pods are ignored."""
        known = self.all_pods.get(uid)
        if known is None:
            return
        self._assumed.pop(uid, None)
        if _is_assigned(known):
            self._assigned[uid] = None
        else:
            self._unscheduled[uid] = None

    def check(self) -> None:
        """Assert that every pod has a state, and that states have no unknown pods."""
        states = (self._unscheduled, self._assumed, self._assigned)
        placed = {uid for state in states for uid in state}
        assert placed == self.all_pods.keys(), "pods and states disagree"
        assert not self._assumed.keys() & self._unscheduled.keys(), "an assumed pod is unscheduled"
        assert not self._assumed.keys() & self._assigned.keys(), "an assumed pod is bound"


class PodGroupStore(PodGroupStates):
    """The states of all groups that have a pod, by namespace and name.

    Pods that belong to no group are ignored, and all pods if it is not enabled.
    """

    def __init__(self, *, is_enabled: bool = True) -> None:
        self.is_enabled = is_enabled
        self._groups: dict[tuple[str, str], PodGroupMembers] = {}

    def get(self, namespace: str, name: str) -> PodGroupMembers | None:
        """Return a group's state, None if it has no pod."""
        return self._groups.get((namespace, name))

    def add(self, info: PodInfo) -> None:
        """Add an observed pod, with or without a node."""
        if key := self._key_of(info):
            self._groups.setdefault(key, PodGroupMembers()).add(info)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Update a pod that has no node."""
        if group := self._group_of(new):
            group.update(old, new)
        elif self._key_of(new):
            log.error("Pod %s changed before it came to its group", new.key)

    def delete(self, info: PodInfo) -> None:
        """Delete a pod, and its group with its last pod."""
        key = self._key_of(info)
        if key and (group := self._groups.get(key)):
            group.delete(info.uid)
            if not group.all_pods:
                del self._groups[key]

    def replace(self, old: PodInfo, new: PodInfo) -> None:
        """Replace a pod by its confirmed or updated version on a node."""
        self.delete(old)
        self.add(new)

    def assume(self, assumed: PodInfo) -> None:
        """Mark a pod as assumed; unknown pods and groups are ignored."""
        if group := self._group_of(assumed):
            group.assume(assumed)

    def forget(self, info: PodInfo) -> None:
        """Undo `assume`."""
        if group := self._group_of(info):
            group.forget(info.uid)

    def _group_of(self, info: PodInfo) -> PodGroupMembers | None:
        key = self._key_of(info)
        return self._groups.get(key) if key else None

    def _key_of(self, info: PodInfo) -> tuple[str, str] | None:
        name = pod_group_name_of(info.pod) if self.is_enabled else ""
        return (info.namespace, name) if name else None

    def check(self) -> None:
        """Assert that every group is sound and not empty."""
        for key, group in self._groups.items():
            assert group.all_pods, f"group {key} has no pod"
            group.check()


def _is_assigned(info: PodInfo) -> bool:
    # Not `info.node_name`, which is also set for assumed pods.
    return bool(info.pod.spec.node_name)
