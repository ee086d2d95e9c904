"""Tests of the victims of DefaultPreemption, with the real filters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.framework.status import failure, unschedulable
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.testing.builders import make_pod, make_snapshot
from tests.framework.preemption.cluster import make_budget

from .preempting import (
    HALF,
    HAS_FOO,
    HIGH,
    HUGE,
    LARGE,
    LOW,
    MEDIUM,
    MIDDLE,
    SMALL,
    Found,
    Refuse,
    found,
    node,
    pod_on,
    post_filter,
    report_of,
)

FOO = {"matchLabels": {"app": "foo"}}


@pytest.mark.parametrize(
    ("requests", "bound", "budgets", "expected"),
    [
        pytest.param(
            LARGE,
            [pod_on("n1", "p1", MIDDLE, LARGE), pod_on("n2", "p2", MIDDLE, LARGE)],
            [],
            {"n1": ({"p1"}, 0), "n2": ({"p2"}, 0)},
            id="both-nodes",
        ),
        pytest.param(
            LARGE,
            [pod_on("n1", "p1", HIGH, LARGE), pod_on("n2", "p2", HUGE, LARGE)],
            [],
            {},
            id="nobody-of-lower-priority",
        ),
        pytest.param(
            LARGE,
            [
                pod_on("n1", "small", LOW, SMALL),
                pod_on("n1", "large", MIDDLE, LARGE),
                pod_on("n2", "p2", MIDDLE, LARGE),
            ],
            [],
            {"n1": ({"large"}, 0), "n2": ({"p2"}, 0)},
            id="a-less-important-small-pod-stays",
        ),
        pytest.param(
            LARGE,
            [
                pod_on("n1", "a", MIDDLE, SMALL),
                pod_on("n1", "b", LOW, SMALL),
                pod_on("n1", "c", MIDDLE, MEDIUM, second=1),
                pod_on("n1", "d", HIGH, SMALL),
                pod_on("n2", "p2", HIGH, LARGE),
            ],
            [],
            {"n1": ({"b", "c"}, 0)},
            id="mixed-priorities",
        ),
        pytest.param(
            LARGE,
            [
                pod_on("n1", "young", LOW, SMALL, second=5),
                pod_on("n1", "old", LOW, SMALL, second=4),
                pod_on("n1", "c", MIDDLE, MEDIUM, second=3),
                pod_on("n1", "d", HIGH, SMALL, second=2),
                pod_on("n2", "p2", HIGH, LARGE, second=1),
            ],
            [],
            {"n1": ({"young", "c"}, 0)},
            id="the-younger-of-equal-priority-goes",
        ),
        pytest.param(
            HALF,
            [pod_on("n1", name, MIDDLE, MEDIUM, labels={"app": "foo"}) for name in ("a", "b")],
            [make_budget("b", FOO, allowed=1)],
            {"n1": ({"a", "b"}, 1)},
            id="one-violation",
        ),
        pytest.param(
            MEDIUM,
            [
                pod_on("n1", "important", MIDDLE, MEDIUM),
                pod_on("n1", "protected", LOW, MEDIUM, labels={"app": "foo"}),
            ],
            [make_budget("b", FOO)],
            {"n1": ({"important"}, 0)},
            id="a-protected-pod-comes-back-first",
        ),
    ],
)
def test_victims_by_resources(
    requests: Mapping[str, str | int],
    bound: list[Pod],
    budgets: list[PodDisruptionBudget],
    expected: Found,
) -> None:
    """The least important pods are evicted, protected ones last."""
    names = sorted({pod.spec.node_name for pod in bound})
    snapshot = make_snapshot([node(name) for name in names], bound, budgets)
    result = post_filter(make_pod("p", priority=HIGH, requests=requests), snapshot)
    assert expected == found(result)


def test_refusing_filter() -> None:
    """A filter that always rejects leaves no candidate."""
    bound = [pod_on("n1", "p1", MIDDLE), pod_on("n2", "p2", MIDDLE)]
    snapshot = make_snapshot([node("n1"), node("n2")], bound)
    result = post_filter(make_pod("p", priority=HIGH), snapshot, plugins=[Refuse])
    assert {} == found(result)
    expected = dict.fromkeys(["n1", "n2"], unschedulable("refused").by("Refuse"))
    assert expected == report_of(result).node_statuses


def test_victims_by_anti_affinity() -> None:
    """Only the pod whose anti-affinity rejects the preemptor is evicted."""
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": HAS_FOO, "topologyKey": "hostname"}
        ]
    }
    bound = [
        pod_on("n1", "hostile", LOW, SMALL, labels={"foo": ""}, pod_anti_affinity=terms),
        pod_on("n1", "b", MIDDLE, SMALL),
        pod_on("n1", "c", HIGH, SMALL),
        pod_on("n2", "d", HIGH, SMALL),
    ]
    pod = make_pod("p", priority=HIGH, requests=SMALL, labels={"foo": ""})
    snapshot = make_snapshot([node("n1"), node("n2")], bound)
    result = post_filter(pod, snapshot, plugins=[NodeResourcesFit, InterPodAffinity])
    assert {"n1": ({"hostile"}, 0)} == found(result)


def test_victims_by_topology_spread() -> None:
    """Pods are evicted where that reduces the skew per zone and host."""
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": HAS_FOO,
        }
        for key in ("zone", "hostname")
    ]
    foo: dict[str, str] = {"foo": ""}
    bound = [
        pod_on("a", "a1", MIDDLE, labels=foo),
        pod_on("a", "a2", LOW, labels=foo),
        pod_on("b", "b1", LOW, labels=foo),
        pod_on("x", "x1", HIGH, labels=foo),
        pod_on("x", "x2", HIGH, labels=foo),
    ]
    nodes = [node("a", zone="zone1"), node("b", zone="zone1"), node("x", zone="zone2")]
    pod = make_pod("p", priority=HIGH, labels=foo, topology_spread_constraints=constraints)
    result = post_filter(pod, make_snapshot(nodes, bound), plugins=[PodTopologySpread])
    assert {"a": ({"a2"}, 0), "b": ({"b1"}, 0)} == found(result)


@pytest.mark.slow
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from([LOW, MIDDLE]), st.integers(1, 3)), min_size=1, max_size=6),
    st.sets(st.integers(0, 5)),
)
def test_no_victim_could_stay(
    wanted: int, pods: list[tuple[int, int]], protected: set[int]
) -> None:
    """After the victims are gone the pod fits, and with any one of them back it does not."""
    cpus = max(5, sum(cpu for _, cpu in pods))
    bound = [
        pod_on("n1", f"p{at}", priority, {"cpu": cpu}, at, labels={"app": str(at in protected)})
        for at, (priority, cpu) in enumerate(pods)
    ]
    snapshot = make_snapshot(
        [node("n1", {"cpu": cpus, "pods": 99})],
        bound,
        [make_budget("b", {"matchLabels": {"app": "True"}})],
    )
    result = post_filter(make_pod("p", priority=HIGH, requests={"cpu": wanted}), snapshot)
    free = cpus - sum(cpu for _, cpu in pods)
    sizes = np.array([pods[int(victim.name[1:])][1] for victim in result.victims])
    if wanted <= free:
        assert failure('preemption: expected at least one victim pod on node "n1"') == result.status
    else:
        assert free + sizes.sum() >= wanted
        assert (free + sizes.sum() - sizes < wanted).all()
