"""Handle is what a plugin may ask back of the scheduler that holds it.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, Handle (v1.36)
Differs:  listers are part of the snapshot that each question carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_group_states import PodGroupStates
from kubesched.framework.services import Services
from kubesched.framework.status import NodeToStatus, Status
from kubesched.framework.waiting_pods import WaitingPods
from kubesched.snapshot.node_table import SelectedRows
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class Handle(Protocol):
    """The profile, as its plugins see it."""

    @property
    def scheduler_name(self) -> str:
        """The profile's name, which pods name in `spec.schedulerName`."""
        ...

    @property
    def feature_gates(self) -> FeatureGates:
        """Which features are on."""
        ...

    @property
    def objects(self) -> Objects:
        """The cluster's other objects as they are now; for `sign` and queueing hints."""
        ...

    @property
    def services(self) -> Services:
        """What the scheduler gives its plugins."""
        ...

    @property
    def random(self) -> Random:
        """The run's random source; seeded."""
        ...

    def filter_with_nominated_pods(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, node: SelectedRows
    ) -> Status:
        """Run all filters on the one row of `node`, first with pods nominated to it, then without.

        The states in `cycle` must be those of this what-if.
        """
        ...

    def filter_rows(self, cycle: CycleState, pod: PodInfo, nodes: SelectedRows) -> NodeToStatus:
        """Run all filters on rows whose pods are a what-if's; nothing is remembered.

        Nominated pods are left out. A row whose filter fails has that failure as its status, as
        `filter_with_nominated_pods` gives it, and the other rows are answered all the same.
        """
        ...

    def add_pod(
        self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: SelectedRows
    ) -> Status:
        """Put `added` on the one row of `node` and into the states of `cycle`."""
        ...

    def remove_pod(
        self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: SelectedRows
    ) -> Status:
        """Take `removed` off the one row of `node` and out of the states of `cycle`."""
        ...

    @property
    def waiting_pods(self) -> WaitingPods:
        """The pods that Permit plugins hold, of all profiles."""
        ...

    @property
    def pod_group_states(self) -> PodGroupStates:
        """The members of pod groups as they are now."""
        ...

    def activate(self, pods: Sequence[PodInfo]) -> None:
        """Ask the queue to try these pods now."""
        ...
