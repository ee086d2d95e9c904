"""Scenarios of users: how their files are recognized, and errors in templates."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kubesched.inputs.errors import UserError
from kubesched.inputs.scenario_input import is_scenario, read_scenario

TEXT = "version: 1\nduration: 1h\n"


@pytest.mark.parametrize(
    "data",
    [TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"), gzip.compress(TEXT.encode())],
    ids=["bom", "utf-16", "gzip"],
)
def test_encoded_and_compressed_files(tmp_path: Path, data: bytes) -> None:
    """They are read as files of clusters are."""
    file = tmp_path / "scenario.yaml"
    file.write_bytes(data)
    assert is_scenario(file)
    assert 3600.0 == read_scenario(file).scenario.duration


def test_unknown_fields_of_templates() -> None:
    """Without the fields, pods would go elsewhere."""
    node = {"name": "a", "template": {"spec": {"unschedulabel": True}}}
    spec = {"nodeSelectr": {"a": "b"}, "containers": [{"name": "c", "resource": {}}]}
    web = {"name": "web", "deployment": {}, "template": {"spec": spec}}
    raw = {"version": 1, "duration": "1h", "nodes": [node], "workloads": [web]}
    with pytest.raises(UserError) as raised:
        read_scenario(raw)
    assert [
        "nodes[0].template.spec.unschedulabel: unknown field",
        "workloads[0].template.spec.nodeSelectr: unknown field",
        "workloads[0].template.spec.containers[0].resource: unknown field",
    ] == list(raised.value.messages)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_the_duration_must_be_positive(seconds: float) -> None:
    """From Python too."""
    play = read_scenario({"version": 1, "duration": "1h"})
    with pytest.raises(UserError, match="it must be longer than 0s"):
        play.changed(None, seconds)
