"""Recordings, and errors about invalid ones, which name file and line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from kubesched.api.core import Node
from kubesched.app.shadow import DecisionWatch
from kubesched.inputs.errors import UserError
from kubesched.inputs.recording_input import RecordingInput

HEAD = b'{"type":"RECORDING","version":1,"recordedBy":"run","schedulerNames":["s"]}\n'
NODE = b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}'
ADDED = b'{"type":"ADDED","at":1,"object":' + NODE + b"}\n"
CHANGED = ADDED.replace(b"ADDED", b"MODIFIED")
GONE = ADDED.replace(b"ADDED", b"DELETED")
END = b'{"type":"END","at":2}\n'


def test_a_change_has_the_previous_object(tmp_path: Path) -> None:
    """As informers report it; a file may be compressed, whatever its name."""
    file = tmp_path / "run"
    file.write_bytes(gzip.compress(HEAD + ADDED + CHANGED + GONE + ADDED + END))
    watch = Mock(DecisionWatch)
    with RecordingInput(file) as recording:
        for at, event in recording.events():
            assert 1 == at
            event(watch)
        assert 1 == recording.share_read
    added, changed, gone, again = watch.method_calls
    node = added.args[0]
    assert call.added(node) == added == again
    assert call.updated(node, node) == changed
    assert call.deleted(node, is_final_state_known=True) == gone


_NOT_ONE = "it is not a recording; `kubesched shadow --record FILE` writes one"
_CUT_OFF = 'the recording is cut off here; make this line {"type":"END","at":0} to replay it'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "line 1: it is empty", id="empty"),
        pytest.param(b"kind: List\n", f"line 1: {_NOT_ONE}", id="yaml"),
        pytest.param(NODE + b"\n", f"line 1: {_NOT_ONE}", id="an-object"),
        pytest.param(b"[1]\n", f"line 1: {_NOT_ONE}", id="a-list"),
        pytest.param(END, f"line 1: {_NOT_ONE}", id="no-head"),
        pytest.param(
            HEAD.replace(b":1", b":2"),
            "line 1: the recording has version 2; this kubesched reads version 1",
            id="version",
        ),
        pytest.param(HEAD, f"line 2: {_CUT_OFF}", id="head-only"),
        pytest.param(HEAD + ADDED, f"line 3: {_CUT_OFF}", id="no-end"),
        pytest.param(HEAD + ADDED[:40], f"line 2: {_CUT_OFF}", id="half-a-line"),
        pytest.param(HEAD + b"{]\n" + END, "line 2: it is not JSON: ", id="no-json"),
        pytest.param(HEAD + b"\xff\n" + END, "line 2: it is not JSON: ", id="no-utf-8"),
        pytest.param(
            HEAD + b'{"type":"LOST"}\n',
            "line 2: invalid enum value 'LOST' - at `$.type`",
            id="type",
        ),
        pytest.param(HEAD + b"{}\n", "line 2: object missing required field `type`", id="no-type"),
        pytest.param(
            HEAD + b'{"type":"DECIDED"}\n', "line 2: DECIDED without `decision`", id="no-decision"
        ),
        pytest.param(
            HEAD + b'{"type":"ADDED"}\n', "line 2: ADDED without `object`", id="no-object"
        ),
        pytest.param(
            HEAD + HEAD, "line 2: a second recording begins; replay one at a time", id="two"
        ),
        pytest.param(
            HEAD + ADDED + ADDED, "line 3: ADDED: Node n1 is there already", id="added-twice"
        ),
        pytest.param(HEAD + CHANGED, "line 2: MODIFIED: Node n1 is not there", id="not-added"),
        pytest.param(HEAD + GONE, "line 2: DELETED: Node n1 is not there", id="not-there"),
        pytest.param(
            HEAD + ADDED.replace(b"Node", b"Nod"),
            "line 2: Nod n1: kind 'Nod' of apiVersion 'v1' is not known",
            id="kind",
        ),
        pytest.param(
            HEAD + ADDED.replace(b'"n1"', b"7"),
            "line 2: $.metadata.name: expected `str`, got `int`",
            id="field",
        ),
        pytest.param(
            HEAD + ADDED.replace(b'"n1"', b'"\xff"'),
            "line 2: it is not UTF-8: invalid start byte",
            id="not-utf-8",
        ),
        pytest.param(
            HEAD + ADDED.replace(b'"n1"', b'"n1","labels":{"a":1e999}'),
            "line 2: Node n1: $.metadata.labels[...]: number out of range",
            id="number",
        ),
    ],
)
def test_errors_count_lines_from_one(data: bytes, message: str, tmp_path: Path) -> None:
    """The message has the number of the invalid line."""
    file = tmp_path / "run.jsonl"
    file.write_bytes(data)
    with pytest.raises(UserError) as raised, RecordingInput(file) as recording:
        list(recording.events())
    (found,) = raised.value.messages
    assert found.startswith(f"{file}: {message}")


def test_a_pipe() -> None:
    """As `<(zstdcat run.jsonl.zst)` in a shell."""
    reader, writer = os.pipe()
    os.write(writer, HEAD + ADDED + END)
    os.close(writer)
    try:
        with RecordingInput(Path(f"/dev/fd/{reader}")) as recording:
            assert 1 == len(list(recording.events()))
    finally:
        os.close(reader)


def test_custom_resources_that_no_plugin_declares_are_left_out(tmp_path: Path) -> None:
    """So that a recording can be replayed without the plugin that reads them."""
    file = tmp_path / "run.jsonl"
    custom = ADDED.replace(b'"v1"', b'"example.com/v1"').replace(b"Node", b"Price")
    file.write_bytes(HEAD + custom + ADDED + END)
    with RecordingInput(file) as recording:
        watch = Mock(DecisionWatch)
        for _, event in recording.events():
            event(watch)
        (added,) = watch.method_calls
        assert isinstance(added.args[0], Node)
        assert ["Price of example.com/v1"] == [*recording.skipped]


@pytest.mark.parametrize("kept", [0.3, 0.99])
def test_a_truncated_compressed_file(kept: float, tmp_path: Path) -> None:
    """The error has no traceback of gzip, but a remedy."""
    data = gzip.compress(HEAD + ADDED + END)
    file = tmp_path / "run.jsonl.gz"
    file.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(UserError) as raised, RecordingInput(file) as recording:
        list(recording.events())
    (found,) = raised.value.messages
    assert "the compressed recording is cut off here; `gzip -dc` unpacks what there is" in found
