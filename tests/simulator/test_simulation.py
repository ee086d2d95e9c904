"""Simulations of clusters: placing, preempting, and reports."""

from __future__ import annotations

import asyncio

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.framework.cluster_event import Action, ClusterEvent, ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PermitPlugin, PreBindPlugin, PreEnqueuePlugin, ReservePlugin
from kubesched.framework.status import SUCCESS, Code, Status, failure, unschedulable
from kubesched.plugins.registry import in_tree_setup
from kubesched.queue.moves import QueuePlace
from kubesched.scheduler.decision import Placed
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.simulation import Simulation, simulate_cluster
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod
from tests.plugins.dynamic_resources import objects as dra
from tests.plugins.volume_objects import claim_volumes, make_claim, make_class, make_volume

from .clusters import GATES, configuration_of, node, placed, rehearse, simulate


def wants(name: str, app: str) -> Pod:
    """Return a pod with required affinity to pods of `app`."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return make_pod(name, labels={"app": name}, pod_affinity=affinity, requests={"cpu": "1m"})


def created(name: str, second: int) -> Pod:
    """Return a pod that fills a node."""
    time = f"2026-01-01T00:00:{second:02d}Z"
    return make_pod(name, requests={"cpu": 4}, metadata={"creationTimestamp": time})


# Order.


def test_pods_are_placed_by_priority() -> None:
    """The pod of higher priority gets the only place, though it is later in the file."""
    pods = (make_pod(name, requests={"cpu": 4}, priority=p) for name, p in (("a", 1), ("b", 2)))
    report = simulate([node("n"), *pods])
    assert {"b": "n"} == placed(report)
    assert ["default/a"] == [pod.pod for pod in report.unplaced]


def test_creation_time_orders_pods_of_one_priority() -> None:
    """All pods must have one."""
    report = simulate([node("n"), created("young", 9), created("old", 1)])
    assert {"old": "n"} == placed(report)


@pytest.mark.parametrize(
    "time", [pytest.param(None, id="none"), pytest.param("soon", id="no time")]
)
def test_file_order_if_a_creation_time_is_missing(time: str | None) -> None:
    """One pod without it is enough."""
    metadata = {"creationTimestamp": time} if time else None
    odd = make_pod("odd", requests={"cpu": "100"}, metadata=metadata)
    report = simulate([node("n"), created("young", 9), created("old", 1), odd])
    assert {"young": "n"} == placed(report)


# What is not tried.


def test_gated_pods_are_reported() -> None:
    """With the plugin and its message."""
    report = simulate([node("n"), make_pod("a", scheduling_gates=["wait"])])
    (gated,) = report.gated
    assert ("default/a", "SchedulingGates") == (gated.pod, gated.plugin)
    assert "wait" in gated.message
    assert (1, 0, 0) == (report.summary.gated, report.summary.unplaced, report.summary.attempts)


def test_pods_that_are_not_scheduled() -> None:
    """Pods of other schedulers and terminating ones are ignored, finished ones are left out."""
    objects = [
        node("n"),
        make_pod("other", spec={"schedulerName": "mine"}),
        make_pod("going", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        make_pod("done", status={"phase": "Succeeded"}),
    ]
    report = simulate(objects)
    expected = [("default/other", "mine"), ("default/going", "default-scheduler")]
    assert expected == [(pod.pod, pod.scheduler_name) for pod in report.ignored]
    assert 0 == report.summary.pods


def test_without_nodes_no_pod_fits() -> None:
    """The message is upstream's."""
    report = simulate([make_pod("a")])
    (unplaced,) = report.unplaced
    assert "no nodes available to schedule pods" == unplaced.message
    assert not unplaced.error


def test_an_empty_cluster_has_an_empty_report() -> None:
    """All its counts are 0."""
    summary = simulate([]).summary
    assert (0, 0, 0) == (summary.pods, summary.nodes, summary.attempts)


# Rejections.


def test_a_rejection_has_message_reasons_and_plugins() -> None:
    """The message is upstream's."""
    objects = [node("n"), node("m", 2), make_pod("a", requests={"cpu": 8})]
    (unplaced,) = simulate(objects).unplaced
    assert unplaced.message.startswith("0/2 nodes are available: 2 Insufficient cpu. ")
    assert (("Insufficient cpu",), ("NodeResourcesFit",)) == (unplaced.reasons, unplaced.plugins)


@pytest.mark.parametrize("length", [1, 2, 30])
def test_a_chain_of_affinities_is_resolved(length: int) -> None:
    """A pod is retried when the pod of its affinity has been placed."""
    chain = [wants(f"p{at}", f"p{at + 1}") for at in range(length)]
    last = make_pod(f"p{length}", labels={"app": f"p{length}"})
    report = simulate([node("n"), node("m"), *chain, last])
    assert length + 1 == report.summary.placed
    assert 1 == len(set(placed(report).values()))
    # Each pod was woken by the one it waited for, and by nothing else.
    assert [2] * length == [found.attempts for found in report.placements[1:]]


def test_placements_do_not_requeue_pods_that_lack_resources() -> None:
    """The pod has one attempt."""
    big = make_pod("big", requests={"cpu": 5}, priority=9, spec={"preemptionPolicy": "Never"})
    objects = [node("n"), big, *(make_pod(f"s{at}") for at in range(3))]
    report = simulate(objects)
    assert 1 == report.unplaced[0].attempts
    assert 4 == report.summary.attempts


# Preemption.


def test_preemption_in_one_step() -> None:
    """Victims are deleted at once, and the preemptor is placed on its nominated node."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}
    victim = make_pod(
        "victim",
        node_name="n",
        requests={"cpu": 3},
        metadata={"ownerReferences": [{**owner, "controller": True}]},
    )
    objects = [node("n"), victim, make_pod("boss", requests={"cpu": 4}, priority=10)]
    report = simulate(objects)
    (placement,) = report.placements
    assert ("default/boss", "n", 2, True) == (
        placement.pod,
        placement.node,
        placement.attempts,
        placement.nominated,
    )
    assert ("default/victim",) == placement.preempted
    (eviction,) = report.evictions
    assert ("default/victim", "n", "default/boss", "ReplicaSet web", False) == (
        eviction.pod,
        eviction.node,
        eviction.preemptor,
        eviction.controller,
        eviction.placed_here,
    )


def test_evictions_requeue_pods_that_lack_resources() -> None:
    """They may use what the preemptor does not need."""
    objects = [
        node("n"),
        make_pod("victim", node_name="n", requests={"cpu": 4}),
        make_pod("small", requests={"cpu": 1}, priority=9, spec={"preemptionPolicy": "Never"}),
        make_pod("boss", requests={"cpu": 3}, priority=5),
    ]
    report = simulate(objects)
    assert {"boss": "n", "small": "n"} == placed(report)
    assert [1, 2] == [report.summary.evicted, report.placements[-1].attempts]


class LateGate(PreEnqueuePlugin):
    """Gates pods of high priority until a pod is on a node."""

    name = "LateGate"
    is_late = False

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Reject the pod while no pod is on a node."""
        self.is_late = self.is_late or int(snapshot.nodes.pod_counts.sum()) > 0
        return SUCCESS if self.is_late or pod.priority < 5 else unschedulable("too early")

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        """Wait for pods."""
        return (ClusterEventWithHint(ClusterEvent("Pod", Action.ADD)),)


def test_a_pod_placed_in_the_simulation_can_be_evicted() -> None:
    """It is not created again."""
    objects = [
        node("n"),
        make_pod("boss", requests={"cpu": 4}, priority=10),
        make_pod("poor", requests={"cpu": 4}),
    ]
    report = simulate(objects, LateGate)
    assert {"boss": "n"} == placed(report)
    assert () == report.gated
    assert report.evictions[0].placed_here
    summary = report.summary
    assert (2, 1, 1, 0) == (summary.pods, summary.placed, summary.displaced, summary.not_tried)


# Plugins that refuse after a node was found.


class Refuses(ReservePlugin):
    """Rejects or fails at Reserve, by the pod's name."""

    name = "Refuses"
    undone: list[str] = []  # noqa: RUF012 - what the test looks at

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Refuse."""
        if pod.name == "broken":
            return failure("oh")
        return unschedulable("not you") if pod.name == "refused" else SUCCESS

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Take note."""
        self.undone.append(pod.name)


def test_reserve_can_reject() -> None:
    """A rejection undoes the placement; a failure is an error of that pod alone."""
    Refuses.undone.clear()
    pods = (make_pod(name, requests={"cpu": 1}) for name in ("refused", "broken", "fine"))
    report = simulate([node("n"), *pods], Refuses)
    assert {"fine": "n"} == placed(report)
    refused, broken = report.unplaced
    assert ("0/1 nodes are available: 1 not you.", ("Refuses",), False) == (
        refused.message,
        refused.plugins,
        refused.error,
    )
    assert ('running Reserve plugin "Refuses": oh', True) == (broken.message, broken.error)
    assert {"refused", "broken"} == set(Refuses.undone)


class Waits(PermitPlugin):
    """Lets pods wait at Permit until one named `last` is placed, for at most ten seconds."""

    name = "Waits"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Wait, or let all others pass."""
        if pod.name != "last":
            return Status(Code.WAIT, ("not yet",)), 10.0
        for waiting in self.handle.waiting_pods:
            waiting.allow(self.name)
        return SUCCESS, 0.0

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        """Any pod that leaves may help."""
        return (ClusterEventWithHint(ClusterEvent("Pod", Action.DELETE)),)


def test_pods_wait_at_permit() -> None:
    """They are placed once the last one allows it; without it, none is."""
    early = [make_pod(name, requests={"cpu": 1}) for name in ("a", "b")]
    last = make_pod("last", requests={"cpu": 1})
    assert {"a", "b", "last"} == set(placed(simulate([node("n"), *early, last], Waits)))
    report = simulate([node("n"), *early], Waits)
    assert ({}, 0) == (placed(report), report.summary.not_tried)
    timeout = "rejected due to timeout after waiting 10s at plugin Waits"
    messages = {
        "default/a": "waiting on permit of Waits on node n",
        "default/b": f"0/1 nodes are available: 1 {timeout}.",
    }
    assert {"Waits"} == {plugin for pod in report.unplaced for plugin in pod.plugins}
    assert {pod.message for pod in report.unplaced} <= set(messages.values())


def test_room_of_a_pod_that_times_out_at_permit_is_free_again() -> None:
    """The next pod gets it."""
    pods = [make_pod(name, requests={"cpu": 4}) for name in ("held", "last")]
    report = simulate([node("n"), *pods], Waits)
    assert {"last": "n"} == placed(report)
    assert ["Insufficient cpu"] == [reason for pod in report.unplaced for reason in pod.reasons]


class Dawdles(PreBindPlugin):
    """Never returns from PreBind."""

    name = "Dawdles"

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Have something to do."""
        return SUCCESS

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Never return."""
        await asyncio.Event().wait()
        return SUCCESS


def test_a_binding_that_never_ends_ends_the_simulation() -> None:
    """The pod is not reported as placed."""
    (unplaced,) = simulate([node("n"), make_pod("a")], Dawdles).unplaced
    assert ("default/a", "being bound on node n") == (unplaced.pod, unplaced.message)


class Stumbles(ReservePlugin):
    """Fails once for the pod `odd`, and always for `broken`."""

    name = "Stumbles"
    is_late = False

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Fail."""
        if pod.name == "broken":
            return failure("oh")
        return SUCCESS if pod.name != "odd" or self.is_late else failure("too early")

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Let it pass the next time."""
        self.is_late = self.is_late or pod.name == "odd"


def test_pods_with_errors_are_retried_after_a_binding() -> None:
    """After backoff; a pod that always fails does not prevent the end."""
    pods = [make_pod(name, requests={"cpu": 1}) for name in ("odd", "broken", "fine")]
    report = simulate([node("n"), *pods], Stumbles)
    assert {"fine": "n", "odd": "n"} == placed(report)
    (broken,) = report.unplaced
    assert ("default/broken", True) == (broken.pod, broken.error)
    assert broken.attempts <= 3


def test_resources_managed_by_an_extender_are_ignored() -> None:
    """The extender itself is not called."""
    managed = [{"name": "example.com/disk", "ignoredByScheduler": True}]
    extender = {"urlPrefix": "http://nowhere", "filterVerb": "f", "managedResources": managed}
    configuration = configuration_of(extenders=[extender])
    objects: list[KubeObject] = [node("n"), make_pod("a", requests={"example.com/disk": 1})]
    report = simulate_cluster(in_tree_setup(GATES, configuration), objects).report
    assert {"a": "n"} == placed(report)


# Utilisation.


def test_utilisation_before_and_after() -> None:
    """Per node, per zone and in total; pods on unknown nodes do not count."""
    objects = [
        node("b", 4, "z1"),
        node("a", 4, "z2"),
        node("c", 2),
        make_pod("old", node_name="a", requests={"cpu": 1}),
        make_pod("lost", node_name="gone", requests={"cpu": 1}),
        make_pod(
            "new",
            requests={"cpu": 3, "example.com/x": 0},
            node_selector={"kubernetes.io/hostname": "b"},
        ),
    ]
    report = simulate(objects)
    assert ["a", "b", "c"] == [found.node for found in report.nodes]
    assert [("", 1, 0), ("z1", 1, 1), ("z2", 1, 0)] == [
        (zone.zone, zone.nodes, zone.placed) for zone in report.zones
    ]
    cpu = [
        (use.allocatable, use.requested_before, use.requested_after, use.share_after)
        for use in (found.resources[0] for found in report.nodes)
    ]
    assert [(4000, 1000, 1000, 0.25), (4000, 0, 3000, 0.75), (2000, 0, 0, 0.0)] == cpu
    total = report.summary.resources
    names = ["cpu", "memory", "pods", "ephemeral-storage"]
    assert names == [use.resource for use in total]
    assert (10_000, 1000, 4000) == (
        total[0].allocatable,
        total[0].requested_before,
        total[0].requested_after,
    )
    assert (330, 1, 2) == (
        total[2].allocatable,
        total[2].requested_before,
        total[2].requested_after,
    )


def test_sums_may_exceed_int64() -> None:
    """Amounts are added up over all nodes."""
    objects = [make_node(f"n{at}", allocatable={"memory": 2**63 - 1}) for at in range(3)]
    total = simulate(objects).summary.resources[1]
    assert 3 * (2**63 - 1) == total.allocatable


# Runs.


def test_an_interrupted_simulation_has_a_report() -> None:
    """It has the decisions so far and the number of remaining pods."""
    objects = [node("n"), *(make_pod(f"p{at}", requests={"cpu": 1}) for at in range(6))]
    report = simulate(objects, watch=lambda tried, _total: tried < 2)
    assert report.partial
    assert (2, 4) == (report.summary.placed, report.summary.not_tried)


def test_progress_counts_each_pod_once() -> None:
    """It begins at none and ends at the total, however often pods are retried."""
    seen: list[tuple[int, int]] = []

    def watch(tried: int, total: int) -> bool:
        seen.append((tried, total))
        return True

    simulate([node("n"), wants("a", "b"), make_pod("b", labels={"app": "b"})], watch=watch)
    assert [(0, 2), (1, 2), (2, 2), (2, 2)] == seen


@st.composite
def clusters(draw: st.DrawFn) -> list[Node | Pod]:
    """Draw nodes in zones, pods on them, and pods with affinity and anti-affinity."""
    nodes = [
        node(f"n{at}", draw(st.integers(1, 4)), draw(st.sampled_from(["", "z1", "z2"])))
        for at in range(draw(st.integers(1, 4)))
    ]
    apps = st.sampled_from(["a", "b", "c"])
    pods: list[Pod] = []
    for at in range(draw(st.integers(0, 12))):
        key = draw(st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]))
        term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": draw(apps)}}}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        kind = draw(st.sampled_from(["plain", "plain", "wants", "shuns"]))
        bound = draw(st.booleans()) and draw(st.booleans())
        pods.append(
            make_pod(
                f"p{at}",
                labels={"app": draw(apps)},
                requests={"cpu": draw(st.integers(0, 3))},
                priority=draw(st.integers(0, 3)),
                node_name=nodes[0].metadata.name if bound else "",
                pod_affinity=terms if kind == "wants" else None,
                pod_anti_affinity=terms if kind == "shuns" else None,
                start_time="2026-01-01T00:00:00Z" if bound else None,
            )
        )
    return [*nodes, *pods]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects=clusters(), seed=st.integers(0, 3))
def test_random_clusters(objects: list[Node | Pod], seed: int) -> None:
    """Every pod has one outcome, the numbers agree, and no pending pod fits."""

    async def steps(rehearsal: Rehearsal) -> SimulationReport:
        simulation = Simulation(rehearsal, objects, seed)
        await rehearsal.settle()
        report, scheduler = simulation.report(), rehearsal.scheduler
        nodes = scheduler.cache.nodes
        fits = nodes.requested_of("cpu") <= nodes.allocatable_of("cpu")
        overfull = {item.spec.node_name for item in objects if isinstance(item, Pod)}
        assert all(fits[row] or nodes.names[row] in overfull for row in range(len(nodes)))
        after = sum(found.resources[0].requested_after for found in report.nodes)
        assert int(np.sum(nodes.requested_of("cpu"))) == after
        for queued in scheduler.queue.pods(QueuePlace.UNSCHEDULABLE):
            info = queued.pod_info
            decision = await scheduler.decide(info, scheduler.profiles[info.scheduler_name])
            assert not isinstance(decision, Placed)
        return report

    report = rehearse(steps, seed=seed)
    pending = [
        f"{item.metadata.namespace}/{item.metadata.name}"
        for item in objects
        if isinstance(item, Pod) and not item.spec.node_name
    ]
    displaced = [found.pod for found in report.evictions if found.placed_here]
    ends = [found.pod for found in report.placements]
    ends += [found.pod for found in report.unplaced] + displaced
    assert sorted(pending) == sorted(ends)
    assert 0 == report.summary.not_tried
    again = simulate(objects, seed=seed)
    assert msgspec.json.encode(report) == msgspec.json.encode(again)


# What plugins reserve.


@pytest.mark.parametrize("conditions", [(), ("example.com/attached",)])
def test_devices_are_allocated_once(conditions: tuple[str, ...]) -> None:
    """Two devices serve two claims; the third pod waits until one is freed.

    It makes no difference that drivers have to prepare devices before pods are bound.
    """
    names = ("gpu-0", "gpu-1")
    devices = [dra.device(name, binding_conditions=conditions) for name in names]
    claims = (dra.claim(dra.request(), name=f"c{at}") for at in range(3))
    pods = (
        make_pod(f"p{at}", spec={"resourceClaims": [{"name": "x", "resourceClaimName": f"c{at}"}]})
        for at in range(3)
    )
    slice_ = dra.slice_of(devices, node_name="n")
    objects = [node("n"), dra.device_class(), slice_, *claims, *pods]
    report = simulate(objects)
    assert {"p0": "n", "p1": "n"} == placed(report)
    assert ("DynamicResources",) == report.unplaced[0].plugins

    async def steps(rehearsal: Rehearsal) -> list[str]:
        rehearsal.load(objects)
        await rehearsal.settle()
        rehearsal.server.delete_pod("default", "p1")
        await rehearsal.settle()
        return [found.pod for found in rehearsal.outcomes.placements.values()]

    assert ["default/p0", "default/p2"] == rehearse(steps)


def test_volumes_are_bound_once() -> None:
    """Two volumes that wait for a consumer serve two claims; the third pod has none."""
    local = make_class("local", provisioner="kubernetes.io/no-provisioner")
    volumes = (make_volume(f"v{at}", storage_class="local") for at in range(2))
    claims = (make_claim(f"c{at}", storage_class="local") for at in range(3))
    pods = (make_pod(f"p{at}", volumes=claim_volumes(f"c{at}")) for at in range(3))
    report = simulate([node("n"), local, *volumes, *claims, *pods])
    assert {"p0": "n", "p1": "n"} == placed(report)
    assert ("VolumeBinding",) == report.unplaced[0].plugins


@pytest.mark.parametrize("provisioner", ["csi.example.com", "kubernetes.io/no-provisioner"])
def test_pods_with_the_same_unbound_claim(provisioner: str) -> None:
    """The binding of the first one stands; the others follow to where the volume is."""
    pods = [
        make_pod(f"p{at}", volumes=claim_volumes("c"), requests={"cpu": "1"}) for at in range(3)
    ]
    report = simulate(
        [
            node("n", 2, zone="n"),
            node("m", 2, zone="m"),
            make_class("fast", provisioner=provisioner),
            make_volume("v", storage_class="fast", nodes={"topology.kubernetes.io/zone": ["n"]}),
            make_claim("c", storage_class="fast", storage="2Gi" if "csi" in provisioner else "1Gi"),
            *pods,
        ]
    )
    assert (2, 1) == (len(placed(report)), len({*placed(report).values()}))
    assert ("NodeResourcesFit", "VolumeBinding") == report.unplaced[0].plugins
