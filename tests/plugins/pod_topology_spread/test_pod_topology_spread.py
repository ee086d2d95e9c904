from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.apps import ReplicaSet
from kubesched.api.core import Node, Pod, ReplicationController, Service
from kubesched.framework.cluster_event import POD
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PreFilterResult
from kubesched.framework.status import Code
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.pod_topology_spread.states import SpreadState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from tests.plugins.building import hint_of
from tests.plugins.by_node import answers_of, scores_of, selects

from .spreading import (
    BAR,
    FOO,
    HOSTNAME,
    LACKS_LABEL,
    REASON,
    TAINT,
    ZONE,
    Json,
    constraint,
    included,
    make_plugin,
    soft,
    twin_counts,
    twin_filter,
    twin_scores,
)


def pre_filter(
    plugin: PodTopologySpread, pod: Pod, snapshot: Snapshot
) -> PreFilterResult[SpreadState]:
    """Return the state of pre_filter."""
    return plugin.pre_filter(CycleState(), PodInfo(pod), snapshot)


def filtered(
    pod: Pod, snapshot: Snapshot, plugin: PodTopologySpread | None = None
) -> dict[str, str]:
    """Node -> reason, empty where the pod fits or the plugin skips."""
    plugin = plugin or make_plugin()
    result = pre_filter(plugin, pod, snapshot)
    if result.status.is_skip:
        return dict.fromkeys(snapshot.nodes.names, "")
    assert result.state is not None, result.status
    return answers_of(plugin, result.state, pod, snapshot)


def scored(
    pod: Pod,
    snapshot: Snapshot,
    feasible: list[str] | None = None,
    plugin: PodTopologySpread | None = None,
) -> dict[str, int] | None:
    """Node -> normalized score; None if the plugin skips."""
    return scores_of(plugin or make_plugin(), pod, snapshot, feasible)


def make_cluster(*counts: int, zones: str = "") -> Snapshot:
    """Nodes n0, n1, ... with these numbers of app=foo pods, in zones by letter ("-": none)."""
    nodes: list[Node] = []
    pods: list[Pod] = []
    for at, count in enumerate(counts):
        labels = {HOSTNAME: f"n{at}"}
        if zones and zones[at] != "-":
            labels[ZONE] = zones[at]
        nodes.append(make_node(f"n{at}", labels=labels))
        pods += [
            make_pod(f"p{at}-{number}", labels={"app": "foo"}, node_name=f"n{at}")
            for number in range(count)
        ]
    return make_snapshot(nodes, pods)


def fitting(pod: Pod, snapshot: Snapshot) -> str:
    """The numbers of the nodes that fit the pod."""
    return "".join(name[1:] for name, reason in filtered(pod, snapshot).items() if not reason)


@pytest.mark.parametrize(
    ("counts", "zones", "constraints", "expected"),
    [
        pytest.param((0, 0), "ab", [constraint(ZONE)], "01", id="no-pods"),
        pytest.param((1, 0), "ab", [constraint(ZONE)], "1", id="skew-of-two"),
        pytest.param((1, 0), "ab", [constraint(ZONE, selector=BAR)], "01", id="others-count"),
        pytest.param((2, 0), "ab", [constraint(ZONE, 3)], "01", id="skew-allowed"),
        pytest.param((1, 0, 3, 0), "aabb", [constraint(ZONE)], "01", id="nodes-of-a-zone-add-up"),
        pytest.param((2, 1, 0, 3), "aabb", [constraint(HOSTNAME)], "2", id="hostname"),
        pytest.param((0, 0, 0), "ab-", [constraint(ZONE)], "01", id="no-label"),
        pytest.param((3, 3, 0, 9), "ab-b", [constraint(ZONE)], "0", id="without-label-no-domain"),
        pytest.param((2, 0), "ab", [constraint(ZONE, selector={})], "01", id="empty-selector"),
        pytest.param((2, 0), "ab", [constraint(ZONE, selector=None)], "01", id="no-selector"),
        pytest.param((1, 1), "ab", [constraint(ZONE, minDomains=3)], "", id="few-domains"),
        pytest.param((1, 1), "ab", [constraint(ZONE, minDomains=2)], "01", id="enough-domains"),
        pytest.param(
            (2, 1, 0, 3), "aabb", [constraint(ZONE), constraint(HOSTNAME)], "2", id="both-agree"
        ),
        pytest.param(
            (1, 0, 2, 1), "aabb", [constraint(ZONE), constraint(HOSTNAME)], "1", id="both-restrict"
        ),
        pytest.param(
            (2, 0, 0, 0), "aabb", [constraint(ZONE, 2), constraint(HOSTNAME)], "23", id="skews"
        ),
        pytest.param((5, 0), "ab", [soft(ZONE)], "01", id="soft-constraints-do-not-filter"),
    ],
)
def test_filter(
    counts: tuple[int, ...], zones: str, constraints: list[Json], expected: str
) -> None:
    """A domain may have maxSkew pods more than the emptiest one, the pod itself included."""
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=constraints)
    assert expected == fitting(pod, make_cluster(*counts, zones=zones))


def test_filter_without_self_match() -> None:
    """A pod that its own selector does not match does not add to the skew."""
    pod = make_pod(labels={"app": "bar"}, topology_spread_constraints=[constraint(ZONE)])
    assert "01" == fitting(pod, make_cluster(1, 0, zones="ab"))
    assert "1" == fitting(pod, make_cluster(2, 0, zones="ab"))


def test_filter_codes() -> None:
    """Eviction resolves skew, but not a missing label; the first constraint decides."""
    constraints = [constraint(HOSTNAME), constraint(ZONE)]
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=constraints)
    snapshot = make_cluster(1, 0, 0, zones="ab-")
    plugin = make_plugin()
    result = pre_filter(plugin, pod, snapshot)
    assert result.state is not None
    answers = plugin.filter(result.state, PodInfo(pod), snapshot.nodes)
    assert (Code.UNSCHEDULABLE, (REASON,)) == (answers[0].code, answers[0].reasons)
    assert answers[1].is_success
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == answers[2].code
    assert (LACKS_LABEL,) == answers[2].reasons


def test_terminating_and_foreign_pods_do_not_count() -> None:
    """Terminating pods and pods of other namespaces are not siblings."""
    nodes = [make_node(f"n{at}", labels={ZONE: zone}) for at, zone in enumerate("ab")]
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods = [
        make_pod("p", labels={"app": "foo"}, node_name="n0", metadata=gone),
        make_pod("q", namespace="other", labels={"app": "foo"}, node_name="n0"),
    ]
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=[constraint(ZONE)])
    assert "01" == fitting(pod, make_snapshot(nodes, pods))


@pytest.mark.parametrize(
    ("gate", "expected"), [pytest.param(True, "01", id="on"), pytest.param(False, "1", id="off")]
)
def test_match_label_keys(gate: bool, expected: str) -> None:
    """Keys of matchLabelKeys that the pod has narrow the selector; others do not."""
    written = constraint(ZONE, matchLabelKeys=["version", "missing"])
    pod = make_pod(labels={"app": "foo", "version": "2"}, topology_spread_constraints=[written])
    plugin = make_plugin(MatchLabelKeysInPodTopologySpread=gate)
    answers = filtered(pod, make_cluster(1, 0, zones="ab"), plugin)
    assert expected == "".join(name[1:] for name, reason in answers.items() if not reason)


def test_invalid_selectors_are_errors() -> None:
    """An invalid selector ends the cycle with upstream's message."""
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    snapshot = make_cluster(0, 0, zones="ab")
    hard = make_pod(topology_spread_constraints=[constraint(ZONE, selector=wrong)])
    status = pre_filter(make_plugin(), hard, snapshot).status
    assert Code.ERROR == status.code
    words = "obtaining pod's {} topology spread constraints: "
    reason = '"Near" is not a valid pod selector operator'
    assert "get constraints from pod: " + words.format("hard") + reason == status.error
    gentle = make_pod(topology_spread_constraints=[soft(ZONE, selector=wrong)])
    assert pre_filter(make_plugin(), gentle, snapshot).status.is_skip
    found = make_plugin().pre_score(CycleState(), PodInfo(gentle), snapshot, np.ones(2, np.bool_))
    assert "calculating preScoreState: " + words.format("soft") + reason == found.status.error


@pytest.mark.parametrize(
    ("counts", "constraints", "expected"),
    [
        pytest.param((2, 1, 0, 3), [soft(HOSTNAME)], (20, 60, 100, 0), id="spec-maxskew-1"),
        pytest.param((2, 1, 0, 3), [soft(HOSTNAME, 2)], (33, 66, 100, 16), id="spec-maxskew-2"),
        pytest.param((2, 1, 0, 3), [soft(HOSTNAME, selector=None)], (100,) * 4, id="nil-selector"),
        pytest.param((0, 0), [soft(HOSTNAME)], (100, 100), id="no-pods"),
        pytest.param((7,), [soft(HOSTNAME)], (100,), id="one-node"),
        pytest.param((1, 0, 0, 0), [soft(ZONE)], (0, 0, 100, 100), id="zone-of-two"),
    ],
)
def test_score(counts: tuple[int, ...], constraints: list[Json], expected: tuple[int, ...]) -> None:
    """Fewer matching pods in a domain score higher; maxSkew reduces the differences."""
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=constraints)
    scores = scored(pod, make_cluster(*counts, zones="aabb"[: len(counts)]))
    assert scores is not None
    assert expected == tuple(scores.values())


def test_score_ignores_nodes_without_a_label() -> None:
    """A node that lacks a label of the pod's constraints gets 0 and is ignored."""
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=[soft(ZONE), soft(HOSTNAME)])
    scores = scored(pod, make_cluster(1, 0, 0, zones="ab-"))
    assert {"n0": 0, "n1": 100, "n2": 0} == scores


def make_service(selector: Json | None, namespace: str = "default", name: str = "s") -> Service:
    """A service that selects pods."""
    spec = {} if selector is None else {"selector": selector}
    metadata = {"name": name, "namespace": namespace}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Service)


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        pytest.param([{"app": "foo"}], True, id="service"),
        pytest.param([{"app": "bar"}], False, id="service-of-others"),
        pytest.param([None], False, id="without-selector"),
        pytest.param([{}], False, id="empty-selector-adds-nothing"),
        pytest.param([{}, {"app": "foo"}], True, id="one-of-two"),
        pytest.param([], False, id="none"),
    ],
)
def test_system_defaults_need_a_service(services: list[Json | None], expected: bool) -> None:
    """A pod without constraints is spread by the defaults if a service selects it."""
    cluster = make_cluster(2, 0, zones="ab")
    for at, selector in enumerate(services):
        cluster.objects.put(make_service(selector, name=f"s{at}"))  # type: ignore[attr-defined]  # the builder's store
    scores = scored(make_pod(labels={"app": "foo"}), cluster)
    assert expected == (scores is not None)
    assert scores is None or scores["n1"] == 100 > scores["n0"]


def test_defaults_follow_changes_of_services() -> None:
    """Cached values are derived again when a service is added or deleted."""
    cluster, plugin = make_cluster(2, 0, zones="ab"), make_plugin()
    pod = make_pod(labels={"app": "foo"})
    store: Any = cluster.objects
    assert scored(pod, cluster, plugin=plugin) is None
    service = make_service({"app": "foo"})
    store.put(service)
    assert scored(pod, cluster, plugin=plugin) is not None
    store.delete(service)
    assert scored(pod, cluster, plugin=plugin) is None


def test_own_constraints_replace_defaults() -> None:
    """A pod with only hard constraints of its own has no soft default ones."""
    cluster = make_cluster(2, 0, zones="ab")
    store: Any = cluster.objects
    store.put(make_service({"app": "foo"}))
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=[constraint(ZONE)])
    assert scored(pod, cluster) is None


def test_listed_defaults_filter() -> None:
    """Listed defaults may be hard; they use the owner's selector."""
    args = {"defaultingType": "List", "defaultConstraints": [constraint(ZONE, selector=None)]}
    cluster = make_cluster(1, 0, zones="ab")
    store: Any = cluster.objects
    metadata = {"name": "rs", "namespace": "default"}
    store.put(msgspec.convert({"metadata": metadata, "spec": {"selector": FOO}}, ReplicaSet))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}
    pod = make_pod(labels={"app": "foo"}, metadata={"ownerReferences": [owner]})
    plugin = make_plugin(args)
    assert {"n0": REASON, "n1": ""} == filtered(pod, cluster, plugin)
    hint = hint_of(plugin, POD)
    assert hint(pod, None, make_pod("q", labels={"app": "foo"}, node_name="n1"))
    assert not hint(pod, None, make_pod("q", labels={"app": "bar"}, node_name="n1"))


def test_system_defaults_keep_nodes_without_zone() -> None:
    """With system defaults, a node without a zone is scored by its host name only."""
    cluster = make_cluster(1, 1, 1, zones="ab-")
    store: Any = cluster.objects
    store.put(make_service({"app": "foo"}))
    # Raw: log(5) for the host, log(3 + 2) for the zone ("" is one), skews 3 and 5.
    raw = [round(math.log(5) + 2 + math.log(5) + 4), round(math.log(5) + 2)]
    most, least = raw
    expected = [100 * (most + least - score) // most for score in raw]
    scores = scored(make_pod(labels={"app": "foo"}), cluster)
    assert scores is not None
    assert [expected[0], expected[0], expected[1]] == list(scores.values())


def test_rc_selector_joins_services() -> None:
    """The selector of an owning replication controller adds to those of services."""
    cluster = make_cluster(2, 0, zones="ab")
    store: Any = cluster.objects
    metadata = {"name": "rc", "namespace": "default"}
    spec = {"selector": {"app": "foo"}}
    store.put(msgspec.convert({"metadata": metadata, "spec": spec}, ReplicationController))
    owner = {"apiVersion": "v1", "kind": "ReplicationController", "name": "rc", "controller": True}
    pod = make_pod(labels={"app": "foo"}, metadata={"ownerReferences": [owner]})
    assert scored(pod, cluster) is not None
    owner["controller"] = False
    other = make_pod(labels={"app": "foo"}, metadata={"ownerReferences": [owner]})
    assert scored(other, cluster) is None


selectors = st.sampled_from(
    [
        FOO,
        BAR,
        {},
        None,
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["foo", "bar"]}]},
        {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
        {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]},
    ]
)
# Strategies are made once: to make one takes longer than to draw from it.
options = st.fixed_dictionaries(
    {},
    optional={
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
    },
)
pod_labels = st.fixed_dictionaries(
    {"app": st.sampled_from(["foo", "bar"])}, optional={"tier": st.sampled_from(["x", "y"])}
)
key_lists = st.lists(st.sampled_from([ZONE, HOSTNAME, "rack"]), min_size=1, unique=True)
zones = st.sampled_from(["a", "a", "b", "c", "", None])
racks = st.sampled_from(["r1", "r2", None])
pools = st.sampled_from(["x", "x", None])
taint_lists = st.sampled_from([[], [], [TAINT]])
namespaces = st.sampled_from(["default", "default", "default", "other"])
pod_metadata = st.sampled_from([{}, {}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
toleration_lists = st.sampled_from([[], [{"operator": "Exists"}]])
node_selectors = st.sampled_from([None, None, {"pool": "x"}])


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """A few nodes of which some lack labels, and pods on them."""
    nodes = []
    for at in range(draw(st.integers(1, 6))):
        labels = {
            HOSTNAME: "shared" if draw(st.booleans()) else f"h{at}",
            ZONE: draw(zones),
            "rack": draw(racks),
            "pool": draw(pools),
        }
        present = {key: value for key, value in labels.items() if value is not None}
        nodes.append(make_node(f"n{at}", labels=present, taints=draw(taint_lists)))
    places = st.sampled_from([node.metadata.name for node in nodes])
    pods = [
        make_pod(
            f"p{at}",
            namespace=draw(namespaces),
            labels=draw(pod_labels),
            node_name=draw(places),
            metadata=draw(pod_metadata),
        )
        for at in range(draw(st.integers(0, 14)))
    ]
    return nodes, pods


@st.composite
def incoming(draw: st.DrawFn, action: str) -> tuple[list[Json], Pod]:
    """Draw one to three constraints on distinct keys, and a pod that has them."""
    constraints = [
        constraint(key, draw(st.integers(1, 3)), draw(selectors), whenUnsatisfiable=action)
        | draw(options)
        for key in draw(key_lists)
    ]
    pod = make_pod(
        "incoming",
        labels=draw(pod_labels),
        node_selector=draw(node_selectors),
        tolerations=draw(toleration_lists),
        topology_spread_constraints=constraints,
    )
    return constraints, pod


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(clusters(), st.lists(incoming("DoNotSchedule"), min_size=1, max_size=3), st.data())
def test_filter_equals_twin(
    cluster: tuple[list[Node], list[Pod]], asked: list[tuple[list[Json], Pod]], data: st.DataObject
) -> None:
    """All rows at once get the answers of the node-by-node twin, also after a node has changed."""
    nodes, pods = cluster
    snapshot, plugin = make_snapshot(nodes, pods), make_plugin()

    def check() -> None:
        for constraints, pod in asked:
            counts = twin_counts(constraints, pod, nodes, pods)
            expected = {n.metadata.name: twin_filter(constraints, counts, pod, n) for n in nodes}
            assert expected == filtered(pod, snapshot, plugin)

    check()
    at = data.draw(st.integers(0, len(nodes) - 1))
    nodes[at] = make_node(f"n{at}", labels=dict(nodes[0].metadata.labels), taints=[])
    snapshot.nodes.update_node(nodes[at])
    check()


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(clusters(), incoming("ScheduleAnyway"), st.data())
def test_score_equals_twin(
    cluster: tuple[list[Node], list[Pod]], asked: tuple[list[Json], Pod], data: st.DataObject
) -> None:
    """All rows at once get the scores of the node-by-node twin."""
    (nodes, pods), (constraints, pod) = cluster, asked
    names = [node.metadata.name for node in nodes]
    feasible = sorted(data.draw(st.sets(st.sampled_from(names), min_size=1)))
    expected = twin_scores(constraints, pod, nodes, pods, feasible)
    assert expected == scored(pod, make_snapshot(nodes, pods), feasible)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(clusters(), incoming("DoNotSchedule"), st.data())
def test_what_if_equals_counting_anew(
    cluster: tuple[list[Node], list[Pod]], asked: tuple[list[Json], Pod], data: st.DataObject
) -> None:
    """Adding and removing pods in a cloned state gives the answers for the changed cluster."""
    (nodes, pods), (constraints, pod) = cluster, asked
    snapshot, plugin = make_snapshot(nodes, pods), make_plugin()
    result = pre_filter(plugin, pod, snapshot)
    assert result.state is not None
    before = answers_of(plugin, result.state, pod, snapshot)
    node = data.draw(st.sampled_from(nodes))
    row = snapshot.nodes.row_of[node.metadata.name]
    what_if, one = result.state.clone(), snapshot.nodes.take(np.array([row]))
    counts = twin_counts(constraints, pod, nodes, pods)
    here = [other for other in pods if other.spec.node_name == node.metadata.name]
    others = [(other, -1) for other in here] + [
        (make_pod(f"new{at}", labels=labels), 1)
        for at, labels in enumerate(data.draw(st.lists(pod_labels, max_size=3)))
    ]
    for other, amount in data.draw(st.permutations(others)):
        change = plugin.add_pod if amount > 0 else plugin.remove_pod
        assert change(what_if, PodInfo(pod), PodInfo(other), one).is_success
        if other.metadata.namespace != "default" or not all(
            written["topologyKey"] in node.metadata.labels for written in constraints
        ):
            continue
        for written, count in zip(constraints, counts, strict=True):
            # Here upstream looks neither at deletion nor at whether the selector is empty.
            if selects(written.get("labelSelector"), other.metadata.labels) and included(
                written, pod, node
            ):
                count[node.metadata.labels[written["topologyKey"]]] += amount
        expected = {n.metadata.name: twin_filter(constraints, counts, pod, n) for n in nodes}
        assert expected == answers_of(plugin, what_if, pod, snapshot)
    assert before == answers_of(plugin, result.state, pod, snapshot)
