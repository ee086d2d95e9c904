"""The extension points for whole pod groups.

Upstream: pkg/scheduler/framework/interface.go, PodGroupPostFilterPlugin;
          staging/src/k8s.io/kube-scheduler/framework/interface.go, PlacementGeneratePlugin and
          PlacementScorePlugin (v1.36)
Differs:  the caller of a PodGroupPostFilter plugin evicts the victims, not the plugin; a group is
          passed as the PodGroup's name and namespace; a group has no cycle state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

import msgspec

from kubesched.api.scheduling import PodGroup
from kubesched.framework.plugin import Plugin
from kubesched.framework.status import SUCCESS, Status
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class PodGroupTrial(Protocol):
    """A what-if: schedules the group as if some pods had left the cluster."""

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Take pods off their nodes."""

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Return removed pods to their nodes."""

    async def schedule(self) -> Status:
        """Return success if the group could be scheduled; the attempt is undone."""


class PodGroupPostFilterResult(msgspec.Struct, frozen=True):
    """Success if evicting the victims, on any node, makes room."""

    status: Status
    victims: tuple[PodInfo, ...] = ()


class PodGroupPostFilterPlugin(Plugin):
    """Tries to make room when a pod group is unschedulable."""

    @abstractmethod
    async def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[PodInfo], snapshot: Snapshot, trial: PodGroupTrial
    ) -> PodGroupPostFilterResult:
        """Return the pods to evict for a group, given its pods that have no node.

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
