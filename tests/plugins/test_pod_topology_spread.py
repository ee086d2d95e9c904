from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.apps import ReplicaSet
from kubesched.api.core import Node, Pod, ReplicationController, Service
from kubesched.config.faults import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PreFilterResult
from kubesched.framework.status import Code
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.spread_state import SpreadState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle

Json: TypeAlias = "dict[str, Any]"

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REASON = "node(s) didn't match pod topology spread constraints"
LACKS_LABEL = f"{REASON} (missing required label)"
FOO: Json = {"matchLabels": {"app": "foo"}}
BAR: Json = {"matchLabels": {"app": "bar"}}
TAINT: Json = {"key": "t", "value": "", "effect": "NoSchedule"}


def constraint(key: str, max_skew: int = 1, selector: Json | None = FOO, **more: Any) -> Json:
    """A constraint as JSON, hard unless said otherwise; a selector of None is absent."""
    written = {
        "topologyKey": key,
        "maxSkew": max_skew,
        "whenUnsatisfiable": "DoNotSchedule",
        **more,
    }
    return written if selector is None else {**written, "labelSelector": selector}


def soft(key: str, max_skew: int = 1, selector: Json | None = FOO, **more: Any) -> Json:
    """A soft constraint as JSON."""
    return constraint(key, max_skew, selector, whenUnsatisfiable="ScheduleAnyway", **more)


def make_plugin(args: Json | None = None, **gates: bool) -> PodTopologySpread:
    """Build the plugin from arguments as written."""
    handle = FakeHandle(gates)
    return PodTopologySpread(PodTopologySpread.decode_args(args, handle, "args"), handle)


def pre_filter(
    plugin: PodTopologySpread, pod: Pod, snapshot: Snapshot
) -> PreFilterResult[SpreadState]:
    """Ask for the state."""
    return plugin.pre_filter(CycleState(), PodInfo(pod), snapshot)


def answers_of(
    plugin: PodTopologySpread, state: SpreadState, pod: Pod, snapshot: Snapshot
) -> dict[str, str]:
    """Node -> reason, empty where the pod fits; each row alone answers the same."""
    info, nodes = PodInfo(pod), snapshot.nodes
    answers = plugin.filter(state, info, nodes)
    for row in range(len(nodes)):
        one = nodes.take(np.array([row]))
        assert answers[row] == plugin.filter(state, info, one)[0]
        assert answers[row].is_success == (not plugin.describe(state, info, one))
    return {name: answers[row].message for row, name in enumerate(nodes.names)}


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
    plugin = plugin or make_plugin()
    info, nodes = PodInfo(pod), snapshot.nodes
    mask = np.array([feasible is None or name in feasible for name in nodes.names], np.bool_)
    result = plugin.pre_score(CycleState(), info, snapshot, mask)
    if result.status.is_skip:
        return None
    assert result.state is not None, result.status
    rows = np.flatnonzero(mask)
    raw = plugin.score(result.state, info, nodes)[rows]
    assert raw.tolist() == plugin.score(result.state, info, nodes.take(rows)).tolist()
    scores = plugin.normalize_score(result.state, info, raw, rows)
    return {nodes.names[row]: int(score) for row, score in zip(rows, scores, strict=True)}


def make_cluster(*counts: int, zones: str = "") -> Snapshot:
    """Nodes n0, n1, ... with so many pods labelled app=foo, in zones by letter ("-": in none)."""
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
    """The numbers of the nodes that take the pod."""
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
    """A pod that its own selector leaves out adds nothing to the skew."""
    pod = make_pod(labels={"app": "bar"}, topology_spread_constraints=[constraint(ZONE)])
    assert "01" == fitting(pod, make_cluster(1, 0, zones="ab"))
    assert "1" == fitting(pod, make_cluster(2, 0, zones="ab"))


def test_filter_codes() -> None:
    """A missing label cannot be cured by eviction, skew can; the first constraint decides."""
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
    """Pods that are being deleted or live in another namespace are no siblings."""
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
    """The labels a pod has of matchLabelKeys narrow the selector; keys it lacks do not."""
    written = constraint(ZONE, matchLabelKeys=["version", "missing"])
    pod = make_pod(labels={"app": "foo", "version": "2"}, topology_spread_constraints=[written])
    plugin = make_plugin(MatchLabelKeysInPodTopologySpread=gate)
    answers = filtered(pod, make_cluster(1, 0, zones="ab"), plugin)
    assert expected == "".join(name[1:] for name, reason in answers.items() if not reason)


def test_invalid_selectors_are_errors() -> None:
    """A selector that upstream refuses ends the cycle with upstream's words."""
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
    """Fewer matching pods in the domain score higher; maxSkew waters differences down."""
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=constraints)
    scores = scored(pod, make_cluster(*counts, zones="aabb"[: len(counts)]))
    assert scores is not None
    assert expected == tuple(scores.values())


def test_score_ignores_nodes_without_a_label() -> None:
    """A node that lacks the label of an own constraint gets 0 and takes no part."""
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
    """What was derived from services is derived anew once one came or went."""
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
    """Defaults from a list may be hard; the owner's selector stands in for their own."""
    args = {"defaultingType": "List", "defaultConstraints": [constraint(ZONE, selector=None)]}
    cluster = make_cluster(1, 0, zones="ab")
    store: Any = cluster.objects
    metadata = {"name": "rs", "namespace": "default"}
    store.put(msgspec.convert({"metadata": metadata, "spec": {"selector": FOO}}, ReplicaSet))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}
    pod = make_pod(labels={"app": "foo"}, metadata={"ownerReferences": [owner]})
    plugin = make_plugin(args)
    assert {"n0": REASON, "n1": ""} == filtered(pod, cluster, plugin)
    (pods, _nodes) = plugin.events_to_register()
    assert pods.hint is not None
    assert pods.hint(pod, None, make_pod("q", labels={"app": "foo"}, node_name="n1"))
    assert not pods.hint(pod, None, make_pod("q", labels={"app": "bar"}, node_name="n1"))


def test_system_defaults_keep_nodes_without_zone() -> None:
    """With system defaults a node without zone is scored by its host name alone."""
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


# A twin that asks every node about every pod, written from the specification.


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions", []):
        has = one["key"] in labels
        listed = has and labels[one["key"]] in one.get("values", [])
        holds = {"In": listed, "NotIn": not listed, "Exists": has, "DoesNotExist": not has}
        if not holds[one["operator"]]:
            return False
    return True


def included(written: Json, pod: Pod, node: Node) -> bool:
    wanted = pod.spec.node_selector or {}
    labels = node.metadata.labels
    if written.get("nodeAffinityPolicy", "Honor") == "Honor" and any(
        labels.get(key) != value for key, value in wanted.items()
    ):
        return False
    return not (
        written.get("nodeTaintsPolicy", "Ignore") == "Honor"
        and node.spec.taints
        and not pod.spec.tolerations
    )


def matching_pods(written: Json, pod: Pod, node: Node, pods: list[Pod]) -> int:
    if written.get("labelSelector") == {}:
        return 0
    return sum(
        other.spec.node_name == node.metadata.name
        and other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and selects(written.get("labelSelector"), other.metadata.labels)
        for other in pods
    )


def twin_counts(
    constraints: list[Json], pod: Pod, nodes: list[Node], pods: list[Pod]
) -> list[dict[str, int]]:
    counts: list[dict[str, int]] = [{} for _ in constraints]
    for node in nodes:
        labels = node.metadata.labels
        if not all(written["topologyKey"] in labels for written in constraints):
            continue
        for written, count in zip(constraints, counts, strict=True):
            if included(written, pod, node):
                value = labels[written["topologyKey"]]
                count[value] = count.get(value, 0) + matching_pods(written, pod, node, pods)
    return counts


def twin_filter(constraints: list[Json], counts: list[dict[str, int]], pod: Pod, node: Node) -> str:
    for written, count in zip(constraints, counts, strict=True):
        value = node.metadata.labels.get(written["topologyKey"])
        if value is None:
            return LACKS_LABEL
        least = min(count.values(), default=2**31 - 1)
        if len(count) < written.get("minDomains", 1):
            least = 0
        own = int(selects(written.get("labelSelector"), pod.metadata.labels))
        if count.get(value, 0) + own - least > written["maxSkew"]:
            return REASON
    return ""


def twin_scores(
    constraints: list[Json], pod: Pod, nodes: list[Node], pods: list[Pod], feasible: list[str]
) -> dict[str, int]:
    keys = [written["topologyKey"] for written in constraints]
    having = {n.metadata.name for n in nodes if all(key in n.metadata.labels for key in keys)}
    candidates = [n for n in nodes if n.metadata.name in feasible and n.metadata.name in having]
    raw: dict[str, int] = {}
    domains: list[dict[str, int]] = []
    for key in keys:
        domains.append({n.metadata.labels[key]: 0 for n in candidates} if key != HOSTNAME else {})
    for node in nodes:
        for written, key, domain in zip(constraints, keys, domains, strict=True):
            value = node.metadata.labels.get(key)
            if node.metadata.name in having and value in domain and included(written, pod, node):
                domain[value] += matching_pods(written, pod, node, pods)
    for node in candidates:
        score = 0.0
        for written, key, domain in zip(constraints, keys, domains, strict=True):
            if key == HOSTNAME:
                count, size = matching_pods(written, pod, node, pods), len(candidates)
            else:
                count, size = domain[node.metadata.labels[key]], len(domain)
            score += count * math.log(size + 2) + (written["maxSkew"] - 1)
        raw[node.metadata.name] = math.floor(score) + (score - math.floor(score) >= 0.5)
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    scores = dict.fromkeys(feasible, 0)
    for name, value in raw.items():
        scores[name] = 100 if most == 0 else 100 * (most + least - value) // most
    return scores


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
optional: Json = {
    "minDomains": st.integers(1, 4),
    "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
    "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
}
pod_labels = st.fixed_dictionaries(
    {"app": st.sampled_from(["foo", "bar"])}, optional={"tier": st.sampled_from(["x", "y"])}
)


@st.composite
def constraint_lists(draw: st.DrawFn, action: str) -> list[Json]:
    """One to three constraints on distinct keys."""
    keys = draw(st.lists(st.sampled_from([ZONE, HOSTNAME, "rack"]), min_size=1, unique=True))
    return [
        constraint(key, draw(st.integers(1, 3)), draw(selectors), whenUnsatisfiable=action)
        | draw(st.fixed_dictionaries({}, optional=optional))
        for key in keys
    ]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """A few nodes of which some lack labels, and pods on them."""
    nodes = []
    for at in range(draw(st.integers(1, 6))):
        labels = {
            HOSTNAME: draw(st.sampled_from([f"h{at}", "shared"])),
            ZONE: draw(st.sampled_from(["a", "a", "b", "c", "", None])),
            "rack": draw(st.sampled_from(["r1", "r2", None])),
            "pool": draw(st.sampled_from(["x", "x", None])),
        }
        present = {key: value for key, value in labels.items() if value is not None}
        taints = draw(st.sampled_from([[], [], [TAINT]]))
        nodes.append(make_node(f"n{at}", labels=present, taints=taints))
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods = [
        make_pod(
            f"p{at}",
            namespace=draw(st.sampled_from(["default", "default", "default", "other"])),
            labels=draw(pod_labels),
            node_name=draw(st.sampled_from([node.metadata.name for node in nodes])),
            metadata=draw(st.sampled_from([{}, {}, gone])),
        )
        for at in range(draw(st.integers(0, 14)))
    ]
    return nodes, pods


@st.composite
def incoming(draw: st.DrawFn, action: str) -> tuple[list[Json], Pod]:
    """Constraints and a pod that has them."""
    constraints = draw(constraint_lists(action))
    tolerations = draw(st.sampled_from([[], [{"operator": "Exists"}]]))
    pod = make_pod(
        "incoming",
        labels=draw(pod_labels),
        node_selector=draw(st.sampled_from([None, None, {"pool": "x"}])),
        tolerations=tolerations,
        topology_spread_constraints=constraints,
    )
    return constraints, pod


@settings(max_examples=300, deadline=None)
@given(clusters(), incoming("DoNotSchedule"))
def test_filter_equals_twin(
    cluster: tuple[list[Node], list[Pod]], asked: tuple[list[Json], Pod]
) -> None:
    """All rows at once answer as each node asked by itself."""
    (nodes, pods), (constraints, pod) = cluster, asked
    counts = twin_counts(constraints, pod, nodes, pods)
    expected = {n.metadata.name: twin_filter(constraints, counts, pod, n) for n in nodes}
    assert expected == filtered(pod, make_snapshot(nodes, pods))


@settings(max_examples=300, deadline=None)
@given(clusters(), incoming("ScheduleAnyway"), st.data())
def test_score_equals_twin(
    cluster: tuple[list[Node], list[Pod]], asked: tuple[list[Json], Pod], data: st.DataObject
) -> None:
    """All rows at once score as each node asked by itself."""
    (nodes, pods), (constraints, pod) = cluster, asked
    names = [node.metadata.name for node in nodes]
    feasible = sorted(data.draw(st.sets(st.sampled_from(names), min_size=1)))
    expected = twin_scores(constraints, pod, nodes, pods, feasible)
    assert expected == scored(pod, make_snapshot(nodes, pods), feasible)


@settings(max_examples=300, deadline=None)
@given(clusters(), incoming("DoNotSchedule"), st.data())
def test_what_if_equals_counting_anew(
    cluster: tuple[list[Node], list[Pod]], asked: tuple[list[Json], Pod], data: st.DataObject
) -> None:
    """Moving pods of one node in a cloned state gives the answers of the cluster so changed."""
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


# Hints.

HARD = [constraint("zone")]
TWO_KEYS = [constraint("zone"), constraint("node")]


@pytest.mark.parametrize(
    ("constraints", "old", "new", "expected"),
    [
        pytest.param(HARD, {"zone": "a"}, {"zone": "b"}, True, id="value-changed"),
        pytest.param(HARD, {"x": "a"}, {"x": "b"}, False, id="other-label-of-a-stranger"),
        pytest.param(HARD, {"zone": "a"}, {"zone": "a", "x": "y"}, False, id="label-added"),
        pytest.param(HARD, None, {"x": "y"}, False, id="added-without-key"),
        pytest.param(HARD, None, {"zone": "a"}, True, id="added-with-key"),
        pytest.param(HARD, {"x": "y"}, None, False, id="deleted-without-key"),
        pytest.param(HARD, {"zone": "a"}, None, True, id="deleted-with-key"),
        pytest.param(HARD, {"zone": "a"}, {}, True, id="key-removed"),
        pytest.param(TWO_KEYS, None, {"zone": "a"}, False, id="added-with-one-of-two"),
        pytest.param(TWO_KEYS, None, {"zone": "a", "node": "n"}, True, id="added-with-both"),
        pytest.param(TWO_KEYS, {"node": "1"}, {"node": "2"}, False, id="changed-one-of-two"),
        pytest.param(
            TWO_KEYS,
            {"zone": "a", "node": "1"},
            {"zone": "a", "node": "2"},
            True,
            id="changed-with-both",
        ),
    ],
)
def test_hint_on_nodes(
    constraints: list[Json],
    old: dict[str, str] | None,
    new: dict[str, str] | None,
    expected: bool,
) -> None:
    """A node matters if it has all keys, or had."""
    _, nodes = make_plugin().events_to_register()
    assert nodes.hint is not None
    pod = make_pod(topology_spread_constraints=constraints)
    before = None if old is None else make_node(labels=old)
    after = None if new is None else make_node(labels=new)
    assert expected == nodes.hint(pod, before, after)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [pytest.param({"zone": "a"}, True, id="in"), pytest.param({}, False, id="out")],
)
def test_hint_on_taints(labels: dict[str, str], expected: bool) -> None:
    """Other taints matter on a node that has all keys."""
    _, nodes = make_plugin().events_to_register()
    assert nodes.hint is not None
    pod = make_pod(topology_spread_constraints=HARD)
    old, new = make_node(labels=labels), make_node(labels=labels, taints=[TAINT])
    assert expected == nodes.hint(pod, old, new)


def placed(labels: dict[str, str], **fields: Any) -> Pod:
    """A bound pod."""
    return make_pod("other", labels=labels, node_name="n", **fields)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, placed({"app": "foo"}), True, id="sibling-added"),
        pytest.param(None, placed({"app": "bar"}), False, id="stranger-added"),
        pytest.param(None, make_pod("q", labels={"app": "foo"}), False, id="unplaced-added"),
        pytest.param(None, placed({"app": "foo"}, namespace="other"), False, id="foreigner-added"),
        pytest.param(placed({"app": "foo"}), None, True, id="sibling-deleted"),
        pytest.param(placed({"app": "bar"}), None, False, id="stranger-deleted"),
        pytest.param(make_pod("q", labels={"app": "foo"}), None, False, id="unplaced-deleted"),
        pytest.param(
            make_pod("q", labels={"app": "foo"}, nominated_node_name="n"),
            None,
            True,
            id="nominated-deleted",
        ),
        pytest.param(placed({"app": "foo"}), placed({"app": "bar"}), True, id="becomes-stranger"),
        pytest.param(placed({"app": "bar"}), placed({"app": "foo"}), True, id="becomes-sibling"),
        pytest.param(
            placed({"app": "foo"}), placed({"app": "foo", "x": "y"}), False, id="label-added"
        ),
        pytest.param(placed({"app": "foo"}), placed({"app": "foo"}), False, id="nothing-changed"),
    ],
)
def test_hint_on_pods(old: Pod | None, new: Pod | None, expected: bool) -> None:
    """A pod matters if it is a sibling, or begins or ceases to be one."""
    pods, _ = make_plugin().events_to_register()
    assert pods.hint is not None
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=HARD)
    assert expected == pods.hint(pod, old, new)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [pytest.param("Honor", True, id="honor"), pytest.param("Ignore", False, id="ignore")],
)
def test_hint_on_own_tolerations(policy: str, expected: bool) -> None:
    """New tolerations of the pod itself matter where taints are honoured."""
    pods, _ = make_plugin().events_to_register()
    assert pods.hint is not None
    constraints = [constraint("zone", nodeTaintsPolicy=policy)]
    old = make_pod(topology_spread_constraints=constraints)
    new = make_pod(topology_spread_constraints=constraints, tolerations=[{"operator": "Exists"}])
    assert expected == pods.hint(old, old, new)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param({"defaultingType": ""}, [], id="type-is-completed"),
        pytest.param(
            {"defaultingType": "Own"},
            ['args.defaultingType: Unsupported value: "Own": supported values: "System", "List"'],
            id="unknown-type",
        ),
        pytest.param(
            {"defaultConstraints": [constraint(ZONE, selector=None)]},
            [
                'args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'
            ],
            id="system-with-list",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": ""},
                    constraint(ZONE, whenUnsatisfiable="Never"),
                    constraint(ZONE, selector=None, whenUnsatisfiable="Never"),
                ],
            },
            [
                "args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "args.defaultConstraints[0].topologyKey: Required value: can not be empty",
                "args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
                'args.defaultConstraints[1].whenUnsatisfiable: Unsupported value: "Never": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
                "args.defaultConstraints[1].labelSelector: Forbidden: "
                "constraint must not define a selector, as they deduced for each pod",
                'args.defaultConstraints[2].whenUnsatisfiable: Unsupported value: "Never": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
                f'args.defaultConstraints[2]: Duplicate value: "{{{ZONE}, Never}}"',
            ],
            id="everything-wrong",
        ),
    ],
)
def test_args(args: Json, expected: list[str]) -> None:
    """All faults are reported at once, in upstream's words."""
    try:
        make_plugin(args)
        faults: list[str] = []
    except ConfigError as error:
        faults = [str(fault) for fault in error.faults]
    assert expected == faults


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
