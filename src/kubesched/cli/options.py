"""Options that several commands share, and their values; among them those that name a cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from kubesched.cli.flags import FILE_PATH, table_options
from kubesched.inputs.sources import ClusterSource, SchedulerOptions

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class OutputFormat(StrEnum):
    """The format of results."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class TimelineOptions:
    """The options of simulations over time, besides the scheduler's.

    Attributes:
        html: The file for the HTML report; None for none.
        decision_log: The file for decisions, one JSON object per line; None for none.
        record: The file for events and decisions; None for none.
        duration_seconds: Virtual time; None for the scenario's duration.
        times: Whether pods of a trace arrive and end at their recorded times.
    """

    html: Path | None = None
    decision_log: Path | None = None
    record: Path | None = None
    duration_seconds: float | None = None
    times: bool = False


def gathered(
    type_: Callable[..., T], *options: Callable[[Any], Any]
) -> Callable[[Callable[Concatenate[T, P], R]], Callable[P, R]]:
    """Return a decorator that adds options to a command, together as its first argument.

    Args:
        type_: A dataclass whose fields have the names of the options.
        *options: The options, in the order of the help.
    """
    names = [field.name for field in fields(type_)]  # type: ignore[arg-type]  # a dataclass

    def add(command: Callable[Concatenate[T, P], R]) -> Callable[P, R]:
        @functools.wraps(command)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            own: dict[str, Any] = dict(kwargs)
            value = type_(**{name: own.pop(name) for name in names})
            return command(value, *args, **own)

        added: Callable[P, R] = wrapped
        for option in reversed(options):
            added = option(added)
        return added

    return add


files_argument = click.argument(
    "files", metavar="FILES...", nargs=-1, required=True, type=FILE_PATH
)
"""A cluster dump: files, directories, `-` for stdin."""


def _seconds(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> float | None:
    from kubesched.config.decoding import parse_duration

    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}; write it as 90s, 30m or 1h30m") from error
    if seconds <= 0:
        raise click.BadParameter("it must be longer than 0s")
    return seconds


namespace_option = table_options("namespace")
html_option = table_options("html")
output_option = table_options(
    "output", output={"callback": lambda _ctx, _parameter, text: OutputFormat(text)}
)
duration_option = table_options("duration", duration_seconds={"callback": _seconds})
record_option = table_options("record")
feature_gates_option = table_options(
    "feature gates", feature_gates={"callback": lambda _ctx, _parameter, texts: ",".join(texts)}
)
plugin_option = table_options("plugins")

scheduler_options = gathered(
    SchedulerOptions,
    table_options("scheduler"),
    feature_gates_option,
    plugin_option,
    table_options("seed"),
)
"""Adds the options of the scheduler to a command, as its first argument."""

timeline_options = gathered(
    TimelineOptions,
    html_option,
    table_options("decision log"),
    record_option,
    duration_option,
    table_options("times"),
)
"""Adds the options of simulations over time to a command, as its first argument."""

cluster_options = gathered(
    ClusterSource,
    click.argument("files", metavar="[FILES]...", nargs=-1, type=FILE_PATH),
    table_options("cluster"),
)
"""Adds FILES and the options of a live cluster to a command, as its first argument."""

cluster_flags = gathered(ClusterSource, table_options("files"), table_options("cluster"))
"""Adds the same to a command whose arguments are something else: files are --cluster FILE."""
