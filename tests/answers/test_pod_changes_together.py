"""Changes that make a pod fit together: all of them are needed, and no others."""

from __future__ import annotations

import pytest

from kubesched.answers.pod_changes_together import changes_together
from kubesched.answers.trial import ChangeTrial
from kubesched.api.core import Node, Pod
from kubesched.testing.builders import make_node, make_pod
from tests.simulator.clusters import cluster_of

from .test_room import TAINT


def together(pod: Pod, *nodes: Node) -> list[str]:
    """Return the changes that are found, as sentences; check that the pod then fits."""
    found = changes_together(ChangeTrial(cluster_of(pod, *nodes), pod))
    assert {change.node for change in found} <= {nodes[-1].metadata.name}
    return sorted(change.sentence for change in found)


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        pytest.param(
            make_pod(node_selector={"pool": "gpu"}),
            make_node("n", taints=[TAINT]),
            ["drop the node selector pool=gpu", "tolerate the taint dedicated=gpu:NoSchedule"],
            id="selector and taint",
        ),
        pytest.param(
            make_pod(),
            make_node("n", taints=[TAINT, {"key": "spot", "effect": "NoExecute"}]),
            ["tolerate the taint dedicated=gpu:NoSchedule", "tolerate the taint spot:NoExecute"],
            id="two taints",
        ),
        pytest.param(
            make_pod(requests={"cpu": "3", "memory": "3Gi"}),
            make_node("n", allocatable={"cpu": "2", "memory": "1Gi", "pods": 5}),
            [
                "lower the cpu request of container container from 3 to 2",
                "lower the memory request of container container from 3Gi to 1Gi",
            ],
            id="two resources",
        ),
        pytest.param(
            make_pod(
                containers=[
                    {"name": name, "resources": {"requests": {"cpu": cpu}}}
                    for name, cpu in (("a", "3"), ("b", "4"), ("c", "250m"))
                ]
            ),
            make_node("n", allocatable={"cpu": "2", "memory": "9Gi", "pods": 5}),
            ["lower every cpu request to at most 875m"],
            id="several containers",
        ),
        pytest.param(
            make_pod(
                containers=[
                    {"name": "a", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
                    {"name": "b", "resources": {"requests": {"cpu": "1", "memory": "3Gi"}}},
                ]
            ),
            make_node("n", allocatable={"cpu": "2", "memory": "2Gi", "pods": 5}),
            [
                "lower the cpu request of container a from 3 to 1",
                "lower the memory request of container b from 3Gi to 1Gi",
            ],
            id="one of several containers",
        ),
        pytest.param(
            make_pod(
                scheduling_gates=["example.com/a", "example.com/b"], node_selector={"zone": "x"}
            ),
            make_node("n"),
            [
                "drop the node selector zone=x",
                "remove the scheduling gate example.com/a",
                "remove the scheduling gate example.com/b",
            ],
            id="gates and selector",
        ),
    ],
)
def test_no_change_can_be_left_out(pod: Pod, node: Node, expected: list[str]) -> None:
    """The pod fits with all of them, and not without any one."""
    assert together(pod, node) == expected


def test_the_node_that_needs_the_fewest_changes_is_chosen() -> None:
    """The changes are those that make the pod fit this node."""
    far = make_node("far", taints=[TAINT], allocatable={"cpu": "1", "memory": "1Gi", "pods": 5})
    near = make_node("near", taints=[TAINT], allocatable={"cpu": "1", "memory": "9Gi", "pods": 5})
    assert together(make_pod(requests={"cpu": "2", "memory": "2Gi"}), far, near) == [
        "lower the cpu request of container container from 2 to 1",
        "tolerate the taint dedicated=gpu:NoSchedule",
    ]


def test_all_rejecting_terms_are_dropped_at_once() -> None:
    """Dropping one of several such terms would not change the outcome."""
    terms = [
        {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"} for app in "xy"
    ]
    pod = make_pod(pod_affinity={"requiredDuringSchedulingIgnoredDuringExecution": terms})
    assert together(pod, make_node("n", labels={"zone": "a"})) == [
        "drop all 2 required terms of pod affinity"
    ]


def test_changes_of_different_lists_with_the_same_words_are_told_apart() -> None:
    """Their fields are those of the pod as it is when a change is made."""
    terms = [
        {"matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]}
        for keys in (("ssd", "x"), ("ssd", "zone"))
    ]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = make_pod(node_affinity=affinity, requests={"cpu": "2"})
    node = make_node("n", labels={"zone": "a"}, allocatable={"cpu": "1", "pods": 5})
    assert together(pod, node) == [
        "drop the node affinity ssd Exists",
        "lower the cpu request of container container from 2 to 1",
    ]
    found = changes_together(ChangeTrial(cluster_of(pod, node), pod))
    assert any("nodeSelectorTerms[1].matchExpressions[0]" in change.field for change in found)


def test_terms_of_other_pods_that_differ_in_namespaces_are_told_apart() -> None:
    """Only the one that has no pod is dropped."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
    terms = [
        {**term, "namespaceSelector": {}},
        {**term, "namespaces": ["a", "b"], "namespaceSelector": {"matchLabels": {"team": "x"}}},
    ]
    pod = make_pod(
        pod_affinity={"requiredDuringSchedulingIgnoredDuringExecution": terms},
        requests={"cpu": "2"},
    )
    node = make_node("n", labels={"zone": "a"}, allocatable={"cpu": "1", "pods": 5})
    db = make_pod("db", namespace="c", labels={"app": "db"}, node_name="n")
    found = changes_together(ChangeTrial(cluster_of(db, pod, node), pod))
    assert sorted(change.sentence for change in found) == [
        "drop the pod affinity to app=db in a or b or namespaces with team=x by zone",
        "lower the cpu request of container container from 2 to 1",
    ]


def test_no_change_of_the_pod_makes_it_fit_a_cordoned_node() -> None:
    """Nothing is suggested then."""
    assert together(make_pod(node_selector={"a": "b"}), make_node("n", unschedulable=True)) == []
