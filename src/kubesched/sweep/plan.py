"""The runs of a sweep: everything that is read is checked before the first one starts.

Each run is a value that a process on another machine can carry out, given the same files. It names
the digests of all that it depends on, so that a run is done again if and only if one has changed.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubesched import __version__
from kubesched.api.codec import DecodeError
from kubesched.api.decode import STANDARD_INPUT, files_in
from kubesched.api.field_errors import ConfigError, FieldError, child
from kubesched.config.documents import with_fields
from kubesched.config.load import encode_configuration
from kubesched.explain.document import Document
from kubesched.framework.registry import SchedulerSetup
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import check_plugins, load_scheduler, texts_in_file
from kubesched.inputs.scenario_input import (
    Play,
    check_named,
    holds_cluster,
    named_files,
    read_scenario,
    read_trace,
    scheduled_by,
    workload_warnings,
)
from kubesched.inputs.sources import ClusterSource, SchedulerOptions, gates_text, read_problem
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.scenario import Scenario, SchedulerSpec
from kubesched.simulator.scenario_loading import NO_CHANGES, with_places
from kubesched.simulator.timeline_report import TimelineReport
from kubesched.sweep.figures import CLUSTER_FIGURES, SCENARIO_FIGURES, unknown_figures
from kubesched.sweep.functions import load_function
from kubesched.sweep.spec import (
    AXES,
    Scalar,
    SweepConfiguration,
    SweepInput,
    SweepParameter,
    SweepPlugins,
    SweepSpec,
    named,
    seeds_of,
    sweep_errors,
)

_DIGEST_DIGITS: Final = 16


class SweepCell(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of all seeds have in common.

    Attributes:
        labels: The values of the axes and parameters by column.
        digests: What the result depends on, by the names that errors use.
        read: The digests of the files that a run reads itself, by absolute path.
        directory: Its modules can be imported.
        plugins: Out-of-tree plugins, as `--plugin` takes them.
        feature_gates: As `--feature-gates` takes them.
        configuration: A KubeSchedulerConfiguration; None for the default, or the scenario's.
        scenario: The scenario, with its scheduler; None for a cluster or function.
        files: The files of a cluster, or those that the function gets.
        complete: Whether the files hold every object of the cluster.
        function: `module:function`; "" for kubesched's own simulations.
        figures: Patterns of the figures to keep.
    """

    labels: dict[str, Scalar]
    digests: dict[str, str]
    read: dict[str, str]
    directory: str
    plugins: tuple[str, ...] = ()
    feature_gates: str = ""
    configuration: dict[str, Any] | None = None
    scenario: Scenario | None = None
    files: tuple[str, ...] = ()
    complete: bool = False
    function: str = ""
    figures: tuple[str, ...] = ()


class SweepRun(msgspec.Struct, frozen=True):
    """One simulation."""

    cell: SweepCell
    seed: int

    @property
    def key(self) -> tuple[Scalar, ...]:
        """The identity of a run within its sweep."""
        return (*self.cell.labels.values(), self.seed)


class SweepPlan(msgspec.Struct, frozen=True):
    """All runs of a sweep: the seeds of each cell, with the cells in the order of the results."""

    cells: tuple[SweepCell, ...]
    seeds: tuple[int, ...]
    show: tuple[str, ...]
    warnings: tuple[str, ...]

    def runs(self) -> list[SweepRun]:
        """Return the runs in the order of the results."""
        return [SweepRun(cell, seed) for cell in self.cells for seed in self.seeds]

    def by_seed(self) -> list[SweepRun]:
        """Return the runs seed by seed, so that an interrupted sweep has runs of every cell."""
        return [SweepRun(cell, seed) for seed in self.seeds for cell in self.cells]

    @property
    def files(self) -> list[Path]:
        """Return the files that are read."""
        return [Path(file) for cell in self.cells for file in cell.read]


def plan_of(spec: SweepSpec, file: Path | None) -> SweepPlan:
    """Return the runs of a sweep; raises UserError with one line for everything that is wrong.

    The directory of its file, or the working directory, has the files and modules that the sweep
    names.
    """
    spec = named(spec)
    errors = list(sweep_errors(spec))
    if errors:
        raise UserError(*texts_in_file(ConfigError(errors), file))
    directory = Path(os.path.abspath(file.parent if file else Path()))  # noqa: PTH100 - links stay
    with importing_from(directory):
        return _Planner(spec, file, directory).plan()


@contextmanager
def importing_from(directory: Path) -> Iterator[None]:
    """Make the modules of a directory importable."""
    before = list(sys.path)
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        sys.path[:] = before


class _Planner:
    """Reads everything that a sweep names, and collects errors."""

    def __init__(self, spec: SweepSpec, file: Path | None, directory: Path) -> None:
        self._spec = spec
        self._file = file
        self._base = file.parent if file else Path()
        self._directory = directory
        self._messages: dict[str, None] = {}
        self._warnings: dict[str, None] = {}
        self._clusters: set[str] = set()

    def plan(self) -> SweepPlan:
        spec = self._spec
        choices = [
            [(parameter, value) for value in parameter.values] for parameter in spec.parameters
        ]
        for i, given in enumerate(spec.inputs):
            self._check_files(given, child("inputs", i))
        self._stop()
        self._check_contents()
        self._stop()
        cells = [
            cell
            for combination in product(spec.inputs, spec.configurations, spec.plugins, *choices)
            for cell in self._cells(*combination)
        ]
        self._stop()
        return SweepPlan(tuple(cells), seeds_of(spec.seeds), spec.show, tuple(self._warnings))

    def _check_contents(self) -> None:
        """Check every input and scheduler by itself, so that all errors are found at once."""
        spec = self._spec
        if spec.function:
            with self._collecting():
                load_function(spec.function)
        reports: set[type[Document]] = set()
        for given in spec.inputs:
            with self._collecting():
                play = self._play(given, NO_CHANGES)
                reports.add(SimulationReport if play is None else TimelineReport)
        for configuration in spec.configurations:
            for plugins in spec.plugins:
                with self._collecting():
                    self._scheduler(None, configuration, plugins, NO_CHANGES)
        if reports and not spec.function:
            self._check_figures(sorted(reports, key=lambda report: report.__name__))

    def _stop(self) -> None:
        if self._messages:
            raise UserError(*self._messages)

    @contextmanager
    def _collecting(self, words: str = "") -> Iterator[None]:
        """Collect the errors of a part, and append `words` to each."""
        try:
            yield
        except UserError as error:
            messages: Iterable[str] = error.messages
        except ConfigError as error:
            messages = texts_in_file(error, self._file)
        except (DecodeError, OSError) as error:
            messages = [str(error)]
        else:
            return
        self._messages |= dict.fromkeys(f"{message}{words}" for message in messages)

    def _field_error(self, path: str, message: str) -> None:
        with self._collecting():
            raise ConfigError([FieldError(path, message)])

    # Inputs.

    def _check_files(self, given: SweepInput, path: str) -> None:
        for i, name in enumerate(given.files):
            place = child(path, "files", i)
            if name == STANDARD_INPUT:
                self._field_error(place, "stdin can be read only once; name a file")
            elif problem := read_problem(self._base / name):
                self._field_error(place, f"{self._base / name}: {problem}")

    def _play(self, given: SweepInput, changes: Mapping[str, object]) -> Play | None:
        """Return the scenario of an input; None if it is a cluster, or files for a function."""
        files = [self._base / name for name in given.files]
        if self._spec.function:
            return None
        if given.times:
            return read_trace(files)
        if all(map(holds_cluster, files)):
            self._check_cluster(given, files)
            return None
        if len(files) > 1:
            raise UserError(
                f"{files[0]}: a scenario is an input alone, because it names its files itself"
            )
        play = read_scenario(files[0], changes)
        check_named(play, has_config=False)
        return play

    def _check_cluster(self, given: SweepInput, files: Sequence[Path]) -> None:
        if given.name not in self._clusters:
            self._clusters.add(given.name)
            found = read_cluster(
                ClusterSource(tuple(files), complete=given.complete), expects_pods=True
            )
            self._warnings |= dict.fromkeys(f"{given.name}: {line}" for line in found.warnings)

    # Cells.

    def _cells(
        self,
        given: SweepInput,
        configuration: SweepConfiguration,
        plugins: SweepPlugins,
        *chosen: tuple[SweepParameter, Scalar],
    ) -> Iterator[SweepCell]:
        """Yield the cell of a combination; nothing if it has errors."""
        names = (given.name, configuration.name, plugins.name)
        labels: dict[str, Scalar] = dict(zip(AXES, names, strict=True))
        labels |= {parameter.name: value for parameter, value in chosen}
        with_values = ", ".join(f"{parameter.name}={value}" for parameter, value in chosen)
        with self._collecting(f" (with {with_values})" if with_values else ""):
            yield self._cell(given, configuration, plugins, labels, chosen)

    def _cell(
        self,
        given: SweepInput,
        configuration: SweepConfiguration,
        plugins: SweepPlugins,
        labels: dict[str, Scalar],
        chosen: Sequence[tuple[SweepParameter, Scalar]],
    ) -> SweepCell:
        spec = self._spec
        changes = _changes("scenario.", chosen)
        play = self._play(given, changes)
        if play is None and changes:
            raise UserError(
                f"input {given.name}: it is not a scenario, so it has no field to change"
            )
        setup = self._scheduler(play, configuration, plugins, _changes("configuration.", chosen))
        encoded = encode_configuration(setup.configuration)
        gates = dict(setup.feature_gates.settings)
        scenario = None if play is None else play.changed(None, spec.duration).scenario
        contents, extenders = scenario, scenario.scheduler.extenders if scenario else ()
        read = [self._base / name for name in given.files]
        if scenario is not None:
            read = list(named_files(scenario).values())
            contents = replace(scenario, scheduler=SchedulerSpec())
            scenario = scheduled_by(scenario, setup)
            self._warnings |= dict.fromkeys(workload_warnings(Play(scenario, setup.registry, None)))
            # Workers may have another working directory.
            scenario = with_places(scenario, Path.cwd())
        for text in (*plugins.plugins, spec.function):
            read += _sources(self._directory, text.rpartition(":")[0])
        digests = _digests_of_files(read)
        return SweepCell(
            labels=labels,
            digests={
                **{os.path.relpath(path, self._directory): digests[path] for path in digests},
                f"input {given.name}": _digest([contents, given.complete]),
                f"configuration {configuration.name}": _digest([encoded, gates, extenders]),
                f"plugins {plugins.name}": _digest(plugins.plugins),
                "function": _digest(spec.function),
                "figures": _digest(spec.figures),
                "kubesched": __version__,
            },
            read=digests,
            directory=str(self._directory),
            plugins=tuple(_below(self._directory, text) for text in plugins.plugins),
            feature_gates=gates_text(gates),
            configuration=encoded,
            scenario=scenario,
            files=() if scenario else tuple(str(self._directory / name) for name in given.files),
            complete=given.complete,
            function=spec.function,
            figures=spec.figures or (CLUSTER_FIGURES if play is None else SCENARIO_FIGURES),
        )

    def _scheduler(
        self,
        play: Play | None,
        configuration: SweepConfiguration,
        plugins: SweepPlugins,
        changes: Mapping[str, object],
    ) -> SchedulerSetup:
        """Return the scheduler of a cell, after building its plugins."""
        own = SchedulerSpec() if play is None else play.scenario.scheduler
        file = str(self._base / configuration.file) if configuration.file else ""
        if not file and not configuration.configuration:
            file = own.configuration_file
        options = SchedulerOptions(
            config=Path(file) if file else None,
            feature_gates=gates_text(own.feature_gates | configuration.feature_gates),
            plugins=tuple(_below(self._base, text) for text in plugins.plugins),
        )
        inline, place = configuration.configuration, f"{self._file}: configurations"
        if not inline and play is not None:
            inline, place = own.configuration, f"{play.file}: scheduler.configuration"
        setup = load_scheduler(options, inline or None, place)
        if changes:
            # Every field is there then, with its default.
            changed = with_fields(encode_configuration(setup.configuration), changes)
            setup = load_scheduler(dataclasses.replace(options, config=None), changed)
        if not self._spec.function:
            # A function may add arguments that a plugin requires.
            check_plugins(setup, options.config)
        return setup

    def _check_figures(self, reports: Sequence[type[Document]]) -> None:
        for name in ("figures", "show"):
            patterns = getattr(self._spec, name)
            for pattern, hint in unknown_figures(patterns, reports).items():
                path = child(name, patterns.index(pattern))
                self._field_error(path, f"no report has a figure {pattern!r}; {hint}")


def _changes(target: str, chosen: Iterable[tuple[SweepParameter, Scalar]]) -> dict[str, object]:
    """Return the values that parameters give to fields of a target, by path."""
    return {
        parameter.field.removeprefix(target): value
        for parameter, value in chosen
        if parameter.field.startswith(target)
    }


def _below(base: Path, plugin: str) -> str:
    """Return a plugin whose file, if it has one, is relative to the working directory."""
    place, _, name = plugin.rpartition(":")
    return f"{base / place}:{name}" if place.endswith(".py") else plugin


# Digests.


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:_DIGEST_DIGITS]


def _digests_of_files(files: Iterable[Path]) -> dict[str, str]:
    """Return the digests of files, and of the files in directories, by absolute path."""
    return {
        str(path): digest_of_file(path)
        for file in files
        for path in files_in(Path(os.path.abspath(file)))  # noqa: PTH100 - links stay
    }


def digest_of_file(file: Path) -> str:
    """Return the digest of what a file contains; raises OSError if it cannot be read."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGEST_DIGITS]


def _sources(directory: Path, place: str) -> list[Path]:
    """Return the files below the directory that hold a module and those that it imports."""
    if not place:
        return []
    found: dict[Path, None] = {}
    new = [directory / place] if place.endswith(".py") else _files_of(directory, place)
    while new:
        file = new.pop()
        if file not in found and file.is_file():
            found[file] = None
            for level, name in _imported(file.read_bytes()):
                # A file can import its neighbours, too, if its directory is in sys.path.
                bases = file.parents[level - 1 : level] if level else (directory, file.parent)
                for base in bases:
                    new += _files_of(base, name)
    return list(found)


def _files_of(base: Path, name: str) -> list[Path]:
    """Return where a module and the packages around it may be."""
    parts = name.split(".")
    packages = [base.joinpath(*parts[:end], "__init__.py") for end in range(1, len(parts) + 1)]
    return [*packages, base.joinpath(*parts).with_suffix(".py")]


def _imported(source: bytes) -> Iterator[tuple[int, str]]:
    """Yield level and name of each module that a module may import; level 0 is absolute."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # Importing it says what is wrong, if it is imported at all.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # An imported name may be a module of the package.
            before = f"{node.module}." if node.module else ""
            yield from ((node.level, f"{before}{alias.name}") for alias in node.names)
            if node.module:
                yield node.level, node.module
