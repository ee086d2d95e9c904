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
from typing import Any, Final, TypeVar, cast

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


class Parsed(click.ParamType[Any]):
    """A text that a function parses; it raises ValueError with the remedy."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Parse a text; a default may be parsed already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _seconds(text: str) -> float:
    from kubesched.config.decoding import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{error}; write it as 90s, 30m or 1h30m") from error


def _seconds_or_none(text: str) -> float:
    seconds = _seconds(text)
    if seconds < 0:
        raise ValueError(f"{text} is negative; write 0s for no time at all")
    return seconds


def _some_seconds(text: str) -> float:
    seconds = _seconds(text)
    if seconds <= 0:
        raise ValueError("it must be longer than 0s")
    return seconds


def _address(text: str) -> str:
    """Return an IP address, which has no zone; "" is the default."""
    import ipaddress

    text = text.strip()
    try:
        has_zone = text and getattr(ipaddress.ip_address(text), "scope_id", None)
    except ValueError:
        has_zone = True
    if has_zone:
        raise ValueError(f"failed to parse IP: {text!r}; write it as 0.0.0.0 or ::")
    return text


def _quantity(text: str) -> str:
    from kubesched.api.quantity import QuantityError, parse_quantity

    try:
        parse_quantity(text)
    except QuantityError as error:
        raise ValueError(f"{error}; write it as 0, 4096 or 4Ki") from error
    return text


DURATION: Final = Parsed("duration", _seconds)


_LETTER_EQUALS: Final = re.compile(r"^(-[A-Za-z])=")


def go_name(name: str) -> str:
    """Return a flag's name with dashes for underscores, as Go's components normalize it."""
    return name.replace("_", "-")


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
    "address": {"type": Parsed("address", _address)},
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
    "quantity": {"type": Parsed("quantity", _quantity)},
    "span": {"type": Parsed("duration", _some_seconds)},
    "switch": {"type": click.BOOL, "is_flag": False, "flag_value": True, "metavar": ""},
    "text": {"default": ""},
    "texts": {"multiple": True},
    "time": {"type": Parsed("duration", _seconds_or_none)},
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
    shown = {"help": "false", "version": "false"}
    for parameter in ctx.command.get_params(ctx):
        if parameter.name in ctx.params:
            flag = max(parameter.opts, key=len).removeprefix("--")
            shown[flag] = _shown(parameter, ctx.params[parameter.name])
    return shown


def _shown(parameter: click.Parameter, value: Any) -> str:
    if value is None:
        return parameter.unset if isinstance(parameter, Flag) else ""
    if isinstance(parameter, Flag) and parameter.shown is not None:
        return parameter.shown(value)
    if isinstance(value, bool):
        return str(value).lower()
    if parameter.type is DURATION:
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
    parameter: str, type_: Callable[..., Any], *options: Callable[[C], C]
) -> Callable[[C], C]:
    """Return a decorator that adds options to a command, which gets them as one parameter.

    `type_` is a dataclass whose fields are named by the options. These are in the order of the
    help.
    """
    names = [field.name for field in fields(type_)]  # type: ignore[arg-type]  # a dataclass

    def add(command: C) -> C:
        @functools.wraps(command)
        def wrapped(**given: Any) -> Any:
            value = type_(**{name: given.pop(name) for name in names})
            return command(**given, **{parameter: value})

        return _adding(options)(cast("C", wrapped))

    return add


files_argument = click.argument(
    "files", metavar="FILES...", nargs=-1, required=True, type=FILE_PATH
)
"""A cluster dump: files, directories, `-` for stdin."""


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
duration_option = table_options("duration")
record_option = table_options("record")
feature_gates_option = table_options(
    "feature gates", feature_gates={"callback": lambda _ctx, _parameter, texts: ",".join(texts)}
)
plugin_option = table_options("plugins", plugins={"callback": _named_if_slow})

scheduler_options = gathered(
    "scheduler",
    SchedulerOptions,
    table_options("scheduler"),
    feature_gates_option,
    plugin_option,
    table_options("seed"),
)
answer_options = gathered("asked", AnswerOptions, html_option, output_option, scheduler_options)
"""Adds the options of a question."""

timeline_options = gathered(
    "timeline",
    TimelineOptions,
    html_option,
    table_options("decision log"),
    record_option,
    duration_option,
    table_options("times"),
)
"""Adds the options of simulations over time."""

cluster_options = gathered(
    "source",
    ClusterSource,
    click.argument("files", metavar="[FILES]...", nargs=-1, type=FILE_PATH),
    table_options("cluster"),
)
"""Adds FILES and the options of a live cluster."""

cluster_flags = gathered("source", ClusterSource, table_options("files"), table_options("cluster"))
"""Adds the same to a command whose arguments are something else: files are --cluster FILE."""
