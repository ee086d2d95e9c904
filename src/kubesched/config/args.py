"""The arguments of plugins: decoding into the plugin's frozen Args class, and defaults.

An Args class is a `PluginArgs` struct in the plugin's file. Structs that several Args classes use
are here.

Upstream: kube-scheduler/config/v1/{types.go (decodeNestedObjects),types_pluginargs.go},
          pkg/scheduler/apis/config/v1/defaults.go, pkg/scheduler/scheduler.go (buildExtenders)
          (v1.36)
Rejects:  unknown fields, mistyped values, arguments with the kind of another plugin.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from kubesched.api.field_errors import ConfigError, FieldError, child, render
from kubesched.api.integers import Int32, Int64
from kubesched.config.decoding import decode_struct
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import (
    API_VERSION,
    GROUP,
    KIND,
    ConfigStruct,
    Configuration,
    PluginConfig,
    ProfileConfiguration,
)

T = TypeVar("T")


class PluginArgs(ConfigStruct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base of Args classes: frozen, JSON names in camelCase, strict."""

    def errors(self, path: str) -> Iterable[FieldError]:
        """Return the violations of further rules; `path` is the field path of the arguments."""
        return ()


class ResourceSpec(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """A resource to score by.

    Attributes:
        name: The resource's name.
        weight: 1 to 100; 0 becomes 1.
    """

    name: str
    weight: Int64 = 1


DEFAULT_RESOURCES = (ResourceSpec("cpu"), ResourceSpec("memory"))


class UtilizationShapePoint(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """A point of a scoring function.

    Attributes:
        utilization: In percent, 0 to 100.
        score: From 0 to 10.
    """

    utilization: Int32 = 0
    score: Int32 = 0


DEFAULT_SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
"""Of VolumeBinding: the less of the capacity is used, the better."""


def decode_args(
    cls: type[T], raw: dict[str, Any] | None, path: str, *, plugin: str | None = None
) -> T:
    """Decode arguments into `cls`; raises ConfigError with all field errors.

    If `raw` has a kind, it must be `<plugin>Args`, or the name of `cls` without `plugin`.
    """
    errors: list[FieldError] = []
    kind = f"{plugin}Args" if plugin else cls.__name__
    written = dict(raw or {})
    errors += check_kind(written, kind, path)
    for name in ("apiVersion", "kind"):
        written.pop(name, None)
    args = decode_struct(cls, written, path, errors)
    if errors:
        raise ConfigError(errors)
    return args


def check_kind(raw: dict[str, Any], kind: str, path: str) -> tuple[FieldError, ...]:
    """Return the errors in the apiVersion and kind of arguments of `kind`; both may be absent."""
    errors: list[FieldError] = []
    written: dict[str, str] = {}
    for name in ("apiVersion", "kind"):
        value = raw.get(name) or ""
        if isinstance(value, str):
            written[name] = value
        else:
            errors.append(
                FieldError(child(path, name), f"Invalid value: {render(value)}: must be text")
            )
    if errors:
        return tuple(errors)
    api_version = written["apiVersion"] or API_VERSION
    given = written["kind"] or kind
    if api_version != API_VERSION or given not in {KIND, *_ARGS_KINDS, kind}:
        message = f'no kind "{given}" is registered for version "{api_version}"'
    elif given != kind:
        plugin = kind.removesuffix("Args")
        message = f"args for plugin {plugin} were not of type {kind}.{GROUP}, got {given}.{GROUP}"
    else:
        return ()
    return (FieldError(path, message),)


# Defaults.

Args = dict[str, Any]

_FIT = "NodeResourcesFit"
_BALANCED = "NodeResourcesBalancedAllocation"
_DEFAULTS: dict[str, Args] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "DynamicResources": {},
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
    "NodeAffinity": {},
    _BALANCED: {},
    _FIT: {"scoringStrategy": {"type": "LeastAllocated"}},
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
}
_GATED_DEFAULTS = (
    ("DynamicResources", ("DRASchedulerFilterTimeout",), {"filterTimeout": "10s"}),
    (
        "DynamicResources",
        ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
        {"bindingTimeout": "10m0s"},
    ),
    (
        "VolumeBinding",
        ("StorageCapacityScoring",),
        {"shape": [*map(msgspec.to_builtins, DEFAULT_SHAPE)]},
    ),
)
_EMPTY = {"defaultingType": "", "shape": []}
"""Values that count as absent."""

ARGS_PLUGINS = tuple(_DEFAULTS)
"""The plugins of kube-scheduler that take arguments; their kinds are `<name>Args`."""
_ARGS_KINDS = tuple(f"{plugin}Args" for plugin in ARGS_PLUGINS)


def complete_args(plugin: str, raw: Mapping[str, Any] | None, gates: FeatureGates) -> Args:
    """Return the arguments of an in-tree plugin with apiVersion, kind and every default.

    Null counts as absent. Values of the wrong type are kept for the decoder to report.
    """
    args: Args = {name: value for name, value in (raw or {}).items() if value is not None}
    args.update(apiVersion=API_VERSION, kind=f"{plugin}Args")
    defaults = dict(_DEFAULTS[plugin])
    for name, needed, gated in _GATED_DEFAULTS:
        if name == plugin and all(map(gates.enabled, needed)):
            defaults |= gated
    for name, default in defaults.items():
        if args.get(name) in (None, _EMPTY.get(name)):
            args[name] = default
    if plugin == _BALANCED:
        args["resources"] = _resources(args.get("resources"))
    elif plugin == _FIT and isinstance(args["scoringStrategy"], Mapping):
        strategy = args["scoringStrategy"]
        args["scoringStrategy"] = {**strategy, "resources": _resources(strategy.get("resources"))}
    return args


EVERY_NODE: Final = 100
"""The percentage of nodes to score at which no node is left out."""
_EVERY_CANDIDATE: Final = {"minCandidateNodesPercentage": 100}


def exhaustive(configuration: Configuration) -> Configuration:
    """Return the configuration changed to filter, score and dry-run preemption on all nodes."""
    return msgspec.structs.replace(
        configuration,
        percentage_of_nodes_to_score=EVERY_NODE,
        profiles=tuple(
            msgspec.structs.replace(
                _with_args(profile, "DefaultPreemption", _EVERY_CANDIDATE),
                percentage_of_nodes_to_score=EVERY_NODE,
            )
            for profile in configuration.profiles
        ),
    )


def ignore_extender_resources(configuration: Configuration) -> Configuration:
    """Make NodeResourcesFit ignore the extenders' resources with ignoredByScheduler.

    In every profile, their list replaces the plugin's `ignoredResources`. Raises ConfigError for a
    profile whose pluginConfig has no NodeResourcesFit.
    """
    ignored = [
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]
    if not ignored:
        return configuration
    message = "can't find NodeResourcesFitArgs in plugin config"
    errors = [
        FieldError(child("profiles", i, "pluginConfig"), message)
        for i, profile in enumerate(configuration.profiles)
        if _FIT not in [entry.name for entry in profile.plugin_config]
    ]
    if errors:
        raise ConfigError(errors)
    changes = {"ignoredResources": ignored}
    profiles = tuple(_with_args(profile, _FIT, changes) for profile in configuration.profiles)
    return msgspec.structs.replace(configuration, profiles=profiles)


def _with_args(profile: ProfileConfiguration, plugin: str, changes: Args) -> ProfileConfiguration:
    """Return a profile with other arguments of a plugin, if it has any."""
    plugin_config = tuple(
        PluginConfig(plugin, {**(entry.args or {}), **changes}) if entry.name == plugin else entry
        for entry in profile.plugin_config
    )
    return msgspec.structs.replace(profile, plugin_config=plugin_config)


def _resources(written: object) -> object:
    """Return weighted resources: cpu and memory if empty; a weight of 0 becomes 1."""
    if written is None or written == []:
        return [*map(msgspec.to_builtins, DEFAULT_RESOURCES)]
    if not isinstance(written, list):
        return written
    return [
        {**resource, "weight": 1}
        if isinstance(resource, Mapping) and _is_zero(resource.get("weight"))
        else resource
        for resource in written
    ]


def _is_zero(weight: object) -> bool:
    return weight is None or (weight == 0 and weight is not False)
