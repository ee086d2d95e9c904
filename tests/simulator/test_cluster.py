"""The cluster of a dump: roles of its objects, nominations, binding, eviction."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from kubesched.api.core import Namespace, Pod
from kubesched.api.meta import KubeObject
from kubesched.config.load import default_configuration
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.decision import Failed, Placed, Rejected
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.testing.builders import make_node, make_pod, make_pod_info

from .clusters import GATES, configuration_of

CONFIGURATION = default_configuration(GATES)
TWO_PROFILES = configuration_of(
    profiles=[
        {"schedulerName": "default-scheduler"},
        {"schedulerName": "packed", "plugins": {"score": {"disabled": [{"name": "*"}]}}},
    ]
)


def _cluster(*objects: KubeObject, seed: int = 0) -> ClusterState:
    cluster = ClusterState(in_tree_setup(GATES, CONFIGURATION), seed=seed)
    cluster.load(objects)
    return cluster


def _check(cluster: ClusterState) -> None:
    cluster.cache.check()
    cluster.nominator.check()


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_objects_may_be_in_any_order(order: tuple[int, ...]) -> None:
    """A pod counts on its node if it comes before it."""
    objects: list[KubeObject] = [
        make_node("a", allocatable={"pods": 1}),
        make_node("b", allocatable={"pods": 1}),
        make_pod("bound", node_name="a"),
    ]
    cluster = _cluster(*(objects[at] for at in order))
    decision = cluster.schedule_one(cluster.add_pending(make_pod("p")))
    assert isinstance(decision, Placed)
    assert "b" == decision.node_name
    _check(cluster)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("node", ["a", ""])
def test_finished_pods_are_ignored(phase: str, node: str) -> None:
    """They are neither on a node nor pending."""
    finished = make_pod("done", node_name=node, status={"phase": phase}, nominated_node_name="a")
    cluster = _cluster(make_node("a"), finished)
    assert (0, 0, False) == (
        cluster.cache.statistics().pods,
        len(cluster.pending),
        bool(cluster.nominator),
    )


def test_pending_pods_keep_their_order() -> None:
    """Other objects are there for plugins."""
    namespace = msgspec.convert({"metadata": {"name": "n"}}, Namespace)
    cluster = _cluster(make_pod("q"), namespace, make_pod("p"))
    assert ["q", "p"] == [info.name for info in cluster.pending.values()]
    assert namespace == cluster.snapshot().objects.get(Namespace, "n")
    assert all(profile.objects is cluster.cache.objects for profile in cluster.profiles.values())


def test_without_nodes_decisions_fail() -> None:
    """kube-scheduler's fail, too."""
    cluster = _cluster()
    decision = cluster.schedule_one(cluster.add_pending(make_pod("p")))
    assert isinstance(decision, Failed)
    assert "no nodes available to schedule pods" == decision.message


# Nominations.


def _waiting(**more: object) -> Pod:
    return make_pod("w", nominated_node_name="a", **more)  # type: ignore[arg-type]  # the keywords are TypedDict's


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_waiting(), "a", id="nominated"),
        pytest.param(make_pod("w"), "", id="no nomination"),
        pytest.param(_waiting(scheduling_gates=["g"]), "", id="held back"),
        pytest.param(_waiting(spec={"schedulerName": "other"}), "", id="another scheduler's"),
        pytest.param(_waiting(spec={"schedulerName": "default-scheduler"}), "a", id="named"),
    ],
)
def test_nominations_of_the_input(pod: Pod, expected: str) -> None:
    """A pending pod of ours that is not gated is nominated to the node in its status."""
    loaded = _cluster(make_node("a"), pod)
    assert expected == loaded.nominator.node_of("default/w")
    added = _cluster(make_node("a"))
    added.add_pending(pod)
    assert expected == added.nominator.node_of("default/w")


def test_nominated_pods_reserve_room() -> None:
    """For pods of equal and lower priority."""
    node = make_node("a", allocatable={"pods": 1})
    for priority, kind in ((0, Rejected), (-1, Placed)):
        cluster = _cluster(node, make_pod("w", nominated_node_name="a", priority=priority))
        assert kind is type(cluster.schedule_one(cluster.add_pending(make_pod("p"))))


def test_nominate_clears_nominations_of_lower_priority() -> None:
    """Only those to the same node."""
    pods = [
        make_pod(name, priority=priority, nominated_node_name=node)
        for name, priority, node in (
            ("low", 1, "a"),
            ("equal", 5, "a"),
            ("high", 9, "a"),
            ("elsewhere", 1, "b"),
        )
    ]
    cluster = _cluster(make_node("a"), make_node("b"), *pods)
    info = cluster.add_pending(make_pod("p", priority=5))
    assert ["low"] == [loser.name for loser in cluster.nominate(info, "a")]
    assert ["equal", "high", "p"] == [other.name for other in cluster.nominator.on_node("a")]
    assert ["elsewhere"] == [other.name for other in cluster.nominator.on_node("b")]
    nominated = {
        info.name: info.pod.status.nominated_node_name for info in cluster.pending.values()
    }
    assert {"low": "", "equal": "a", "high": "a", "elsewhere": "b", "p": "a"} == nominated
    _check(cluster)


def test_an_empty_node_name_clears_the_nomination() -> None:
    """Nominations of other pods stay."""
    cluster = _cluster(
        make_node("a"),
        make_pod("p", priority=5, nominated_node_name="a"),
        make_pod("q", nominated_node_name="a"),
    )
    assert [] == cluster.nominate(cluster.pending["default/p"], "")
    assert "" == cluster.pending["default/p"].pod.status.nominated_node_name
    assert ["q"] == [info.name for info in cluster.nominator.on_node("a")]


# What is carried out.


def test_a_bound_pod_is_not_pending() -> None:
    """It takes room, and its nomination is cleared."""
    cluster = _cluster(make_node("a"), make_node("b"), make_pod("p", nominated_node_name="b"))
    info = cluster.pending["default/p"]
    cluster.bind(info, "a")
    assert (0, False) == (len(cluster.pending), bool(cluster.nominator))
    assert cluster.cache.is_assumed(info.uid)
    assert [1, 0] == cluster.cache.nodes.pod_counts.tolist()
    _check(cluster)


def test_a_decision_does_not_change_the_cluster() -> None:
    """Two decisions without a binding are equal."""
    cluster = _cluster(make_node("a", allocatable={"pods": 1}))
    info = cluster.add_pending(make_pod("p"))
    assert isinstance(cluster.schedule_one(info), Placed)
    assert isinstance(cluster.schedule_one(info, Trace()), Placed)
    assert [info] == list(cluster.pending.values())
    assert 0 == cluster.cache.statistics().pods


def test_preemption_step_by_step() -> None:
    """Rejected with a victim, evicted, nominated, placed."""
    victim = make_pod("v", node_name="a", priority=0, start_time="2026-01-01T00:00:00Z")
    cluster = _cluster(make_node("a", allocatable={"pods": 1}), victim)
    decision = cluster.schedule_one(cluster.add_pending(make_pod("p", priority=5)))
    assert isinstance(decision, Rejected)
    assert ("a", ["v"]) == (
        decision.nominated_node_name,
        [info.name for info in decision.victims],
    )
    for info in decision.victims:
        cluster.evict(info)
    cluster.nominate(cluster.pending["default/p"], "a")
    assert isinstance(cluster.schedule_one(cluster.add_pending(make_pod("late"))), Rejected)
    again = cluster.schedule_one(cluster.pending["default/p"])
    assert isinstance(again, Placed)
    assert "a" == again.node_name
    _check(cluster)


# Profiles.


def test_a_pods_scheduler_name_selects_the_profile() -> None:
    """An empty name stands for the default one."""
    cluster = ClusterState(in_tree_setup(GATES, TWO_PROFILES))
    profiles = [
        cluster.profile_of(make_pod_info(spec={"schedulerName": name}))
        for name in ("", "default-scheduler", "packed", "other")
    ]
    default, packed = cluster.profiles["default-scheduler"], cluster.profiles["packed"]
    assert [default, default, packed, None] == profiles


def test_each_profile_decides_for_its_pods() -> None:
    """The profile's own plugins decide: without score plugins nothing is scored."""
    cluster = ClusterState(in_tree_setup(GATES, TWO_PROFILES))
    cluster.load([make_node("a"), make_node("b")])
    scored = []
    for name in ("default-scheduler", "packed"):
        trace = Trace()
        info = cluster.add_pending(make_pod(name, spec={"schedulerName": name}))
        cluster.schedule_one(info, trace)
        scored.append(bool(trace.scores))
    assert [True, False] == scored


def test_pods_of_another_scheduler_cannot_be_decided() -> None:
    """The caller has a bug then."""
    cluster = _cluster(make_node("a"))
    info = make_pod_info(spec={"schedulerName": "other"})
    with pytest.raises(AssertionError, match="another scheduler"):
        cluster.schedule_one(info)


def test_a_pod_with_scheduling_gates_is_gated() -> None:
    """The plugin is named."""
    cluster = _cluster()
    assert cluster.pre_enqueue(make_pod_info()).is_success
    held = cluster.pre_enqueue(make_pod_info(scheduling_gates=["g"]))
    assert ("SchedulingGates", True) == (held.plugin, held.is_rejected)


def test_equal_seeds_choose_equal_nodes() -> None:
    """Other seeds choose others."""

    def run(seed: int) -> list[str]:
        cluster = _cluster(*(make_node(f"n{n}") for n in range(8)), seed=seed)
        names = []
        for number in range(12):
            info = cluster.add_pending(make_pod(f"p{number}"))
            decision = cluster.schedule_one(info)
            assert isinstance(decision, Placed)
            names.append(decision.node_name)
            cluster.bind(info, decision.node_name)
        return names

    assert run(3) == run(3)
    assert len({tuple(run(seed)) for seed in range(4)}) > 1
