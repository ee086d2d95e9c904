"""TopologyPlacementGenerator, PodGroupPodsCount, and placement scores of NodeResourcesFit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import PodGroup
from kubesched.cache.cache import Cache
from kubesched.framework.pod_groups import (
    GeneratedPlacements,
    Placement,
    PodGroupAssignments,
    ProposedAssignment,
)
from kubesched.framework.status import SUCCESS, failure
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.node_resources.fit import NodeResourcesFitArgs
from kubesched.plugins.pod_group_pods_count import PodGroupPodsCount
from kubesched.plugins.topology_placement_generator import TopologyPlacementGenerator
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from kubesched.testing.handle import FakeHandle
from tests.scheduler.running import make_group, make_member

KEY: Final = "zone"
ZONES: Final = {"n0": "a", "n1": "b", "n2": "a", "n3": None, "n4": ""}
GROUP_STATE_MISSING: Final = "pod group state not found for pod group default/gang"
DEFAULT_MEMORY: Final = 200 * 2**20


def zone_nodes() -> list[Node]:
    """Return nodes of two zones, one of none, and one of the empty zone."""
    return [
        make_node(name, labels={} if zone is None else {KEY: zone}) for name, zone in ZONES.items()
    ]


def cluster_of(nodes: Sequence[Node], pods: Sequence[Pod], *groups: PodGroup) -> Cache:
    """Return a cache that keeps groups."""
    cache = Cache(has_pod_groups=True)
    for node in nodes:
        cache.add_node(node)
    for group in groups:
        cache.put(group)
    for pod in pods:
        if pod.spec.node_name:
            cache.add_pod(pod)
        else:
            cache.pod_groups.add(PodInfo(pod))
    return cache


def handle_of(cache: Cache) -> FakeHandle:
    """Return a handle with the cache's groups."""
    handle = FakeHandle()
    handle.pod_group_states = cache.pod_groups
    return handle


def generate(cache: Cache) -> GeneratedPlacements:
    """Return the placements of the gang."""
    plugin = TopologyPlacementGenerator(None, handle_of(cache))
    everything = Placement("", tuple(range(len(cache.nodes))))
    return plugin.generate_placements("default", "gang", everything, cache.snapshot())


def test_without_a_constraint_all_nodes_are_one_placement() -> None:
    """The group may be spread over the cluster."""
    cache = cluster_of(zone_nodes(), [], make_group())
    assert GeneratedPlacements((Placement("", (0, 1, 2, 3, 4)),)) == generate(cache)


def test_one_placement_per_domain() -> None:
    """Nodes without the label are in no domain; the empty value is a domain."""
    cache = cluster_of(zone_nodes(), [make_member("p")], make_group(key=KEY))
    expected = (Placement("a", (0, 2)), Placement("b", (1,)), Placement("", (4,)))
    assert GeneratedPlacements(expected) == generate(cache)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(["n0"], ["a"], id="one domain"),
        pytest.param(["n0", "n2"], ["a"], id="two pods of it"),
        pytest.param(["n4"], [""], id="the empty one"),
        pytest.param(["n4", "n1"], ["b"], id="empty counts as none yet"),
        pytest.param(
            ["n0", "n1"], "more than 1 domain found for pod group: a, b", id="two domains"
        ),
        pytest.param(["n3"], "no topology domain found for pod default/p0", id="no label"),
        pytest.param(
            ["gone"],
            'getting node for pod default/p0: nodeinfo not found for node name "gone"',
            id="no node",
        ),
    ],
)
def test_pods_that_are_scheduled_decide_the_domain(
    nodes: list[str], expected: list[str] | str
) -> None:
    """The other pods follow, or there is an error."""
    pods = [make_member(f"p{at}", node_name=node) for at, node in enumerate(nodes)]
    found = generate(cluster_of(zone_nodes(), pods, make_group(key=KEY)))
    if isinstance(expected, str):
        cause = f"cannot determine domain for already scheduled pods: {expected}"
        assert failure(cause) == found.status
    else:
        assert expected == [placement.name for placement in found.placements]


def test_a_group_that_is_not_known() -> None:
    """Neither its object nor its pods exist."""
    found = generate(cluster_of(zone_nodes(), []))
    assert failure('podgroup.scheduling.k8s.io "gang" not found') == found.status
    found = generate(cluster_of(zone_nodes(), [], make_group(key=KEY)))
    assert failure(GROUP_STATE_MISSING) == found.status


# Scores.


def assignments(placement: Placement, *pods: Pod) -> PodGroupAssignments:
    """Propose the pods for the placement."""
    return PodGroupAssignments(
        placement, tuple(ProposedAssignment(PodInfo(pod), "n0") for pod in pods)
    )


def test_pods_are_counted() -> None:
    """Those that have a node, and those that would get one."""
    pods = [make_member("p0", node_name="n0"), make_member("p1"), make_member("p2")]
    cache = cluster_of(zone_nodes(), pods, make_group())
    plugin = PodGroupPodsCount(None, handle_of(cache))
    proposed = assignments(Placement("a", (0, 2)), *pods[1:])
    score = plugin.score_placement("default", "gang", proposed, cache.snapshot())
    assert (3, SUCCESS) == score
    missing = plugin.score_placement("default", "other", proposed, cache.snapshot())
    assert (0, failure("pod group state not found for pod group default/other")) == missing


@pytest.mark.parametrize(
    ("counts", "scores"),
    [
        pytest.param([1, 3, 2], [33, 100, 66], id="rounded down"),
        pytest.param([0, 7], [0, 100], id="nobody there"),
    ],
)
def test_counts_become_shares(counts: list[int], scores: list[int]) -> None:
    """The largest number is 100."""
    plugin = PodGroupPodsCount(None, FakeHandle())
    assert (scores, SUCCESS) == plugin.normalize_placement_scores(counts)


def test_no_pod_anywhere_is_an_error() -> None:
    """There is nothing to compare with."""
    plugin = PodGroupPodsCount(None, FakeHandle())
    cause = "no pods from pod group are assigned to any of the candidate placements"
    assert failure(cause) == plugin.normalize_placement_scores([0, 0])[1]


NODES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.lists(st.integers(0, 2), max_size=3)),
    min_size=1,
    max_size=4,
)


@given(NODES, st.lists(st.integers(0, 3), max_size=4))
def test_fit_fills_placements_up(sizes: list[tuple[int, int, list[int]]], asked: list[int]) -> None:
    """Compare with a slow twin: the mean share of requests in allocatable amounts."""
    names = [f"n{at}" for at in range(len(sizes))]
    nodes = [
        make_node(name, allocatable={"cpu": cpu, "memory": memory << 30})
        for name, (cpu, memory, _) in zip(names, sizes, strict=True)
    ]
    bound = [
        make_pod(f"{name}-{at}", requests={"cpu": cpu}, node_name=name)
        for name, (_, _, pods) in zip(names, sizes, strict=True)
        for at, cpu in enumerate(pods)
    ]
    members = [make_member(f"p{at}", requests={"cpu": cpu}) for at, cpu in enumerate(asked)]
    cache = cluster_of(nodes, bound)
    plugin = NodeResourcesFit(NodeResourcesFitArgs(), FakeHandle())
    proposed = assignments(Placement("a", tuple(range(len(nodes)))), *members)
    score, status = plugin.score_placement("default", "gang", proposed, cache.snapshot())
    assert (SUCCESS, _slow_score(sizes, asked)) == (status, score)


def _slow_score(sizes: list[tuple[int, int, list[int]]], asked: list[int]) -> int:
    cpu_milli = sum(cpu * 1000 for cpu in asked)
    memory = DEFAULT_MEMORY * len(asked)
    for node_cpu, node_memory, pods in sizes:
        cpu_milli += sum(cpu * 1000 for cpu in pods) if node_cpu else 0
        memory += DEFAULT_MEMORY * len(pods) if node_memory else 0
    shares = []
    for used, there in (
        (cpu_milli, sum(cpu * 1000 for cpu, _, _ in sizes)),
        (memory, sum(amount << 30 for _, amount, _ in sizes)),
    ):
        if there:
            shares.append(100 * min(used, there) // there)
    return sum(shares) // len(shares) if shares else 0
