"""Each plugin's answer if a profile runs its filter or score without PreFilter or PreScore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kubesched.api.meta import KubeObject
from kubesched.config.args import exhaustive
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import NoState
from kubesched.framework.status import SKIP, SUCCESS, failure
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.dynamic_resources import DynamicResourcesArgs
from kubesched.plugins.node_declared_features import NodeDeclaredFeatures
from kubesched.plugins.registry import in_tree_registry, in_tree_setup
from kubesched.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from kubesched.scheduler.decision import Decision, Failed, Placed, Rejected
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import all_rows, make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.dynamic_resources.cluster import GPU, gpu_class
from tests.plugins.volume_objects import ZONE, claim_volumes, make_claim, make_csi_node, make_volume
from tests.scheduler.toys import failed, placed, rejected, rejected_nodes

GATES = FeatureGates({})
STORAGE_SCORING = FeatureGates({"StorageCapacityScoring": True})
REGISTRY = in_tree_registry()
NOT_FOUND = failure("not found")
NODES = [make_node(f"n{i}", labels={ZONE: f"z{i % 2}", "disk": "ssd"}) for i in range(3)]
DISK = [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]
TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _set(*names: str) -> dict[str, list[dict[str, str]]]:
    return {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}


def _cluster(
    plugins: Mapping[str, object],
    objects: Sequence[KubeObject],
    gates: FeatureGates,
    *,
    remembers: bool,
) -> ClusterState:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    configuration = exhaustive(load_configuration(raw, gates))
    cluster = ClusterState(in_tree_setup(gates, configuration), remembers=remembers)
    cluster.load([*NODES, *objects])
    return cluster


def _decide(
    plugins: Mapping[str, object],
    pod: Mapping[str, Any] | None = None,
    objects: Sequence[KubeObject] = (),
    gates: FeatureGates = GATES,
) -> tuple[Decision, Trace]:
    """Decide with a trace; cached answers must give the same decision."""
    info, trace = PodInfo(make_pod("pod", **(pod or {}))), Trace()
    decision = _cluster(plugins, objects, gates, remembers=False).schedule_one(info, trace)
    cluster = _cluster(plugins, objects, gates, remembers=True)
    for _ in range(2):
        assert _told(decision) == _told(cluster.schedule_one(info))
    return decision, trace


def _told(decision: Decision) -> object:
    if isinstance(decision, Rejected):
        return rejected_nodes(decision.diagnosis), decision.message
    return decision.feasible if isinstance(decision, Placed) else decision.message


def _without_pre_filter(plugin: str, *before: str) -> dict[str, object]:
    return {"preFilter": {"disabled": [{"name": plugin}]}, "filter": _set(*before, plugin)}


def _without_pre_score(plugin: str) -> dict[str, object]:
    return {"preScore": {"disabled": [{"name": plugin}]}, "score": _set(plugin)}


def _no(key: str, *, words: str = "reading") -> str:
    return f'{words} "{key}" from cycleState: not found'


# Filter.

FAILING = {
    "NodePorts": _no("PreFilterNodePorts"),
    "NodeResourcesFit": _no("PreFilterNodeResourcesFit", words="error reading"),
    "VolumeRestrictions": 'cannot read "PreFilterVolumeRestrictions" from cycleState',
    "VolumeBinding": "not found",
    "PodTopologySpread": _no("PreFilterPodTopologySpread"),
    "InterPodAffinity": _no("PreFilterInterPodAffinity", words="error reading"),
    "DynamicResources": "not found",
    "NodeDeclaredFeatures": (
        'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    ),
}


@pytest.mark.parametrize("plugin", FAILING)
def test_filters_that_fail(plugin: str) -> None:
    """Most filters fail on every node, even for a pod without requirements."""
    decision, _ = _decide(_without_pre_filter(plugin))
    assert f'running "{plugin}" filter plugin: {FAILING[plugin]}' == failed(decision).message


@pytest.mark.parametrize("plugin", FAILING)
def test_filters_after_a_rejection(plugin: str) -> None:
    """Nodes that earlier filters reject keep their answers."""
    plugins = _without_pre_filter(plugin, "NodeAffinity")
    decision, _ = _decide(plugins, {"node_selector": {"disk": "tape"}})
    assert {"NodeAffinity"} == rejected(decision).diagnosis.unschedulable_plugins


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeVolumeLimits", "VolumeZone"])
def test_filters_that_do_without(plugin: str) -> None:
    """Some filters build their state themselves; a pod without requirements passes."""
    decision, _ = _decide(_without_pre_filter(plugin))
    assert 3 == placed(decision).feasible


def test_node_affinity_filters_without_pre_filter() -> None:
    """Filter reads the pod's selector; its node names do not restrict the search."""
    plugins = _without_pre_filter("NodeAffinity")
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}
    decision, trace = _decide(plugins, {"node_affinity": affinity})
    assert isinstance(decision, Placed)
    assert ("n1", None, 3) == (decision.node_name, trace.restricted_to, decision.evaluated)


def test_volume_zone_filters_without_pre_filter() -> None:
    """Zones are compared as usual; a rejection by PreFilter rejects every node."""
    plugins = _without_pre_filter("VolumeZone")
    pod = {"volumes": claim_volumes("c")}
    objects: list[KubeObject] = [
        make_claim("c", volume="v"),
        make_volume("v", labels={ZONE: "z1"}),
    ]
    decision, _ = _decide(plugins, pod, objects)
    assert isinstance(decision, Placed)
    assert ("n1", 1) == (decision.node_name, decision.feasible)
    decision, trace = _decide({**plugins, "preFilter": _set()}, pod)
    assert '3 persistentvolumeclaim "c" not found.' in rejected(decision).message
    assert SUCCESS == trace.pre_filter_status


def test_volume_limits_filter_without_pre_filter() -> None:
    """Volumes are counted as usual."""
    plugins, driver = _without_pre_filter("NodeVolumeLimits"), "csi.example.com"
    csi = {"driver": driver, "volumeHandle": "h"}
    objects: list[KubeObject] = [
        make_claim("c", volume="v"),
        make_volume("v", csi=csi),
        make_csi_node("n0", {driver: 0}),
        make_csi_node("n1", {driver: 1}),
    ]
    decision, _ = _decide(plugins, {"volumes": claim_volumes("c")}, objects)
    assert 2 == placed(decision).feasible


def test_volume_restrictions_look_at_disks_first() -> None:
    """A disk in use rejects its node; the other nodes fail without a state."""
    plugins = _without_pre_filter("VolumeRestrictions")
    holders = [make_pod(f"p{i}", node_name=f"n{i}", volumes=DISK) for i in range(3)]
    decision, _ = _decide(plugins, {"volumes": DISK}, holders[:2])
    assert failed(decision).message.endswith(FAILING["VolumeRestrictions"])
    decision, _ = _decide(plugins, {"volumes": DISK}, holders)
    assert "3 node(s) had no available disk" in rejected(decision).message


def test_a_plugin_that_is_off_passes() -> None:
    """A plugin whose feature is off passes."""
    pod, snapshot = make_pod_info(), make_snapshot(NODES)
    features = NodeDeclaredFeatures(None, FakeHandle({"NodeDeclaredFeatures": False}))
    assert frozenset() == features.filter_state(CycleState(), pod, snapshot)
    assert features.filter(frozenset(), pod, snapshot.nodes).passed.all()


# Score.

FAILING_TO_SCORE = {
    "TaintToleration": _no("PreScoreTaintToleration", words="failed to read"),
    "PodTopologySpread": _no("PreScorePodTopologySpread", words="error reading"),
    "InterPodAffinity": _no("PreScoreInterPodAffinity", words="failed to read"),
}


@pytest.mark.parametrize("plugin", FAILING_TO_SCORE)
def test_scores_that_fail(plugin: str) -> None:
    """Some score plugins fail for any pod that fits more than one node."""
    decision, _ = _decide(_without_pre_score(plugin))
    assert isinstance(decision, Failed)
    words = f'running Score plugins: plugin "{plugin}" failed with: {FAILING_TO_SCORE[plugin]}'
    assert words == decision.message
    # A single feasible node is not scored.
    decision, _ = _decide(_without_pre_score(plugin), {"node_selector": {ZONE: "z1"}})
    assert isinstance(decision, Placed)


def _prefers_ssd() -> dict[str, object]:
    return {"node_affinity": {PREFERRED: [{"weight": 5, "preference": TERM}]}}


@pytest.mark.parametrize(
    ("plugin", "pod", "scores"),
    [
        pytest.param("NodeAffinity", {}, [0, 0, 0], id="no preference"),
        pytest.param("NodeAffinity", _prefers_ssd(), [100, 100, 100], id="preference"),
        pytest.param("NodeResourcesBalancedAllocation", {}, [0, 0, 0], id="best effort"),
        pytest.param("VolumeBinding", {}, [0, 0, 0], id="storage is not scored"),
        pytest.param("DynamicResources", {}, [0, 0, 0], id="never prepared"),
    ],
)
def test_scores_that_do_without(plugin: str, pod: Mapping[str, Any], scores: list[int]) -> None:
    """Some score plugins build their state themselves, and score instead of skipping."""
    decision, trace = _decide(_without_pre_score(plugin), pod)
    assert isinstance(decision, Placed)
    assert {plugin: scores} == {one.plugin: one.normalized.tolist() for one in trace.scores}


@pytest.mark.parametrize(
    ("plugin", "pod"),
    [
        ("NodeResourcesFit", {}),
        ("NodeResourcesFit", {"requests": {"cpu": "1"}}),
        ("NodeResourcesBalancedAllocation", {"requests": {"cpu": "1", "memory": "1Gi"}}),
        ("NodeAffinity", _prefers_ssd()),
    ],
)
def test_scores_as_with_pre_score(plugin: str, pod: Mapping[str, Any]) -> None:
    """The scores equal those with PreScore."""
    _, expected = _decide({"score": _set(plugin)}, pod)
    _, trace = _decide(_without_pre_score(plugin), pod)
    assert expected.scores[0].raw.tolist() == trace.scores[0].raw.tolist()


def test_preferences_that_cannot_be_read() -> None:
    """An error of PreScore becomes an error of Score."""
    bad = {"matchExpressions": [{"key": "disk", "operator": "Near", "values": ["ssd"]}]}
    pod = {"node_affinity": {PREFERRED: [{"weight": 5, "preference": bad}]}}
    decision, _ = _decide(_without_pre_score("NodeAffinity"), pod)
    assert isinstance(decision, Failed)
    words = 'running Score plugins: plugin "NodeAffinity" failed with: '
    assert decision.message.startswith(words)
    decision, _ = _decide({"score": _set("NodeAffinity")}, pod)
    assert failed(decision).message.startswith('running PreScore plugin "NodeAffinity": ')


@pytest.mark.parametrize(
    ("plugin", "gates", "words"),
    [
        (
            "DynamicResources",
            GATES,
            'running Score plugins: plugin "DynamicResources" failed with: not found',
        ),
        ("DynamicResources", FeatureGates({"DRAPrioritizedList": False}), ""),
        ("VolumeBinding", STORAGE_SCORING, 'running PreScore plugin "VolumeBinding": not found'),
        ("VolumeBinding", GATES, ""),
    ],
)
def test_scores_that_need_what_filtering_knows(
    plugin: str, gates: FeatureGates, words: str
) -> None:
    """If scoring needs the state of PreFilter, a missing state is a failure."""
    plugins = {
        "preFilter": {"disabled": [{"name": plugin}]},
        "filter": {"disabled": [{"name": plugin}]},
        "score": _set(plugin),
    }
    decision, _ = _decide(plugins, gates=gates)
    assert words == (decision.message if isinstance(decision, Failed) else "")


def test_volume_binding_score_state() -> None:
    """If storage is scored, PreFilter must have run, even if it skipped."""
    plugin = VolumeBinding(VolumeBindingArgs(), FakeHandle(STORAGE_SCORING))
    snapshot, pod, cycle = make_snapshot(NODES), make_pod_info(), CycleState()
    rows = all_rows(snapshot)
    assert NoState(NOT_FOUND) == plugin.score_state(cycle, pod, snapshot, rows)
    cycle.filter_states[plugin.name] = plugin.pre_filter(cycle, pod, snapshot).state
    assert plugin.score_state(cycle, pod, snapshot, rows) is None


# Afterwards.


@pytest.mark.parametrize(
    "plugin",
    [
        VolumeBinding(VolumeBindingArgs(), FakeHandle()),
        DynamicResources(DynamicResourcesArgs(), FakeHandle()),
    ],
    ids=lambda plugin: plugin.name,
)
def test_nothing_to_bind_by(plugin: VolumeBinding | DynamicResources) -> None:
    """Without PreFilter, nothing can be reserved or bound; after a Skip, it can."""
    snapshot, pod, cycle = make_snapshot(NODES), make_pod_info(), CycleState()
    for state in (None, plugin.filter_state(cycle, pod, snapshot)):
        if state is not None:
            cycle.filter_states[plugin.name] = state
        assert NOT_FOUND == plugin.reserve(cycle, pod, "n0")
        assert NOT_FOUND == plugin.pre_bind_pre_flight(cycle, pod, "n0")
        with pytest.raises(StopIteration) as ended:
            plugin.pre_bind(cycle, pod, "n0").send(None)
        assert NOT_FOUND == ended.value.value
        plugin.unreserve(cycle, pod, "n0")
    cycle.filter_states[plugin.name] = plugin.pre_filter(cycle, pod, snapshot).state
    assert SUCCESS == plugin.reserve(cycle, pod, "n0")
    assert SKIP == plugin.pre_bind_pre_flight(cycle, pod, "n0")


def test_extended_resources_need_a_state_too() -> None:
    """DynamicResources fails for all pods, including those whose resources devices back."""
    decision, _ = _decide(
        _without_pre_filter("DynamicResources"),
        {"requests": {GPU: 1}, "limits": {GPU: 1}},
        [gpu_class()],
    )
    assert failed(decision).message.endswith("not found")
