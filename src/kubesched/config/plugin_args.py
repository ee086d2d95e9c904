"""Defaulting of in-tree plugins' arguments.

Upstream: pkg/scheduler/apis/config/v1/defaults.go, pkg/scheduler/scheduler.go (buildExtenders)
          (v1.36)
Differs:  nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kubesched.config.args import ARGS_PLUGINS
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.field_errors import ConfigError, FieldError, child
from kubesched.config.types import API_VERSION, Configuration, PluginConfig, ProfileConfiguration

Args = dict[str, Any]

_FIT = "NodeResourcesFit"


def complete_args(plugin: str, raw: Mapping[str, Any] | None, gates: FeatureGates) -> Args:
    """Return the arguments of an in-tree plugin with apiVersion, kind and every default.

    Null counts as absent. Values of the wrong type are kept for the decoder to report.
    """
    args: Args = {name: value for name, value in (raw or {}).items() if value is not None}
    args.update(apiVersion=API_VERSION, kind=f"{plugin}Args")
    _DEFAULTS[plugin](args, gates)
    return args


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
    errors: list[FieldError] = []
    profiles: list[ProfileConfiguration] = []
    for i, profile in enumerate(configuration.profiles):
        names = [plugin_config.name for plugin_config in profile.plugin_config]
        if _FIT not in names:
            message = "can't find NodeResourcesFitArgs in plugin config"
            errors.append(FieldError(child("profiles", i, "pluginConfig"), message))
            continue
        at = names.index(_FIT)
        args = {**(profile.plugin_config[at].args or {}), "ignoredResources": ignored}
        plugin_config = list(profile.plugin_config)
        plugin_config[at] = PluginConfig(_FIT, args)
        profiles.append(msgspec.structs.replace(profile, plugin_config=tuple(plugin_config)))
    if errors:
        raise ConfigError(errors)
    return msgspec.structs.replace(configuration, profiles=tuple(profiles))


def _default_preemption(args: Args, _gates: FeatureGates) -> None:
    args.setdefault("minCandidateNodesPercentage", 10)
    args.setdefault("minCandidateNodesAbsolute", 100)


def _dynamic_resources(args: Args, gates: FeatureGates) -> None:
    if gates.enabled("DRASchedulerFilterTimeout"):
        args.setdefault("filterTimeout", "10s")
    conditions = gates.enabled("DRADeviceBindingConditions")
    if conditions and gates.enabled("DRAResourceClaimDeviceStatus"):
        args.setdefault("bindingTimeout", "10m0s")


def _inter_pod_affinity(args: Args, _gates: FeatureGates) -> None:
    args.setdefault("hardPodAffinityWeight", 1)
    args.setdefault("ignorePreferredTermsOfExistingPods", False)


def _node_affinity(_args: Args, _gates: FeatureGates) -> None:
    """NodeAffinity has no defaults."""


def _node_resources_balanced_allocation(args: Args, _gates: FeatureGates) -> None:
    args["resources"] = _resources(args.get("resources"))


def _node_resources_fit(args: Args, _gates: FeatureGates) -> None:
    strategy = args.setdefault("scoringStrategy", {"type": "LeastAllocated"})
    if isinstance(strategy, Mapping):
        resources = _resources(strategy.get("resources"))
        args["scoringStrategy"] = {**strategy, "resources": resources}


def _pod_topology_spread(args: Args, _gates: FeatureGates) -> None:
    if args.get("defaultingType", "") == "":
        args["defaultingType"] = "System"


def _volume_binding(args: Args, gates: FeatureGates) -> None:
    args.setdefault("bindTimeoutSeconds", 600)
    if gates.enabled("StorageCapacityScoring") and not args.get("shape"):
        args["shape"] = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]


def _resources(written: object) -> object:
    """Return weighted resources: cpu and memory if empty; a weight of 0 becomes 1."""
    if written is None or written == []:
        return [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
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


_DEFAULTS: dict[str, Callable[[Args, FeatureGates], None]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _node_resources_balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}
assert tuple(_DEFAULTS) == ARGS_PLUGINS
