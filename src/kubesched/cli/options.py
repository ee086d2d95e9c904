"""Options that several commands share, and their values; among them those that name a cluster."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import click

from kubesched.inputs.sources import ClusterSource, SchedulerOptions

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class IntRange(click.IntRange):
    """A range of integers, which is called an integer in errors."""

    name = "integer"


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


def top_option(default: int, text: str, name: str = "top") -> Callable[[F], F]:
    """Return `--top N`: how much of a list text shows.

    Args:
        default: The number without the option.
        text: What the number counts.
        name: The name of the command's argument.
    """
    return click.option(
        "--top",
        name,
        type=IntRange(min=1),
        default=default,
        show_default=True,
        metavar="N",
        help=f"The number of {text}.",
    )


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


class FilePath(click.Path):
    """A file or directory; an empty text is an error, while Path takes it for `.`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Refuse an empty text, as from an unset variable."""
        if not os.fspath(value):
            self.fail("it is empty; is a variable not set?", param, ctx)
        return Path(value)


FILE_PATH: Final = FilePath()

files_argument = click.argument(
    "files", metavar="FILES...", nargs=-1, required=True, type=FILE_PATH
)
"""A cluster dump: files, directories, `-` for stdin."""

_config = click.option(
    "--config",
    type=FILE_PATH,
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
    callback=lambda _ctx, _parameter, texts: ",".join(texts),
    help="Kubernetes feature gates that differ from the defaults of 1.36.",
)
plugin_option = click.option(
    "--plugin",
    "plugins",
    metavar="MODULE:CLASS",
    multiple=True,
    help="Add a plugin: module:Class or path/to/file.py:Class. It is enabled in all profiles at "
    "every extension point it implements, unless the configuration mentions it. Repeatable.",
)
_seed = click.option(
    "--seed",
    type=IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random source that breaks ties.",
)
output_option = click.option(
    "-o",
    "--output",
    "output",
    type=click.Choice([str(choice) for choice in OutputFormat]),
    default=str(OutputFormat.TABLE),
    show_default=True,
    callback=lambda _ctx, _parameter, value: OutputFormat(value),
    help="Format of the result.",
)


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


html_option = click.option(
    "--html",
    type=FILE_PATH,
    metavar="FILE",
    help="Also write the report as one HTML page with plots, which needs no network.",
)
duration_option = click.option(
    "--duration",
    "duration_seconds",
    callback=_seconds,
    metavar="D",
    help="Virtual time to simulate, such as 90s or 6h, instead of the scenario's duration.",
)
decision_log_option = click.option(
    "--decision-log",
    type=FILE_PATH,
    metavar="FILE",
    help="Write every decision over time, one JSON object per line. It is FILE.partial until the "
    "command ends, and stays so if it is interrupted.",
)
record_option = click.option(
    "--record",
    type=FILE_PATH,
    metavar="FILE",
    help="Record events and decisions for `kubesched replay`; compressed if its name ends in .gz. "
    "It is FILE.partial until the command ends, and stays so if it is interrupted.",
)
_times = click.option(
    "--times",
    is_flag=True,
    help="Let pods of an openb trace arrive and end at their recorded times.",
)


scheduler_options = gathered(
    SchedulerOptions, _config, _profile, feature_gates_option, plugin_option, _seed
)
"""Adds the options of the scheduler to a command, as its first argument."""

timeline_options = gathered(
    TimelineOptions, html_option, decision_log_option, record_option, duration_option, _times
)
"""Adds the options of simulations over time to a command, as its first argument."""

# The cluster.


_kubeconfig = click.option(
    "--kubeconfig",
    type=FILE_PATH,
    metavar="FILE",
    help="Read the live cluster of this kubeconfig [default: as kubectl, KUBECONFIG or "
    "~/.kube/config, if there are no files].",
)
_context = click.option(
    "--context",
    default="",
    metavar="NAME",
    help="Read the live cluster of this context [default: the current one].",
)
_complete = click.option(
    "--complete",
    is_flag=True,
    help="The files hold every object of the cluster: a kind without an object in them has none, "
    "and is not reported as not known.",
)
_files = click.argument("files", metavar="[FILES]...", nargs=-1, type=FILE_PATH)
_cluster = click.option(
    "--cluster",
    "files",
    type=FILE_PATH,
    multiple=True,
    metavar="FILE",
    help="File, directory or `-` that holds the cluster, instead of a live one. Repeatable.",
)
cluster_options = gathered(ClusterSource, _files, _kubeconfig, _context, _complete)
"""Adds FILES and the options of a live cluster to a command, as its first argument."""

cluster_flags = gathered(ClusterSource, _cluster, _kubeconfig, _context, _complete)
"""Adds the same to a command whose arguments are something else: files are --cluster FILE."""

namespace_option = click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="The namespace of names without one.",
)
