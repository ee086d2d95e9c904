"""Errors as lines, and their exit codes."""

from __future__ import annotations

import click
import pytest

from kubesched.api.codec import DecodeError, Source
from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.cli.errors import one_line, printable, run, user_messages
from kubesched.framework.registry import RegistryError
from kubesched.inputs.errors import UserError
from kubesched.simulator.evaluate import ScenarioError


@pytest.mark.parametrize(
    ("error", "messages"),
    [
        pytest.param(UserError("a", "b"), ("a", "b"), id="several"),
        pytest.param(
            ConfigError([FieldError("x.y", "bad"), FieldError("", "worse")]),
            ("x.y: bad", "worse"),
            id="config",
        ),
        pytest.param(
            DecodeError(Source("f.yaml"), "bad"), ("f.yaml: document 1: bad",), id="decode"
        ),
        pytest.param(RegistryError("taken"), ("taken",), id="registry"),
        pytest.param(ScenarioError("no pod"), ("no pod",), id="scenario"),
        pytest.param(FileNotFoundError(2, "No such file", "f"), ("f: No such file",), id="file"),
        pytest.param(click.UsageError("what?"), ("what?",), id="usage"),
        pytest.param(ZeroDivisionError("oops"), None, id="internal"),
    ],
)
def test_user_messages(error: Exception, messages: tuple[str, ...] | None) -> None:
    """A user's errors become lines; an error of the program does not."""
    assert messages == user_messages(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(UserError("a"), 2, id="user"),
        pytest.param(ZeroDivisionError("oops"), 70, id="internal"),
        pytest.param(KeyboardInterrupt(), 130, id="interrupt"),
        pytest.param(click.Abort(), 130, id="abort"),
    ],
)
def test_exit_codes(
    error: BaseException,
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every error has its exit code and a line on stderr, none on stdout."""
    monkeypatch.delenv("KUBESCHED_DEBUG", raising=False)
    # Code of a plugin's would be blamed itself: see test_errors_plugins.
    monkeypatch.setitem(globals(), "__name__", "kubesched.cli.somewhere")

    def failing() -> None:
        raise error

    assert code == run(failing)
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith("kubesched: ")


def test_exit_code_of_success() -> None:
    """A command's number is its exit code; without one it is 0."""
    assert run(lambda: None) == 0
    assert run(lambda: 1) == 1


def test_texts_cannot_command_the_terminal() -> None:
    """Control characters are written as escapes, line breaks as spaces."""
    assert printable("a\x1b[31mb") == "a\\x1b[31mb"
    assert printable("grün→") == "grün→"
    assert one_line("first\n  second\x07") == "first second\\x07"
