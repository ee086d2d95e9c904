"""Options that several commands share, and the value in which they arrive."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")


class OutputFormat(StrEnum):
    """How a result is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Which scheduler is asked.

    Attributes:
        config: A KubeSchedulerConfiguration file; None for the default configuration.
        profile: Scheduler name to use for all pods that are placed; None leaves each its own.
        feature_gates: As written, `A=true,B=false`.
        plugins: Out-of-tree plugins as written, `module:Class` or `file.py:Class`.
        seed: Of the run's dice, which break ties.
    """

    config: Path | None = None
    profile: str | None = None
    feature_gates: str = ""
    plugins: tuple[str, ...] = ()
    seed: int = 0


def scheduler_options(
    command: Callable[Concatenate[SchedulerOptions, P], R],
) -> Callable[P, R]:
    """Give a command the options that choose the scheduler, as its first argument."""

    @_config
    @_profile
    @feature_gates_option
    @plugin_option
    @_seed
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        own = dict(kwargs)
        options = SchedulerOptions(
            config=own.pop("config"),  # type: ignore[arg-type]  # click made it a Path
            profile=own.pop("profile"),  # type: ignore[arg-type]  # click made it a str
            feature_gates=",".join(own.pop("feature_gates")),  # type: ignore[arg-type]  # strings
            plugins=own.pop("plugin"),  # type: ignore[arg-type]  # click made it a tuple
            seed=own.pop("seed"),  # type: ignore[arg-type]  # click made it an int
        )
        return command(options, *args, **own)  # type: ignore[arg-type]  # what is left is P's

    return wrapped


_PATH = click.Path(path_type=Path)

files_argument = click.argument("files", metavar="FILES...", nargs=-1, required=True, type=_PATH)
"""A cluster dump: files, directories, `-` for stdin."""

_config = click.option(
    "--config",
    type=_PATH,
    metavar="FILE",
    help="KubeSchedulerConfiguration to use instead of the default one.",
)
_profile = click.option(
    "--profile",
    metavar="NAME",
    help="Scheduler name to use for the pods [default: each pod's spec.schedulerName].",
)
feature_gates_option = click.option(
    "--feature-gates",
    metavar="A=true,...",
    multiple=True,
    help="Kubernetes feature gates that differ from the defaults of 1.36.",
)
plugin_option = click.option(
    "--plugin",
    metavar="MODULE:CLASS",
    multiple=True,
    help="Add a plugin: module:Class or path/to/file.py:Class. It is enabled in all profiles at "
    "every extension point it implements, unless the configuration mentions it. Repeatable.",
)
_seed = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the dice that break ties.",
)
output_option = click.option(
    "-o",
    "--output",
    "output",
    type=click.Choice([str(choice) for choice in OutputFormat]),
    default=str(OutputFormat.TABLE),
    show_default=True,
    callback=lambda _ctx, _parameter, value: OutputFormat(value),
    help="How to write the result.",
)
