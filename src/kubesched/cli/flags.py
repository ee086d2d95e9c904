"""Options of commands: read from tables, shared by several, or in the style of kube-scheduler.

Differs:  a boolean flag may also be followed by its value (`--leader-elect false`).
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import click

from kubesched.cli.errors import user_messages, write_slow_plugin
from kubesched.inputs.errors import UserError
from kubesched.inputs.slow_plugins import naming_slow_plugins
from kubesched.inputs.sources import ClusterSource, SchedulerOptions

C = TypeVar("C", bound=Callable[..., Any])

EXIT_FAILED: Final = 1
"""kube-scheduler's exit code for every error."""


class IntRange(click.IntRange):
    """A range of integers, which is called an integer in errors."""

    name = "integer"


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


class DurationType(click.ParamType[float]):
    """A Go duration, converted to seconds; negative ones may be refused."""

    name = "duration"

    def __init__(self, *, may_be_negative: bool = True) -> None:
        self._may_be_negative = may_be_negative

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a duration."""
        from kubesched.config.decoding import parse_duration

        if isinstance(value, int | float):
            return float(value)
        try:
            seconds = parse_duration(str(value))
        except ValueError as error:
            self.fail(f"{error}; write it as 90s, 30m or 1h30m", param, ctx)
        if seconds < 0 and not self._may_be_negative:
            self.fail(f"{value} is negative; write 0s for no time at all", param, ctx)
        return seconds


class AddressType(click.ParamType[str]):
    """An IP address as text; "" for the default."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check an address; zones are not allowed."""
        text = str(value).strip()
        if text and not _is_address(text):
            self.fail(f"failed to parse IP: {text!r}; write it as 0.0.0.0 or ::", param, ctx)
        return text


class QuantityType(click.ParamType[str]):
    """A quantity as text."""

    name = "quantity"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a quantity."""
        from kubesched.api.quantity import QuantityError, parse_quantity

        try:
            parse_quantity(value)
        except QuantityError as error:
            self.fail(f"{error}; write it as 0, 4096 or 4Ki", param, ctx)
        return str(value)


DURATION: Final = DurationType()
QUANTITY: Final = QuantityType()
TIME_TAKEN: Final = DurationType(may_be_negative=False)
ADDRESS: Final = AddressType()


_LETTER_EQUALS: Final = re.compile(r"^(-[A-Za-z])=")


def go_name(name: str) -> str:
    """Return a flag's name with dashes for underscores, as Go's components normalize it."""
    return name.replace("_", "-")


def _is_address(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


class Flag(click.Option):
    """An option in a section of the help.

    Attributes:
        section: The section's heading.
        unset: The value that /flagz shows if the flag is not given and the configuration decides.
        shown: Formats the value for /flagz; None for the usual format.
    """

    def __init__(
        self,
        *args: Any,
        section: str,
        unset: str = "",
        shown: Callable[[Any], str] | None = None,
        **attributes: Any,
    ) -> None:
        if unset:
            attributes["help"] = f"{attributes['help'].removesuffix('.')} [default: {unset}]."
        super().__init__(*args, **attributes)
        self.section = section
        self.unset = unset
        self.shown = shown


class SectionedCommand(click.Command):
    """A command whose help has sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags by section, in the order of their declaration."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = parameter.section if isinstance(parameter, Flag) else "Other"
                sections.setdefault(section, []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


class DaemonCommand(SectionedCommand):
    """A command with sections that exits with 1 on errors, as kube-scheduler does."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the flags; accepts `-v=5` like `-v 5`."""
        args = [_LETTER_EQUALS.sub(r"\1", argument) for argument in args]
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise _failed(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run; errors that the user can fix become one line each."""
        try:
            return super().invoke(ctx)
        except (click.Abort, click.exceptions.Exit, KeyboardInterrupt, BrokenPipeError):
            raise
        except Exception as error:
            raise _failed(error) from error


def _failed(error: Exception) -> Exception:
    messages = user_messages(error)
    return error if messages is None else UserError(*messages, exit_code=EXIT_FAILED)


_ENTRY: Final = re.compile(
    r"^(?P<names>-.*?) \| (?P<kind>\w+)(?:\((?P<limits>.*?)\))?"
    r"(?: (?!(?:default|hidden|unset)\b)(?P<metavar>\S+))?"
    r"(?: (?P<rule>default|hidden|unset) ?(?P<value>.*))?\n(?P<help>(?:  .*\n)+)",
    re.MULTILINE,
)
_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "address": {"type": ADDRESS},
    "choice": {"default": ""},
    "choices": {"multiple": True},
    "duration": {"type": DURATION},
    "file": {"type": FILE_PATH},
    "files": {"type": FILE_PATH, "multiple": True},
    "flag": {"is_flag": True},
    "float": {"type": float},
    "integer": {"type": int},
    "list": {"multiple": True, "default": ()},
    "number": {},
    "path": {"type": click.Path(path_type=Path)},
    "quantity": {"type": QUANTITY},
    "switch": {"type": click.BOOL, "is_flag": False, "flag_value": True, "metavar": ""},
    "text": {"default": ""},
    "texts": {"multiple": True},
    "time": {"type": TIME_TAKEN},
}
"""What is special about the values of each kind of flag; a switch may have a value."""


def table_flags(command: str, **special: Mapping[str, Any]) -> Callable[[C], C]:
    """Declare the flags of a command that are in the table `COMMAND_flags.txt`.

    `special` has what a table cannot express, by parameter name: `callback`, or `shown`.
    """
    sections = _sections(f"{command}_flags.txt").items()
    return _adding(
        [_declared(name, entry, special) for name, entries in sections for entry in entries]
    )


def table_options(section: str, **special: Mapping[str, Any]) -> Callable[[C], C]:
    """Declare the options of a section of `options.txt`; `special` is as for `table_flags`.

    A section is named by its command, or by what several commands share.
    """
    entries = _sections("options.txt")[section]
    return _adding([_declared(section, entry, special) for entry in entries])


@cache
def _sections(table: str) -> dict[str, list[re.Match[str]]]:
    """Return the entries of a table by section."""
    text = files(__package__).joinpath(table).read_text(encoding="utf-8")
    parts = (part.partition("]") for part in re.split(r"^\[", text, flags=re.MULTILINE)[1:])
    return {name: list(_ENTRY.finditer(entries)) for name, _, entries in parts}


def _adding(options: Sequence[Callable[[C], C]]) -> Callable[[C], C]:
    def add(function: C) -> C:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _declared(
    section: str, entry: re.Match[str], special: Mapping[str, Mapping[str, Any]]
) -> Callable[[C], C]:
    """Return the decorator that declares the flag of an entry."""
    kind, rule, value = entry["kind"], entry["rule"], entry["value"]
    attributes = {"help": " ".join(entry["help"].split()), **_KINDS[kind]}
    if entry["metavar"]:
        attributes["metavar"] = entry["metavar"]
    limits = (entry["limits"] or "").split(",")
    if kind == "number":
        low, high = (int(limit) if limit else None for limit in limits)
        attributes["type"] = IntRange(low, high)
    elif kind in ("choice", "choices"):
        attributes["type"] = click.Choice(limits)
    elif kind == "list":
        attributes["callback"] = comma_separated
        value = value and (value,)
    if rule == "unset":
        attributes |= {"default": None, "unset": value}
    elif rule is not None:
        attributes["default"] = {"true": True, "false": False}.get(value, value)
        attributes["show_default"] = rule == "default"
    names = entry["names"].split()
    own = special.get(names[-1].lstrip("-").replace("-", "_"), {})
    return click.option(*names, cls=Flag, section=section, **{**attributes, **own})


def shown_flags(ctx: click.Context) -> dict[str, str]:
    """Return the flags by name, formatted as in Go.

    As in kube-scheduler, a flag that was not given has its default; the values of a configuration
    file are in /configz.
    """
    return {
        "help": "false",
        "version": "false",
        **_values(ctx),
    }


def _values(ctx: click.Context) -> dict[str, str]:
    return {
        max(parameter.opts, key=len).removeprefix("--"): _shown(
            parameter, ctx.params[parameter.name or ""]
        )
        for parameter in ctx.command.get_params(ctx)
        if parameter.name in ctx.params
    }


def _shown(parameter: click.Parameter, value: Any) -> str:
    if value is None:
        return parameter.unset if isinstance(parameter, Flag) else ""
    if isinstance(parameter, Flag) and parameter.shown is not None:
        return parameter.shown(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(parameter.type, DurationType):
        from kubesched.api.go_text import go_duration

        return go_duration(value)
    if isinstance(value, tuple):
        listed = ",".join(map(str, value))
        return f"[{listed}]" if parameter.callback is comma_separated else listed
    return str(value)


def comma_separated(
    _ctx: click.Context, _parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Split values at commas; for flags that may be repeated."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


# Options that several commands have.

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


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The scheduler that decides, and the form of the answer; without `html` no page is written."""

    scheduler: SchedulerOptions
    html: Path | None
    output: OutputFormat


def gathered(
    type_: Callable[..., T], *options: Callable[[Any], Any]
) -> Callable[[Callable[Concatenate[T, P], R]], Callable[P, R]]:
    """Return a decorator that adds options to a command, together as its first argument.

    `type_` is a dataclass whose fields are named by the options. These are in the order of the
    help.
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


def _named_if_slow(
    context: click.Context, _parameter: click.Parameter, plugins: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the plugins; until the command ends, the user is warned of slow ones."""
    context.with_resource(naming_slow_plugins(write_slow_plugin))
    return plugins


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
plugin_option = table_options("plugins", plugins={"callback": _named_if_slow})

scheduler_options = gathered(
    SchedulerOptions,
    table_options("scheduler"),
    feature_gates_option,
    plugin_option,
    table_options("seed"),
)
"""Adds the options of the scheduler to a command, as its first argument."""


def answer_options(command: Callable[Concatenate[AnswerOptions, P], R]) -> Callable[P, R]:
    """Add the options of a question to a command, together as its first argument."""

    @functools.wraps(command)
    def wrapped(scheduler: SchedulerOptions, /, *args: P.args, **kwargs: P.kwargs) -> R:
        own: dict[str, Any] = dict(kwargs)
        asked = AnswerOptions(scheduler, own.pop("html"), own.pop("output"))
        return command(asked, *args, **own)

    deciding: Callable[Concatenate[SchedulerOptions, P], R] = wrapped
    return html_option(output_option(scheduler_options(deciding)))


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
