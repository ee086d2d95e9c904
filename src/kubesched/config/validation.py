"""Validation of a defaulted configuration, and rules that plugins share for their own arguments.

Upstream: pkg/scheduler/apis/config/validation, component-base/config/validation/validation.go,
          client-go's leader elector (v1.36)
Rejects:  what upstream rejects, with the same messages; see the functions.
Differs:  the leader elector's rule for renewDeadline is checked here, not when the election starts;
          plugins check their own arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubesched.api.field_errors import FieldError, child, duplicate, invalid, required
from kubesched.api.go_text import go_duration
from kubesched.api.names import is_extended_resource_name, label_key_errors
from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.config.plugin_sets import ExtensionPoint, plugin_set
from kubesched.config.types import (
    API_VERSION,
    Configuration,
    ExtenderConfiguration,
    LeaderElection,
    PluginSet,
    ProfileConfiguration,
)

# Rules that plugins use, too.

_SHAPE_SCORE_MAX = 10


def validate_label_name(name: str, path: str) -> tuple[FieldError, ...]:
    """Check a label key."""
    return tuple(invalid(path, name, words) for words in label_key_errors(name))


def validate_extended_resource_name(name: str, path: str) -> tuple[FieldError, ...]:
    """Check the name of an extended resource."""
    errors = validate_label_name(name, path)
    if errors or is_extended_resource_name(name):
        return errors
    return (invalid(path, name, "is an invalid extended resource name"),)


def validate_resources(resources: Sequence[ResourceSpec], path: str) -> tuple[FieldError, ...]:
    """Check weighted resources: weights are from 1 to 100."""
    return tuple(
        invalid(
            child(path, i, "weight"),
            resource.weight,
            f"resource weight of {resource.name} not in valid range (0, 100]",
        )
        for i, resource in enumerate(resources)
        if not 0 < resource.weight <= 100
    )


def validate_function_shape(
    shape: Sequence[UtilizationShapePoint], path: str
) -> tuple[FieldError, ...]:
    """Check a scoring function: utilization strictly increases in 0..100, scores are 0..10."""
    if not shape:
        return (required(path, "at least one point must be specified"),)
    errors: list[FieldError] = []
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            place = child(path, i, "utilization")
            words = "values must be sorted in increasing order"
            errors.append(invalid(place, shape[i].utilization, words))
            break
    for i, point in enumerate(shape):
        errors += validate_range(point.utilization, child(path, i, "utilization"), 100)
        errors += validate_range(point.score, child(path, i, "score"), _SHAPE_SCORE_MAX)
    return tuple(errors)


def validate_range(value: int, path: str, most: int) -> tuple[FieldError, ...]:
    """Check a number: it is from 0 to `most`."""
    if 0 <= value <= most:
        return ()
    return (invalid(path, value, f"not in valid range [0, {most}]"),)


# Configurations.

_REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

# Upstream does not look for removed plugins here.
_UNCHECKED_POINTS = (
    ExtensionPoint.PLACEMENT_GENERATE,
    ExtensionPoint.PLACEMENT_SCORE,
    ExtensionPoint.MULTI_POINT,
)
_ELECTOR_JITTER = 1.2


def validate(configuration: Configuration) -> Iterator[FieldError]:
    """Yield all field errors of a defaulted configuration, in upstream's order."""
    burst = configuration.client_connection.burst
    if burst < 0:
        yield invalid("clientConnection.burst", burst, "must be non-negative")
    if configuration.leader_election.leader_elect:
        yield from _leader_election_errors(configuration.leader_election)
    parallelism = configuration.parallelism
    if parallelism <= 0:
        yield invalid("parallelism", parallelism, "should be an integer value greater than zero")
    yield from _profiles_errors(configuration.profiles)
    percentage = configuration.percentage_of_nodes_to_score
    yield from _percentage_errors(percentage, "percentageOfNodesToScore")
    initial = configuration.pod_initial_backoff_seconds
    most = configuration.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if most < initial:
        words = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", most, words)
    yield from _extenders_errors(configuration.extenders)


def _leader_election_errors(election: LeaderElection) -> Iterator[FieldError]:
    path = "leaderElection"
    lease, renew = election.lease_duration_seconds, election.renew_deadline_seconds
    retry = election.retry_period_seconds
    for name, seconds in (
        ("leaseDuration", lease),
        ("renewDeadline", renew),
        ("retryPeriod", retry),
    ):
        if seconds <= 0:
            yield invalid(child(path, name), go_duration(seconds), "must be greater than zero")
    if lease <= renew:
        # Upstream shows renewDeadline's value in the error of leaseDuration.
        words = "must be greater than `RenewDeadline`"
        yield invalid(child(path, "leaseDuration"), go_duration(renew), words)
    if renew <= retry * _ELECTOR_JITTER:
        words = "must be greater than retryPeriod*JitterFactor"
        yield invalid(child(path, "renewDeadline"), go_duration(renew), words)
    if election.resource_lock != "leases":
        words = 'resourceLock value must be "leases"'
        yield invalid(child(path, "resourceLock"), election.resource_lock, words)


def _percentage_errors(percentage: int | None, path: str) -> Iterator[FieldError]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _profiles_errors(profiles: Sequence[ProfileConfiguration]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, profile in enumerate(profiles):
        place = child("profiles", i)
        yield from _profile_errors(profile, place)
        if profile.scheduler_name in seen:
            # Upstream prints the other profile's path, which it encodes as {}.
            yield duplicate(child(place, "schedulerName"), {})
        seen.add(profile.scheduler_name)
    yield from _queue_sort_errors(profiles)


def _profile_errors(profile: ProfileConfiguration, path: str) -> Iterator[FieldError]:
    if not profile.scheduler_name:
        yield required(child(path, "schedulerName"))
    place = child(path, "percentageOfNodesToScore")
    yield from _percentage_errors(profile.percentage_of_nodes_to_score, place)
    for point in ExtensionPoint:
        enabled = () if point in _UNCHECKED_POINTS else plugin_set(profile.plugins, point).enabled
        for i, plugin in enumerate(enabled):
            place = child(path, "plugins", point.value, "enabled", i)
            yield from _removed_plugin_errors(plugin.name, place)
    seen: set[str] = set()
    for i, plugin_config in enumerate(profile.plugin_config):
        place = child(path, "pluginConfig", i)
        if plugin_config.name in seen:
            yield duplicate(place, plugin_config.name)
        seen.add(plugin_config.name)
        yield from _removed_plugin_errors(plugin_config.name, place)


def _removed_plugin_errors(name: str, path: str) -> Iterator[FieldError]:
    if name in _REMOVED_PLUGINS:
        version = f'"{API_VERSION}"'
        words = (
            f"was invalid in version {version} (KubeSchedulerConfiguration is version {version})"
        )
        yield invalid(path, name, words)


def _queue_sort_errors(profiles: Sequence[ProfileConfiguration]) -> Iterator[FieldError]:
    """Check that all profiles have the same queue sort plugin, because they share one queue."""
    canon = profiles[0].plugins.queue_sort
    name = canon.enabled[0].name if canon.enabled else ""
    if len(canon.enabled) > 1:
        place = child("profiles", 0, "plugins", "queueSort", "Enabled")
        yield invalid(place, len(canon.enabled), "only one queue sort plugin can be enabled")
    canon_args = None
    for plugin_config in profiles[0].plugin_config:
        if name and plugin_config.name == name:
            canon_args = plugin_config.args
    for i, profile in enumerate(profiles[1:], start=1):
        current = profile.plugins.queue_sort
        if current != canon:
            place = child("profiles", i, "plugins", "queueSort")
            yield invalid(place, _go_plugin_set(current), "must be the same for all profiles")
        for plugin_config in profile.plugin_config:
            if plugin_config.name == name and plugin_config.args != canon_args:
                place = child("profiles", i, "pluginConfig", "args")
                words = "queueSort must be the same for all profiles"
                yield invalid(place, plugin_config.args, words)


def _go_plugin_set(plugins: PluginSet) -> dict[str, object]:
    """Return a plugin set as upstream's internal type prints it."""
    return {
        name: [{"Name": plugin.name, "Weight": plugin.weight} for plugin in listed] or None
        for name, listed in (("Enabled", plugins.enabled), ("Disabled", plugins.disabled))
    }


def _extenders_errors(extenders: Sequence[ExtenderConfiguration]) -> Iterator[FieldError]:
    binders = sum(1 for extender in extenders if extender.bind_verb)
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        place = child("extenders", i)
        if extender.prioritize_verb and extender.weight <= 0:
            words = "must have a positive weight applied to it"
            yield invalid(child(place, "weight"), extender.weight, words)
        yield from _managed_resource_errors(extender, place, managed)
    if binders > 1:
        value = f"found {binders} extenders implementing bind"
        yield invalid("extenders", value, "only one extender can implement bind")


def _managed_resource_errors(
    extender: ExtenderConfiguration, path: str, managed: set[str]
) -> Iterator[FieldError]:
    """Check one extender's resources; `managed` collects the names of all extenders' resources."""
    for i, resource in enumerate(extender.managed_resources):
        place = child(path, "managedResources", i, "name")
        yield from validate_extended_resource_name(resource.name, place)
        if resource.name in managed:
            yield invalid(place, resource.name, "duplicate extender managed resource name")
        managed.add(resource.name)
