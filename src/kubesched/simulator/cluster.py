"""ClusterState combines objects, profiles and scheduling cycles, without an API server.

Upstream: pkg/scheduler/eventhandlers.go (which objects count as what, v1.36)
Reads:    any Kubernetes objects
Differs:  a pod of a gang is decided on alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from msgspec.structs import replace

from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.api.resource import EXTENDED_RESOURCE_CLAIM_ANNOTATION, ResourceClaim
from kubesched.cache.cache import Cache
from kubesched.framework.disabled_fields import without_disabled_fields
from kubesched.framework.plugin_error import PluginError
from kubesched.framework.registry import SchedulerSetup
from kubesched.framework.services import services_for
from kubesched.framework.status import SUCCESS, Status
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.profile_building import build_profiles
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class ClusterState:
    """The objects of a cluster, the profiles, and nominations.

    Attributes:
        cache: Nodes, pods on nodes, other objects.
        profiles: By scheduler name.
        nominator: The nominated nodes of pending pods.
        pending: Pods without a node, by uid, in order of arrival.
        plugin_errors: Exceptions of plugins so far; if there are any, decisions are not reliable.
        random: Breaks ties.
    """

    def __init__(self, setup: SchedulerSetup, *, seed: int = 0, remembers: bool = True) -> None:
        self._gates = setup.feature_gates
        self.cache = Cache(has_pod_groups=self._gates.enabled("GenericWorkload"))
        self.nominator = Nominator()
        self.pending: dict[str, PodInfo] = {}
        self.plugin_errors: list[PluginError] = []
        services = replace(
            services_for(self._gates, self.cache.objects),
            report_plugin_error=self.plugin_errors.append,
            pod_group_states=self.cache.pod_groups,
        )
        self.random = Random(seed)
        self.profiles: dict[str, Profile] = build_profiles(setup, self.random, services)
        sampler = NodeSampler()
        self._cycles = {
            name: SchedulingCycle(profile, sampler, remembers=remembers)
            for name, profile in self.profiles.items()
        }

    def load(self, objects: Iterable[KubeObject]) -> None:
        """Add objects, in any order."""
        on_nodes: list[Pod] = []
        for item in objects:
            if isinstance(item, Pod):
                pod = without_disabled_fields(item, self._gates)
                if pod.status.phase in FINISHED:
                    continue
                if pod.spec.node_name:
                    on_nodes.append(pod)
                else:
                    self._wait(PodInfo(pod))
            elif isinstance(item, Node):
                self.cache.add_node(item)
            else:
                self.cache.put(item)
        for pod in on_nodes:
            self.cache.add_pod(pod)
        self._nominate()

    def add_pending(self, pod: Pod) -> PodInfo:
        """Add a pod to be scheduled, even if its `spec.nodeName` is set."""
        info = PodInfo(without_disabled_fields(pod, self._gates))
        self._wait(info)
        self._nominate()
        return info

    def _wait(self, info: PodInfo) -> None:
        self.pending[info.uid] = info
        self.cache.pod_groups.add(info)

    def _nominate(self) -> None:
        for info in self.pending.values():
            node_name = info.pod.status.nominated_node_name
            if not node_name or self.nominator.node_of(info.uid) == node_name:
                continue
            if self.profile_of(info) is not None and self.pre_enqueue(info).is_success:
                self.nominator.add(info, node_name)

    def profile_of(self, info: PodInfo) -> Profile | None:
        """Return the profile that schedules the pod; None if another scheduler does."""
        return self.profiles.get(info.scheduler_name)

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now."""
        return self.cache.snapshot(self.nominator)

    def pre_enqueue(self, info: PodInfo) -> Status:
        """Run PreEnqueue; success if the pod may be tried."""
        profile = self.profile_of(info)
        assert profile is not None, f"{info} belongs to another scheduler"
        snapshot = self.snapshot()
        for plugin in profile.pre_enqueue_plugins:
            status = profile.ask_pre_enqueue(plugin, info, snapshot)
            if not status.is_success:
                return status
        return SUCCESS

    def schedule_one(
        self, info: PodInfo, trace: Trace | None = None, *, preempts: bool = True
    ) -> Decision:
        """Decide where the pod goes, without carrying it out.

        The trace records each answer. With `preempts`, PostFilter runs if no node is feasible.
        """
        profile = self.profile_of(info)
        assert profile is not None, f"{info} belongs to another scheduler"
        cycle = self._cycles[profile.scheduler_name]
        if preempts:
            return cycle.schedule_one(info, self.snapshot(), trace)
        with cycle.restriction.without_post_filters():
            return cycle.schedule_one(info, self.snapshot(), trace)

    def check_plugins(self) -> None:
        """Raise the first PluginError, if there is one."""
        if self.plugin_errors:
            raise self.plugin_errors[0]

    def bind(self, info: PodInfo, node_name: str) -> None:
        """Put the pod on the node."""
        self.pending.pop(info.uid, None)
        self.nominator.delete(info.uid)
        self.cache.assume_pod(info, node_name)

    def evict(self, victim: PodInfo) -> None:
        """Remove a pod from its node, at once."""
        self.cache.remove_pod(victim.uid)

    def delete(self, pods: Iterable[PodInfo]) -> list[ResourceClaim]:
        """Delete pods, and release the devices that only they use.

        Returns the claims that this changed, as they were.
        """
        gone = {info.uid: info for info in pods}
        changed: list[ResourceClaim] = []
        for info in gone.values():
            self.cache.remove_pod(info.uid)
            for name in info.pod.claims_in_use():
                claim = self.cache.objects.get(ResourceClaim, name, info.namespace)
                if claim is None or (left := claim.without_users(gone)) is claim:
                    continue
                changed.append(claim)
                # The claim for extended resources ends with its pod.
                if EXTENDED_RESOURCE_CLAIM_ANNOTATION in claim.metadata.annotations:
                    self.cache.delete(claim)
                else:
                    self.cache.put(left)
        return changed

    def nominate(self, info: PodInfo, node_name: str) -> list[PodInfo]:
        """Nominate a pod to a node; return pods of lower priority whose nomination is cleared.

        An empty node name clears the pod's own nomination.
        """
        losers = [
            other for other in self.nominator.on_node(node_name) if other.priority < info.priority
        ]
        for other in losers:
            self._set_nomination(other, "")
        self._set_nomination(info, node_name)
        return losers

    def _set_nomination(self, info: PodInfo, node_name: str) -> None:
        status = replace(info.pod.status, nominated_node_name=node_name)
        renewed = PodInfo(replace(info.pod, status=status))
        if info.uid in self.pending:
            self.pending[info.uid] = renewed
        self.nominator.add(renewed, node_name)
