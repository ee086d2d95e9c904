"""Loading of a Configuration from a file, text or mapping, and encoding back to a mapping.

Upstream: cmd/kube-scheduler/app/options/configfile.go,
          pkg/scheduler/apis/config/{scheme,v1} (v1.36)
Rejects:  what `documents`, `decoding`, `args` and `validation` reject, in one ConfigError.
Differs:  arguments of an in-tree plugin that takes none are an error (upstream ignores them).
"""

import base64
import operator
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from kubesched.api.field_errors import (
    ConfigError,
    FieldError,
    child,
    forbidden,
    invalid,
    is_below,
    not_supported,
    render,
    required,
)
from kubesched.api.go_text import go_duration
from kubesched.config.args import ARGS_PLUGINS, check_kind, complete_args
from kubesched.config.decoding import DurationSeconds, decode_struct
from kubesched.config.documents import read_source
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.plugin_sets import (
    IN_TREE_PLUGINS,
    ExtensionPoint,
    default_plugins,
    merge_plugins,
    plugin_set,
)
from kubesched.config.types import (
    API_VERSION,
    DEFAULT_SCHEDULER_NAME,
    GROUP,
    KIND,
    Configuration,
    PluginConfig,
    ProfileConfiguration,
)
from kubesched.config.validation import validate

# An error of the first field may be caused by the value of the second.
_COMPARED_WITH = {
    "leaderElection.leaseDuration": "leaderElection.renewDeadline",
    "leaderElection.renewDeadline": "leaderElection.retryPeriod",
    "podMaxBackoffSeconds": "podInitialBackoffSeconds",
}

S = TypeVar("S", bound=msgspec.Struct)


def load_configuration(
    source: Path | bytes | str | Mapping[str, Any], gates: FeatureGates
) -> Configuration:
    """Read, default and validate a configuration; raises ConfigError with all field errors.

    A Path is a file to read; str and bytes are the YAML or JSON text itself.
    """
    configuration, errors = read_configuration(source, gates)
    if errors:
        raise ConfigError(errors)
    return configuration


def read_configuration(
    source: Path | bytes | str | Mapping[str, Any], gates: FeatureGates
) -> tuple[Configuration, list[FieldError]]:
    """Read and default a configuration as far as possible; return it with its field errors.

    The caller can then check the arguments of plugins even if other parts are invalid. Raises
    ConfigError if it is not a configuration of this version at all.
    """
    errors: list[FieldError] = []
    raw = read_source(source, errors)
    if not isinstance(raw, Mapping):
        raise ConfigError([FieldError("", f"must be a {KIND}, not {render(raw)}")])
    version_errors = tuple(_version_errors(raw))
    if version_errors:
        # Errors in the fields of another version or kind would only distract.
        raise ConfigError(version_errors)
    read = len(errors)  # a duplicate field was read, so its value is checked too
    decoded = decode_struct(Configuration, _prepare(raw), "", errors)
    unread = [field_error.path for field_error in errors[read:]]
    configuration = complete(decoded, gates)
    errors += _args_errors(decoded)
    errors += _not_below(validate(configuration), unread)
    return configuration, errors


def default_configuration(gates: FeatureGates) -> Configuration:
    """Return the configuration of a scheduler without a configuration file."""
    return load_configuration({"apiVersion": API_VERSION, "kind": KIND}, gates)


def complete(configuration: Configuration, gates: FeatureGates) -> Configuration:
    """Fill in the defaults that depend on other fields or gates, or replace empty values."""
    profiles = configuration.profiles or (
        ProfileConfiguration(scheduler_name=DEFAULT_SCHEDULER_NAME),
    )
    return msgspec.structs.replace(
        configuration,
        leader_election=_filled(
            configuration.leader_election,
            lease_duration_seconds=15.0,
            renew_deadline_seconds=10.0,
            retry_period_seconds=2.0,
            resource_lock="leases",
            resource_name="kube-scheduler",
            resource_namespace="kube-system",
        ),
        client_connection=_filled(
            configuration.client_connection,
            content_type="application/vnd.kubernetes.protobuf",
            qps=50.0,
            burst=100,
        ),
        profiles=tuple(_complete_profile(profile, gates) for profile in profiles),
        extenders=tuple(
            _filled(extender, http_timeout_seconds=5.0) for extender in configuration.extenders
        ),
    )


def encode_configuration(configuration: Configuration) -> dict[str, Any]:
    """Return the configuration as plain values with v1's names, as upstream writes it."""
    encoded = _encode_struct(configuration)
    for name in ("extenders", "delayCacheUntilActive"):
        if not encoded[name]:
            del encoded[name]
    for profile in encoded["profiles"]:
        profile.get("pluginConfig", []).sort(key=operator.itemgetter("name"))
    return encoded


def _version_errors(raw: Mapping[str, Any]) -> Iterable[FieldError]:
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    if not kind:
        yield required("kind", f"must be {KIND}")
    elif kind != KIND:
        yield not_supported("kind", kind, [KIND])
    if not api_version:
        yield required("apiVersion", f"must be {API_VERSION}")
    elif api_version != API_VERSION:
        if isinstance(api_version, str) and api_version.startswith(f"{GROUP}/v1"):
            words = f"this version was removed from Kubernetes; convert it to {API_VERSION}"
            yield invalid("apiVersion", api_version, words)
        else:
            yield not_supported("apiVersion", api_version, [API_VERSION])


def _prepare(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults that depend on whether a field is present."""
    prepared = dict(raw)
    profiles = raw.get("profiles")
    if isinstance(profiles, list) and len(profiles) == 1:
        profile = {} if profiles[0] is None else profiles[0]
        if isinstance(profile, Mapping) and profile.get("schedulerName") is None:
            prepared["profiles"] = [{**profile, "schedulerName": DEFAULT_SCHEDULER_NAME}]
    if raw.get("enableContentionProfiling") is None:
        prepared["enableContentionProfiling"] = raw.get("enableProfiling") is not False
    return prepared


def _args_errors(decoded: Configuration) -> Iterable[FieldError]:
    """Check for arguments with another plugin's kind, and of plugins that take none."""
    for i, profile in enumerate(decoded.profiles):
        for j, plugin_config in enumerate(profile.plugin_config):
            name, args = plugin_config.name, plugin_config.args
            path = child("profiles", i, "pluginConfig", j, "args")
            if not args:
                continue
            if name in ARGS_PLUGINS:
                yield from check_kind(args, f"{name}Args", path)
            elif name in IN_TREE_PLUGINS:
                yield forbidden(path, f"plugin {name} takes no args")


def _not_below(errors: Iterable[FieldError], paths: list[str]) -> Iterable[FieldError]:
    """Leave out errors in fields that have defaults because they could not be decoded."""
    for field_error in errors:
        if _COMPARED_WITH.get(field_error.path) in paths:
            continue
        if not is_below(field_error.path, paths):
            yield field_error


def _filled(value: S, **defaults: object) -> S:
    """Return a struct with defaults for its zero values, which mean absent in Go."""
    missing = {name: new for name, new in defaults.items() if not getattr(value, name)}
    return msgspec.structs.replace(value, **missing)


def _complete_profile(profile: ProfileConfiguration, gates: FeatureGates) -> ProfileConfiguration:
    plugins = merge_plugins(default_plugins(gates), profile.plugins)
    plugin_config = [
        PluginConfig(entry.name, complete_args(entry.name, entry.args, gates))
        if entry.name in ARGS_PLUGINS
        else entry
        for entry in profile.plugin_config
    ]
    configured = [entry.name for entry in plugin_config]
    enabled = {
        plugin.name for point in ExtensionPoint for plugin in plugin_set(plugins, point).enabled
    }
    plugin_config += (
        PluginConfig(name, complete_args(name, None, gates))
        for name in sorted(enabled)
        if name in ARGS_PLUGINS and name not in configured
    )
    return msgspec.structs.replace(profile, plugins=plugins, plugin_config=tuple(plugin_config))


def _encode_struct(value: msgspec.Struct) -> dict[str, Any]:
    hints = get_type_hints(type(value), include_extras=True)
    encoded: dict[str, Any] = {}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        if hints[field.name] == DurationSeconds:
            # A duration is a struct in Go, which `omitempty` never omits.
            encoded[field.encode_name] = go_duration(item)
        elif field.required or not value.__struct_config__.omit_defaults or item != field.default:
            encoded[field.encode_name] = _encode(item)
    return encoded


def _encode(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _encode_struct(value)
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        return {name: _encode(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return int(value) if isinstance(value, float) and value.is_integer() else value
