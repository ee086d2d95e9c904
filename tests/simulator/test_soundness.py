from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kubesched.api.codec import Skipped
from kubesched.api.decode import load_bytes
from kubesched.simulator.soundness import errors_of


def _errors(kind: str, **parts: Any) -> list[str]:
    item = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **parts}
    (loaded,) = load_bytes(msgspec.json.encode(item), "-", Skipped())
    return [str(field_error) for field_error in errors_of(loaded.object)]


_CASES = yaml.safe_load(
    (Path(__file__).parent / "testdata" / "soundness.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["name"])
def test_invalid_pods_are_field_errors(case: dict[str, Any]) -> None:
    """All at once, in upstream's words."""
    assert case["errors"] == _errors("Pod", spec=case["spec"])


def test_negative_amounts_of_nodes_are_field_errors() -> None:
    """Both capacity and allocatable are checked."""
    status = {"allocatable": {"cpu": "-4"}, "capacity": {"cpu": "4", "memory": "-1Gi"}}
    assert [
        'status.allocatable[cpu]: Invalid value: "-4": must be greater than or equal to 0',
        'status.capacity[memory]: Invalid value: "-1Gi": must be greater than or equal to 0',
    ] == _errors("Node", status=status)
