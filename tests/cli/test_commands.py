"""What the functions of commands get: options that name a cluster are one value."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kubesched.cli.commands import COMMANDS, _taken, command
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import ClusterSource


def _given(monkeypatch: pytest.MonkeyPatch, name: str, *words: str) -> dict[str, Any]:
    """Return the arguments of a command's function."""
    taken: dict[str, Any] = {}
    module = ModuleType(name)
    setattr(module, name, taken.update)
    for place in (name, "changes"):
        monkeypatch.setitem(sys.modules, f"kubesched.cli.{place}", module)
    command(name).main(list(words), standalone_mode=False)
    return taken


@pytest.mark.parametrize("name", COMMANDS)
def test_functions_take_what_the_table_gives_them(name: str) -> None:
    """Every parameter has its name."""
    spec = COMMANDS[name]
    function = getattr(import_module(f"kubesched.cli.{spec.module or name}"), name)
    given = dict.fromkeys(str(parameter.name) for parameter in command(name).params)
    signature(function).bind(**_taken(spec.parts, given))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("why", ["n-1", "a.json", "-", "--complete"], id="arguments"),
        pytest.param(
            "drain", ["n-1", "--cluster", "a.json", "--cluster", "-", "--complete"], id="flags"
        ),
    ],
)
def test_files(monkeypatch: pytest.MonkeyPatch, name: str, words: list[str]) -> None:
    """Both ways name any number of files."""
    taken = _given(monkeypatch, name, *words)
    assert ClusterSource((Path("a.json"), Path("-")), complete=True) == taken["source"]


@pytest.mark.parametrize("flag", ["--kubeconfig", "--context"])
def test_files_and_a_live_cluster_are_one_too_many(
    monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    """The line names the option."""
    with pytest.raises(UserError, match=f"^{flag} names a live cluster, and there are files"):
        _given(monkeypatch, "drain", "n-1", "--cluster", "a.json", flag, "x")


def test_nothing_is_the_current_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is empty."""
    taken = _given(monkeypatch, "drain", "n-1")
    assert (ClusterSource(), ("n-1",)) == (taken["source"], taken["words"])
