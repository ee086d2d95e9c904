"""Decoding of a plugin's arguments into the plugin's frozen Args class.

An Args class is a `PluginArgs` struct in the plugin's file. Structs that several Args classes use
are here.

Upstream: kube-scheduler/config/v1/{types.go (decodeNestedObjects),types_pluginargs.go} (v1.36)
Rejects:  unknown fields, mistyped values, arguments with the kind of another plugin.
Differs:  nothing.
"""

from typing import Any, TypeVar

from kubesched.config.decoding import decode_struct
from kubesched.config.field_errors import ConfigError, FieldError, child, render
from kubesched.config.types import API_VERSION, KIND, ConfigStruct, Int32, Int64

T = TypeVar("T")

_GROUP, _, _VERSION = API_VERSION.partition("/")

ARGS_PLUGINS = (
    "DefaultPreemption",
    "DynamicResources",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "PodTopologySpread",
    "VolumeBinding",
)
"""The plugins of kube-scheduler that take arguments; their kinds are `<name>Args`."""

_ARGS_KINDS = tuple(f"{plugin}Args" for plugin in ARGS_PLUGINS)


class PluginArgs(ConfigStruct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base of Args classes: frozen, JSON names in camelCase, strict."""


class ResourceSpec(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """A resource to score by.

    Attributes:
        name: The resource's name.
        weight: 1 to 100; 0 becomes 1.
    """

    name: str
    weight: Int64 = 1


class UtilizationShapePoint(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """A point of a scoring function.

    Attributes:
        utilization: In percent, 0 to 100.
        score: From 0 to 10.
    """

    utilization: Int32 = 0
    score: Int32 = 0


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
        message = f"args for plugin {plugin} were not of type {kind}.{_GROUP}, got {given}.{_GROUP}"
    else:
        return ()
    return (FieldError(path, message),)
