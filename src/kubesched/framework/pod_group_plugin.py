"""The extension points of plugins that look at a pod group as a whole.

Upstream: pkg/scheduler/framework/interface.go, PodGroupPostFilterPlugin;
          staging/src/k8s.io/kube-scheduler/framework/interface.go, PlacementGeneratePlugin and
          PlacementScorePlugin (v1.36)
Differs:  whoever asks a PodGroupPostFilter plugin carries out what it decides; a group is handed
          over as the PodGroup's name and namespace; there is no cycle state of a group.
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
    """Tries what would be if some pods had left the cluster."""

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Suppose that pods have left their nodes."""
        ...

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Suppose that they have not, after all."""
        ...

    async def schedule(self) -> Status:
        """Return whether the group would be scheduled; nothing stays of it."""
        ...


class PodGroupPostFilterResult(msgspec.Struct, frozen=True):
    """What may make the group fit.

    Attributes:
        status: Success if the victims make room.
        victims: The pods to evict, wherever they are.
    """

    status: Status
    victims: tuple[PodInfo, ...] = ()


class PodGroupPostFilterPlugin(Plugin):
    """Looks for a way out when a pod group is unschedulable."""

    @abstractmethod
    async def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[PodInfo], snapshot: Snapshot, trial: PodGroupTrial
    ) -> PodGroupPostFilterResult:
        """Return whom to evict.

        Args:
            group: The group.
            pods: Those of its pods that have no node.
            snapshot: The cluster; it changes with the trial.
            trial: Tries what would be; who asks undoes it afterwards.
        """


class Placement(msgspec.Struct, frozen=True):
    """Nodes that are tried for a pod group, and no others.

    Attributes:
        name: What tells it from others, such as a topology domain.
        rows: The nodes' rows, in the snapshot's order.
    """

    name: str
    rows: tuple[int, ...]


class ProposedAssignment(msgspec.Struct, frozen=True):
    """A pod of the group, and where it would go."""

    pod: PodInfo
    node_name: str


class PodGroupAssignments(msgspec.Struct, frozen=True):
    """What a placement would mean for the group.

    Attributes:
        placement: The nodes.
        proposed: The pods that found a node, in the order of trying.
    """

    placement: Placement
    proposed: tuple[ProposedAssignment, ...]


class GeneratedPlacements(msgspec.Struct, frozen=True):
    """The placements to try, or why there are none."""

    placements: tuple[Placement, ...] = ()
    status: Status = SUCCESS


class PlacementGeneratePlugin(Plugin):
    """Says which sets of nodes are tried for a pod group."""

    @abstractmethod
    def generate_placements(
        self, namespace: str, name: str, parent: Placement, snapshot: Snapshot
    ) -> GeneratedPlacements:
        """Divide the nodes of `parent` for the group of that name."""


class PlacementScorePlugin(Plugin):
    """Rates placements into which a pod group fits.

    Attributes:
        normalizes_placements: Whether `normalize_placement_scores` does anything.
    """

    normalizes_placements: ClassVar[bool] = False

    @abstractmethod
    def score_placement(
        self, namespace: str, name: str, assignments: PodGroupAssignments, snapshot: Snapshot
    ) -> tuple[int, Status]:
        """Return the score, and success."""

    def normalize_placement_scores(self, scores: Sequence[int]) -> tuple[list[int], Status]:
        """Bring the scores of all placements into 0..100; return them, and success."""
        return list(scores), SUCCESS
