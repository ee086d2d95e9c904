"""Commands of the how-tos that no test runs: their files, flags and values exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import yaml

from kubesched.cli.commands import command
from tests.deploy.shipped import CHART, ROOT, deployed

Plain = dict[str, Any]

PAGES = [
    "second-scheduler",
    "replace-the-default-scheduler",
    "high-availability",
    "migrate-a-configuration",
    "operate",
]
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@cache
def text_of(page: str) -> str:
    """Return a page."""
    return (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")


def commands_of(page: str) -> Iterator[list[str]]:
    """Yield the words of each command, split at pipes."""
    for block in _BLOCK.findall(text_of(page)):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            while "|" in words:
                at = words.index("|")
                yield words[:at]
                words = words[at + 1 :]
            yield words


def flags() -> set[str]:
    """Return the flags of `kubesched run`."""
    return {name for parameter in command("run").params for name in (*parameter.opts, "--help")}


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page: str) -> None:
    """Those below deploy and examples."""
    named = re.findall(r"\b((?:deploy|examples)/[\w./-]*\w)", text_of(page))
    assert [] == [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_flags_of_run_exist(page: str) -> None:
    """Those of `kubesched run`, also in the text."""
    asked = [
        word.partition("=")[0]
        for words in commands_of(page)
        if words[:2] == ["kubesched", "run"]
        for word in words[2:]
        if word.startswith("--")
    ]
    prose = _BLOCK.sub("", text_of(page))
    asked += re.findall(
        r"`(--(?:leader|tls|secure|config|pod-max|v\b|vmodule|logging)[\w-]*)", prose
    )
    assert set() == set(asked) - flags()


def values_of(words: list[str]) -> Iterator[str]:
    """Yield the names that helm's `--set` and `--set-file` set."""
    for option, setting in pairwise(words):
        if option in {"--set", "--set-file"}:
            yield setting.partition("=")[0]


@pytest.mark.parametrize("page", PAGES)
def test_values_of_the_chart_exist(page: str) -> None:
    """Those that commands set."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    settings = [words for words in commands_of(page) if words[:1] == ["helm"]]
    settings += [shlex.split(found) for found in re.findall(r"`(--set [^`]*)`", text_of(page))]
    for name in [name for words in settings for name in values_of(words)]:
        at: Any = values
        for part in re.split(r"(?<!\\)\.", name):
            assert isinstance(at, dict)
            # A mapping that is empty takes any name.
            assert part in at or at == {}
            at = at.get(part)


@pytest.mark.parametrize("page", PAGES)
def test_named_objects_exist(page: str) -> None:
    """Deployments and leases are those of the manifests."""
    ways = [found for way in ("second-scheduler", "replace-default") for found in deployed(way)]
    deployments = {found["metadata"]["name"] for found in ways if found["kind"] == "Deployment"}
    named = set(re.findall(r"deployment/([\w-]+)", text_of(page)))
    assert set() == named - deployments
    locks = set(re.findall(r"(?:get|delete) lease ([\w-]+)", text_of(page)))
    assert set() == locks - {"kubesched", "kube-scheduler"}
