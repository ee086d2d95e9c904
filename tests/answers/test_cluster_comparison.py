"""Clusters are compared by where their pods are and where pending pods are placed."""

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

from .trials import owner_metadata

GATES: Final = FeatureGates()
CONFIGURATION: Final = default_configuration(GATES)


def compare(*clusters: Sequence[KubeObject]) -> ClusterComparison:
    """Compare clusters, named by their positions."""
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


def test_a_pending_pod_placed_on_another_node() -> None:
    """The report gives its node in each cluster."""
    pod = make_pod("p", requests={"cpu": "2"})
    found = difference([*nodes(2, 1), pod], [*nodes(1, 2), pod])
    assert found.elsewhere == (PodDifference("default/p", "n0", "n1", "", scheduled=True),)
    assert (found.no_longer_fit, found.newly_fit, found.pods_gone, found.pods_new) == ((),) * 4


def test_a_running_pod_on_another_node() -> None:
    """It was bound before the simulation."""
    here, there = make_pod("p", node_name="n0"), make_pod("p", node_name="n1")
    found = difference([*nodes(2, 2), here], [*nodes(2, 2), there])
    assert found.elsewhere == (PodDifference("default/p", "n0", "n1", "", scheduled=False),)


def test_a_pod_that_fits_in_one_cluster_only() -> None:
    """The reasons are those of the cluster where it does not fit."""
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
def test_a_bound_pod_that_is_pending_in_the_other_cluster(
    waiting: dict[str, Any], why: str
) -> None:
    """The report says why it is pending."""
    (found,) = difference(
        [*nodes(2), make_pod("p", node_name="n0")], [*nodes(2), make_pod("p", **waiting)]
    ).no_longer_fit
    assert (found.after, found.why, found.scheduled) == ("", why, False)


def test_an_evicted_pod() -> None:
    """The report names the preemptor."""
    victim = make_pod("low", node_name="n0", requests={"cpu": "2"}, priority=1)
    found = difference(
        [*nodes(2), victim],
        [*nodes(2), victim, make_pod("high", requests={"cpu": "2"}, priority=9)],
    )
    assert [(pod.pod, pod.why) for pod in found.no_longer_fit] == [
        ("default/low", "evicted for default/high")
    ]
    assert found.pods_new == ("default/high",)


def test_objects_of_one_cluster_only() -> None:
    """Pods and nodes by name; pods also by the workload that owns them."""
    owned = owner_metadata("Job", "j")
    found = difference(
        [*nodes(2), make_pod("a", metadata=owned), make_pod("b", metadata=owned), make_pod("c")],
        [*nodes(2, 2), make_pod("d", metadata=owned), make_pod("c")],
    )
    assert (found.pods_gone, found.pods_new) == (("default/a", "default/b"), ("default/d",))
    assert found.workloads == (WorkloadDifference("Job", "default", "j", 2, 1),)
    assert (found.nodes_gone, found.nodes_new) == ((), ("n1",))


def test_pods_that_are_not_compared() -> None:
    """Finished pods, and pods on unknown nodes."""
    finished = make_pod("done", node_name="n0", status={"phase": "Succeeded"})
    lost = make_pod("lost", node_name="elsewhere")
    found = difference([*nodes(2)], [*nodes(2), finished, lost])
    assert (found.pods_new, found.workloads) == ((), ())


def test_fragmentation_is_measured_with_one_average_pod() -> None:
    """Equal free room is equally fragmented, whatever pods each cluster has."""
    small = [make_pod(f"s{at}", node_name="n0", requests={"cpu": "1"}) for at in range(2)]
    large = [make_pod("l", node_name="n0", requests={"cpu": "2"})]
    first, second = compare([*nodes(4, 1), *small], [*nodes(4, 1), *large]).clusters
    assert first.fragmentation == second.fragmentation != {}


def test_the_first_cluster_is_compared_with_each_other_one() -> None:
    """All clusters have figures."""
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
def test_comparing_in_reverse_order(
    first: Sequence[KubeObject], second: Sequence[KubeObject]
) -> None:
    """Gone becomes new, before becomes after; a cluster does not differ from itself."""
    forwards, backwards = difference(first, second), difference(second, first)
    assert [_turned(pod) for pod in backwards.elsewhere] == list(forwards.elsewhere)
    assert [_turned(pod) for pod in backwards.newly_fit] == list(forwards.no_longer_fit)
    assert (backwards.pods_gone, backwards.nodes_gone) == (forwards.pods_new, forwards.nodes_new)
    same = difference(first, first)
    assert same == ClusterDifference("1", (), (), (), (), (), (), (), ())


def _turned(pod: PodDifference) -> PodDifference:
    return PodDifference(pod.pod, pod.after, pod.before, pod.why, pod.scheduled)
