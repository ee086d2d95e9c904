"""Profiles: built from configuration and registry, with all field errors at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import (
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
    ProfileConfiguration,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.per_row import NodeRow, PerRowFilter, PerRowScore
from kubesched.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterResult,
    Scope,
    ScorePlugin,
)
from kubesched.framework.plugin_error import PluginError
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status, failure, unschedulable
from kubesched.framework.structured_log import V4
from kubesched.plugins.registry import in_tree_registry, in_tree_setup
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.profile_building import build_profiles
from kubesched.scheduler.sampling import NodeSampler
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot
from tests.scheduler.toys import (
    NODES,
    Bind,
    Sort,
    Toy,
    alike,
    cluster,
    cycle_of,
    failed,
    placed,
    profile_of,
    rejections,
    toy,
)

GATES = FeatureGates({})
NO = unschedulable("no")
ROW_0 = np.array([0], np.intp)


# Plugins of one's own.


class Quiet(PerRowFilter[None]):
    """Rejects nodes with the label noisy, node by node."""

    name: ClassVar = "Quiet"

    def filter_node(self, state: None, pod: PodInfo, node: NodeRow) -> Status:
        """Reject by label."""
        return unschedulable("too noisy") if node.labels.get("noisy") == "yes" else SUCCESS


class Fewest(PerRowScore[None]):
    """Prefers nodes with few pods, node by node."""

    name: ClassVar = "Fewest"

    def score_node(self, state: None, pod: PodInfo, node: NodeRow) -> int:
        """Return the number of pods; infeasible nodes are not scored."""
        assert node.labels.get("noisy") != "yes", "nobody asks about nodes that are rejected"
        return 100 - len(node.pods)


class FewestArgs(msgspec.Struct, frozen=True):
    """The score per pod."""

    per_pod: int = 1


class FewestFast(FilterPlugin[None], ScorePlugin[None]):
    """Both of these with columns, in one class, with arguments and a signature."""

    name: ClassVar = "FewestFast"
    scope: ClassVar = Scope.ROW

    def __init__(self, args: FewestArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.per_pod = args.per_pod

    @classmethod
    def decode_args(cls, raw: dict[str, object] | None, handle: Handle, path: str) -> FewestArgs:
        """Decode `perPod`."""
        per_pod = (raw or {}).get("perPod", 1)
        if not isinstance(per_pod, int):
            raise ConfigError(
                [FieldError(f"{path}.perPod", "must be a number"), FieldError(path, "is odd")]
            )
        return FewestArgs(per_pod)

    def sign(self, pod: PodInfo) -> tuple[()]:
        """Return a constant: nothing of the pod matters."""
        return ()

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows by the column of the label."""
        return NodeToStatus.rejecting(
            nodes.label("noisy").equals("yes"), unschedulable("too noisy")
        )

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return scores from the column of pod counts."""
        return 100 - self.per_pod * nodes.pod_counts


def _plugins(**points: Sequence[str]) -> Plugins:
    """Return plugins at these points, and the two that each profile needs."""
    points = {"queue_sort": ["Sort"], "bind": ["Bind"], **points}
    return Plugins(
        **{
            point: PluginSet(enabled=tuple(PluginEntry(name) for name in names))
            for point, names in points.items()
        }
    )


def _configured(text: dict[str, Any], *own: type[Plugin]) -> dict[str, Profile]:
    registry = Registry(*in_tree_registry().values(), *own)
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configuration = load_configuration({**head, **text}, GATES)
    return build_profiles(SchedulerSetup(configuration, registry, GATES), Random(0))


def _with(*names: str) -> dict[str, object]:
    return {"multiPoint": {"enabled": [{"name": name, "weight": 50} for name in names]}}


def _noisy_cluster() -> Snapshot:
    nodes = [make_node(name, labels={"noisy": "yes" if name == "a" else "no"}) for name in NODES]
    pods = [make_pod(f"on-{node}-{n}", node_name=node) for node, n in ("b0", "b1", "c0")]
    return make_snapshot(nodes, pods)


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize(
    "own",
    [
        pytest.param((Quiet, Fewest), id="one node at a time"),
        pytest.param((FewestFast,), id="with columns"),
    ],
)
def test_own_plugins_need_a_registry_entry_and_a_name(
    own: tuple[type[Plugin], ...], remembers: bool
) -> None:
    """The name is in the configuration; default plugins run beside them."""
    names = [plugin.name for plugin in own]
    profile = _configured({"profiles": [{"plugins": _with(*names)}]}, *own)["default-scheduler"]
    assert set(names) <= {plugin.name for plugin in profile.filter_plugins + profile.score_plugins}
    cycle = SchedulingCycle(profile, NodeSampler(), remembers=remembers)
    snapshot = _noisy_cluster()
    decision = placed(cycle.schedule_one(make_pod_info("pod"), snapshot))
    assert ("c", 2) == (decision.node_name, decision.feasible)
    for number in range(3):
        snapshot.nodes.add_pod(make_pod_info(f"more-{number}", node_name="c"), 2)
    assert "b" == placed(cycle.schedule_one(make_pod_info("pod"), snapshot)).node_name
    for row in (1, 2):
        name = snapshot.nodes.names[row]
        snapshot.nodes.update_node(make_node(name, labels={"noisy": "yes"}))
    decision_: Decision = cycle.schedule_one(make_pod_info("pod"), snapshot)
    expected = dict.fromkeys(NODES, (names[0], "too noisy"))
    assert expected == rejections(decision_)


def test_row_by_row_and_columnar_plugins_agree() -> None:
    """They return equal statuses."""
    table, pod = _noisy_cluster().nodes, make_pod_info("pod")
    slow = Quiet(None, profile_of()).filter(None, pod, table)
    fast = FewestFast(FewestArgs(), profile_of()).filter(None, pod, table)
    assert [slow[row] for row in range(3)] == [fast[row] for row in range(3)]


def test_the_plugins_class_decodes_its_arguments() -> None:
    """They come from `pluginConfig`."""
    config = [{"name": "FewestFast", "args": {"perPod": 7}}]
    profiles = _configured(
        {"profiles": [{"plugins": _with("FewestFast"), "pluginConfig": config}]}, FewestFast
    )
    plugin = profiles["default-scheduler"].plugins["FewestFast"]
    assert isinstance(plugin, FewestFast)
    assert 7 == plugin.per_pod


def test_each_profile_has_its_own_plugin_objects() -> None:
    """One per profile that names the plugin."""
    profiles = _configured(
        {"profiles": [{"schedulerName": "x", "plugins": _with("Quiet")}, {"schedulerName": "y"}]},
        Quiet,
    )
    assert {"x", "y"} == set(profiles)
    assert "Quiet" in profiles["x"].plugins
    assert "Quiet" not in profiles["y"].plugins
    assert profiles["x"].plugins["NodeName"] is not profiles["y"].plugins["NodeName"]


def test_a_plugin_is_built_with_arguments_and_handle() -> None:
    """The arguments are decoded by the plugin's class."""
    built: list[object] = []

    class Loud(Quiet):
        def __init__(self, args: object, handle: Handle) -> None:
            super().__init__(args, handle)
            built.append((args, handle))

    registry = Registry(Sort, Bind)
    registry.register("Quiet", Loud)
    args: dict[str, Any] = {"loud": True}
    configuration = ProfileConfiguration(
        scheduler_name="s",
        plugins=_plugins(multi_point=["Quiet"]),
        plugin_config=(PluginConfig("Quiet", args),),
    )
    profile = Profile(configuration, registry, GATES, random=Random(0))
    assert [(args, profile)] == built


# Places and weights.


def test_the_default_profile_has_upstreams_plugins() -> None:
    """They run in upstream's order."""
    profiles = build_profiles(in_tree_setup(GATES), Random(0))
    profile = profiles["default-scheduler"]
    assert [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ] == [plugin.name for plugin in profile.filter_plugins]
    assert ["DynamicResources", "DefaultPreemption"] == [
        plugin.name for plugin in profile.post_filter_plugins
    ]
    assert "PrioritySort" == profile.queue_sort_plugin.name
    assert (3, 2, 1) == tuple(
        profile.score_weights[name]
        for name in ("TaintToleration", "NodeAffinity", "NodeResourcesFit")
    )
    assert {plugin.name for plugin in profile.score_plugins} <= set(profile.score_weights)


@pytest.mark.parametrize(
    ("own", "expected"), [(None, 30), (0, 0), (70, 70)], ids=["global", "own zero", "own"]
)
def test_a_profiles_percentage_overrides_the_global_one(own: int | None, expected: int) -> None:
    """A percentage of 0 overrides it, too."""
    profile = Profile(
        ProfileConfiguration(
            scheduler_name="s", percentage_of_nodes_to_score=own, plugins=_plugins()
        ),
        Registry(Sort, Bind),
        GATES,
        random=Random(0),
        percentage_of_nodes_to_score=30,
    )
    assert expected == profile.percentage_of_nodes_to_score


# Field errors.


class Explodes(Toy):
    """Cannot be built."""

    name: ClassVar = "Explodes"

    def __init__(self, args: object, handle: Handle) -> None:
        raise RuntimeError("no fuel")


def _errors(plugins: Plugins, *registered: type[Plugin], **more: Any) -> list[str]:
    configuration = ProfileConfiguration(scheduler_name="s", plugins=plugins, **more)
    with pytest.raises(ConfigError) as raised:
        Profile(
            configuration,
            Registry(Sort, Bind, *registered),
            GATES,
            random=Random(0),
            path="profiles[3]",
        )
    return [str(field_error) for field_error in raised.value.errors]


def test_unknown_and_misplaced_plugins_are_field_errors() -> None:
    """All of them are reported, with their paths."""
    plugins = _plugins(filter=["Nobody", "Sort"], score=["Quiet"])
    assert [
        'profiles[3].plugins.filter.enabled[0]: FilterPlugin "Nobody" does not exist',
        'profiles[3].plugins.filter.enabled[1]: plugin "Sort" does not extend FilterPlugin plugin',
        'profiles[3].plugins.score.enabled[0]: plugin "Quiet" does not extend ScorePlugin plugin',
    ] == _errors(plugins, Quiet)


def test_a_profile_needs_queue_sort_and_bind() -> None:
    """Without them there are two field errors."""
    name = 'profile with scheduler name "s"'
    assert [
        f"profiles[3].plugins.queueSort: only one queue sort plugin required for {name}, but got 0",
        f"profiles[3].plugins.bind: at least one bind plugin is needed for {name}",
    ] == _errors(Plugins())


class _Forgetful(Toy, FilterPlugin[None]):
    """Does not call the `__init__` of its base class."""

    name: ClassVar = "Forgetful"

    def __init__(self, args: object, handle: Handle) -> None:
        pass


def test_a_plugin_has_its_handle_in_any_case() -> None:
    """Also if its own `__init__` has not called that of Plugin."""
    configuration = ProfileConfiguration(
        scheduler_name="s",
        plugins=_plugins(filter=["Forgetful"]),
    )
    profile = Profile(configuration, Registry(Sort, Bind, _Forgetful), GATES, random=Random(0))
    (plugin,) = profile.filter_plugins
    assert plugin.handle.feature_gates is GATES


def test_field_errors_of_construction_are_collected() -> None:
    """Wrong arguments of one plugin do not hide that another one cannot be built."""
    plugins = _plugins(filter=["Explodes", "FewestFast"])
    config = (PluginConfig("Other"), PluginConfig("FewestFast", {"perPod": "many"}))
    errors = _errors(plugins, Explodes, FewestFast, plugin_config=config)
    assert [
        'profiles[3].plugins: initializing plugin "Explodes": RuntimeError: no fuel',
        "profiles[3].pluginConfig[1].args.perPod: must be a number",
        "profiles[3].pluginConfig[1].args: is odd",
    ] == [text.partition(" (/")[0] for text in errors]
    assert re.search(r"/test_profile\.py:\d+, in Explodes.__init__\)$", errors[0])


@pytest.mark.parametrize(
    ("name", "args", "paths"),
    [
        ("InterPodAffinity", {"hardPodAffinityWeight": 1000}, ["hardPodAffinityWeight"]),
        ("InterPodAffinity", {"odd": 1}, ["odd"]),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, ["bindTimeoutSeconds"]),
        ("PodTopologySpread", {"defaultingType": "Odd"}, ["defaultingType"]),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            ["minCandidateNodesPercentage"],
        ),
        ("NodeResourcesFit", {"ignoredResources": 3}, ["ignoredResources"]),
        # Upstream validates these only when it builds the plugin.
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Odd"}}, []),
    ],
)
def test_arguments_of_unused_in_tree_plugins_are_checked(
    name: str, args: dict[str, Any], paths: list[str]
) -> None:
    """Upstream checks them, too."""
    profile = {
        "plugins": {"multiPoint": {"disabled": [{"name": name}]}},
        "pluginConfig": [{"name": name, "args": args}],
    }
    found: list[str] = []
    try:
        _configured({"profiles": [profile]})
    except ConfigError as error:
        found = [field_error.path for field_error in error.errors]
    assert [f"profiles[0].pluginConfig[0].args.{path}" for path in paths] == found


def test_arguments_of_unused_out_of_tree_plugins_are_not_checked() -> None:
    """Only the plugin could decode them."""
    config = [{"name": "FewestFast", "args": {"perPod": "many"}}]
    assert "default-scheduler" in _configured({"profiles": [{"pluginConfig": config}]}, FewestFast)


def test_field_errors_of_all_profiles() -> None:
    """Those of one profile do not hide those of another."""
    text = {
        "profiles": [
            {"schedulerName": "x", "plugins": {"filter": {"enabled": [{"name": "Nobody"}]}}},
            {"schedulerName": "y"},
            {"schedulerName": "z", "plugins": {"score": {"enabled": [{"name": "NoOne"}]}}},
        ]
    }
    with pytest.raises(ConfigError) as raised:
        _configured(text)
    assert [
        "profiles[0].plugins.filter.enabled[0]",
        "profiles[2].plugins.score.enabled[0]",
    ] == [field_error.path for field_error in raised.value.errors]


# What plugins may ask back.


class _Counted:
    """A state that has the pods it was called with."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names)

    def clone(self) -> _Counted:
        """Copy."""
        return _Counted(self.names)


class AtMostOne(PreFilterExtensions[_Counted], FilterPlugin[_Counted]):
    """Rejects nodes if its state or the node has a pod: both must be kept up to date."""

    name: ClassVar = "AtMostOne"
    points: ClassVar = ("pre_filter", "filter")
    weight: ClassVar = 0

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[_Counted]:
        """Return a state without pods."""
        return PreFilterResult(_Counted())

    def add_pod(self, state: _Counted, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Record the pod."""
        state.names.append(added.name)
        return SUCCESS

    def remove_pod(
        self, state: _Counted, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status:
        """Drop the pod."""
        state.names.remove(removed.name)
        return SUCCESS

    def filter(self, state: _Counted, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows with a pod, or all if the state has one."""
        return NodeToStatus.of(
            [
                unschedulable(f"{sorted(state.names)} {[p.name for p in pods.values()]}")
                if pods or state.names
                else SUCCESS
                for pods in nodes.pods
            ]
        )


def _after_pre_filter(plugin: type[Any], snapshot: Snapshot) -> tuple[Profile, CycleState, PodInfo]:
    """Return a profile and a cycle after PreFilter."""
    profile = profile_of(plugin)
    cycle, pod = CycleState(), make_pod_info("pod", priority=5)
    for asked in profile.pre_filter_plugins:
        cycle.filter_states[asked.name] = asked.pre_filter(cycle, pod, snapshot).state
    return profile, cycle, pod


def test_add_and_remove_pod() -> None:
    """Row and states change, and nothing else."""
    snapshot = make_snapshot([make_node("a")])
    profile, cycle, pod = _after_pre_filter(AtMostOne, snapshot)
    row, what_if = snapshot.nodes.take(ROW_0), cycle.clone()
    guest = make_pod_info("guest")
    assert SUCCESS == profile.add_pod(what_if, pod, guest, row)
    expected = Status(Code.UNSCHEDULABLE, ("['guest'] ['guest']",), "AtMostOne")
    assert expected == profile.filter_rows(what_if, pod, row)[0]
    assert SUCCESS == profile.filter_rows(cycle, pod, snapshot.nodes.take(ROW_0))[0]
    assert SUCCESS == profile.remove_pod(what_if, pod, guest, row)
    assert SUCCESS == profile.filter_rows(what_if, pod, row)[0]


def test_filter_with_nominated_pods() -> None:
    """They are added to the row and to copied states."""
    guest = make_pod("guest", nominated_node_name="a", priority=5)
    snapshot = make_snapshot([make_node("a"), make_node("b")], [guest])
    profile, cycle, pod = _after_pre_filter(AtMostOne, snapshot)
    rows = [snapshot.nodes.take(np.array([row])) for row in range(2)]
    answers = [profile.filter_with_nominated_pods(cycle, pod, snapshot, row) for row in rows]
    taken = Status(Code.UNSCHEDULABLE, ("['guest'] ['guest']",), "AtMostOne")
    assert [taken, SUCCESS] == answers
    assert [{}, {}] == [row.pods[0] for row in rows]
    assert SUCCESS == profile.filter_rows(cycle, pod, rows[0])[0]


def test_an_error_of_remove_pod() -> None:
    """Any code but success is an error in upstream's words."""
    plugin = toy("P", pre_filter=PreFilterResult(), remove_pod=NO, filter={})
    snapshot = make_snapshot([make_node("a")], [make_pod("guest", node_name="a")])
    profile, cycle, pod = _after_pre_filter(plugin, snapshot)
    row = snapshot.nodes.take(ROW_0)
    (guest,) = row.pods[0].values()
    error = 'running RemovePod on PreFilter plugin "P": no'
    assert Status(Code.ERROR, plugin="P", error=error) == profile.remove_pod(cycle, pod, guest, row)


def test_filter_rows_continues_after_a_failure() -> None:
    """The row has the failure; the others have their status."""
    plugin = toy("P", filter={"a": NO, "b": failure("broken")})
    snapshot = cluster()
    profile, cycle, pod = _after_pre_filter(plugin, snapshot)
    answers = profile.filter_rows(cycle, pod, snapshot.nodes.take(np.arange(3)))
    broken = Status(Code.ERROR, plugin="P", error='running "P" filter plugin: broken')
    assert [NO.by("P"), broken, SUCCESS] == [answers[row] for row in range(3)]


class OtherSort(Sort):
    """Another QueueSort plugin."""

    name: ClassVar = "OtherSort"


def _sorted_by(
    *sorts: tuple[str, str, dict[str, object] | None],
) -> list[dict[str, object]]:
    return [
        {
            "schedulerName": f"s{at}",
            "plugins": {
                point: {"enabled": [{"name": name}], "disabled": [{"name": "PrioritySort"}]}
            },
            "pluginConfig": [] if args is None else [{"name": name, "args": args}],
        }
        for at, (point, name, args) in enumerate(sorts)
    ]


@pytest.mark.parametrize(
    ("sorts", "expected"),
    [
        pytest.param(
            [("multiPoint", "Sort", None), ("multiPoint", "OtherSort", None)],
            'different queue sort plugins for profile "s1": "OtherSort", first: "Sort"',
            id="plugins by multiPoint",
        ),
        pytest.param(
            [("multiPoint", "Sort", {"a": 1}), ("multiPoint", "Sort", {"a": 2})],
            'different queue sort plugin args for profile "s1"',
            id="args by multiPoint",
        ),
        pytest.param(
            [("queueSort", "Sort", {"a": 1}), ("queueSort", "Sort", None)],
            'different queue sort plugin args for profile "s1"',
            id="args of one profile alone",
        ),
    ],
)
def test_all_profiles_need_the_same_queue_sort(
    sorts: list[tuple[str, str, dict[str, object] | None]], expected: str
) -> None:
    """There is one queue; as upstream, the plugin that actually runs counts."""
    with pytest.raises(ConfigError) as caught:
        _configured({"profiles": _sorted_by(*sorts)}, Sort, OtherSort)
    assert (FieldError("profiles[1]", expected),) == caught.value.errors
    _configured({"profiles": _sorted_by(sorts[0], sorts[0])}, Sort, OtherSort)


class _Gate(Toy, PreEnqueuePlugin):
    """Keeps pods out by their names."""

    name: ClassVar = "Gate"
    points: ClassVar = ("pre_enqueue",)

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Reject the pod `closed`, and fail for the pod `broken`."""
        assert pod.name != "broken"
        return NO if pod.name == "closed" else SUCCESS


class _WrongGate(_Gate):
    def still_gates(self, pods: Sequence[PodInfo], snapshot: Snapshot) -> Sequence[bool]:
        """Return too few."""
        return [False]


@pytest.mark.parametrize("gate", [_Gate, _WrongGate])
@pytest.mark.parametrize("names", ["closed open", "open broken closed"])
def test_a_gate_that_fails_for_one_pod_is_asked_about_each(gate: type[_Gate], names: str) -> None:
    """A failure keeps its pod out, and no other."""
    profile = profile_of(gate)
    (plugin,) = profile.pre_enqueue_plugins
    pods = [make_pod_info(name) for name in names.split()]
    expected = [name != "open" for name in names.split()]
    assert expected == profile.ask_still_gates(plugin, pods, make_snapshot())


def test_a_wrong_answer_is_a_failure_of_the_plugin(caplog: pytest.LogCaptureFixture) -> None:
    """It is reported like an exception; without the check, it would be an internal error."""
    cycle = cycle_of(toy("P", score={"a": 1}, normalize=lambda scores: scores[:1]))
    status = failed(cycle.schedule_one(make_pod_info("web"), cluster("a", "b")))
    words = "normalize_score must return an array of int64, one for each of 2 rows, not the shape"
    prefix = 'running Normalize on Score plugins: plugin "P" failed with'
    assert f"{prefix}: {words} (1,)" == status.error
    fields = vars(caplog.records[0])["fields"]
    pod = "plugin P answered wrongly in NormalizeScore for pod default/web"
    assert f"{pod}: {words} (1,)" == fields["err"]
    assert re.fullmatch(r".*/toys\.py:\d+, in Toy.normalize_score", fields["place"])


@pytest.mark.parametrize("calls", [1, 1000])
def test_a_branch_without_a_return(calls: int) -> None:
    """Late answers are checked as well as the first ones."""
    profile = profile_of(toy("P", score={"a": 1}))
    (plugin,) = profile.score_plugins
    answers: list[Any] = [*range(calls - 1), None]

    def score_row(call: int) -> int:
        answer: int = answers[call]
        return answer

    for call in range(calls - 1):
        profile.ask(plugin, score_row, call)
    with pytest.raises(PluginFailure, match="score_row must return a whole number, not None"):
        profile.ask(plugin, score_row, calls - 1)


def test_late_scores_for_another_number_of_nodes() -> None:
    """As of a plugin that keeps an array with a row per node, when a node comes."""
    profile = profile_of(toy("P", score={"a": 1}))
    (plugin,) = profile.score_plugins

    def score(nodes: range) -> NDArray[np.int64]:
        return np.zeros(2, np.int64)

    for _ in range(100):
        profile.ask(plugin, score, range(2))
    with pytest.raises(PluginFailure, match="one for each of 3 rows, not the shape"):
        profile.ask(plugin, score, range(3))


def test_late_states_without_a_clone() -> None:
    """As of a branch that is seldom taken."""
    profile = profile_of(AtMostOne)  # type: ignore[arg-type]
    plugin = profile.plugins["AtMostOne"]

    def pre_filter(state: object) -> PreFilterResult[object]:
        return PreFilterResult(state)

    for _ in range(100):
        profile.ask(plugin, pre_filter, _Counted())
    with pytest.raises(PluginFailure, match="must return a state with"):
        profile.ask(plugin, pre_filter, {})


class Binds(Bind):
    """Forgets to return a status."""

    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return nothing."""
        return None  # type: ignore[return-value]  # what is tested


def test_an_awaited_answer_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """PreBind and Bind answer later."""
    monkeypatch.setattr(Bind, "bind", Binds.bind)
    profile, pod = profile_of(), make_pod_info()
    (plugin,) = profile.bind_plugins
    asked = profile.ask_async("Bind", plugin, plugin.bind, CycleState(), pod, "a")
    with pytest.raises(PluginFailure, match="bind must return a Status such as SUCCESS, not None"):
        asyncio.run(asked)


def test_what_a_plugin_awaits_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is the plugin's error; only who cancels the binding itself ends it without a status."""

    async def bind(*_: object) -> Status:
        waiting: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(waiting.cancel)
        return await waiting

    monkeypatch.setattr(Bind, "bind", bind)
    profile, pod = profile_of(), make_pod_info()
    (plugin,) = profile.bind_plugins

    async def ask(*, cancels: bool) -> None:
        asked = profile.ask_async("Bind", plugin, plugin.bind, CycleState(), pod, "a")
        task = asyncio.ensure_future(asked)
        await asyncio.sleep(0)
        if cancels:
            task.cancel()
        await task

    with pytest.raises(PluginFailure, match="CancelledError"):
        asyncio.run(ask(cancels=False))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ask(cancels=True))


def test_a_queue_sort_plugin_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its key there is no order, so the error ends the command."""
    monkeypatch.setattr(Sort, "sort_key", lambda plugin, queued: None)
    queued = QueuedPodInfo(make_pod_info("web"))
    with pytest.raises(PluginError, match="plugin Sort answered wrongly in QueueSort for pod def"):
        profile_of().sort_key(queued)


def test_the_log_names_the_line_that_raised(caplog: pytest.LogCaptureFixture) -> None:
    """One line per attempt; high verbosity adds the whole traceback."""
    failing = toy("P", filter=ZeroDivisionError("x"), scope=Scope.NODE, sign=alike)
    cycle = cycle_of(failing)
    cycle.schedule_one(make_pod_info("web"), make_snapshot([make_node()]))
    (record,) = caplog.records
    fields = vars(record)["fields"]
    words = "plugin P raised in Filter for pod default/web: ZeroDivisionError: x"
    assert words == fields["err"]
    assert re.fullmatch(r".*/toys\.py:\d+, in .*", fields["place"])
    assert "Traceback" not in caplog.text
    caplog.clear()
    caplog.set_level(V4)
    cycle.schedule_one(make_pod_info("web"), make_snapshot([make_node()]))
    assert re.search(r'Traceback.*File ".*/toys\.py", line \d+', caplog.text, re.DOTALL)


def test_the_log_has_one_line_where_no_answer_matters(caplog: pytest.LogCaptureFixture) -> None:
    """Unreserve and PostBind of a user's plugin are reported like the other extension points."""
    profile = profile_of(toy("P", score={}))

    def unreserve() -> None:
        raise ZeroDivisionError("x")

    profile.notify(profile.plugins["P"], unreserve)
    (record,) = caplog.records
    assert "plugin P raised in Unreserve: ZeroDivisionError: x" == vars(record)["fields"]["err"]


def test_a_plugin_defined_in_a_notebook_is_out_of_tree(caplog: pytest.LogCaptureFixture) -> None:
    """There, and in a script, the module is called `__main__`."""
    namespace = {"__name__": "__main__", "PerRowFilter": PerRowFilter}
    source = """class Racks(PerRowFilter):
    name = "Racks"
    points = ("filter",)
    weight = 0
    def filter_node(self, state, pod, node):
        return node.labels["rack"]
"""
    exec(compile(source, "notebook", "exec"), namespace)  # noqa: S102 - as a notebook does
    cycle = cycle_of(namespace["Racks"])  # type: ignore[arg-type]  # nearly a toy
    cycle.schedule_one(make_pod_info("web"), make_snapshot([make_node()]))
    (record,) = caplog.records
    assert "notebook:6, in Racks.filter_node" == vars(record)["fields"]["place"]
