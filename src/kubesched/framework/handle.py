"""Handle: the interface through which a plugin uses the scheduler.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, Handle (v1.36)
Differs:  listers are part of the snapshot that is passed to the plugin's methods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from random import Random
from typing import Protocol

import msgspec

from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Scope
from kubesched.framework.pod_groups import PodGroupStates
from kubesched.framework.services import Services
from kubesched.framework.status import NodeToStatus, Status
from kubesched.framework.waiting_pods import WaitingPods
from kubesched.snapshot.node_table import SelectedRows
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class FilterReads(msgspec.Struct, frozen=True):
    """What the answers of the filters for a row depend on, besides the pod.

    Attributes:
        scopes: The scope of each filter that runs; CLUSTER if its answers must not be kept.
        versions: The versions of the other objects that they read, and the signs of plugins that
            may read more of the pod than its template.
        screening: Filter name -> whether its answer depends on nothing of the pods but sums of
            their requests. Only the filters before the first one that may reject a row because
            pods have left it; empty if they are not known.
    """

    scopes: Mapping[str, Scope]
    versions: tuple[Hashable, ...]
    screening: Mapping[str, bool] = {}


class Handle(Protocol):
    """The part of a profile that its plugins may use."""

    @property
    def scheduler_name(self) -> str:
        """The profile's name; pods refer to it in `spec.schedulerName`."""

    @property
    def feature_gates(self) -> FeatureGates:
        """The feature gates."""

    @property
    def objects(self) -> Objects:
        """The cluster's objects other than nodes and pods; for `sign` and queueing hints."""

    @property
    def services(self) -> Services:
        """Further services of the scheduler."""

    @property
    def random(self) -> Random:
        """The run's seeded random source; a plugin asks for it whenever it draws."""

    def filter_with_nominated_pods(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, node: SelectedRows
    ) -> Status:
        """Run all filters on the single row of `node`, with and without pods nominated to it.

        The states in `cycle` must match the pods of `node`.
        """

    def filter_rows(
        self, cycle: CycleState, pod: PodInfo, nodes: SelectedRows, *, counts: bool = True
    ) -> NodeToStatus:
        """Run all filters on the rows of a what-if; results are not cached.

        Nominated pods are ignored. A filter's failure becomes the status of its row, as in
        `filter_with_nominated_pods`, and does not affect other rows. Without `counts`, the caller
        counts the evaluations by `count_filters`.
        """

    def count_filters(self, cycle: CycleState, times: int, rejected_by: str = "") -> None:
        """Count evaluations of all filters, or of those up to the one that rejected the pod."""

    def reads_of_filters(self, cycle: CycleState, pod: PodInfo) -> FilterReads:
        """Return what the answers of `filter_rows` depend on, for pods of one template."""

    def ignoring(
        self, filters: Collection[str], cycle: CycleState, pod: PodInfo
    ) -> Callable[[PodInfo], bool]:
        """Return a function that says of another pod whether it is ignored.

        If such a pod comes to a node or leaves one, no state of `cycle` and no answer of `filters`
        changes.
        """

    def add_pod(
        self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: SelectedRows
    ) -> Status:
        """Add a pod to the single row of `node` and to the states of `cycle`."""

    def remove_pod(
        self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: SelectedRows
    ) -> Status:
        """Remove a pod from the single row of `node` and from the states of `cycle`."""

    @property
    def waiting_pods(self) -> WaitingPods:
        """The pods of all profiles that wait for Permit plugins."""

    @property
    def pod_group_states(self) -> PodGroupStates:
        """The current members of pod groups."""

    def activate(self, pods: Sequence[PodInfo]) -> None:
        """Move pods to the active queue."""
