from __future__ import annotations

import asyncio

from kubesched.api.core import Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SUCCESS, Code, Status, failure
from kubesched.plugins.default_binder import DefaultBinder
from kubesched.testing.builders import make_pod_info
from kubesched.testing.handle import FakeHandle


class RecordingBinder:
    """Records bindings and returns a given result."""

    def __init__(self, answer: Status = SUCCESS) -> None:
        self.answer = answer
        self.bound: list[tuple[str, str]] = []

    async def bind(self, pod: Pod, node_name: str) -> Status:
        """Note the binding."""
        self.bound.append((pod.metadata.uid, node_name))
        return self.answer


class HandleWithBinder(FakeHandle):
    """A handle with an API server."""

    def __init__(self, binder: RecordingBinder) -> None:
        super().__init__()
        self.provide(bind=binder.bind)


def bind(handle: FakeHandle) -> Status:
    """Bind one pod."""
    plugin = DefaultBinder(None, handle)
    return asyncio.run(plugin.bind(CycleState(), make_pod_info("a"), "node"))


def test_binds_through_the_handle() -> None:
    """The pod and its node reach the binder, once."""
    binder = RecordingBinder()
    assert bind(HandleWithBinder(binder)).is_success
    assert [("default/a", "node")] == binder.bound


def test_refusal_is_an_error() -> None:
    """The API server's error is returned."""
    status = bind(HandleWithBinder(RecordingBinder(failure('pods "a" not found'))))
    assert (Code.ERROR, 'pods "a" not found') == (status.code, status.message)


def test_no_api() -> None:
    """Without an API server, binding fails."""
    assert Code.ERROR == bind(FakeHandle()).code
