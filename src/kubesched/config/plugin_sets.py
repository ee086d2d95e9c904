"""Plugin sets: the defaults, merging with a user's sets, and expansion to extension points.

Upstream: pkg/scheduler/apis/config/v1/default_plugins.go,
          pkg/scheduler/framework/runtime/framework.go (v1.36)
Rejects:  plugins that do not exist, do not implement the extension point or are listed twice;
          profiles without exactly one queueSort plugin, without a bind plugin, or with two
          placementGenerate plugins.
Differs:  all errors are reported, with their field paths, not only the first.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

import msgspec

from kubesched.api.field_errors import ConfigError, FieldError, child
from kubesched.api.go_text import go_quote
from kubesched.api.integers import INT64_MAX
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import PluginEntry, Plugins, PluginSet

ALL = "*"
MAX_SCORE = 100


class ExtensionPoint(StrEnum):
    """The extension points, by their names in configuration files."""

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"
    MULTI_POINT = "multiPoint"

    @property
    def interface(self) -> str:
        """The name of upstream's interface, such as "FilterPlugin", for messages."""
        return f"{self.value[0].upper()}{self.value[1:]}Plugin"


EXPANSION_ORDER = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.POST_FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
    ExtensionPoint.PRE_BIND,
    ExtensionPoint.BIND,
    ExtensionPoint.POST_BIND,
    ExtensionPoint.PERMIT,
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.QUEUE_SORT,
    ExtensionPoint.PLACEMENT_GENERATE,
    ExtensionPoint.PLACEMENT_SCORE,
)
"""The extension points in the order in which upstream expands them."""

Implemented = Mapping[str, Collection[ExtensionPoint]]
"""The extension points that each plugin implements, by name, for all plugins that exist."""

_DEFAULTS = (
    PluginEntry("SchedulingGates"),
    PluginEntry("PrioritySort"),
    PluginEntry("NodeUnschedulable"),
    PluginEntry("NodeName"),
    PluginEntry("TaintToleration", 3),
    PluginEntry("NodeAffinity", 2),
    PluginEntry("NodePorts"),
    PluginEntry("NodeResourcesFit", 1),
    PluginEntry("VolumeRestrictions"),
    PluginEntry("NodeVolumeLimits"),
    PluginEntry("VolumeBinding"),
    PluginEntry("VolumeZone"),
    PluginEntry("PodTopologySpread", 2),
    PluginEntry("InterPodAffinity", 2),
    # Before DefaultPreemption, as freeing an unused claim is better than evicting a running pod.
    PluginEntry("DynamicResources", 2),
    PluginEntry("DefaultPreemption"),
    PluginEntry("NodeResourcesBalancedAllocation", 1),
    PluginEntry("ImageLocality", 1),
    PluginEntry("DefaultBinder"),
)
_GATED = (
    ("NodeDeclaredFeatures", (PluginEntry("NodeDeclaredFeatures"),)),
    ("GangScheduling", (PluginEntry("GangScheduling"),)),
    (
        "TopologyAwareWorkloadScheduling",
        (PluginEntry("TopologyPlacementGenerator"), PluginEntry("PodGroupPodsCount", 1)),
    ),
)

IN_TREE_PLUGINS = frozenset(
    plugin.name for plugin in (*_DEFAULTS, *(p for _, gated in _GATED for p in gated))
)
"""The names of kube-scheduler's plugins, including those whose gates are off."""


def default_plugins(gates: FeatureGates) -> Plugins:
    """Return the plugins of a profile that configures none: all in multiPoint."""
    enabled = list(_DEFAULTS)
    for gate, plugins in _GATED:
        if gates.enabled(gate):
            enabled += plugins
    return Plugins(multi_point=PluginSet(enabled=tuple(enabled)))


def plugin_set(plugins: Plugins, point: ExtensionPoint) -> PluginSet:
    """Return the plugin set of one extension point."""
    plugin_set: PluginSet = getattr(plugins, _ATTRIBUTES[point])
    return plugin_set


_ATTRIBUTES = {
    ExtensionPoint(field.encode_name): field.name for field in msgspec.structs.fields(Plugins)
}


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Return the defaults merged with a user's plugins, for each extension point."""
    return Plugins(
        **{
            name: merge_plugin_set(getattr(default, name), getattr(custom, name))
            for name in _ATTRIBUTES.values()
        }
    )


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Return one point's defaults without the disabled plugins, plus the user's plugins.

    A user's plugin with the name of a default takes its position; the others follow in their order.
    If a name is listed twice, the later entry takes the position and the other is kept, so that
    `expand` rejects it.
    """
    disabled = tuple(PluginEntry(plugin.name) for plugin in (*custom.disabled, *default.disabled))
    disabled_names = {plugin.name for plugin in disabled}
    positions = {plugin.name: i for i, plugin in enumerate(custom.enabled)}
    enabled: list[PluginEntry] = []
    consumed: set[int] = set()
    for plugin in default.enabled if ALL not in disabled_names else ():
        if plugin.name in disabled_names:
            continue
        position = positions.get(plugin.name)
        if position is None:
            enabled.append(plugin)
        else:
            enabled.append(custom.enabled[position])
            consumed.add(position)
    enabled += (plugin for i, plugin in enumerate(custom.enabled) if i not in consumed)
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def expand(
    plugins: Plugins, implemented: Implemented, *, scheduler_name: str, path: str = "plugins"
) -> dict[ExtensionPoint, tuple[str, ...]]:
    """Return the names of the plugins at each extension point, in the order to run them.

    `plugins` are those of a profile, merged with the defaults, at a field path; `implemented` are
    the plugins that exist. Raises ConfigError with all field errors, in upstream's order.
    """
    errors: list[FieldError] = []
    for point in EXPANSION_ORDER:
        errors += _explicit_errors(plugins, point, implemented, path)
    errors += _multi_point_errors(plugins, implemented, path)
    if errors:
        raise ConfigError(errors)
    expanded = {point: _expand_point(plugins, point, implemented) for point in EXPANSION_ORDER}
    errors += _count_errors(expanded, scheduler_name, path)
    if errors:
        raise ConfigError(errors)
    return expanded


def score_weights(
    plugins: Plugins,
    implemented: Implemented,
    point: ExtensionPoint = ExtensionPoint.SCORE,
    *,
    path: str = "plugins",
) -> dict[str, int]:
    """Return plugin -> weight for all plugins that implement `point` (score or placementScore).

    The point's own entry takes precedence over multiPoint's. A weight of 0 means 1. Raises
    ConfigError if the total score could overflow an int64.
    """
    weights: dict[str, int] = {}
    total = 0
    for plugin in (*plugin_set(plugins, point).enabled, *plugins.multi_point.enabled):
        if plugin.name in weights or point not in implemented.get(plugin.name, ()):
            continue
        weight = plugin.weight or 1
        # In Go, the remainder overflows after a negative weight, so any further weight is too much.
        if total < 0 or weight * MAX_SCORE > INT64_MAX - total:
            what = "score" if point is ExtensionPoint.SCORE else "placement score"
            message = f"{what} plugins: total score of Score plugins could overflow"
            raise ConfigError([FieldError(child(path, point.value), message)])
        weights[plugin.name] = weight
        total += weight * MAX_SCORE
    return weights


def _explicit_errors(
    plugins: Plugins, point: ExtensionPoint, implemented: Implemented, path: str
) -> Iterable[FieldError]:
    seen: set[str] = set()
    for i, plugin in enumerate(plugin_set(plugins, point).enabled):
        place = child(path, point.value, "enabled", i)
        if plugin.name not in implemented:
            yield FieldError(place, f"{point.interface} {go_quote(plugin.name)} does not exist")
        elif point not in implemented[plugin.name]:
            message = f"plugin {go_quote(plugin.name)} does not extend {point.interface} plugin"
            yield FieldError(place, message)
        elif plugin.name in seen:
            yield FieldError(place, _already_registered(plugin.name, point))
        seen.add(plugin.name)


def _multi_point_errors(
    plugins: Plugins, implemented: Implemented, path: str
) -> Iterable[FieldError]:
    """Check multiPoint; each error is reported for the first extension point that has it."""
    reported: set[int] = set()
    for point in EXPANSION_ORDER:
        explicit = _names(plugin_set(plugins, point).enabled)
        disabled = _names(plugin_set(plugins, point).disabled)
        if ALL in disabled:
            continue
        listed = {*explicit, *disabled}
        seen: set[str] = set()
        for i, plugin in enumerate(plugins.multi_point.enabled):
            if plugin.name not in implemented:
                message = f"{point.interface} {go_quote(plugin.name)} does not exist"
            elif point not in implemented[plugin.name] or plugin.name in listed:
                continue
            elif plugin.name in seen:
                message = _already_registered(plugin.name, point)
            else:
                seen.add(plugin.name)
                continue
            if i not in reported:
                reported.add(i)
                # No index, as the defaults are among these plugins.
                yield FieldError(child(path, ExtensionPoint.MULTI_POINT.value, "enabled"), message)


def _expand_point(
    plugins: Plugins, point: ExtensionPoint, implemented: Implemented
) -> tuple[str, ...]:
    """Return one point's plugins: overrides of multiPoint, the rest of multiPoint, then others."""
    explicit = _names(plugin_set(plugins, point).enabled)
    disabled = _names(plugin_set(plugins, point).disabled)
    if ALL in disabled:
        return explicit
    candidates = tuple(
        plugin.name
        for plugin in plugins.multi_point.enabled
        if plugin.name not in disabled and point in implemented[plugin.name]
    )
    return (
        *(name for name in explicit if name in candidates),
        *(name for name in candidates if name not in explicit),
        *(name for name in explicit if name not in candidates),
    )


def _count_errors(
    expanded: Mapping[ExtensionPoint, tuple[str, ...]], scheduler_name: str, path: str
) -> Iterable[FieldError]:
    profile = f"profile with scheduler name {go_quote(scheduler_name)}"
    sorts = len(expanded[ExtensionPoint.QUEUE_SORT])
    if sorts != 1:
        message = f"only one queue sort plugin required for {profile}, but got {sorts}"
        yield FieldError(child(path, ExtensionPoint.QUEUE_SORT.value), message)
    if not expanded[ExtensionPoint.BIND]:
        message = f"at least one bind plugin is needed for {profile}"
        yield FieldError(child(path, ExtensionPoint.BIND.value), message)
    if len(expanded[ExtensionPoint.PLACEMENT_GENERATE]) > 1:
        message = f"at most one placement generate plugin is allowed for {profile}"
        yield FieldError(child(path, ExtensionPoint.PLACEMENT_GENERATE.value), message)


def _already_registered(name: str, point: ExtensionPoint) -> str:
    return f"plugin {go_quote(name)} already registered as {go_quote(point.interface)}"


def _names(plugins: Iterable[PluginEntry]) -> tuple[str, ...]:
    return tuple(plugin.name for plugin in plugins)
