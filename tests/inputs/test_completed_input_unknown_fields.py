"""Fields of manifests that no schema has."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest
import yaml

from kubesched.inputs.completed_input import unknown_fields
from tests.cli.cluster import Json, node, pod, run, write


def _typo() -> Json:
    found = pod("a", nodeSelecter={"disk": "ssd"})
    found["spec"]["containers"][0]["resources"] = {"request": {"cpu": "1"}}
    return found


_NAMES = ["spec.containers[0].resources.request", "spec.nodeSelecter"]


@pytest.mark.parametrize("command", [("simulate",), ("explain", "a")])
def test_typos_are_warnings(command: tuple[str, ...], tmp_path: Path) -> None:
    """One for each, with file and object; the command still answers."""
    file = write(tmp_path, [node("alpha"), _typo()])
    result = run(*command, file)
    assert not result.exit_code
    for name in _NAMES:
        assert f"kubesched: warning: {file}: Pod shop/a: unknown field {name}\n" in result.stderr


def _fields(found: list[str]) -> list[str]:
    return sorted(line.rpartition(" ")[2] for line in found)


def test_files_of_every_form(tmp_path: Path) -> None:
    """JSON, YAML of several documents, lists, compressed files and directories."""
    plain = msgspec.json.encode(_typo())
    (tmp_path / "one.json").write_bytes(plain)
    (tmp_path / "two.yaml").write_bytes(b"---\n---\n" + plain + b"\n---\n" + plain)
    (tmp_path / "three.yaml.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "four.yaml").write_text(yaml.safe_dump(_typo()), encoding="utf-16")
    assert sorted(_NAMES * 5) == _fields(unknown_fields([tmp_path]))


def test_keys_that_yaml_takes_for_numbers(tmp_path: Path) -> None:
    """As everywhere, they are text."""
    file = tmp_path / "pod.yaml"
    labels = "{1: a, zone: b, true: c}"
    file.write_text(f"{{apiVersion: v1, kind: Pod, metadata: {{name: a, labels: {labels}, 2: b}}}}")
    # A document that begins with a brace may be YAML, too.
    assert [] == unknown_fields([file])
    file.write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a, labels: {labels}, 2: b}}\n")
    assert ["metadata.2"] == _fields(unknown_fields([file]))


def test_stored_objects_are_not_checked(tmp_path: Path) -> None:
    """Objects with a uid may have fields of a newer API server."""
    stored = _typo()
    stored["metadata"]["uid"] = "1"
    assert [] == unknown_fields([write(tmp_path, [stored])])


def test_long_lists_of_unknown_fields_are_cut(tmp_path: Path) -> None:
    """Ten lines show what is wrong."""
    pods = [pod(f"p-{at}", nodeSelecter={}) for at in range(12)]
    found = unknown_fields([write(tmp_path, pods)])
    assert (11, "and 2 more unknown fields") == (len(found), found[-1])


def test_inputs_without_warnings(tmp_path: Path) -> None:
    """Correct manifests, files of other formats, and files that other messages are about."""
    (tmp_path / "scenario.yaml").write_text("version: 1\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")
    (tmp_path / "own.yaml").write_text(
        "apiVersion: example.com/v1\nkind: Own\nmetadata: {name: x}\nspec: {a: 1}\n"
    )
    write(tmp_path, [node("alpha"), pod("a")])
    assert [] == unknown_fields([tmp_path, tmp_path / "none.yaml", Path("-")])
