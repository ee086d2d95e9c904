"""PodGroupStates is what plugins may ask about the members of pod groups.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, PodGroupState and
          PodGroupStateLister (v1.36)
Reads:    pod.spec.schedulingGroup
Differs:  one lister for both: in a group's cycle members count as assumed that are placed
          tentatively, where upstream has a second lister over the snapshot; a scheduling group
          without a name counts as none, where upstream crashes (the API server refuses it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kubesched.api.core import Pod
from kubesched.snapshot.pod_info import PodInfo


class PodGroupState(Protocol):
    """The pods of one group that the scheduler knows; each list in the order of arrival."""

    @property
    def all_pods_count(self) -> int:
        """How many pods there are, whatever their state."""
        ...

    @property
    def scheduled_pods_count(self) -> int:
        """How many pods are assumed or assigned."""
        ...

    @property
    def unscheduled_pods(self) -> Sequence[PodInfo]:
        """The pods that have no node."""
        ...

    @property
    def assumed_pods(self) -> Sequence[PodInfo]:
        """The pods that were placed and are not bound yet."""
        ...

    @property
    def assigned_pods(self) -> Sequence[PodInfo]:
        """The pods that are bound."""
        ...


class PodGroupStates(Protocol):
    """The states of all groups that have a pod."""

    def get(self, namespace: str, name: str) -> PodGroupState | None:
        """Return a group's state, None if it has no pod."""
        ...


class NoPodGroupStates:
    """There are no groups: the feature is off."""

    def get(self, namespace: str, name: str) -> PodGroupState | None:
        """Return nothing."""
        return None


def pod_group_name_of(pod: Pod) -> str:
    """Return the name of the group a pod belongs to, "" if it belongs to none."""
    group = pod.spec.scheduling_group
    return (group.pod_group_name or "") if group is not None else ""


def state_not_found(namespace: str, name: str) -> str:
    """Return upstream's words for a group that has no pod."""
    return f"pod group state not found for pod group {namespace}/{name}"
