"""The command line as a whole: help, version, errors, exit codes, lazy imports."""

from __future__ import annotations

import inspect
import os
import re
import runpy
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import click
import pytest

from kubesched import __version__
from kubesched.cli import errors
from kubesched.cli.commands import COMMANDS
from kubesched.cli.main import kubesched

from .cluster import node, pod, run, shop, write


def test_help_lists_the_subcommands() -> None:
    """`--help` names every subcommand and gives examples."""
    result = run("--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    for name, spec in COMMANDS.items():
        assert name in result.stdout
        assert spec.summary in result.stdout


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--otput", "No such option '--otput'. Did you mean --output?\n"),
        ("--until", "No such option '--until'.\n"),
        ("-f", "No such option '-f'. Files are arguments, without an option before them.\n"),
        ("-A", "No such option '-A'. Pods of all namespaces are considered anyway.\n"),
    ],
)
def test_a_misspelt_option(option: str, message: str) -> None:
    """Only a similar option is suggested; for one of kubectl, what to do without it."""
    result = run("simulate", option)
    assert 2 == result.exit_code
    assert message in result.stderr


def test_order_of_commands() -> None:
    """`run` and `sandbox` come first; each summary fits its line."""
    lines = run("--help", COLUMNS="80").stdout.partition("Commands:\n")[2].splitlines()
    assert ["run", "sandbox"] == [line.split()[0] for line in lines[:2]]
    assert len(COMMANDS) == len(lines)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_examples_are_not_wrapped(name: str) -> None:
    """Examples keep their lines on terminals of any width."""
    context = click.Context(kubesched)
    command = kubesched.get_command(context, name) if name else kubesched
    assert command is not None
    told = inspect.cleandoc(command.help or "").splitlines()
    examples = [line for line in told if line.startswith("  ")]
    assert examples
    shown = run(*filter(None, [name]), "--help", COLUMNS="40").stdout.splitlines()
    assert [f"  {line}" for line in examples] == [line for line in shown if line[2:] in examples]


def test_version() -> None:
    """`--version` prints the version of the package."""
    assert run("--version").stdout == f"kubesched, version {__version__}\n"


@pytest.mark.parametrize("name", ["explain", "evaluate", "completion"])
def test_subcommand_help_teaches(name: str) -> None:
    """Every subcommand's help begins with its line in the list and has two examples."""
    result = run(name, "--help")
    assert result.exit_code == 0
    examples = result.stdout.partition("Examples:")[2].partition("Options:")[0]
    assert examples.count("kubesched") >= 2
    context = click.Context(kubesched)
    command = kubesched.get_command(context, name)
    assert command is not None
    first = (command.help or "").partition("\n")[0]
    assert first.replace("POD", "a pod") == COMMANDS[name].summary


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["why", "--help"], ["why", "-x"]])
def test_help_does_not_import_numpy(words: list[str]) -> None:
    """Help and usage errors stay quick: neither numpy nor the module of a command is imported."""
    code = (
        f"import sys\nfrom kubesched.cli.main import main\nsys.argv = {['kubesched', *words]}\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "slow = {'numpy', 'kubesched.cli.run', 'kubesched.cli.why'}\n"
        "sys.exit(bool(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)  # noqa: S603 - our own code
    assert done.returncode == 0


@pytest.mark.slow
def test_module_is_the_command() -> None:
    """`python -m kubesched` is the command."""
    command = [sys.executable, "-m", "kubesched", "--version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own code
    assert done.stdout == f"kubesched, version {__version__}\n"


def test_ctrl_c_while_python_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no traceback, and the exit code is the usual one."""

    class Interrupted(ModuleType):
        def __getattr__(self, _name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "kubesched.cli.main", Interrupted("main"))
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("kubesched.__main__")
    assert 130 == ended.value.code


def test_unknown_subcommand() -> None:
    """A subcommand that is not there is a usage error that suggests a near one."""
    result = run("explan")
    assert result.exit_code == 2
    assert not result.stdout
    assert "kubesched: error: No such command 'explan'. Did you mean 'explain'?\n" in result.stderr
    assert "--help" in result.stderr


def test_no_arguments() -> None:
    """The help is printed, with the exit code of a usage error."""
    result = run()
    assert (2, "") == (result.exit_code, result.stdout)
    assert run("--help").stdout == result.stderr


def test_missing_argument() -> None:
    """A missing argument is one line and a hint, with exit code 2."""
    assert run("explain").stderr.splitlines() == [
        "kubesched: error: Missing argument 'POD'.",
        "kubesched: try 'kubesched explain --help'",
    ]


def test_debugging_shows_the_traceback(tmp_path: Path) -> None:
    """With KUBESCHED_DEBUG=1 the exception is raised."""
    result = run("explain", "x", tmp_path / "missing.json", KUBESCHED_DEBUG="1")
    assert result.exception is not None
    assert not isinstance(result.exception, SystemExit)


@pytest.mark.slow
def test_broken_pipe_is_quiet() -> None:
    """A reader that goes away ends the command without a message, like SIGPIPE."""
    command = [sys.executable, "-m", "kubesched", "evaluate", "-"]
    with subprocess.Popen(  # noqa: S603 - our own code
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"error":')
        process.stdout.close()
        process.stdin.write(b"{}\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"]
)
def test_a_reader_that_goes_in_the_middle_of_a_write(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """It does not count as done."""
    cluster = write(tmp_path, [node("n-1"), *(pod(f"web-{at}") for at in range(2000))])
    command = [sys.executable, "-m", "kubesched", "simulate", str(cluster), "-o", "json"]
    with subprocess.Popen(  # noqa: S603 - our own code
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait() == 141


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate - <&-", "stdin: it is closed"),
        ("evaluate - <&-", "stdin: it cannot be read: it is closed"),
        ("completion bash >&-", "stdout: it is closed"),
        ("evaluate - >&-", "stdout: it is closed"),
    ],
)
def test_closed_streams(words: str, message: str) -> None:
    """A closed standard stream is an error of the user."""
    shell = ["sh", "-c", f'"$0" -m kubesched {words}', sys.executable]
    done = subprocess.run(shell, input="{}\n", check=False, capture_output=True, text=True)  # noqa: S603 - our own code
    assert (2, "") == (done.returncode, done.stdout)
    assert f"kubesched: error: {message}\n" == done.stderr


@pytest.mark.slow
def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    """A full disk behind stdout is reported once, by name."""
    command = [sys.executable, "-m", "kubesched", "simulate", str(write(tmp_path, shop()))]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own code
    assert 2 == done.returncode
    assert "kubesched: error: stdout: No space left on device\n" == done.stderr


def test_help_lists_the_exit_codes() -> None:
    """The help has every exit code of errors."""
    codes = {getattr(errors, name) for name in vars(errors) if name.startswith("EXIT_")}
    told = run("--help").stdout.partition("Exit codes: ")[2].partition(".")[0]
    assert codes == {int(code) for code in re.findall(r"\d+", told)} - {0}


@pytest.mark.slow
def test_interrupt() -> None:
    """Ctrl-C ends with a line and exit code 130."""
    command = [sys.executable, "-m", "kubesched", "evaluate", "-"]
    with subprocess.Popen(  # noqa: S603 - our own code
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        # The first answer shows that it is at work, and waiting for the next line.
        assert process.stdout.readline().startswith(b'{"error":')
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert err.decode().strip() == "kubesched: interrupted"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    """The script calls the command for completions."""
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_KUBESCHED_COMPLETE" in result.stdout


# The entry point that kubectl finds on PATH.

ROOT = Path(__file__).resolve().parents[2]


def plugin(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the plugin as the installed script does."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    entry = EntryPoint("kubectl-why", scripts["kubectl-why"], "console_scripts")
    code = f"from {entry.module} import {entry.attr}; {entry.attr}()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own code


@pytest.mark.slow
def test_its_texts_name_the_plugin() -> None:
    """Usage and examples are those of `kubectl why`."""
    done = plugin("-h")
    assert 0 == done.returncode
    assert done.stdout.startswith("Usage: kubectl why [OPTIONS] POD [FILES]...\n")
    assert "  kubectl why web-1 -n shop\n" in done.stdout
    assert "kubesched why" not in done.stdout


@pytest.mark.slow
def test_same_answers_as_the_command() -> None:
    """Exit codes and errors are those of `kubesched why`."""
    cluster = str(ROOT / "examples" / "demo" / "cluster.yaml")
    done = plugin("report-0", cluster)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("Pod batch/report-0 fits none of 6 nodes")
    failed = plugin("nobody", cluster)
    assert (2, 1) == (failed.returncode, len(failed.stderr.splitlines()))
