"""Merging and expanding plugin sets, against tables and against slow twins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.field_errors import ConfigError
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.plugin_sets import (
    EXPANSION_ORDER,
    IN_TREE_PLUGINS,
    ExtensionPoint,
    default_plugins,
    expand,
    merge_plugin_set,
    merge_plugins,
    score_weights,
)
from kubesched.config.types import PluginEntry, Plugins, PluginSet

_NAMES = ("A", "B", "C", "D", "E")
# Which of the plugins implement what; Sort and Bind make a profile complete.
_POINTS = {
    "A": {ExtensionPoint.FILTER, ExtensionPoint.SCORE},
    "B": {ExtensionPoint.FILTER},
    "C": {ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE},
    "D": {ExtensionPoint.FILTER, ExtensionPoint.SCORE, ExtensionPoint.PERMIT},
    "Sort": {ExtensionPoint.QUEUE_SORT},
    "Sort2": {ExtensionPoint.QUEUE_SORT},
    "Bind": {ExtensionPoint.BIND},
    "Generate": {ExtensionPoint.PLACEMENT_GENERATE},
    "Generate2": {ExtensionPoint.PLACEMENT_GENERATE},
}


def _set(enabled: str = "", disabled: str = "") -> PluginSet:
    """Plugins by name, `A:3` with a weight."""
    plugins = (entry.partition(":") for entry in enabled.split())
    return PluginSet(
        enabled=tuple(PluginEntry(name, int(weight or 0)) for name, _, weight in plugins),
        disabled=tuple(PluginEntry(name) for name in disabled.split()),
    )


_ONE_GENERATE = "at most one placement generate plugin is allowed for"
_PROFILE = 'profile with scheduler name "S"'


def _queue_sort_count(count: int) -> str:
    return f"p.queueSort: only one queue sort plugin required for {_PROFILE}, but got {count}"


def test_default_plugins() -> None:
    """The default list has upstream's order and weights."""
    expected = (
        "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration:3 NodeAffinity:2 "
        "NodePorts NodeResourcesFit:1 VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
        "PodTopologySpread:2 InterPodAffinity:2 DynamicResources:2 DefaultPreemption "
        "NodeResourcesBalancedAllocation:1 ImageLocality:1 DefaultBinder NodeDeclaredFeatures"
    )
    assert Plugins(multi_point=_set(expected)) == default_plugins(FeatureGates())


def test_gated_default_plugins() -> None:
    """Gates add plugins at the end; NodeDeclaredFeatures has one."""
    on = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
    gates = FeatureGates(dict.fromkeys(on, True) | {"NodeDeclaredFeatures": False})
    names = [plugin.name for plugin in default_plugins(gates).multi_point.enabled]
    expected = [
        "DefaultBinder",
        "GangScheduling",
        "TopologyPlacementGenerator",
        "PodGroupPodsCount",
    ]
    assert expected == names[-4:]
    assert len(IN_TREE_PLUGINS) == 23


@pytest.mark.parametrize(
    ("default", "custom", "expected"),
    [
        pytest.param(_set("A B:1"), _set(), _set("A B:1"), id="nothing"),
        pytest.param(_set("A B:1 C"), _set("B:5"), _set("A B:5 C"), id="in-place"),
        pytest.param(_set("A B"), _set("D A:2 C"), _set("A:2 B D C"), id="appended"),
        pytest.param(_set("A B C"), _set("", "B"), _set("A C", "B"), id="disabled"),
        pytest.param(_set("A B C"), _set("B", "B"), _set("A C B", "B"), id="moved-to-the-end"),
        pytest.param(_set("A B"), _set("C", "*"), _set("C", "*"), id="all-disabled"),
        pytest.param(_set("A B"), _set("B:1 B:2"), _set("A B:2 B:1"), id="twice-last-wins"),
        pytest.param(
            PluginSet(enabled=_set("A B").enabled, disabled=(PluginEntry("A"),)),
            _set("", "B"),
            _set("", "B A"),
            id="disabled-by-default",
        ),
    ],
)
def test_merge(default: PluginSet, custom: PluginSet, expected: PluginSet) -> None:
    """A user's set changes the defaults by upstream's rules."""
    assert expected == merge_plugin_set(default, custom)


def _merge_twin(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge step by step, by crossing out entries of a list."""
    disabled = [p.name for p in custom.disabled] + [p.name for p in default.disabled]
    left = list(custom.enabled)
    result: list[PluginEntry] = []
    if "*" not in disabled:
        for plugin in default.enabled:
            same = [p for p in custom.enabled if p.name == plugin.name]
            if plugin.name not in disabled:
                result.append(same[-1] if same else plugin)
                if same:
                    last = max(i for i, p in enumerate(left) if p.name == plugin.name)
                    del left[last]
    return PluginSet(tuple(result + left), tuple(PluginEntry(name) for name in disabled))


def _plugin_sets(
    *, twice: bool, names: tuple[str, ...] = _NAMES[:4]
) -> st.SearchStrategy[PluginSet]:
    entries = st.builds(PluginEntry, st.sampled_from(names), st.integers(-1, 3))
    disabled = st.builds(PluginEntry, st.sampled_from((*names, "*")))
    unique = None if twice else lambda plugin: plugin.name
    return st.builds(
        lambda enabled, gone: PluginSet(tuple(enabled), tuple(gone)),
        st.lists(entries, max_size=5, unique_by=unique),
        st.lists(disabled, max_size=2),
    )


@given(_plugin_sets(twice=False), _plugin_sets(twice=True))
def test_merge_equals_twin(default: PluginSet, custom: PluginSet) -> None:
    """Merging equals crossing out entries one by one."""
    assert _merge_twin(default, custom) == merge_plugin_set(default, custom)


@given(_plugin_sets(twice=False))
def test_merging_the_result_again_changes_nothing(custom: PluginSet) -> None:
    """Writing a defaulted configuration and reading it again changes nothing."""
    default = Plugins(multi_point=_set("A:3 B C:2 D"))
    once = merge_plugins(default, Plugins(multi_point=custom))
    assert once.multi_point.enabled == merge_plugins(default, once).multi_point.enabled


def _expand(plugins: Plugins) -> dict[ExtensionPoint, tuple[str, ...]]:
    return expand(plugins, _POINTS, scheduler_name="S")


@pytest.mark.parametrize(
    ("filter_set", "multi_point", "expected"),
    [
        pytest.param(_set(), "A B C D", ("A", "B", "D"), id="multi-point"),
        pytest.param(_set("D B"), "A B", ("B", "A", "D"), id="override-first-specific-last"),
        pytest.param(_set("B A"), "A B D", ("B", "A", "D"), id="overrides-in-specific-order"),
        pytest.param(_set("", "A"), "A B", ("B",), id="disabled-at-the-point"),
        pytest.param(_set("A", "A"), "A B", ("B", "A"), id="disabled-and-enabled"),
        pytest.param(_set("D", "*"), "A B", ("D",), id="all-disabled"),
    ],
)
def test_expand(filter_set: PluginSet, multi_point: str, expected: tuple[str, ...]) -> None:
    """MultiPoint is spread over the points plugins implement."""
    plugins = Plugins(filter=filter_set, multi_point=_set(f"Sort Bind {multi_point}"))
    assert expected == _expand(plugins)[ExtensionPoint.FILTER]


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            Plugins(filter=_set("X C A A"), multi_point=_set("Sort Bind")),
            [
                'p.filter.enabled[0]: FilterPlugin "X" does not exist',
                'p.filter.enabled[1]: plugin "C" does not extend FilterPlugin plugin',
                'p.filter.enabled[3]: plugin "A" already registered as "FilterPlugin"',
            ],
            id="explicit",
        ),
        pytest.param(
            Plugins(pre_filter=_set("", "*"), multi_point=_set("Sort Bind X A A")),
            [
                'p.multiPoint.enabled: FilterPlugin "X" does not exist',
                'p.multiPoint.enabled: plugin "A" already registered as "FilterPlugin"',
            ],
            id="multi-point",
        ),
        pytest.param(
            Plugins(),
            [_queue_sort_count(0), f"p.bind: at least one bind plugin is needed for {_PROFILE}"],
            id="nothing",
        ),
        pytest.param(
            Plugins(multi_point=_set("Sort Sort2 Bind Generate Generate2")),
            [_queue_sort_count(2), f"p.placementGenerate: {_ONE_GENERATE} {_PROFILE}"],
            id="too-many",
        ),
    ],
)
def test_expand_rejects(plugins: Plugins, expected: list[str]) -> None:
    """All field errors are reported, with upstream's messages."""
    with pytest.raises(ConfigError) as error:
        expand(plugins, _POINTS, scheduler_name="S", path="p")
    assert expected == [str(field_error) for field_error in error.value.errors]


def _expand_twin(plugins: Plugins, attribute: str, point: ExtensionPoint) -> list[str]:
    """Expansion of one point as three passes over explicit lists."""
    own: PluginSet = getattr(plugins, attribute)
    explicit = [plugin.name for plugin in own.enabled]
    gone = [plugin.name for plugin in own.disabled]
    overrides: list[str] = []
    others: list[str] = []
    for plugin in plugins.multi_point.enabled:
        if "*" in gone or point not in _POINTS[plugin.name] or plugin.name in gone:
            continue
        (overrides if plugin.name in explicit else others).append(plugin.name)
    first = [name for name in explicit if name in overrides]
    return first + others + [name for name in explicit if name not in overrides]


@given(
    _plugin_sets(twice=False, names=("A", "B", "D")),
    _plugin_sets(twice=False, names=("A", "C", "D")),
    st.permutations(["Sort", "Bind", "A", "B", "C", "D"]),
)
def test_expand_equals_twin(filters: PluginSet, scores: PluginSet, names: list[str]) -> None:
    """Expansion equals the three passes, at every point."""
    plugins = Plugins(filter=filters, score=scores, multi_point=_set(" ".join(names)))
    expanded = _expand(plugins)
    assert list(EXPANSION_ORDER) == list(expanded)
    for attribute, point in (("filter", ExtensionPoint.FILTER), ("score", ExtensionPoint.SCORE)):
        assert _expand_twin(plugins, attribute, point) == list(expanded[point])


def test_weights_of_the_point_win() -> None:
    """The point's own entry takes precedence over multiPoint's; without a weight it counts 1."""
    plugins = Plugins(score=_set("D C:7"), multi_point=_set("D:3 A:2 B:9 C:1"))
    assert score_weights(plugins, _POINTS) == {"D": 1, "C": 7, "A": 2}
    placement = ExtensionPoint.PLACEMENT_SCORE
    assert score_weights(plugins, _POINTS, placement) == {"C": 1}


@pytest.mark.parametrize(
    ("point", "what"),
    [
        (ExtensionPoint.SCORE, "score plugins"),
        (ExtensionPoint.PLACEMENT_SCORE, "placement score plugins"),
    ],
)
def test_weights_overflow(point: ExtensionPoint, what: str) -> None:
    """The highest possible total score must fit an int64."""
    plugins = Plugins(multi_point=PluginSet(enabled=(PluginEntry("C", 2**63 // 100),)))
    assert score_weights(plugins, _POINTS, point) == {"C": 2**63 // 100}
    heavy = Plugins(multi_point=PluginSet(enabled=(PluginEntry("C", 2**63 // 100 + 1),)))
    with pytest.raises(ConfigError, match=f"{what}: total score of Score plugins could overflow"):
        score_weights(heavy, _POINTS, point)


def test_interfaces() -> None:
    """Messages name a point's plugins by upstream's interface."""
    expected = ["PreEnqueuePlugin", "QueueSortPlugin", "PreFilterPlugin", "FilterPlugin"]
    assert expected == [point.interface for point in list(ExtensionPoint)[:4]]
