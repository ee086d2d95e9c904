"""The arguments of DynamicResources.

Upstream: pkg/scheduler/apis/config/types_pluginargs.go,
          pkg/scheduler/apis/config/validation/validation_pluginargs.go (v1.36)
Differs:  nothing.
"""

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
    filter_path, binding_path = child(path, "filterTimeout"), child(path, "bindingTimeout")
    errors = [
        *_filter_timeout_errors(args.filter_timeout_seconds, gates, filter_path),
        *_binding_timeout_errors(args.binding_timeout_seconds, gates, binding_path),
    ]
    if errors:
        raise ConfigError(errors)
    return args


def _filter_timeout_errors(
    seconds: float | None, gates: FeatureGates, path: str
) -> list[FieldError]:
    if seconds is None:
        return []
    if not gates.enabled("DRASchedulerFilterTimeout"):
        return [forbidden(path, "DRASchedulingFilterTimeout feature gate is disabled")]
    if seconds < 0:
        return [invalid(path, go_duration(seconds), "must be zero or positive")]
    return []


def _binding_timeout_errors(
    seconds: float | None, gates: FeatureGates, path: str
) -> list[FieldError]:
    if seconds is None:
        return []
    if not has_binding_conditions(gates):
        gate = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate"
        return [forbidden(path, f"{gate} is disabled")]
    if seconds < 1:
        return [invalid(path, go_duration(seconds), "must be at least 1 second")]
    return []


def has_binding_conditions(gates: FeatureGates) -> bool:
    """Whether binding may have to wait for devices."""
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled(
        "DRAResourceClaimDeviceStatus"
    )
