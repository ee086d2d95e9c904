"""A sweep describes simulations to run: inputs x configurations x plugins x parameters x seeds.

It is plain data, read from YAML or JSON; docs/scenarios.md documents the format.

Reads:    a document with `version: 1`
Rejects:  unknown fields, wrong types and contradictions; reports all field errors at once, with
          paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kubesched.api.field_errors import (
    ConfigError,
    FieldError,
    child,
    duplicates,
    forbidden,
    invalid,
    required,
)
from kubesched.config.decoding import DurationSeconds, decode_struct
from kubesched.config.documents import check_version, read_source
from kubesched.config.feature_gates import setting_errors

VERSION: Final = 1

AXES: Final = ("input", "configuration", "plugins")
"""The columns of the results that every sweep has, before its parameters and the seed."""
SEED: Final = "seed"
ERROR: Final = "error"

Scalar: TypeAlias = str | int | float | bool

_SEEDS: Final = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_SEEDS_MAX: Final = 1_000_000
_TARGETS: Final = ("scenario.", "configuration.")


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a sweep: frozen, JSON names in camelCase."""


class SweepInput(_Part, frozen=True):
    """What is simulated.

    Attributes:
        name: The name in the results; by default that of the first file.
        files: A scenario, or the files and directories of a cluster, as `kubesched simulate` takes
            them. Names are relative to the sweep's directory.
        times: Whether pods of openb lists arrive and end at their recorded times.
        complete: Whether the files hold every object of the cluster.
    """

    name: str = ""
    files: tuple[str, ...] = ()
    times: bool = False
    complete: bool = False


class SweepConfiguration(_Part, frozen=True):
    """A scheduler to simulate; by default the scenario's own, or kube-scheduler's.

    Attributes:
        name: The name in the results; by default that of the file, or `default`.
        file: A file with a KubeSchedulerConfiguration.
        configuration: A KubeSchedulerConfiguration, instead.
        feature_gates: Gates that differ from their defaults.
    """

    name: str = ""
    file: str = ""
    configuration: dict[str, Any] = {}
    feature_gates: dict[str, bool] = {}


class SweepPlugins(_Part, frozen=True):
    """Out-of-tree plugins that are added to every profile.

    Attributes:
        name: The name in the results; by default those of the classes, or `none`.
        plugins: Each is `module:Class`, of an installed module or one beside the sweep's file, or
            `path/to/file.py:Class`.
    """

    name: str = ""
    plugins: tuple[str, ...] = ()


class SweepParameter(_Part, frozen=True):
    """A value that differs between runs.

    Attributes:
        name: The name of its column in the results.
        values: The values: texts, numbers, true and false.
        field: The field that gets the value: its path after `scenario.` or `configuration.`, such
            as `scenario.workloads[batch].pods.perHour`; an element of a list is named by its index
            or its `name`. A sweep with a function has parameters without fields.
    """

    name: str
    values: tuple[Any, ...]
    field: str = ""


class SweepSpec(_Part, frozen=True):
    """Simulations: every input with every configuration, plugins, parameter and seed.

    Attributes:
        version: The version of the format: 1.
        inputs: What is simulated.
        configurations: The schedulers; by default the scenario's, or kube-scheduler's defaults.
        plugins: Alternatives of out-of-tree plugins; by default none.
        parameters: Values that differ between runs.
        seeds: How many seeds, from 1 on; or a list of them; or a text such as `42-51,60`.
        duration: Virtual time instead of the scenarios' duration.
        function: `module:function`, which does a run instead of kubesched's own simulations. It
            gets a `SweepCase` and returns figures by their names.
        figures: Which figures of the report to keep, such as `totals.bound` or `waits.*.p99*`;
            by default a selection. A function chooses itself.
        show: Which of the figures the summary shows; by default all.
    """

    version: int
    inputs: tuple[SweepInput, ...] = ()
    configurations: tuple[SweepConfiguration, ...] = ()
    plugins: tuple[SweepPlugins, ...] = ()
    parameters: tuple[SweepParameter, ...] = ()
    seeds: int | str | tuple[int, ...] = 1
    duration: DurationSeconds | None = None
    function: str = ""
    figures: tuple[str, ...] = ()
    show: tuple[str, ...] = ()


def load_sweep(source: Path | Mapping[str, Any]) -> SweepSpec:
    """Load a sweep; raises ConfigError with every field error.

    It may still contradict itself: `sweep_errors` checks that after options have changed it.
    """
    errors: list[FieldError] = []
    raw = check_version(read_source(source, errors), "sweep", VERSION, errors)
    if "inputs" not in raw and raw.keys() & {"nodes", "workloads"}:
        raise ConfigError([FieldError("", "this is a scenario, not a sweep; name it with --input")])
    spec = decode_struct(SweepSpec, raw, "", errors)
    if errors:
        # Of a field that could not be read the default would be checked.
        unread = [error.path for error in errors]
        errors += [error for error in sweep_errors(named(spec)) if error.path not in unread]
        raise ConfigError(errors)
    return spec


def named(spec: SweepSpec) -> SweepSpec:
    """Return the sweep with a name for everything, and at least one entry on each axis."""
    return replace(
        spec,
        inputs=tuple(
            replace(each, name=each.name or (_stem(each.files[0]) if each.files else ""))
            for each in spec.inputs
        ),
        configurations=tuple(
            replace(each, name=each.name or _stem(each.file) or "default")
            for each in spec.configurations or (SweepConfiguration(),)
        ),
        plugins=tuple(
            replace(
                each,
                name=each.name
                or ",".join(plugin.rpartition(":")[2] for plugin in each.plugins)
                or "none",
            )
            for each in spec.plugins or (SweepPlugins(),)
        ),
    )


def _stem(file: str) -> str:
    return Path(file.removesuffix(".gz")).stem


def seeds_of(seeds: int | str | Sequence[int]) -> tuple[int, ...]:
    """Return the seeds, in order; raises ValueError with how to write them."""
    if isinstance(seeds, int):
        found: list[int] = list(range(1, seeds + 1)) if 0 < seeds <= _SEEDS_MAX else []
    elif isinstance(seeds, str):
        found = []
        for part in seeds.split(","):
            match = _SEEDS.fullmatch(part.strip())
            if match is None:
                raise ValueError("write numbers and ranges, such as 42-51,60")
            first, last = int(match[1]), int(match[2] or match[1])
            if not 0 <= last - first < _SEEDS_MAX:
                raise ValueError(f"the range {part.strip()} is empty or too long")
            found += range(first, last + 1)
    else:
        found = list(seeds)
    if not found or len(found) > _SEEDS_MAX:
        raise ValueError(f"there must be 1 to {_SEEDS_MAX} seeds")
    if len(set(found)) < len(found):
        raise ValueError("a seed is given twice")
    if min(found) < 0:
        raise ValueError("a seed is not negative")
    return tuple(found)


# Contradictions.


def sweep_errors(spec: SweepSpec) -> Iterator[FieldError]:
    """Yield what is wrong with a sweep that has names, apart from its files."""
    if not spec.inputs:
        yield required("inputs", "name at least one scenario or cluster")
    for i, given in enumerate(spec.inputs):
        if not given.files:
            yield required(child("inputs", i, "files"), "name at least one file")
    for axis in ("inputs", "configurations", "plugins", "parameters"):
        yield from duplicates([each.name for each in getattr(spec, axis)], axis, "name")
    for i, configuration in enumerate(spec.configurations):
        if configuration.file and configuration.configuration:
            path = child("configurations", i, "file")
            yield forbidden(path, "there is a `configuration` already; leave out one")
        gates = configuration.feature_gates
        yield from setting_errors(gates, child("configurations", i, "featureGates"))
    for i, parameter in enumerate(spec.parameters):
        yield from _parameter_errors(parameter, child("parameters", i), spec)
    if spec.duration is not None and spec.duration <= 0:
        yield invalid("duration", spec.duration, "must be greater than 0s")
    yield from _seed_errors(spec)
    if spec.function:
        yield from _function_errors(spec)


def _seed_errors(spec: SweepSpec) -> Iterator[FieldError]:
    try:
        seeds_of(spec.seeds)
    except ValueError as error:
        yield invalid("seeds", spec.seeds, str(error))


def _parameter_errors(
    parameter: SweepParameter, path: str, spec: SweepSpec
) -> Iterator[FieldError]:
    taken = (*AXES, SEED, ERROR)
    if not parameter.name or parameter.name in taken:
        detail = f"must not be empty, nor one of {', '.join(taken)}, which the results have already"
        yield invalid(child(path, "name"), parameter.name, detail)
    if not parameter.values:
        yield required(child(path, "values"), "name at least one value")
    for i, value in enumerate(parameter.values):
        if not isinstance(value, str | int | float):
            place = child(path, "values", i)
            yield invalid(place, value, "must be a text, a number, true or false")
    yield from duplicates(parameter.values, child(path, "values"))
    field = child(path, "field")
    if not spec.function and not parameter.field.startswith(_TARGETS):
        detail = f"must begin with {' or '.join(_TARGETS)}"
        yield (
            invalid(field, parameter.field, detail) if parameter.field else required(field, detail)
        )


def _function_errors(spec: SweepSpec) -> Iterator[FieldError]:
    why = "a function does the runs, so it has no effect; leave it out"
    for name in ("figures", "duration"):
        if getattr(spec, name):
            yield forbidden(name, why)
    for i, given in enumerate(spec.inputs):
        for name in ("times", "complete"):
            if getattr(given, name):
                yield forbidden(child("inputs", i, name), why)
    for i, parameter in enumerate(spec.parameters):
        if parameter.field:
            yield forbidden(child("parameters", i, "field"), why)
