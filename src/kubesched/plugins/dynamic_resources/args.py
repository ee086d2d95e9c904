"""The arguments of DynamicResources.

Upstream: pkg/scheduler/apis/config/types_pluginargs.go,
          pkg/scheduler/apis/config/validation/validation_pluginargs.go (v1.36)
Differs:  nothing.
"""

from collections.abc import Iterator

import msgspec

from kubesched.api.field_errors import ConfigError, FieldError, child, forbidden, invalid
from kubesched.api.go_text import go_duration
from kubesched.config.args import PluginArgs, decode_args
from kubesched.config.decoding import DurationSeconds
from kubesched.config.feature_gates import FeatureGates


class DynamicResourcesArgs(PluginArgs, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments.

    Attributes:
        filter_timeout_seconds: The timeout of the search for devices on one node; 0 is none.
        binding_timeout_seconds: How long devices may take to become ready.
    """

    filter_timeout_seconds: DurationSeconds | None = msgspec.field(
        default=None, name="filterTimeout"
    )
    binding_timeout_seconds: DurationSeconds | None = msgspec.field(
        default=None, name="bindingTimeout"
    )


def decode_dynamic_resources_args(
    raw: dict[str, object] | None, gates: FeatureGates, path: str
) -> DynamicResourcesArgs:
    """Decode and validate; a timeout is allowed only if its feature gate is on.

    Raises:
        ConfigError: With every field error found.
    """
    args = decode_args(DynamicResourcesArgs, raw, path)
    errors = list(_errors_of(args, gates, path))
    if errors:
        raise ConfigError(errors)
    return args


def _errors_of(args: DynamicResourcesArgs, gates: FeatureGates, path: str) -> Iterator[FieldError]:
    filters, binds = gates.enabled("DRASchedulerFilterTimeout"), has_binding_conditions(gates)
    binding_gates = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
    filter_, binding = args.filter_timeout_seconds, args.binding_timeout_seconds
    for field, seconds, is_on, gate, least, words in (
        ("filterTimeout", filter_, filters, "DRASchedulingFilterTimeout", 0, "zero or positive"),
        ("bindingTimeout", binding, binds, binding_gates, 1, "at least 1 second"),
    ):
        place = child(path, field)
        if seconds is not None and not is_on:
            yield forbidden(place, f"{gate} feature gate is disabled")
        elif seconds is not None and seconds < least:
            yield invalid(place, go_duration(seconds), f"must be {words}")


def has_binding_conditions(gates: FeatureGates) -> bool:
    """Whether binding may have to wait for devices."""
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled(
        "DRAResourceClaimDeviceStatus"
    )
