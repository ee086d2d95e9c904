"""FakeHandle replaces the scheduler: it has feature gates and runs a few plugins.

Differs:  what-if questions run the given plugins, in their order, without a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random

import msgspec
import numpy as np

from kubesched.api.meta import KubeObject
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import FilterReads
from kubesched.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    Scope,
)
from kubesched.framework.services import services_for
from kubesched.framework.status import SUCCESS, NodeToStatus, Status
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.objects import Objects, ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class FakeHandle:
    """A `Handle` for plugins under test.

    Attributes:
        scheduler_name: The profile's name.
        feature_gates: The defaults of 1.36, overridden by the given gates.
        random: A seeded random source.
        waiting_pods: The pods that Permit plugins hold.
        objects: The objects given to the constructor.
        plugins: The plugins that `filter_rows` and what-if questions run; more can be added.
        pod_group_states: The members of pod groups; none by default.
        services: The services for plugins; `provide` changes them.
        activated: The pods that plugins activated.
    """

    def __init__(
        self,
        feature_gates: Mapping[str, bool] | FeatureGates | None = None,
        *,
        plugins: Iterable[Plugin] = (),
        objects: Iterable[KubeObject] = (),
        scheduler_name: str = "default-scheduler",
        seed: int = 0,
    ) -> None:
        self.scheduler_name = scheduler_name
        if isinstance(feature_gates, FeatureGates):
            self.feature_gates = feature_gates
        else:
            self.feature_gates = FeatureGates(dict(feature_gates or {}))
        store = ObjectStore()
        for item in objects:
            store.put(item)
        self.objects: Objects = store
        self.random = Random(seed)  # noqa: S311 - the run's random source, not a secret
        self.plugins: list[Plugin] = list(plugins)
        self.activated: list[PodInfo] = []
        services = services_for(self.feature_gates, store)
        self.services = msgspec.structs.replace(services, activate=self.activate)
        self.waiting_pods = services.waiting_pods
        self.pod_group_states = services.pod_group_states

    def provide(self, **services: object) -> None:
        """Give plugins other services, by the names of the fields of `Services`."""
        self.services = msgspec.structs.replace(self.services, **services)

    def pre_filter(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Run PreFilter of all plugins and store their states; return the first failure."""
        for plugin in self.plugins:
            if not isinstance(plugin, PreFilterPlugin):
                continue
            result = plugin.pre_filter(cycle, pod, snapshot)
            if result.status.is_skip:
                cycle.skip_filter.add(plugin.name)
            elif not result.status.is_success:
                return result.status.by(plugin.name)
            cycle.filter_states[plugin.name] = result.state
        return SUCCESS

    def count_filters(self, cycle: CycleState, times: int, rejected_by: str = "") -> None:
        """Count nothing."""

    def filter_rows(
        self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, *, counts: bool = True
    ) -> NodeToStatus:
        """Run all filters on the rows, without nominated pods."""
        outcome = [SUCCESS] * len(nodes)
        for plugin in self.plugins:
            if not isinstance(plugin, FilterPlugin) or plugin.name in cycle.skip_filter:
                continue
            answers = plugin.filter(cycle.filter_states.get(plugin.name), pod, nodes)
            for row, before in enumerate(outcome):
                if before.is_success:
                    outcome[row] = answers[row].by(plugin.name)
        return NodeToStatus.of(outcome)

    def reads_of_filters(self, cycle: CycleState, pod: PodInfo) -> FilterReads:
        """Return that nothing may be kept."""
        filters = (plugin for plugin in self.plugins if isinstance(plugin, FilterPlugin))
        return FilterReads(dict.fromkeys((each.name for each in filters), Scope.CLUSTER), ())

    def ignoring(
        self, filters: Collection[str], cycle: CycleState, pod: PodInfo
    ) -> Callable[[PodInfo], bool]:
        """Return a function that says whether these plugins, and all with a state, ignore a pod."""
        names = {*filters, *(plugin.name for plugin in self._extensions(cycle))}
        active = [
            each for each in self.plugins if isinstance(each, FilterPlugin) and each.name in names
        ]
        return lambda other: (
            len(active) == len(names)
            and all(
                plugin.ignores(cycle.filter_states.get(plugin.name), pod, other)
                for plugin in active
            )
        )

    def filter_with_nominated_pods(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, node: SelectedRows
    ) -> Status:
        """Run all filters on the one row of `node`, with pods nominated to it, then without."""
        nominated = snapshot.nominated.ahead_of(pod, node.names[0])
        if nominated:
            what_if, fuller = cycle.clone(), node.take(np.arange(1))
            for other in nominated:
                status = self.add_pod(what_if, pod, other, fuller)
                if not status.is_success:
                    return status
            status = self.filter_rows(what_if, pod, fuller)[0]
            if not status.is_success:
                return status
        return self.filter_rows(cycle, pod, node)[0]

    def add_pod(
        self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: SelectedRows
    ) -> Status:
        """Add a pod to the one row of `node` and to the states of `cycle`."""
        node.add_pod(added)
        for plugin in self._extensions(cycle):
            status = plugin.add_pod(cycle.filter_states[plugin.name], pod, added, node)
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def remove_pod(
        self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: SelectedRows
    ) -> Status:
        """Remove a pod from the one row of `node` and from the states of `cycle`."""
        node.remove_pod(removed)
        for plugin in self._extensions(cycle):
            status = plugin.remove_pod(cycle.filter_states[plugin.name], pod, removed, node)
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def activate(self, pods: Sequence[PodInfo]) -> None:
        """Append the pods to `activated`."""
        self.activated.extend(pods)

    def _extensions(self, cycle: CycleState) -> list[PreFilterExtensions[object]]:
        return [
            plugin
            for plugin in self.plugins
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in cycle.skip_filter
        ]
