from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod, Service
from kubesched.api.field_errors import ConfigError
from kubesched.plugins.selector_spread import SelectorSpread
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from tests.plugins.building import build
from tests.plugins.by_node import scores_of

Json: TypeAlias = "dict[str, Any]"

ZONE = "topology.kubernetes.io/zone"
GONE: Json = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
SERVICE = msgspec.convert(
    {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "foo"}}},
    Service,
)


def make_cluster(counts: tuple[int, ...], zones: str, service: bool = True) -> Snapshot:
    """Nodes n0, n1, ... with these numbers of siblings, in zones by letter ("-": none)."""
    nodes: list[Node] = []
    pods: list[Pod] = []
    for at, (count, zone) in enumerate(zip(counts, zones, strict=True)):
        nodes.append(make_node(f"n{at}", labels={} if zone == "-" else {ZONE: zone}))
        pods += [
            make_pod(f"p{at}-{number}", labels={"app": "foo"}, node_name=f"n{at}")
            for number in range(count)
        ]
    return make_snapshot(nodes, pods, [SERVICE] if service else [])


def scored(
    snapshot: Snapshot, scale: int, pod: Pod | None = None, feasible: list[str] | None = None
) -> list[int] | None:
    """Scores of the feasible nodes; None if the plugin skips."""
    plugin = build(SelectorSpread, {"scale": scale})
    found = scores_of(plugin, pod or make_pod(labels={"app": "foo"}), snapshot, feasible)
    return None if found is None else list(found.values())


@pytest.mark.parametrize(
    ("counts", "zones", "of_10", "of_100"),
    [
        ((0, 0, 0, 0, 0, 0), "122333", (10,) * 6, (100,) * 6),
        ((0, 1, 0, 0, 0, 0), "122333", (10, 0, 3, 10, 10, 10), (100, 0, 33, 100, 100, 100)),
        ((0, 1, 1, 0, 1, 0), "122333", (10, 0, 0, 6, 3, 6), (100, 0, 0, 66, 33, 66)),
        ((1, 1, 0, 1, 0, 0), "122333", (0, 0, 3, 0, 3, 3), (0, 0, 33, 0, 33, 33)),
        ((1, 1, 1, 1, 0, 0), "122333", (3, 0, 0, 3, 6, 6), (33, 0, 0, 33, 66, 66)),
        ((0, 1, 0, 2, 0, 0), "122333", (10, 5, 6, 0, 3, 3), (100, 50, 66, 0, 33, 33)),
        ((0, 1), "--", (10, 0), (100, 0)),
        ((1, 1), "--", (0, 0), (0, 0)),
        ((1, 2), "--", (5, 0), (50, 0)),
        ((2, 1), "--", (0, 5), (0, 50)),
        ((3, 5, 10), "---", (7, 5, 0), (70, 50, 0)),
        ((0, 1, 0), "12-", (10, 0, 10), (100, 0, 100)),
    ],
)
def test_score(
    counts: tuple[int, ...], zones: str, of_10: tuple[int, ...], of_100: tuple[int, ...]
) -> None:
    """The node counts one third and its zone two thirds, where it has one."""
    cluster = make_cluster(counts, zones)
    assert list(of_10) == scored(cluster, 10)
    assert list(of_100) == scored(cluster, 100)


def test_only_scored_nodes_count() -> None:
    """The maximum is taken over the scored nodes only."""
    cluster = make_cluster((1, 2, 9), "112")
    assert [16, 0] == scored(cluster, 100, feasible=["n0", "n1"])


def test_without_a_selector_all_are_equal() -> None:
    """A pod that no service or controller selects has no siblings."""
    assert [100, 100] == scored(make_cluster((3, 0), "--", service=False), 100)


def test_terminating_and_foreign_pods_are_no_siblings() -> None:
    """Only pods of the namespace that are not terminating count."""
    pods = [
        make_pod("p", labels={"app": "foo"}, node_name="n0", metadata=GONE),
        make_pod("q", namespace="other", labels={"app": "foo"}, node_name="n0"),
        make_pod("r", labels={"app": "foo"}, node_name="n1"),
    ]
    snapshot = make_snapshot([make_node("n0"), make_node("n1")], pods, [SERVICE])
    assert [100, 0] == scored(snapshot, 100)


def test_pods_with_constraints_are_left_alone() -> None:
    """A pod with spread constraints is skipped."""
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=[constraint])
    assert scored(make_cluster((1, 0), "--"), 100, pod) is None


def twin(counts: list[int], zones: list[str], scale: int) -> list[int]:
    """Node by node, as the specification writes it."""
    most = max(counts)
    by_zone: dict[str, int] = {}
    for count, zone in zip(counts, zones, strict=True):
        if zone != "-":
            by_zone[zone] = by_zone.get(zone, 0) + count
    most_of_zone = max(by_zone.values(), default=0)
    scores = []
    for count, zone in zip(counts, zones, strict=True):
        score = float(scale)
        if most > 0:
            score = scale * ((most - count) / most)
        if zone != "-":
            zone_score = float(scale)
            if most_of_zone > 0:
                zone_score = scale * ((most_of_zone - by_zone[zone]) / most_of_zone)
            score = score * (1.0 - 2.0 / 3.0) + (2.0 / 3.0) * zone_score
        scores.append(int(score))
    return scores


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from("aab-")), min_size=1, max_size=7),
    st.sampled_from([10, 100]),
)
def test_score_equals_twin(cluster: list[tuple[int, str]], scale: int) -> None:
    """All rows at once score as each node by itself, to the last bit of the floats."""
    counts, zones = [count for count, _ in cluster], [zone for _, zone in cluster]
    snapshot = make_cluster(tuple(counts), "".join(zones))
    assert twin(counts, zones, scale) == scored(snapshot, scale)


def test_args() -> None:
    """The scale is 10 or 100."""
    with pytest.raises(ConfigError) as caught:
        build(SelectorSpread, {"scale": 50})
    text = 'args.scale: Unsupported value: 50: supported values: "10", "100"'
    assert text == str(caught.value)


def test_no_events() -> None:
    """The plugin never rejects a pod, so it registers no events."""
    assert () == build(SelectorSpread).events_to_register()
