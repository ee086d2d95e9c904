"""The command `kubesched`: its subcommands, streams and exit codes."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kubesched import __version__
from kubesched.cli.commands import COMMANDS, command
from kubesched.cli.errors import ReaderGoneError, naming, run
from kubesched.explain.saving import SAVE_COMMAND
from kubesched.inputs.errors import near_names

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


COLLECTOR_THRESHOLDS: Final = (1_000_000, 10, 100)


class _Closed(io.RawIOBase):
    """A stream that the caller closed; reading from it, or the first write, raises OSError."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._error = OSError(errno.EBADF, "it is closed", name)
        self._is_reported = False

    def readable(self) -> bool:
        """Return True, so that reading raises."""
        return True

    def writable(self) -> bool:
        """Return True, so that writing raises."""
        return True

    def readinto(self, _buffer: WriteableBuffer, /) -> int:
        raise self._error

    def write(self, data: ReadableBuffer, /) -> int:
        """Raise, but not again when the buffer is flushed at the end of the process."""
        if self._is_reported:
            return memoryview(data).nbytes
        self._is_reported = True
        raise self._error


def prepare_streams() -> None:
    """Replace closed and unbuffered streams, and escape characters that the encoding lacks."""
    # Python sets None for a stream that was closed before it started.
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(_Closed("stdin")))
    sys.stdout = sys.stdout or io.TextIOWrapper(io.BufferedWriter(_Closed("stdout")))
    if sys.stderr is None:
        # Errors can be written nowhere else.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the very end
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(raw, io.RawIOBase):
        # PYTHONUNBUFFERED is set: Python forgets what a pipe or a full disk did not take at once.
        buffered = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(buffered, sys.stdout.encoding, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names may have characters that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")


class KubeschedGroup(click.Group):
    """The group of all commands; it maps errors to exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand; None for an unknown name."""
        return command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; suggest one for a misspelt name."""
        if args and args[0] not in COMMANDS and (near := near_names(args[0], COMMANDS)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, spec.summary) for name, spec in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # click would exit with 1, which means that a check has failed.
            raise ReaderGoneError from error

    def main(  # type: ignore[override]  # it always exits, unlike click's overloads
        self, args: Sequence[str] | None = None, **given: Any
    ) -> None:
        """Run the command line and exit with its code."""
        given |= {"prog_name": "kubesched", "standalone_mode": False}

        def call() -> object:
            result: object = click.Group.main(self, args, **given)
            with naming("stdout"):
                sys.stdout.flush()
            return result

        sys.exit(ended(call))


def ended(command: Callable[[], object]) -> int:
    """Run the command, flush stdout, and return the exit code."""
    code = run(command)
    try:
        sys.stdout.flush()
    except OSError:
        # Python complains at exit if the rest of the buffer cannot be written then either.
        with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return code


_HELP: Final = f"""The Kubernetes scheduler 1.36 in Python: it schedules pods, and explains why.

`run` schedules the pods of a cluster, and `sandbox` is a cluster to try it on. The other commands
only read: the live cluster of the current context, as kubectl finds it, or files such as those of
`kubesched snapshot`.

\b
Examples:
  kubesched demo
  kubesched why web-1 -n shop
  kubesched fit web.yaml
  kubesched drain node-7
  kubesched snapshot -o cluster.json.gz
  kubesched simulate cluster.json.gz --pods batch.yaml
  kubesched sandbox --nodes 10
  kubesched run --kubeconfig ~/.kube/config --dry-run

Without kubesched at hand, kubectl saves all that decisions depend on; use --complete with its
output:

\b
  {SAVE_COMMAND}

Exit codes: 0 done; 1 a check failed, a scenario has no answer, or a plugin raised an exception;
2 the input is wrong, or the output cannot be written (one line per error on stderr); 70 a bug in
kubesched; 130 interrupted; 141 the reader of the output went away. `run` ends with 1 for wrong
input too, as kube-scheduler does, and `sandbox -- COMMAND` as COMMAND does. NO_COLOR=1 turns
colours off, KUBESCHED_DEBUG=1 turns tracebacks on.
"""


@click.group(
    cls=KubeschedGroup,
    name="kubesched",
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="kubesched")
def kubesched() -> None:
    """Run a subcommand."""


def main() -> None:
    """Run `kubesched`."""
    prepare_streams()
    # What commands read stays until they end, and hardly any of it is in cycles. Servers tune the
    # collector once they have started.
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    try:
        kubesched.main()
    finally:
        # The process ends, so a last collection would free nothing.
        gc.freeze()


def kubectl_why() -> None:
    """Run `kubesched why` as a plugin that kubectl finds on PATH, `kubectl-why`."""
    prepare_streams()
    name, why = "kubectl why", command("why")
    why.help = (why.help or "").replace("kubesched why", name)
    names = ["-h", "--help"]
    sys.exit(
        ended(lambda: why.main(prog_name=name, standalone_mode=False, help_option_names=names))
    )
