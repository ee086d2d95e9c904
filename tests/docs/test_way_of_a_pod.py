"""A pod's way from the watch line to the Binding is as ARCHITECTURE.md describes it."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError
from kubesched.api.scheme import kind_of
from kubesched.client.informers import Informer
from kubesched.client.pod_client import PodClient
from kubesched.client.requests import Request
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.assembly import assemble
from kubesched.testing.builders import make_node

_ROOT: Final = Path(__file__).resolve().parents[2]
_SOURCE: Final = _ROOT / "src" / "kubesched"
_FILES_MAX: Final = 10
_TIMEOUT_SECONDS: Final = 30.0
_POD: Final = {
    "metadata": {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": "2"},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "main"}]},
    "status": {"phase": "Pending"},
}


class _ApiServer:
    """A `Rest` whose watch has one line, an added pod.

    Attributes:
        bound: The node that the pod was bound to.
    """

    def __init__(self) -> None:
        self.bound: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def send(self, request: Request) -> bytes:
        """Return an empty list, or record the Binding."""
        if request.path.endswith("/binding"):
            self.bound.set_result(msgspec.json.decode(request.body)["target"]["name"])
        return b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the lines of a watch without initial events, as old servers do."""
        if "sendInitialEvents" in dict(request.query):
            raise ApiError(422, "Invalid", "sendInitialEvents is forbidden")
        lines = self._lines()
        yield lines
        await lines.aclose()

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        yield msgspec.json.encode({"type": "ADDED", "object": _POD})
        await asyncio.Event().wait()


def _described() -> list[tuple[str, str]]:
    """Return file and function of each step in ARCHITECTURE.md."""
    page = (_ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("\n## The way of a pod\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+/\w+\.py)` \| `([\w.]+)` \|", table, re.MULTILINE)


async def _schedule() -> str:
    """Deliver a pod by a watch, wait for its Binding and return the node."""
    server = _ApiServer()
    gates = FeatureGates({})
    scheduler, handlers = assemble(
        in_tree_setup(gates),
        PodClient(server, lambda: 0, lambda _event: None),
        random=Random(0),
    )
    scheduler.cache.add_node(make_node("node-1"))
    informer = Informer(server, kind_of(Pod), handlers, Random(0))
    tasks = [asyncio.ensure_future(each) for each in (informer.run(), scheduler.run())]
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await server.bound
    finally:
        for task in tasks:
            task.cancel()


def test_a_pod_takes_the_described_steps_in_order() -> None:
    """Each function is called, first after the one above it; at most ten files."""
    described = _described()
    steps: list[tuple[str, str]] = []
    names = {function for _, function in described}

    def record(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_qualname in names:
            file = Path(code.co_filename).relative_to(_SOURCE).as_posix()
            if (file, code.co_qualname) not in steps:
                steps.append((file, code.co_qualname))

    # The end of a coroutine that an earlier test left suspended would count as a call, too.
    gc.disable()
    sys.setprofile(record)
    try:
        node_name = asyncio.run(_schedule())
    finally:
        sys.setprofile(None)
        gc.enable()
    assert node_name == "node-1"
    assert [step for step in steps if step in described] == described
    assert 0 < len({file for file, _ in described}) <= _FILES_MAX
