"""Feature gates that make the scheduler ignore fields of pods, wherever pods come from."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubesched.api.codec import decode_object
from kubesched.api.core import Pod
from kubesched.testing.builders import make_node
from tests.scheduler.running import running

from .cluster import Json, node, pod, run, write

_RESIZE = "InPlacePodLevelResourcesVerticalScaling"
_BOTH_OFF = {"PodLevelResources": False, _RESIZE: False}


def _waiting() -> Json:
    """A pod with 1 CPU requested by its container and 8 at pod level."""
    return pod("new", resources={"requests": {"cpu": "8"}})


def _resized() -> Json:
    """A pod on alpha that requests 1 CPU and still has 3 allocated."""
    whole: dict[str, Any] = {"requests": {"cpu": "3"}}
    found = pod("old", node_name="alpha", resources={"requests": {"cpu": "1"}})
    found["status"] |= {"resources": whole, "allocatedResources": {"cpu": "3"}}
    return found


def _flag(gates: dict[str, bool]) -> tuple[str, ...]:
    line = ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())
    return ("--feature-gates", line) if gates else ()


@pytest.mark.parametrize(
    ("pods", "gates", "fits"),
    [
        pytest.param([_waiting()], {}, False, id="pod level"),
        pytest.param([_waiting()], {_RESIZE: False}, False, id="pod level without resize"),
        pytest.param([_waiting()], _BOTH_OFF, True, id="no pod level"),
        pytest.param([_resized(), pod("new", "2")], {}, False, id="resize"),
        pytest.param([_resized(), pod("new", "2")], {_RESIZE: False}, True, id="no resize"),
    ],
)
def test_fields_behind_disabled_gates(
    pods: list[Json], gates: dict[str, bool], fits: bool, tmp_path: Path
) -> None:
    """They are ignored by simulate, explain and a running scheduler."""
    cluster = write(tmp_path, [node("alpha", "4"), *pods])
    placed = "1 of 1 pod placed" if fits else "0 of 1 pod"
    assert placed in run("simulate", cluster, *_flag(gates)).stdout
    explained = "goes to alpha" if fits else "does not fit the only node"
    assert explained in run("explain", "new", cluster, *_flag(gates)).stdout

    async def main() -> bool:
        async with running(gates=gates) as live:
            live.api.create(make_node("alpha", allocatable={"cpu": "4", "memory": "8Gi"}))
            for raw in pods:
                found = decode_object(raw)
                assert isinstance(found, Pod)
                live.api.create(found)
            await live.settle()
            return "new" in live.nodes

    assert fits is asyncio.run(main())
