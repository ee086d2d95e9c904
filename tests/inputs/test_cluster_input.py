"""The input of commands: files, and live clusters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kubesched.api.core import Node, Pod
from kubesched.inputs import cluster_input, status_line
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.completed_input import ClusterInput
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import ClusterSource
from tests.cli.cluster import node, pod, write
from tests.cli.test_output import Terminal


def _read(*files: Path) -> ClusterInput:
    return read_cluster(ClusterSource(files))


def test_objects_keep_their_order(tmp_path: Path) -> None:
    """The order is that of the files and of their lists."""
    first = write(tmp_path, [pod("b"), node("alpha")], "1.json")
    second = write(tmp_path, [pod("a")], "2.json")
    found = _read(first, second).objects
    assert [isinstance(item, Pod) for item in found] == [True, False, True]
    assert isinstance(found[1], Node)
    assert [item.metadata.name for item in found] == ["b", "alpha", "a"]


def test_objects_are_identified_by_kind_namespace_and_name(tmp_path: Path) -> None:
    """An equal name in another namespace or of another kind is another object."""
    objects = [pod("a"), pod("a", namespace="test"), node("a")]
    assert len(_read(write(tmp_path, objects)).objects) == 3


def test_two_pods_of_one_uid_are_an_error(tmp_path: Path) -> None:
    """The scheduler cannot tell them apart."""
    twins = [pod("a"), pod("b")]
    for twin in twins:
        twin["metadata"]["uid"] = "u1"
    with pytest.raises(UserError, match="Pod shop/b has the uid of pod shop/a, u1"):
        _read(write(tmp_path, twins))


def test_long_lists_of_duplicates_are_cut(tmp_path: Path) -> None:
    """Two dumps of one cluster do not fill the screen."""
    file = write(tmp_path, [pod(f"p-{at}") for at in range(50)])
    again = write(tmp_path, [pod(f"p-{at}") for at in range(50)], "again.json")
    with pytest.raises(UserError) as caught:
        _read(file, again)
    assert len(caught.value.messages) == 11
    assert caught.value.messages[-1] == "and 40 more objects that are there twice"


def test_a_file_that_is_given_twice(tmp_path: Path) -> None:
    """The error names the file, not its objects."""
    file = write(tmp_path, [pod("a"), pod("b")])
    with pytest.raises(UserError) as caught:
        _read(file, tmp_path)
    assert caught.value.messages == (f"{file}: it is given twice; leave one out",)


def test_the_source_in_messages(tmp_path: Path) -> None:
    """A single file is named, several are counted."""
    first = write(tmp_path, [pod("b")], "1.json")
    second = write(tmp_path, [pod("a")], "2.json")
    assert ("1.json", "2 files") == (_read(first).source, _read(first, second).source)


def test_progress_of_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows how many objects were read; the line is removed in the end."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(status_line, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(status_line, "_RENEWAL_SECONDS", 0.0)
    monkeypatch.setattr(cluster_input, "_SHOWN_EVERY", 1)
    read_cluster(ClusterSource(files=(write(tmp_path, [node("n"), pod("a")]),)))
    assert ["", "Reading: 1 object", "Reading: 2 objects", ""] == stream.getvalue().split(
        "\r\x1b[K"
    )


def test_a_large_file_is_named_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first object may be there only minutes later."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(cluster_input, "_LARGE_MB", 0)
    read_cluster(ClusterSource(files=(write(tmp_path, [node("n")], "c.json"),)))
    assert "\r\x1b[KReading c.json (0 MB)\r\x1b[K" == stream.getvalue()
