"""PodGroupStates: the members of pod groups, as plugins see them.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, PodGroupState and
          PodGroupStateLister (v1.36)
Reads:    pod.spec.schedulingGroup
Differs:  one lister: during a group's cycle, members that are placed tentatively count as assumed,
          where upstream has a second lister over the snapshot. A scheduling group without a name
          counts as none, where upstream crashes (the API server rejects it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kubesched.api.core import Pod
from kubesched.snapshot.pod_info import PodInfo


class PodGroupState(Protocol):
    """The known pods of one group; each list is in order of arrival."""

    @property
    def all_pods_count(self) -> int:
        """How many pods the group has."""

    @property
    def scheduled_pods_count(self) -> int:
        """How many pods are assumed or assigned."""

    @property
    def unscheduled_pods(self) -> Sequence[PodInfo]:
        """The pods that have no node."""

    @property
    def assumed_pods(self) -> Sequence[PodInfo]:
        """The pods that have a node but are not bound yet."""

    @property
    def assigned_pods(self) -> Sequence[PodInfo]:
        """The pods that are bound."""


class PodGroupStates:
    """The states of all groups that have a pod; if the feature is off, of none."""

    def get(self, namespace: str, name: str) -> PodGroupState | None:
        """Return a group's state, or None if it has no pods."""
        return None


def pod_group_name_of(pod: Pod) -> str:
    """Return the name of the pod's group, or "" if it has none."""
    group = pod.spec.scheduling_group
    return (group.pod_group_name or "") if group is not None else ""


def state_not_found(namespace: str, name: str) -> str:
    """Return upstream's message for a group without pods."""
    return f"pod group state not found for pod group {namespace}/{name}"
