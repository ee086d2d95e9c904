"""Options of commands, read from tables, and commands in the style of kube-scheduler.

Differs:  a boolean flag may also be followed by its value (`--leader-elect false`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.core import ParameterSource

from kubesched.cli.errors import user_messages, write_slow_plugin
from kubesched.cli.streams import printing_to_stderr
from kubesched.inputs.errors import UserError, naming_slow_plugins

EXIT_FAILED: Final = 1
"""kube-scheduler's exit code for every error."""


class IntRange(click.IntRange):
    """A range of integers, which is called an integer in errors."""

    name = "integer"


class FilePath(click.Path):
    """A file or directory; an empty text is an error, while Path takes it for `.`."""

    def __init__(self, *, is_optional: bool = False) -> None:
        """Set up; an empty text is None, as in kube-scheduler, if the path is optional."""
        super().__init__(path_type=Path)
        self._is_optional = is_optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty text, as from an unset variable, unless the path is optional."""
        if os.fspath(value):
            return Path(value)
        if not self._is_optional:
            self.fail("it is empty; is a variable not set?", param, ctx)
        return None


FILE_PATH: Final = FilePath()


class Parsed(click.ParamType):  # type: ignore[type-arg] # it is generic since click 8.4
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
        self, info_name: str | None, args: list[str], *more: Any, **extra: Any
    ) -> click.Context:
        """Parse the flags; accepts `-v=5` like `-v 5`."""
        args = [re.sub(r"^(-[A-Za-z])=", r"\1", argument) for argument in args]
        try:
            return super().make_context(info_name, args, *more, **extra)
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


def is_given(name: str) -> bool:
    """Whether a parameter of the current command was given; otherwise it has its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


# What is special about the values of some kinds.


def comma_separated(
    _ctx: click.Context, _parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Split values at commas; for flags that may be repeated."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _zones(
    ctx: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    zones = comma_separated(ctx, parameter, values)
    if values and not zones:
        raise click.BadParameter("it has no names; write a,b,c", ctx, parameter)
    return zones


def _joined(_ctx: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> str:
    return ",".join(texts)


def _gates_shown(text: str) -> str:
    """Return gates as upstream's flag shows them: with their component and a colon."""
    gates = (part.strip() for part in text.split(",") if part.strip())
    shown = (gate if ":" in gate else f":{gate}" for gate in gates)
    return ",".join(sorted(shown, key=lambda gate: gate.partition(":")[0]))


def _supervised(
    context: click.Context, _parameter: click.Parameter, plugins: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the plugins; until the command ends, the user is warned of slow ones.

    What they print goes to stderr.
    """
    context.with_resource(naming_slow_plugins(write_slow_plugin))
    if plugins:
        context.with_resource(printing_to_stderr())
    return plugins


def _bind_address(ctx: click.Context, _parameter: click.Parameter, given: str | None) -> str:
    """Return the address to listen on: loopback for a dry run, else all."""
    if given is not None:
        return given
    return "127.0.0.1" if ctx.params["dry_run"] else "0.0.0.0"


# Options in tables.

# Compiled when it is first used: `kubesched --help` does not need it.
_ENTRY: Final = (
    r"^(?P<names>-.*?) \| (?P<kind>\w+)(?:\((?P<limits>.*?)\))?"
    r"(?: (?!(?:default|hidden|unset)\b)(?P<metavar>\S+))?"
    r"(?: (?P<rule>default|hidden|unset) ?(?P<value>.*))?\n(?P<help>(?:  .*\n)+)"
)
_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "address": {"type": Parsed("address", _address), "callback": _bind_address},
    "certificates": {"multiple": True, "shown": lambda pairs: f"[{';'.join(pairs)}]"},
    "choice": {"default": ""},
    "choices": {"multiple": True},
    "duration": {"type": DURATION},
    "file": {"type": FILE_PATH},
    "files": {"type": FILE_PATH, "multiple": True},
    "flag": {"is_flag": True},
    "float": {"type": float},
    "gates": {"multiple": True, "callback": _joined, "shown": _gates_shown},
    "integer": {"type": int},
    "labels": {"multiple": True, "shown": lambda pairs: f"[{','.join(pairs)}]"},
    "list": {"multiple": True, "default": (), "callback": comma_separated},
    "number": {},
    "path": {"type": FilePath(is_optional=True)},
    "plugins": {"multiple": True, "callback": _supervised},
    "quantity": {"type": Parsed("quantity", _quantity)},
    "span": {"type": Parsed("duration", _some_seconds)},
    "switch": {"type": click.BOOL, "is_flag": False, "flag_value": True, "metavar": ""},
    "text": {"default": ""},
    "texts": {"multiple": True},
    "time": {"type": Parsed("duration", _seconds_or_none)},
    "zones": {"multiple": True, "callback": _zones},
}
"""What is special about the values of each kind of option; a switch may have a value."""


class Section(NamedTuple):
    """A section of a table: the help of a command, perhaps "", and options."""

    help: str
    options: tuple[Flag, ...]


@cache
def sections(table: str) -> dict[str, Section]:
    """Return the sections of a table, in its order, by their names."""
    text = Path(__file__).with_name(table).read_text(encoding="utf-8").replace("\\b\n", "\b\n")
    parts = (part.partition("]") for part in re.split(r"^\[", text, flags=re.MULTILINE)[1:])
    return {name: _section(name, written) for name, _, written in parts}


def _section(name: str, written: str) -> Section:
    entries = list(re.finditer(_ENTRY, written, re.MULTILINE))
    end = entries[0].start() if entries else len(written)
    return Section(written[:end].strip(), tuple(_declared(name, entry) for entry in entries))


def _declared(section: str, entry: re.Match[str]) -> Flag:
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
        value = value and (value,)
    if rule == "unset":
        attributes |= {"default": None, "unset": value}
    elif rule is not None:
        attributes["default"] = {"true": True, "false": False}.get(value, value)
        attributes["show_default"] = rule == "default"
    return Flag(entry["names"].split(), section=section, **attributes)


# As /flagz shows them.


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
