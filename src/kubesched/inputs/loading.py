"""Checks of loaded objects, and loading of configuration and plugins from options.

Installed packages provide plugins as entry points of the group `kubesched.plugins`, named as the
plugin. They are used only if the configuration enables them, so that installing a package changes
no decision.

Rejects:  objects of the same kind and name, pods with the same uid, and objects that an API server
          would not store.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from kubesched.api.codec import Loaded, Source
from kubesched.api.core import FINISHED, Pod
from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.api.meta import KubeObject
from kubesched.config.args import PluginArgs
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, read_configuration
from kubesched.config.types import Configuration, PluginEntry, PluginSet, ProfileConfiguration
from kubesched.explain.sentences import there_are
from kubesched.framework.per_row import PerRowFilter, PerRowScore
from kubesched.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    QueueSortPlugin,
    Scope,
    ScorePlugin,
)
from kubesched.framework.plugin_error import error_text, places_outside
from kubesched.framework.registry import Registry, RegistryError, SchedulerSetup
from kubesched.inputs.errors import UserError, did_you_mean, first_of
from kubesched.inputs.sources import SchedulerOptions
from kubesched.plugins.priority_sort import PrioritySort
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.profile_building import build_profiles
from kubesched.scheduler.profile_plugins import POINT_CLASSES, implemented_points
from kubesched.simulator.soundness import errors_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_UNKNOWN_PLUGIN: Final = re.compile(r'(?<=Plugin )"([^"]*)" does not exist$')
_ADD_PLUGIN: Final = "name its class with --plugin"
_FORMER_PLUGINS: Final = {
    **dict.fromkeys(
        (
            "NodeResourcesLeastAllocated",
            "NodeResourcesMostAllocated",
            "RequestedToCapacityRatio",
        ),
        "NodeResourcesFit with a scoringStrategy replaces it",
    ),
    **dict.fromkeys(
        ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"),
        "NodeVolumeLimits replaces it",
    ),
    "NodeLabel": "node affinity replaces it",
    "ServiceAffinity": "pod affinity replaces it",
    "NodePreferAvoidPods": "taints with the effect PreferNoSchedule replace it",
}
"""Plugins that kube-scheduler had once, and what to use instead."""

_PLUGIN_DIRECTORIES: Final[set[Path]] = set()
"""Where Python finds the modules beside the plugins' files."""


# Objects.


def distinct_objects(loaded: Iterable[Loaded]) -> list[KubeObject]:
    """Return the objects; raises UserError with a line for each duplicate and invalid field."""
    objects: list[KubeObject] = []
    places: dict[type, dict[str, Source]] = {}
    owners: dict[str, str] = {}
    messages: list[str] = []
    unsound: list[str] = []
    for item, source in loaded:
        key = item.metadata.key
        first = places.setdefault(type(item), {}).setdefault(key, source)
        if first is not source:
            if first == source and source.file:
                raise UserError(f"{source.file}: it is given twice; leave one out")
            messages.append(f"{source}: {_kind(item)} {key} is in {first} already; remove one")
            continue
        if isinstance(item, Pod) and (uid := item.metadata.uid):
            owner = owners.setdefault(uid, key)
            if owner != key:
                messages.append(f"{source}: Pod {key} has the uid of pod {owner}, {uid}")
                continue
        for field_error in errors_of(item):
            unsound.append(f"{source}: {_kind(item)} {key}: {field_error}")  # noqa: PERF401 - rare
        objects.append(item)
    if messages or unsound:
        raise UserError(
            *first_of(messages, "objects that are there twice"),
            *first_of(unsound, "invalid fields"),
        )
    return objects


def _kind(item: KubeObject) -> str:
    return item.kind or type(item).__name__


# The scheduler.


def load_scheduler(
    options: SchedulerOptions,
    inline: Mapping[str, Any] | None = None,
    inline_place: str | None = None,
) -> SchedulerSetup:
    """Build registry and configuration, with the plugins of the options.

    `inline` is a KubeSchedulerConfiguration to use if the options name no file, and `inline_place`
    where it is: a file, or a file and a field. Raises UserError, or ConfigError for a feature gate.
    """
    gates = FeatureGates.parse(options.feature_gates)
    registry = in_tree_registry()
    added = register_plugins(registry, options.plugins)
    file = options.config or inline_place
    source = options.config or inline
    errors: list[FieldError] = []
    with in_file(file):
        if source is None:
            configuration = default_configuration(gates)
        else:
            configuration, errors = read_configuration(source, gates)
    load_entry_points(registry, configuration)
    configuration = with_plugins(configuration, added)
    setup = SchedulerSetup(configuration, registry, gates, time.perf_counter)
    if errors:
        errors += _errors_of_plugins(setup, errors)
        raise UserError(*texts_in_file(ConfigError(errors), file))
    if options.profile is not None:
        _check_profile(options.profile, configuration)
    return setup


def check_plugins(scheduler: SchedulerSetup, config: Path | None) -> None:
    """Build the plugins once, so that their errors come before those of the input.

    Raises UserError with one line per error, which begins with the configuration's file.
    """
    with in_file(config):
        build_profiles(scheduler, Random(0))  # noqa: S311 - nothing is drawn


def load_checked_scheduler(
    options: SchedulerOptions, inline: Mapping[str, Any] | None = None
) -> SchedulerSetup:
    """Load the scheduler of the options, and build its plugins once to report their errors.

    Arguments and errors are those of `load_scheduler` and `check_plugins`.
    """
    setup = load_scheduler(options, inline)
    check_plugins(setup, options.config)
    return setup


def pending_again(pod: Pod) -> Pod:
    """Return the pod as pending: without node, phase and nomination."""
    if not pod.spec.node_name and pod.status.phase not in FINISHED:
        return pod
    status = replace(pod.status, phase="Pending", nominated_node_name="", start_time=None)
    spec = replace(pod.spec, node_name="")
    return replace(pod, spec=spec, status=status)


def with_scheduler_name(pod: Pod, name: str | None) -> Pod:
    """Return the pod with another `spec.schedulerName`; None changes nothing."""
    if name is None:
        return pod
    return replace(pod, spec=replace(pod.spec, scheduler_name=name))


def with_plugins(configuration: Configuration, plugins: Sequence[type[Plugin]]) -> Configuration:
    """Enable plugins through multiPoint in all profiles, except those the configuration mentions.

    A QueueSort plugin replaces PrioritySort, as a profile has only one.
    """
    sets = _plugin_sets(configuration)
    mentioned = {plugin.name for one in sets for plugin in (*one.enabled, *one.disabled)}
    new = [plugin for plugin in plugins if plugin.name not in mentioned]
    if not new:
        return configuration
    profiles = tuple(_with_multi_point(profile, new) for profile in configuration.profiles)
    return replace(configuration, profiles=profiles)


def _with_multi_point(
    profile: ProfileConfiguration, new: Sequence[type[Plugin]]
) -> ProfileConfiguration:
    own, queue_sort = profile.plugins.multi_point, profile.plugins.queue_sort
    entries = (PluginEntry(plugin.name) for plugin in new)
    multi_point = PluginSet(enabled=(*own.enabled, *entries), disabled=own.disabled)
    if any(issubclass(plugin, QueueSortPlugin) for plugin in new):
        replaced = (*queue_sort.disabled, PluginEntry(PrioritySort.name))
        queue_sort = PluginSet(enabled=queue_sort.enabled, disabled=replaced)
    plugins = replace(profile.plugins, multi_point=multi_point, queue_sort=queue_sort)
    return replace(profile, plugins=plugins)


def _plugin_sets(configuration: Configuration) -> list[PluginSet]:
    return [
        plugin_set
        for profile in configuration.profiles
        for plugin_set in msgspec.structs.astuple(profile.plugins)
    ]


def register_plugins(
    registry: Registry, written: Iterable[str | type[Plugin]]
) -> list[type[Plugin]]:
    """Register the plugins of `--plugin`, or classes; return their classes.

    Raises UserError if a plugin does not exist, or its name is taken.
    """
    plugins: list[type[Plugin]] = []
    for text in written:
        plugin = load_plugin(text)
        try:
            registry.register(plugin.name, plugin)
        except RegistryError as error:
            raise UserError(f"--plugin {text}: {error}; give it another name") from error
        plugins.append(plugin)
    return plugins


def _errors_of_plugins(setup: SchedulerSetup, known: Sequence[FieldError]) -> list[FieldError]:
    """Return the errors of plugins in a configuration that is known to be invalid."""
    try:
        build_profiles(setup, Random(0))  # noqa: S311 - nothing is drawn
    except ConfigError as error:
        return [field_error for field_error in error.errors if field_error not in known]
    return []


@contextmanager
def in_file(file: Path | str | None) -> Iterator[None]:
    """Name a file in the errors of a configuration, which are raised as UserError."""
    try:
        yield
    except ConfigError as error:
        raise UserError(*texts_in_file(error, file)) from error


def texts_in_file(error: ConfigError, file: Path | str | None) -> list[str]:
    """Return the field errors as texts; each begins with the file's name, once."""
    place = "" if file is None else f"{file}: "
    texts = [str(field_error).removeprefix(place) for field_error in error.errors]
    return [f"{place}{_UNKNOWN_PLUGIN.sub(_with_remedy, text)}" for text in texts]


def _with_remedy(unknown: re.Match[str]) -> str:
    return f"{unknown[0]}; {_FORMER_PLUGINS.get(unknown[1], _ADD_PLUGIN)}"


def _check_profile(name: str, configuration: Configuration) -> None:
    names = [profile.scheduler_name for profile in configuration.profiles]
    if name not in names:
        hint = did_you_mean(name, names, there_are("profile", names), most=1)
        raise UserError(f"--profile {name}: the configuration has no such profile; {hint}")


# Out-of-tree plugins.

ENTRY_POINT_GROUP: Final = "kubesched.plugins"


def load_plugin(text: str | type[Plugin]) -> type[Plugin]:
    """Import the plugin class that `--plugin` names; a class is only checked.

    Raises UserError if the module, file or class does not exist, or is not a plugin.
    """
    if not isinstance(text, str):
        return _checked(text, f"plugins: {text!r}")
    option = f"--plugin {text}"
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise UserError(f"{option}: write module:Class or path/to/file.py:Class")
    return _plugin_class(import_place(place, option), name, option)


def load_entry_points(registry: Registry, configuration: Configuration) -> None:
    """Register installed plugins that the configuration enables and the registry lacks.

    Raises UserError if one of them cannot be imported, or is not a plugin.
    """
    enabled = {plugin.name for one in _plugin_sets(configuration) for plugin in one.enabled}
    wanted = enabled - set(registry)
    if not wanted:
        return
    # Imported late: most configurations enable in-tree plugins only.
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda found: found.name):
        if entry.name in wanted and entry.name not in registry:
            registry.register(entry.name, _entry_point_class(entry))


def _entry_point_class(entry: EntryPoint) -> type[Plugin]:
    option = f"installed plugin {entry.name} ({entry.value})"
    try:
        found = entry.load()
    except Exception as error:
        raise UserError(f"{option}: {error_text(error)}") from error
    return _checked(found, option)


def import_place(place: str, option: str) -> ModuleType:
    """Import a module or `path/to/file.py`, which may import the modules beside it.

    Raises UserError, whose message begins with the option, if it does not exist or raises.
    """
    try:
        if place.endswith(".py"):
            return _module_of_file(Path(place), option)
        # As with `python -m`, modules of the working directory can be imported.
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(place)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        own = "".join(f" ({line})" for line in [*places_outside(error)][-1:])
        if isinstance(error, ImportError) and "relative import" in str(error):
            own += "; write package.module:Class instead of the file"
        raise UserError(f"{option}: cannot import {place}: {error_text(error)}{own}") from error


def _module_of_file(file: Path, option: str) -> ModuleType:
    if not file.is_file():
        raise UserError(f"{option}: {file}: no such file")
    name = f"kubesched_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{option}: {file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _find_modules_beside(file.absolute(), option)
    spec.loader.exec_module(module)
    return module


def _find_modules_beside(file: Path, option: str) -> None:
    """Let a plugin's file import the modules beside it.

    Raises UserError if another plugin has imported a module of the same name.
    """
    directory = file.parent
    for beside in sorted(directory.glob("*.py")):
        imported = Path(getattr(sys.modules.get(beside.stem), "__file__", None) or beside)
        if imported.parent in _PLUGIN_DIRECTORIES and imported.resolve() != beside.resolve():
            problem = f"Python would import {imported} instead of {beside}; rename one of them"
            raise UserError(f"{option}: {problem}")
    _PLUGIN_DIRECTORIES.add(directory)
    if str(directory) not in sys.path:
        sys.path.append(str(directory))


def _plugin_class(module: ModuleType, name: str, option: str) -> type[Plugin]:
    found = getattr(module, name, None)
    if found is None:
        offered = [
            key
            for key, value in vars(module).items()
            if inspect.isclass(value)
            and issubclass(value, Plugin)
            and value.__module__ == module.__name__
        ]
        hint = f"; the module has {', '.join(offered)}" if offered else ""
        raise UserError(f"{option}: there is no {name}{hint}")
    return _checked(found, option)


def _checked(found: object, option: str) -> type[Plugin]:
    if not (inspect.isclass(found) and issubclass(found, Plugin)):
        hint = "such as FilterPlugin of kubesched.framework"
        raise UserError(f"{option}: it is not a class that inherits an extension point, {hint}")
    for problem in _problems_of(found):
        raise UserError(f"{option}: {problem}")
    return found


_CALLED_IN: Final[Mapping[type[Plugin], type[Plugin]]] = {
    **{kind: kind for kind in POINT_CLASSES.values()},
    PreFilterExtensions: PreFilterExtensions,
    # A filter or score for all nodes may have a helper with the name of a method for one.
    PerRowFilter: FilterPlugin,
    PerRowScore: ScorePlugin,
}
"""A class with abstract methods -> the class that a plugin must inherit for them to be called."""


def _problems_of(plugin: type[Plugin]) -> Iterator[str]:
    """Yield the reasons why a plugin cannot be used, first the one to report."""
    if inspect.isabstract(plugin):
        yield f"the class does not implement {', '.join(sorted(plugin.__abstractmethods__))}"
    if not isinstance(getattr(plugin, "name", None), str) or not plugin.name:
        yield "the class has no name; add `name: ClassVar = ...`"
    if not implemented_points(Registry(plugin))[plugin.name]:
        yield "the class inherits no extension point, such as FilterPlugin"
    scope: object = plugin.scope
    score_scope: object = plugin.score_scope
    if not isinstance(scope, Scope) or not isinstance(score_scope, Scope | None):
        yield "scope and score_scope must be members of Scope"
    kinds: object = plugin.signed_kinds
    if not isinstance(kinds, Collection) or not all(_inherits(kind, KubeObject) for kind in kinds):
        yield "signed_kinds must be a tuple of classes, such as (Namespace,)"
    if plugin.args_type is not None and not _inherits(plugin.args_type, PluginArgs):
        yield "args_type must inherit PluginArgs"
    yield from filter(None, (_problem_of_method(plugin, name) for name in dir(plugin)))
    for kind, needed in _CALLED_IN.items():
        for name in sorted(kind.__abstractmethods__ & vars(kind).keys()):
            if not issubclass(plugin, needed) and _is_alike(plugin, kind, name):
                missing = f"{plugin.__name__} does not inherit {kind.__name__}"
                yield f"{name} is not called, because {missing}"


def _inherits(found: object, base: type) -> bool:
    return inspect.isclass(found) and issubclass(found, base)


def _is_alike(plugin: type[Plugin], kind: type[Plugin], name: str) -> bool:
    """Whether a plugin's class has a method of an extension point, with its parameters."""
    # A base class may have methods for several plugins.
    own = vars(plugin).get(name)
    if not inspect.isfunction(own):
        return False
    wanted = inspect.signature(getattr(kind, name)).parameters
    return [*inspect.signature(own).parameters] == [*wanted]


def _problem_of_method(plugin: type[Plugin], name: str) -> str:
    """Return why the scheduler cannot call a method of a plugin, "" if it can."""
    own = getattr(plugin, name)
    bases = (base for base in plugin.__mro__ if base.__module__.startswith("kubesched.framework."))
    declared = next((getattr(base, name) for base in bases if name in vars(base)), own)
    if declared is own or not inspect.isroutine(own) or (name != "__init__" and name[0] == "_"):
        return ""
    if inspect.iscoroutinefunction(declared) != inspect.iscoroutinefunction(own):
        right, wrong = "def", "async def"
        if inspect.iscoroutinefunction(declared):
            right, wrong = wrong, right
        return f"{name} must be `{right}`, not `{wrong}`"
    parameters = [*inspect.signature(declared).parameters]
    try:
        inspect.signature(own).bind(*parameters)
    except TypeError:
        takes = ", ".join(inspect.signature(own).parameters)
        return f"{name}({takes}) is called as {name}({', '.join(parameters)})"
    return ""
