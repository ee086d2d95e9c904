"""Scenarios as a user names them: a file of one, or lists of the openb trace.

Rejects:  invalid scenarios, with the file before each field error.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict, replace

from kubesched.api.codec import DecodeError
from kubesched.api.core import Node
from kubesched.api.decode import STANDARD_INPUT, content_of, load
from kubesched.api.field_errors import ConfigError, FieldError, child, invalid
from kubesched.api.meta import KubeObject
from kubesched.config.documents import read_document
from kubesched.config.load import encode_configuration
from kubesched.config.types import DEFAULT_SCHEDULER_NAME, Configuration
from kubesched.explain.sentences import grouped_by, names
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.inputs.cluster_input import check_workloads, head_of
from kubesched.inputs.completed_input import unknown_fields
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import check_plugins, in_file, load_scheduler, texts_in_file
from kubesched.inputs.sources import SchedulerOptions, gates_text, read_problem
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.scenario import (
    ExtenderSpec,
    NodeGroup,
    NodeSelection,
    Scenario,
    ScenarioWorkload,
    TraceSpec,
)
from kubesched.simulator.scenario_loading import NO_CHANGES, load_scenario, with_places
from kubesched.simulator.scenario_objects import node_names, template_of
from kubesched.simulator.traces import RUN_SECONDS, is_openb, trace_pods
from kubesched.simulator.virtual_loop import SECONDS_MAX

_BYTES_MAX: Final = 4 << 20
"""Larger files are dumps, not scenarios, and are not read twice."""
_VERSION: Final = re.compile(rb"""(?:^|[{,])\s*["']?version["']?\s*:""", re.MULTILINE)
_OF_OBJECTS: Final = re.compile(
    rb"""^(?:apiVersion|kind|items)\s*:|\A\s*\{\s*"(?:apiVersion|kind|items)"\s*:""", re.MULTILINE
)
_A_SCENARIO: Final = (
    "a scenario describes what happens over time: `version: 1`, `duration`, `nodes`, ..."
)
_CONFIGURATION_FILE: Final = "scheduler.configurationFile"
_AFTER_THE_LAST_SECONDS: Final = 60.0


class Play(NamedTuple):
    """A scenario, the registry of its plugins, and the file that errors name."""

    scenario: Scenario
    registry: Registry
    file: Path | None

    def changed(self, seed: int | None, duration_seconds: float | None) -> Play:
        """Return the same scenario with another seed and duration; None changes nothing.

        Raises UserError if the duration is too long, or not longer than 0s.
        """
        scenario = self.scenario
        if duration_seconds is not None and duration_seconds > SECONDS_MAX:
            raise UserError("--duration: it is longer than a scenario may be")
        if duration_seconds is not None and not duration_seconds > 0:
            raise UserError("--duration: it must be longer than 0s")
        return self._replace(
            scenario=replace(
                scenario,
                seed=scenario.seed if seed is None else seed,
                duration=scenario.duration if duration_seconds is None else duration_seconds,
            )
        )


def is_scenario(file: Path) -> bool:
    """Whether a file is a scenario, valid or not: it has `version` and no `kind`."""
    try:
        if not file.is_file() or file.stat().st_size > _BYTES_MAX:
            return False
        data = file.read_bytes()
    except OSError:
        return False  # the error is reported when it is read
    with suppress(DecodeError):
        data = content_of(data, str(file))
    if _OF_OBJECTS.search(data) or not _VERSION.search(data):
        return False
    errors: list[FieldError] = []
    try:
        raw = read_document(data, errors)
    except ConfigError:
        # It cannot be parsed; its beginning may be enough.
        return re.match(rb"\s*(?:#.*\n|---\s*\n|\s)*version\s*:", data) is not None
    return isinstance(raw, Mapping) and "version" in raw and "kind" not in raw


def holds_cluster(file: Path) -> bool:
    """Whether a file holds Kubernetes objects or a trace; a directory, a pipe and stdin do.

    Raises OSError if the file cannot be read.
    """
    return bool(_why_no_scenario(file))


def _why_no_scenario(file: Path) -> str:
    """Return what is read as a cluster instead, and the remedy; "" if it may be a scenario."""
    # A pipe can be read only once.
    if file.is_dir() or file.is_fifo() or str(file) == STANDARD_INPUT:
        what = "a directory" if file.is_dir() else "a pipe" if file.is_fifo() else "stdin"
        return f"a scenario is a file, and this is {what}; {_A_SCENARIO}"
    head = head_of(file)
    if is_openb(head):
        return (
            "this is a list of the openb trace, not a scenario; name it in one, under "
            "nodes[].trace or workloads[].trace.pods, or play it alone with "
            "`kubesched simulate --times`"
        )
    is_large = file.stat().st_size > _BYTES_MAX
    if _OF_OBJECTS.search(head if is_large else head + file.read_bytes()):
        return (
            f"this holds Kubernetes objects, not a scenario; {_A_SCENARIO}; scenarios are "
            "compared with scenarios, and clusters with clusters; a configuration is --config FILE"
        )
    return ""


def read_scenario(
    source: Path | Mapping[str, Any], changes: Mapping[str, object] = NO_CHANGES
) -> Play:
    """Read a scenario; `changes` are values that replace those of the source, by their paths.

    Raises UserError with one line per field error, or with what the file is instead; DecodeError
    and OSError.
    """
    file = source if isinstance(source, Path) else None
    text: bytes | Mapping[str, Any]
    if isinstance(source, Path):
        if why := _why_no_scenario(source):
            raise UserError(f"{file}: {why}")
        text = content_of(source.read_bytes(), str(source))
    else:
        text = source
    with in_file(file):
        scenario = load_scenario(text, changes)
        _check_templates(scenario)
    if file is not None:
        scenario = with_places(scenario, file.parent)
    return Play(scenario, in_tree_registry(), file)


def _check_templates(scenario: Scenario) -> None:
    """Raise ConfigError if templates have fields that nodes and pods do not have."""
    nodes = [("Node", "nodes", i, group.template) for i, group in enumerate(scenario.nodes)]
    pods = [("Pod", "workloads", i, one.template) for i, one in enumerate(scenario.workloads)]
    written = [each for each in (*nodes, *pods) if each[-1]]
    if not written:
        return
    # Imported late: most scenarios have no templates.
    from kubesched.apiserver.schema import unknown_field_paths

    errors = [
        FieldError(child(part, i, "template", path), "unknown field")
        for kind, part, i, template in written
        for path in unknown_field_paths("v1", kind, dict(template))
    ]
    if errors:
        raise ConfigError(errors)


def read_trace(files: Sequence[Path]) -> Play:
    """Return a scenario that replays openb lists of nodes and pods until the last pod's end.

    Raises DecodeError, and UserError if a file is no such list, or nodes or pods are missing.
    """
    nodes, pods = _sorted_lists(files)
    traced = [each for file in pods for each in trace_pods(str(file))]
    if not traced:
        raise UserError(f"--times: {', '.join(map(str, pods))}: there are no pods")
    seconds = max(
        each.at + float(each.pod.metadata.annotations.get(RUN_SECONDS, 0.0)) for each in traced
    )
    scenario = Scenario(
        version=1,
        duration=seconds + _AFTER_THE_LAST_SECONDS,
        name=pods[0].name.removesuffix(".gz").removesuffix(".csv"),
        nodes=tuple(NodeGroup(trace=str(file)) for file in nodes),
        workloads=tuple(
            ScenarioWorkload(name=f"trace-{number}", trace=TraceSpec(pods=str(file)))
            for number, file in enumerate(pods)
        ),
    )
    return Play(scenario, in_tree_registry(), None)


def _sorted_lists(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the lists of nodes and those of pods."""
    nodes: list[Path] = []
    pods: list[Path] = []
    messages: list[str] = []
    for file in files:
        head = head_of(file)
        if not is_openb(head):
            messages.append(f"{file}: --times is for openb lists (CSV), and this is not one")
        elif head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"sn,"):
            nodes.append(file)
        else:
            pods.append(file)
    if not messages and not (nodes and pods):
        missing = "pods" if nodes else "nodes"
        messages.append(f"--times: a list of {missing} is missing")
    if messages:
        raise UserError(*messages)
    return nodes, pods


def named_files(scenario: Scenario) -> dict[str, Path]:
    """Return the files that a scenario names, by the fields that name them."""
    named = {child("objects", i): name for i, name in enumerate(scenario.objects)}
    named |= {child("nodes", i, "trace"): group.trace for i, group in enumerate(scenario.nodes)}
    named |= {
        child("workloads", i, "trace", "pods"): workload.trace.pods
        for i, workload in enumerate(scenario.workloads)
        if workload.trace is not None
    }
    named[_CONFIGURATION_FILE] = scenario.scheduler.configuration_file
    return {field: Path(name) for field, name in named.items() if name}


def check_named(play: Play, *, has_config: bool) -> None:
    """Check that the files of a scenario can be read; raises UserError with a line for each.

    The configuration is not checked if an option replaces it.
    """
    errors = [
        FieldError(field, f"{file}: {problem}")
        for field, file in named_files(play.scenario).items()
        if not (has_config and field == _CONFIGURATION_FILE) and (problem := read_problem(file))
    ]
    if errors:
        raise UserError(*texts_in_file(ConfigError(errors), play.file))


def workload_warnings(play: Play) -> list[str]:
    """Return warnings about what has no effect in a scenario.

    These are workloads without a profile or, among the objects, without pods; names in events that
    no node has; unknown fields of objects. Raises DecodeError, and UserError for manifests, whose
    pods nothing would create.
    """
    files = [Path(name) for name in play.scenario.objects]
    loaded = list(load(files))
    objects = [found.object for found in loaded]
    return [
        *check_workloads(objects, loaded),
        *unknown_fields(files),
        *_without_profile(play.scenario),
        *_without_nodes(play.scenario, objects),
    ]


def _without_profile(scenario: Scenario) -> Iterator[str]:
    """Yield a warning for each scheduler that workloads name and no profile has."""
    profiles = scenario.scheduler.configuration.get("profiles") or [{}]
    known = [profile.get("schedulerName", DEFAULT_SCHEDULER_NAME) for profile in profiles]
    specs = [(workload.name, template_of(workload).spec) for workload in scenario.workloads]
    named = [(spec.scheduler_name or DEFAULT_SCHEDULER_NAME, name) for name, spec in specs]
    for scheduler_name, found in grouped_by(named, itemgetter(0)).items():
        if scheduler_name not in known:
            workloads = names([name for _, name in found])
            yield (
                f"pods of {workloads} get no node and are not counted: their schedulerName is "
                f"{scheduler_name}, and the profiles are for {names(known)}"
            )


def _without_nodes(scenario: Scenario, objects: Sequence[KubeObject]) -> Iterator[str]:
    """Yield a warning for each pattern in an event that matches no node's name."""
    if any(group.trace for group in scenario.nodes):
        return
    known = [item.metadata.name for item in objects if isinstance(item, Node)]
    known += [name for group in scenario.nodes for name in node_names(group)]
    for i, event in enumerate(scenario.events):
        for action, selection in asdict(event).items():
            for pattern in selection.names if isinstance(selection, NodeSelection) else ():
                if not any(fnmatchcase(name, pattern) for name in known):
                    yield f"{child('events', i, action)}: no node is called {pattern}"


def with_scheduler(play: Play, options: SchedulerOptions) -> Play:
    """Return the same with the scheduler's options, which override the scenario's.

    Raises UserError, or ConfigError for a feature gate.
    """
    check_named(play, has_config=options.config is not None)
    spec = play.scenario.scheduler
    file = options.config or (Path(spec.configuration_file) if spec.configuration_file else None)
    merged = dataclasses.replace(
        options,
        config=file,
        profile=None,
        feature_gates=",".join(
            filter(None, (gates_text(spec.feature_gates), options.feature_gates))
        ),
    )
    place = (
        "scheduler.configuration" if play.file is None else f"{play.file}: scheduler.configuration"
    )
    scheduler = load_scheduler(merged, spec.configuration or None, place)
    if options.config is None:
        _check_extenders(spec.extenders, scheduler.configuration, play.file)
    # With the written configuration: below, its defaults are entries of `pluginConfig` too.
    check_plugins(scheduler, file or play.file)
    return Play(
        scheduled_by(play.scenario, scheduler), scheduler.registry, options.config or play.file
    )


def _check_extenders(
    specs: Sequence[ExtenderSpec], configuration: Configuration, file: Path | None
) -> None:
    """Raise UserError if the behaviour of extenders is given that the configuration lacks."""
    known = [extender.url_prefix for extender in configuration.extenders]
    words = f"the configuration has {', '.join(known) or 'no extenders'}"
    errors = [
        invalid(child("scheduler", "extenders", i, "urlPrefix"), spec.url_prefix, words)
        for i, spec in enumerate(specs)
        if spec.url_prefix not in known
    ]
    if errors:
        raise UserError(*texts_in_file(ConfigError(errors), file))


def scheduled_by(scenario: Scenario, scheduler: SchedulerSetup) -> Scenario:
    """Return a scenario with this scheduler; its extenders stay."""
    spec = replace(
        scenario.scheduler,
        configuration=encode_configuration(scheduler.configuration),
        configuration_file="",
        feature_gates=dict(scheduler.feature_gates.settings),
    )
    return replace(scenario, scheduler=spec)
