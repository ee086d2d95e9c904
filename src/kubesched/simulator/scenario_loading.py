"""Loads and validates a scenario, reporting all field errors with their paths.

Rejects:  contradictions between fields, as documented in `scenario`; templates that are not
          Kubernetes objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubesched.api.codec import DecodeError
from kubesched.api.field_errors import (
    ConfigError,
    FieldError,
    camel_case,
    child,
    duplicate,
    duplicates,
    forbidden,
    invalid,
    is_below,
    not_supported,
    required,
)
from kubesched.api.tolerations import EFFECTS
from kubesched.api.well_known import SYSTEM_CLASSES
from kubesched.config.decoding import decode_struct
from kubesched.config.documents import check_version, read_source, with_fields
from kubesched.config.feature_gates import setting_errors
from kubesched.explain.sentences import names
from kubesched.simulator.scenario import (
    VERSION,
    DisruptionBudget,
    NodeGroup,
    PodArrivals,
    RunTime,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
)
from kubesched.simulator.scenario_objects import nodes_of, template_of, unknown_classes
from kubesched.simulator.soundness import amount_errors, spec_errors
from kubesched.simulator.virtual_loop import SECONDS_MAX

_WORKLOADS: Final = ("pods", "deployment", "daemon_set", "trace")
_BUDGETS: Final = ("min_available", "max_unavailable")
_RUN_TIMES: Final = RunTime.__struct_fields__
_ACTIONS: Final = tuple(
    name for name in ScenarioEvent.__struct_fields__ if name not in ("at", "every")
)
_EVICTION_POLICIES: Final = ("IfHealthyBudget", "AlwaysAllow")
_PERCENT: Final = re.compile(r"[0-9]+%")
_FIELDS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(Scenario))
NO_CHANGES: Final[Mapping[str, object]] = {}
_TOO_SHORT: Final = "must be greater than 0s"
_PER_HOUR_MAX: Final = 3_600_000_000
_TOO_OFTEN: Final = f"must be at most {_PER_HOUR_MAX}, which is one in a microsecond"
_PRIORITY_MAX: Final = 1_000_000_000
_TOO_LONG: Final = "must be at most 100 years"


def load_scenario(
    source: Path | str | bytes | Mapping[str, Any], changes: Mapping[str, object] = NO_CHANGES
) -> Scenario:
    """Load and validate a scenario.

    `source` is a Path to a file, with file names relative to it, text as str or bytes, or the
    decoded mapping; `changes` are values that replace those of the source, by the paths of their
    fields. Raises ConfigError with every field error.
    """
    errors: list[FieldError] = []
    read = read_source(source, errors)
    _refuse_others(read)
    changed = with_fields(read, changes)
    raw = check_version(changed, "scenario", VERSION, errors)
    scenario = decode_struct(Scenario, raw, "", errors)
    unread = [field_error.path for field_error in errors]
    errors += (
        field_error for field_error in _errors(scenario) if not _is_noise(field_error, unread)
    )
    if errors:
        raise ConfigError(errors)
    return with_places(scenario, source.parent) if isinstance(source, Path) else scenario


def _refuse_others(read: object) -> None:
    """Raise ConfigError if a document is another program's, such as Docker Compose's."""
    if not isinstance(read, Mapping):
        return
    others = [name for name in read if name not in _FIELDS]
    if others and not read.keys() & (_FIELDS - {"version", "name"}):
        words = (
            f"this is neither a scenario nor Kubernetes objects, but has {names(others)}; a "
            f"scenario has `version: {VERSION}`, `duration` and `nodes`, objects have `apiVersion` "
            "and `kind`"
        )
        if "inputs" in others:
            words = "this is a sweep, not a scenario; `kubesched sweep` runs it"
        raise ConfigError([FieldError("", words)])


class _NoneGivenError(FieldError, frozen=True):
    """None of several fields is set; `choices` are their paths."""

    choices: tuple[str, ...] = ()


def _is_noise(field_error: FieldError, unread: Sequence[str]) -> bool:
    """Whether a field error is only a consequence of fields that could not be read."""
    if is_below(field_error.path, unread):
        return True
    choices = field_error.choices if isinstance(field_error, _NoneGivenError) else ()
    return any(is_below(place, choices) for place in unread)


def with_places(scenario: Scenario, directory: Path) -> Scenario:
    """Return the scenario with file names resolved against its directory."""

    def found(name: str) -> str:
        return str(directory / name) if name else ""

    return replace(
        scenario,
        objects=tuple(map(found, scenario.objects)),
        nodes=tuple(replace(group, trace=found(group.trace)) for group in scenario.nodes),
        workloads=tuple(
            workload
            if workload.trace is None
            else replace(workload, trace=replace(workload.trace, pods=found(workload.trace.pods)))
            for workload in scenario.workloads
        ),
        scheduler=replace(
            scenario.scheduler, configuration_file=found(scenario.scheduler.configuration_file)
        ),
    )


# Contradictions.


def _errors(scenario: Scenario) -> Iterator[FieldError]:
    yield from _duration_errors(scenario, "")
    if scenario.duration == 0:
        yield invalid("duration", scenario.duration, _TOO_SHORT)
    elif scenario.duration > SECONDS_MAX:
        yield invalid("duration", scenario.duration, _TOO_LONG)
    names_of_groups = [group.name for group in scenario.nodes if not group.trace]
    yield from duplicates(names_of_groups, "nodes", "name")
    for i, group in enumerate(scenario.nodes):
        yield from _node_errors(group, child("nodes", i))
    yield from _class_errors(scenario)
    yield from duplicates([workload.name for workload in scenario.workloads], "workloads", "name")
    for i, workload in enumerate(scenario.workloads):
        yield from _workload_errors(workload, child("workloads", i))
    if not scenario.objects:  # which may have other classes
        known = {*SYSTEM_CLASSES, *(spec.name for spec in scenario.priority_classes)}
        yield from unknown_classes(scenario.workloads, known)
    for i, event in enumerate(scenario.events):
        yield from _event_errors(event, child("events", i))
    if scenario.scheduler.configuration and scenario.scheduler.configuration_file:
        yield forbidden("scheduler.configurationFile", "there is a configuration, too")
    yield from setting_errors(scenario.scheduler.feature_gates, "scheduler.featureGates")
    prefixes = [spec.url_prefix for spec in scenario.scheduler.extenders]
    yield from duplicates(prefixes, "scheduler.extenders", "urlPrefix")
    for name in ("resolution", "check_every"):
        yield from _zero_error(getattr(scenario.report, name), child("report", camel_case(name)))


def _zero_error(seconds: float | None, path: str) -> Iterator[FieldError]:
    if seconds == 0:
        yield invalid(path, 0, _TOO_SHORT)


def _duration_errors(part: msgspec.Struct, path: str) -> Iterator[FieldError]:
    """Yield an error for every negative duration, at any depth."""
    for field in msgspec.structs.fields(type(part)):
        value = getattr(part, field.name)
        place = child(path, field.encode_name)
        if isinstance(value, msgspec.Struct):
            yield from _duration_errors(value, place)
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, msgspec.Struct):
                    yield from _duration_errors(item, child(place, i))
                elif isinstance(item, float) and item < 0:
                    yield invalid(child(place, i), item, "must not be negative")
        elif isinstance(value, float) and value < 0:
            yield invalid(place, value, "must not be negative")


def _node_errors(group: NodeGroup, path: str) -> Iterator[FieldError]:
    if group.trace:
        if group != NodeGroup(trace=group.trace, at=group.at):
            yield forbidden(path, "beside `trace`, only `at` can be set")
        return
    if not group.name:
        yield required(child(path, "name"))
        return
    try:
        node = next(nodes_of(replace(group, count=1)))
    except DecodeError as error:
        yield FieldError(path, _message(error))
        return
    yield from amount_errors(node.status.allocatable, path, "allocatable")
    for i, taint in enumerate(node.spec.taints):
        if taint.effect not in EFFECTS:
            yield not_supported(child(path, "taints", i, "effect"), taint.effect, EFFECTS)


def _message(error: DecodeError) -> str:
    """Return the message of a decode error without the file name, which does not apply here."""
    place = (error.path or "").removeprefix("$.").removeprefix("$")
    return f"{place}: {error.problem}" if place else error.problem


def _class_errors(scenario: Scenario) -> Iterator[FieldError]:
    classes = scenario.priority_classes
    yield from duplicates([spec.name for spec in classes], "priorityClasses", "name")
    for i, spec in enumerate(classes):
        policies = ("PreemptLowerPriority", "Never")
        if spec.preemption_policy and spec.preemption_policy not in policies:
            place = child("priorityClasses", i, "preemptionPolicy")
            yield not_supported(place, spec.preemption_policy, policies)
        if spec.name in SYSTEM_CLASSES:
            yield duplicate(child("priorityClasses", i, "name"), spec.name)
        if spec.value > _PRIORITY_MAX:
            place = child("priorityClasses", i, "value")
            yield invalid(place, spec.value, f"must be at most {_PRIORITY_MAX}")


def _workload_errors(workload: ScenarioWorkload, path: str) -> Iterator[FieldError]:
    if not workload.namespace:
        yield required(child(path, "namespace"), "leave it out for default")
    yield from _one_of(workload, path, _WORKLOADS)
    if workload.pods is not None:
        yield from _arrival_errors(workload.pods, child(path, "pods"))
    if workload.disruption_budget is not None:
        place = child(path, "disruptionBudget")
        if workload.trace is not None:
            yield forbidden(place, "the pods of a trace have no label to select them by")
        yield from _budget_errors(workload.disruption_budget, place)
    try:
        template = template_of(workload)
    except DecodeError as error:
        yield FieldError(path, _message(error))
    else:
        yield from spec_errors(template.spec, child(path, "template.spec"))


def _budget_errors(budget: DisruptionBudget, path: str) -> Iterator[FieldError]:
    yield from _one_of(budget, path, _BUDGETS)
    for name in _BUDGETS:
        amount = getattr(budget, name)
        is_share = isinstance(amount, str) and _PERCENT.fullmatch(amount)
        if amount is not None and not is_share and (not isinstance(amount, int) or amount < 0):
            words = "must be a number of pods, or a percentage"
            yield invalid(child(path, camel_case(name)), amount, words)
    policy = budget.unhealthy_pod_eviction_policy
    if policy is not None and policy not in _EVICTION_POLICIES:
        place = child(path, "unhealthyPodEvictionPolicy")
        yield not_supported(place, policy, _EVICTION_POLICIES)


def _one_of(part: msgspec.Struct, path: str, names: Sequence[str]) -> Iterator[FieldError]:
    """Yield an error unless exactly one of some fields is set."""
    given = [camel_case(name) for name in names if getattr(part, name) not in (None, ())]
    if not given:
        choices = [camel_case(name) for name in names]
        field_error = required(path, f"one of {', '.join(choices)}")
        paths = tuple(child(path, name) for name in choices)
        yield _NoneGivenError(path, field_error.message, choices=paths)
    for name in given[1:]:
        yield forbidden(child(path, name), f"there is {given[0]} already, and only one may be")


def _arrival_errors(arrivals: PodArrivals, path: str) -> Iterator[FieldError]:
    yield from _one_of(arrivals, path, ("at", "every", "per_hour"))
    yield from _zero_error(arrivals.every, child(path, "every"))
    if arrivals.per_hour is not None and arrivals.per_hour > _PER_HOUR_MAX:
        yield invalid(child(path, "perHour"), arrivals.per_hour, _TOO_OFTEN)
    if arrivals.run_time is not None:
        yield from _run_time_errors(arrivals.run_time, child(path, "runTime"))
    elif arrivals.restart:
        yield forbidden(child(path, "restart"), "pods without a runTime have no end to reach")


def _run_time_errors(run_time: RunTime, path: str) -> Iterator[FieldError]:
    yield from _one_of(run_time, path, _RUN_TIMES)
    yield from _zero_error(run_time.exponential, child(path, "exponential"))
    uniform = run_time.uniform
    if uniform is not None and uniform.max < uniform.min:
        yield invalid(child(path, "uniform", "max"), uniform.max, "must not be less than min")
    if run_time.log_normal is not None:
        yield from _zero_error(run_time.log_normal.median, child(path, "logNormal", "median"))


def _event_errors(event: ScenarioEvent, path: str) -> Iterator[FieldError]:
    yield from _one_of(event, path, _ACTIONS)
    yield from _zero_error(event.every, child(path, "every"))
    if event.label is not None and not event.label.set and not event.label.remove:
        yield required(child(path, "label"), "set or remove")
