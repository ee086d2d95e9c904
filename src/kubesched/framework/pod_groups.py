"""Pod groups: the extension points for whole groups, and their members, as plugins see them.

Upstream: pkg/scheduler/framework/interface.go, PodGroupPostFilterPlugin;
          staging/src/k8s.io/kube-scheduler/framework/interface.go, PlacementGeneratePlugin,
          PlacementScorePlugin, PodGroupState and PodGroupStateLister (v1.36)
Reads:    pod.spec.schedulingGroup
Differs:  the caller of a PodGroupPostFilter plugin evicts the victims, not the plugin; a group is
          passed as the PodGroup's name and namespace; a group has no cycle state; one lister:
          during a group's cycle, members that are placed tentatively count as assumed, where
          upstream has a second lister over the snapshot; a scheduling group without a name counts
          as none, where upstream crashes (the API server rejects it).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

import msgspec

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.framework.plugin import Plugin, PostFilterResult
from kubesched.framework.status import SUCCESS, Status
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


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


def pod_group_of(pod: PodInfo, objects: Objects) -> PodGroup | None:
    """Return the pod's group; None if it has none, or if the group does not exist."""
    name = pod_group_name_of(pod.pod)
    return objects.get(PodGroup, name, pod.namespace) if name else None


def state_not_found(namespace: str, name: str) -> str:
    """Return upstream's message for a group without pods."""
    return f"pod group state not found for pod group {namespace}/{name}"


# Extension points.


class PodGroupTrial(Protocol):
    """A what-if: schedules the group as if some pods had left the cluster."""

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Take pods off their nodes."""

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Return removed pods to their nodes."""

    async def schedule(self) -> Status:
        """Return success if the group could be scheduled; the attempt is undone."""


class PodGroupPostFilterPlugin(Plugin):
    """Tries to make room when a pod group is unschedulable."""

    @abstractmethod
    async def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[PodInfo], snapshot: Snapshot, trial: PodGroupTrial
    ) -> PostFilterResult:
        """Return the pods to evict, on any node, for a group, given its pods that have no node.

        The trial changes the snapshot; the caller undoes that afterwards.
        """


class Placement(msgspec.Struct, frozen=True):
    """A set of nodes to which a pod group is restricted.

    Attributes:
        name: Identifies the placement, such as a topology domain.
        rows: The nodes' rows, in the snapshot's order.
    """

    name: str
    rows: tuple[int, ...]


class ProposedAssignment(msgspec.Struct, frozen=True):
    """A pod of the group and its node in a placement."""

    pod: PodInfo
    node_name: str


class PodGroupAssignments(msgspec.Struct, frozen=True):
    """The result of trying a placement.

    Attributes:
        placement: The nodes.
        proposed: The pods that fit, in the order in which they were tried.
    """

    placement: Placement
    proposed: tuple[ProposedAssignment, ...]


class GeneratedPlacements(msgspec.Struct, frozen=True):
    """The placements to try, or the status that explains why there are none."""

    placements: tuple[Placement, ...] = ()
    status: Status = SUCCESS


class PlacementGeneratePlugin(Plugin):
    """Chooses the sets of nodes that are tried for a pod group."""

    @abstractmethod
    def generate_placements(
        self, namespace: str, name: str, parent: Placement, snapshot: Snapshot
    ) -> GeneratedPlacements:
        """Return parts of `parent` in which to try the group."""


class PlacementScorePlugin(Plugin):
    """Scores placements into which a pod group fits.

    Attributes:
        normalizes_placements: Whether the plugin overrides `normalize_placement_scores`; set when
            the class is created.
    """

    normalizes_placements: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = cls.normalize_placement_scores
        cls.normalizes_placements = own is not PlacementScorePlugin.normalize_placement_scores

    @abstractmethod
    def score_placement(
        self, namespace: str, name: str, assignments: PodGroupAssignments, snapshot: Snapshot
    ) -> tuple[int, Status]:
        """Return the score and success, or any number and a failure."""

    def normalize_placement_scores(self, scores: Sequence[int]) -> tuple[list[int], Status]:
        """Return the scores of all placements, scaled to 0..100, and success."""
        return list(scores), SUCCESS
