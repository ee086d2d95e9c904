"""The image is built from locked requirements and runs as nobody."""

from __future__ import annotations

import re

from tests.deploy.shipped import DEPLOY, ROOT

TEXT = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
INSTRUCTIONS = [
    line.split(maxsplit=1)
    for line in re.sub(r"\\\n", " ", TEXT).splitlines()
    if line.strip() and not line.startswith("#")
]


def arguments_of(name: str) -> list[str]:
    """Return what stands behind an instruction, for each time it is there."""
    return [rest for found, rest in INSTRUCTIONS if found == name]


def test_what_is_copied_exists_and_reaches_the_builder() -> None:
    """Every source is in the repository, and named in the list of what is sent."""
    ignore = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").split()
    sources = [
        source.rstrip("/")
        for rest in arguments_of("COPY")
        if "--from" not in rest
        for source in rest.split()[:-1]
    ]
    assert {"requirements", "pyproject.toml", "README.md", "LICENSE", "src"} == set(sources)
    assert all((ROOT / source).exists() and f"!{source}" in ignore for source in sources)


def test_everything_installed_is_locked() -> None:
    """Pip installs what is locked by hash, or our own wheel without asking anybody."""
    commands = [
        command.strip()
        for rest in arguments_of("RUN")
        for command in rest.split("&&")
        if " pip install" in command
    ]
    assert 3 == len(commands)
    for command in commands:
        assert "--require-hashes" in command or "--no-index --no-deps" in command
    for file in re.findall(r"-r (\S+)", TEXT):
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        wanted = [line for line in lines if "==" in line and not line.startswith((" ", "#"))]
        hashed = [line for line in wanted if line.rstrip().endswith("\\")]
        assert wanted == hashed != []


def test_it_runs_as_nobody() -> None:
    """The last user is a number other than 0, and the last stage starts the scheduler."""
    assert "65532:65532" == arguments_of("USER")[-1]
    assert (['["kubesched"]'], ['["run"]']) == (arguments_of("ENTRYPOINT"), arguments_of("CMD"))


def test_stages_share_one_image() -> None:
    """What is compiled for one Python runs under the same one."""
    froms = [rest.split()[0] for rest in arguments_of("FROM")]
    assert ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"] == froms
    assert ["PYTHON_IMAGE=python:3.11-slim"] == arguments_of("ARG")
