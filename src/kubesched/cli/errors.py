"""Errors of commands: lines on stderr and an exit code; tracebacks only with KUBESCHED_DEBUG=1.

Rejects:  nothing; every exception of a command is handled here.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from kubesched.inputs.errors import EXIT_INPUT, UserError, near_names

EXIT_DIFFERENT: Final = 1
"""The command ran, and its check failed."""
EXIT_PLUGIN: Final = 1
"""A plugin raised; there is no result."""
EXIT_INTERNAL: Final = 70
"""A bug in kubesched."""
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141
"""The reader of stdout closed the pipe; 128 + SIGPIPE, as in shells."""

DEBUG_VARIABLE: Final = "KUBESCHED_DEBUG"

_PLACES_MAX: Final = 8
"""A plugin that calls itself without end has hundreds."""

_FILES_HINT: Final = "Files are arguments, without an option before them."
_NAMESPACES_HINT: Final = "Pods of all namespaces are considered anyway."
_KUBECTL_HINTS: Final = {
    "-f": _FILES_HINT,
    "--filename": _FILES_HINT,
    "-A": _NAMESPACES_HINT,
    "--all-namespaces": _NAMESPACES_HINT,
}
"""What to do without options that people know from kubectl, in commands that read a cluster."""
_OF_FILES: Final = ("files", "manifests")
"""The parameters of these commands that take files."""


class ReaderGoneError(Exception):
    """The reader of stdout closed the pipe."""


def run(command: Callable[[], object]) -> int:
    """Run a command; report its exception on stderr, and return the exit code."""
    try:
        result = command()
    except (click.Abort, KeyboardInterrupt):
        click.echo("kubesched: interrupted", err=True)
        return EXIT_INTERRUPTED
    except (BrokenPipeError, ReaderGoneError):
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if is_debugging():
            raise
        return report(error)
    return result if isinstance(result, int) else 0


def report(error: Exception) -> int:
    """Write an error to stderr, one line per field error, and return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return EXIT_INPUT
    # Task groups wrap exceptions.
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    messages = user_messages(error)
    if messages is None:
        return _report_unforeseen(error)
    write_errors(messages)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"kubesched: try '{error.ctx.command_path} --help'", err=True)
    return error.exit_code if isinstance(error, UserError) else EXIT_INPUT


def _report_unforeseen(error: Exception) -> int:
    """Report an unexpected exception: of a plugin, with its source line, or of kubesched."""
    # Imported late, because it imports numpy.
    from kubesched.framework.plugin_error import PluginError, places_outside

    if isinstance(error, PluginError):
        places, words = error.places, str(error)
    else:
        places = tuple(places_outside(error))
        words = f"a plugin raised {type(error).__name__}: {error}"
    if not places:
        write_errors([f"internal error: {type(error).__name__}: {error}"])
        hint = f"this is a bug in kubesched; {DEBUG_VARIABLE}=1 shows the traceback"
        click.echo(f"kubesched: {hint}", err=True)
        return EXIT_INTERNAL
    write_errors([words])
    for place in places[-_PLACES_MAX:]:
        shown = str(place).removeprefix(f"{Path.cwd()}{os.sep}")
        click.echo(f"  {printable(shown)}", err=True)
        source = linecache.getline(place.file, place.line).strip()
        if source:
            click.echo(f"    {printable(source)}", err=True)
    click.echo(f"kubesched: {DEBUG_VARIABLE}=1 shows the whole traceback", err=True)
    return EXIT_PLUGIN


def write_errors(messages: Iterable[str]) -> None:
    """Write one line per field error to stderr."""
    for message in messages:
        click.echo(f"kubesched: error: {one_line(message)}", err=True)


def write_warnings(messages: Iterable[str]) -> None:
    """Write one line per warning to stderr."""
    for message in messages:
        click.echo(f"kubesched: warning: {one_line(message)}", err=True)


def write_slow_plugin(method: str, mean: str) -> None:
    """Warn on stderr of `Plugin.method`; a status line that may be there is replaced."""
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    plugin, _, name = method.rpartition(".")
    write_warnings([f"plugin {plugin} is slow: {name} takes {mean} per call"])


def user_messages(error: Exception) -> tuple[str, ...] | None:
    """Return one line per error that the user can fix; None for a bug."""
    if isinstance(error, UserError):
        return error.messages
    if isinstance(error, click.NoSuchOption):
        return (_no_such_option(error),)
    if isinstance(error, click.ClickException):
        return (error.format_message(),)
    if isinstance(error, OSError):
        return (_words_of(error),)
    return _messages_of_rooms(error)


def _no_such_option(error: click.NoSuchOption) -> str:
    """Return the message with options that are like the wrong one.

    click would compare the dashes too, by which every short option resembles every other.
    """
    parameters = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
    known = [name for one in parameters for name in (*one.opts, *one.secondary_opts)]
    name = error.option_name
    near = near_names(name.lstrip("-"), [name.lstrip("-") for name in known])
    hint = f"Did you mean {' or '.join(f'--{name}' for name in near)}?" if near else ""
    if any(one.name in _OF_FILES for one in parameters):
        hint = _KUBECTL_HINTS.get(name, hint)
    return f"No such option '{name}'. {hint}".rstrip()


def _messages_of_rooms(error: Exception) -> tuple[str, ...] | None:
    # Imported late: they import numpy, which `--help` and usage errors do not need.
    from kubesched.api.codec import DecodeError
    from kubesched.api.errors import SetupError
    from kubesched.api.field_errors import ConfigError
    from kubesched.framework.registry import RegistryError
    from kubesched.simulator.evaluate import ScenarioError

    if isinstance(error, ConfigError):
        return tuple(str(field_error) for field_error in error.errors)
    if isinstance(error, DecodeError | RegistryError | ScenarioError | SetupError):
        return (str(error),)
    return None


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Add a file name to errors of the operating system that have none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = place
        raise


def _words_of(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    joined = " ".join(part.strip() for part in text.splitlines())
    return printable(joined)


def printable(text: str) -> str:
    """Return the text with unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def is_debugging() -> bool:
    """Whether KUBESCHED_DEBUG asks for tracebacks."""
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
