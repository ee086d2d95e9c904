"""The image is built from locked requirements and does not run as root."""

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
    """Return the arguments of each occurrence of an instruction."""
    return [rest for found, rest in INSTRUCTIONS if found == name]


def test_copied_files_exist_and_are_sent_to_the_builder() -> None:
    """The ignore file lists them."""
    ignore = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").split()
    sources = [
        source.rstrip("/")
        for rest in arguments_of("COPY")
        if "--from" not in rest
        for source in rest.split()[:-1]
    ]
    assert {"requirements", "pyproject.toml", "README.md", "LICENSE", "src"} == set(sources)
    assert all((ROOT / source).exists() and f"!{source}" in ignore for source in sources)


def test_pip_installs_locked_packages_only() -> None:
    """With hashes, or our own wheel without an index."""
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


def test_the_image_does_not_run_as_root() -> None:
    """The last user is a number other than 0, and the last stage starts the scheduler."""
    assert "65532:65532" == arguments_of("USER")[-1]
    assert (['["kubesched"]'], ['["run"]']) == (arguments_of("ENTRYPOINT"), arguments_of("CMD"))


def test_all_stages_have_the_same_base_image() -> None:
    """Packages are compiled for the Python that runs them."""
    froms = [rest.split()[0] for rest in arguments_of("FROM")]
    assert ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"] == froms
    assert ["PYTHON_IMAGE=python:3.14-slim"] == arguments_of("ARG")
