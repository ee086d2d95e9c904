"""ProfilePlugins has a profile's plugins and their names per extension point.

Upstream: pkg/scheduler/framework/runtime/framework.go, NewFramework (v1.36)
Differs:  all field errors of a configuration are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from functools import cache
from typing import Final, TypeVar, cast

import msgspec

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.api.go_text import go_quote
from kubesched.config.args import ARGS_PLUGINS
from kubesched.config.plugin_sets import ExtensionPoint, expand, score_weights
from kubesched.config.types import ProfileConfiguration
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from kubesched.framework.plugin_answers import check_events
from kubesched.framework.plugin_error import error_text, places_outside
from kubesched.framework.pod_groups import (
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupPostFilterPlugin,
)
from kubesched.framework.registry import Registry

A = TypeVar("A", bound=Plugin)

POINT_CLASSES: Final[dict[ExtensionPoint, type[Plugin]]] = {
    ExtensionPoint.PRE_ENQUEUE: PreEnqueuePlugin,
    ExtensionPoint.QUEUE_SORT: QueueSortPlugin,
    ExtensionPoint.PRE_FILTER: PreFilterPlugin,
    ExtensionPoint.FILTER: FilterPlugin,
    ExtensionPoint.POST_FILTER: PostFilterPlugin,
    ExtensionPoint.PRE_SCORE: PreScorePlugin,
    ExtensionPoint.SCORE: ScorePlugin,
    ExtensionPoint.RESERVE: ReservePlugin,
    ExtensionPoint.PERMIT: PermitPlugin,
    ExtensionPoint.PRE_BIND: PreBindPlugin,
    ExtensionPoint.BIND: BindPlugin,
    ExtensionPoint.POST_BIND: PostBindPlugin,
    ExtensionPoint.PLACEMENT_GENERATE: PlacementGeneratePlugin,
    ExtensionPoint.PLACEMENT_SCORE: PlacementScorePlugin,
}
"""The class that a plugin inherits to run at an extension point."""
_POINTS: Final[Mapping[object, ExtensionPoint]] = {kind: at for at, kind in POINT_CLASSES.items()}


class ProfilePlugins(msgspec.Struct, frozen=True):
    """The plugins of a profile and the extension points they run at.

    Attributes:
        plugins: Plugin name -> plugin, in the order of their construction.
        points: The names of the plugins that run at each extension point, in order; each of them
            implements the point.
        score_weights, placement_score_weights: Plugin name -> weight.
    """

    plugins: dict[str, Plugin]
    points: Mapping[ExtensionPoint, tuple[str, ...]]
    score_weights: dict[str, int]
    placement_score_weights: dict[str, int]

    def at(self, kind: Callable[..., A]) -> tuple[A, ...]:
        """Return the plugins that run at the extension point with this class."""
        return tuple(cast("A", self.plugins[name]) for name in self.points[_POINTS[kind]])

    def unprepared(
        self, kind: Callable[..., A], preparing: type[Plugin], make_state: str
    ) -> tuple[A, ...]:
        """Return the plugins that need a state and do not run at the point that prepares it.

        `kind` and `preparing` are the classes of both points; `make_state` is the method that then
        makes the state.
        """
        prepared = self.points[_POINTS[preparing]]
        return tuple(
            each
            for each in self.at(kind)
            if each.name not in prepared
            and (isinstance(each, preparing) or _overrides(each, kind, make_state))
        )

    def pod_group_post_filters(self) -> tuple[PodGroupPostFilterPlugin, ...]:
        """Return DefaultPreemption, if it runs; there is no such extension point."""
        plugin = self.plugins.get("DefaultPreemption")
        return (plugin,) if isinstance(plugin, PodGroupPostFilterPlugin) else ()


def _overrides(plugin: Plugin, kind: object, method: str) -> bool:
    """Whether a plugin has a method of its own instead of that of the extension point."""
    return getattr(type(plugin), method) is not getattr(kind, method)


def build_plugins(
    configuration: ProfileConfiguration, registry: Registry, handle: Handle, path: str
) -> ProfilePlugins:
    """Build the plugins that run anywhere in a profile.

    `handle` is the profile, which is still under construction. Raises ConfigError with the field
    errors of plugin sets, then those of arguments.
    """
    errors: list[FieldError] = []
    points: dict[ExtensionPoint, tuple[str, ...]] = {}
    weights: dict[str, int] = {}
    placement_weights: dict[str, int] = {}
    sets, place = configuration.plugins, f"{path}.plugins"
    try:
        implemented = implemented_points(registry)
        points = expand(sets, implemented, scheduler_name=configuration.scheduler_name, path=place)
        weights, placement_weights = (
            score_weights(sets, implemented, point, path=place)
            for point in (ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE)
        )
    except ConfigError as error:
        errors.extend(error.errors)
    if errors:
        # Nothing will run, but every named plugin can still validate its arguments.
        names = dict.fromkeys(_named(configuration, registry))
    else:
        names = dict.fromkeys(name for point in points.values() for name in point)
    plugins = _build(configuration, registry, handle, names, path, errors)
    errors.extend(_errors_of_others(configuration, registry, handle, names, path))
    if errors:
        raise ConfigError(errors)
    return ProfilePlugins(plugins, points, weights, placement_weights)


def _build(
    configuration: ProfileConfiguration,
    registry: Registry,
    handle: Handle,
    names: Mapping[str, None],
    path: str,
    errors: list[FieldError],
) -> dict[str, Plugin]:
    """Build the named plugins; append field errors to `errors`."""
    args = {entry.name: (at, entry.args) for at, entry in enumerate(configuration.plugin_config)}
    plugins: dict[str, Plugin] = {}
    for name in names:
        at, raw = args.get(name, (len(args), None))
        place = f"{path}.pluginConfig[{at}].args"
        try:
            decoded = registry[name].decode_args(raw, handle, place)
            plugin = registry[name](decoded, handle)
            if not hasattr(plugin, "handle"):
                # An `__init__` of its own has not called that of Plugin.
                plugin.handle = handle
            check_events(plugin.events_to_register())
            plugins[name] = plugin
        except ConfigError as error:
            errors.extend(error.errors)
        except Exception as error:  # noqa: BLE001 - a user's plugin may raise anything
            text = f"initializing plugin {go_quote(name)}: {error_text(error)}"
            own = "".join(f" ({line})" for line in [*places_outside(error)][-1:])
            errors.append(FieldError(place if name in args else f"{path}.plugins", text + own))
    return plugins


def _errors_of_others(
    configuration: ProfileConfiguration,
    registry: Registry,
    handle: Handle,
    names: Container[str],
    path: str,
) -> Iterator[FieldError]:
    """Yield field errors in the arguments of in-tree plugins that the profile does not run."""
    for at, entry in enumerate(configuration.plugin_config):
        name = entry.name
        if name in names or name not in registry or name not in ARGS_PLUGINS:
            continue
        place = f"{path}.pluginConfig[{at}].args"
        try:
            registry[name].check_args(entry.args, handle, place)
        except ConfigError as error:
            yield from error.errors


def _named(configuration: ProfileConfiguration, registry: Registry) -> Iterator[str]:
    for plugin_set in msgspec.structs.astuple(configuration.plugins):
        for plugin in plugin_set.enabled:
            if plugin.name in registry:
                yield plugin.name


def implemented_points(registry: Registry) -> dict[str, tuple[ExtensionPoint, ...]]:
    """Return the extension points that each plugin implements, by name."""
    return {name: _points_of(plugin) for name, plugin in registry.items()}


@cache
def _points_of(plugin: type[Plugin]) -> tuple[ExtensionPoint, ...]:
    return tuple(point for point, kind in POINT_CLASSES.items() if issubclass(plugin, kind))
