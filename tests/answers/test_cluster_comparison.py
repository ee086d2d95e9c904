"""Clusters are compared by what became of their pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.answers.cluster_comparison import (
    ClusterComparison,
    ClusterDifference,
    ClusterEnd,
    PodDifference,
    WorkloadDifference,
    compared_clusters,
)
from kubesched.api.meta import KubeObject
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator.simulation import simulate_cluster
from kubesched.testing.builders import make_node, make_pod

GATES: Final = FeatureGates()
CONFIGURATION: Final = default_configuration(GATES)


def compare(*clusters: Sequence[KubeObject]) -> ClusterComparison:
    """Compare clusters that are named by their places."""
    return compared_clusters(
        [
            ClusterEnd(
                str(at), objects, simulate_cluster(in_tree_setup(GATES, CONFIGURATION), objects)
            )
            for at, objects in enumerate(clusters)
        ],
        seed=0,
    )


def difference(before: Sequence[KubeObject], after: Sequence[KubeObject]) -> ClusterDifference:
    """Return how the second cluster differs from the first."""
    (found,) = compare(before, after).differences
    return found


def nodes(*amounts: int) -> list[KubeObject]:
    """Return nodes n0, n1 and so on with so many cpus."""
    return [
        make_node(f"n{at}", allocatable={"cpu": cpu, "pods": 9}) for at, cpu in enumerate(amounts)
    ]


def test_a_pod_that_lands_elsewhere() -> None:
    """The scheduler chose, and chose another node."""
    pod = make_pod("p", requests={"cpu": "2"})
    found = difference([*nodes(2, 1), pod], [*nodes(1, 2), pod])
    assert found.elsewhere == (PodDifference("default/p", "n0", "n1", "", scheduled=True),)
    assert (found.no_longer_fit, found.newly_fit, found.pods_gone, found.pods_new) == ((),) * 4


def test_a_pod_that_runs_elsewhere() -> None:
    """It was there before the scheduler looked."""
    here, there = make_pod("p", node_name="n0"), make_pod("p", node_name="n1")
    found = difference([*nodes(2, 2), here], [*nodes(2, 2), there])
    assert found.elsewhere == (PodDifference("default/p", "n0", "n1", "", scheduled=False),)


def test_a_pod_that_fits_in_one() -> None:
    """With the reasons of the cluster where it does not fit, whichever that is."""
    pod = make_pod("p", requests={"cpu": "2"})
    large, small = [*nodes(2), pod], [*nodes(1), pod]
    why = "Insufficient cpu"
    assert difference(large, small).no_longer_fit == (
        PodDifference("default/p", "n0", "", why, scheduled=True),
    )
    assert difference(small, large).newly_fit == (
        PodDifference("default/p", "", "n0", why, scheduled=True),
    )


@pytest.mark.parametrize(
    ("waiting", "why"),
    [
        ({"scheduling_gates": ["example.com/wait"]}, "held back by SchedulingGates"),
        ({"spec": {"schedulerName": "mine"}}, "belongs to another scheduler (mine)"),
        ({"requests": {"cpu": "9"}}, "Insufficient cpu"),
    ],
)
def test_why_a_pod_has_no_node(waiting: dict[str, Any], why: str) -> None:
    """It is on a node in the first cluster, and waits in the other."""
    (found,) = difference(
        [*nodes(2), make_pod("p", node_name="n0")], [*nodes(2), make_pod("p", **waiting)]
    ).no_longer_fit
    assert (found.after, found.why, found.scheduled) == ("", why, False)


def test_a_pod_that_is_evicted() -> None:
    """The preemptor is named."""
    victim = make_pod("low", node_name="n0", requests={"cpu": "2"}, priority=1)
    found = difference(
        [*nodes(2), victim],
        [*nodes(2), victim, make_pod("high", requests={"cpu": "2"}, priority=9)],
    )
    assert [(pod.pod, pod.why) for pod in found.no_longer_fit] == [
        ("default/low", "evicted for default/high")
    ]
    assert found.pods_new == ("default/high",)


def test_what_is_in_one_only() -> None:
    """Pods and nodes by name; pods also by the workload that owns them."""
    owner = {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    owned = {"ownerReferences": [owner]}
    found = difference(
        [*nodes(2), make_pod("a", metadata=owned), make_pod("b", metadata=owned), make_pod("c")],
        [*nodes(2, 2), make_pod("d", metadata=owned), make_pod("c")],
    )
    assert (found.pods_gone, found.pods_new) == (("default/a", "default/b"), ("default/d",))
    assert found.workloads == (WorkloadDifference("Job", "default", "j", 2, 1),)
    assert (found.nodes_gone, found.nodes_new) == ((), ("n1",))


def test_pods_that_need_no_node_do_not_count() -> None:
    """Finished pods, and pods on nodes that nobody knows."""
    finished = make_pod("done", node_name="n0", status={"phase": "Succeeded"})
    lost = make_pod("lost", node_name="elsewhere")
    found = difference([*nodes(2)], [*nodes(2), finished, lost])
    assert (found.pods_new, found.workloads) == ((), ())


def test_fragmentation_is_of_one_average_pod() -> None:
    """The same free room is fragmented alike, whatever pods each cluster has."""
    small = [make_pod(f"s{at}", node_name="n0", requests={"cpu": "1"}) for at in range(2)]
    large = [make_pod("l", node_name="n0", requests={"cpu": "2"})]
    first, second = compare([*nodes(4, 1), *small], [*nodes(4, 1), *large]).clusters
    assert first.fragmentation == second.fragmentation != {}


def test_the_first_is_compared_with_each() -> None:
    """There is a difference for every other cluster, and figures for all."""
    found = compare(nodes(1), nodes(1, 1), nodes(1, 1, 1))
    assert [each.cluster for each in found.differences] == ["1", "2"]
    assert [each.nodes_new for each in found.differences] == [("n1",), ("n1", "n2")]
    assert [each.summary.nodes for each in found.clusters] == [1, 2, 3]


CLUSTERS: Final = st.builds(
    lambda amounts, pods: [
        *nodes(*amounts),
        *(
            make_pod(
                name,
                node_name=f"n{place}" if place < len(amounts) else "",
                requests={"cpu": cpu},
                priority=priority,
            )
            for name, (place, cpu, priority) in pods.items()
        ),
    ],
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.dictionaries(
        st.sampled_from("abcde"),
        st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(0, 2)),
        max_size=4,
    ),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(CLUSTERS, CLUSTERS)
def test_comparing_backwards(first: Sequence[KubeObject], second: Sequence[KubeObject]) -> None:
    """Gone is new, before is after, and a cluster does not differ from itself."""
    forwards, backwards = difference(first, second), difference(second, first)
    assert [_turned(pod) for pod in backwards.elsewhere] == list(forwards.elsewhere)
    assert [_turned(pod) for pod in backwards.newly_fit] == list(forwards.no_longer_fit)
    assert (backwards.pods_gone, backwards.nodes_gone) == (forwards.pods_new, forwards.nodes_new)
    same = difference(first, first)
    assert same == ClusterDifference("1", (), (), (), (), (), (), (), ())


def _turned(pod: PodDifference) -> PodDifference:
    return PodDifference(pod.pod, pod.after, pod.before, pod.why, pod.scheduled)
