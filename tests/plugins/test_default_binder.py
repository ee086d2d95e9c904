from __future__ import annotations

import asyncio

from kubesched.api.core import Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SUCCESS, Code, Status, failure
from kubesched.plugins.default_binder import DefaultBinder
from kubesched.testing.builders import make_pod_info
from kubesched.testing.handle import FakeHandle


def bind(answer: Status | None) -> tuple[Status, list[tuple[str, str]]]:
    """Bind one pod; return the status, and what reached the API server, if there is one."""
    handle, bound = FakeHandle(), list[tuple[str, str]]()
    if answer is not None:

        async def record(pod: Pod, node_name: str) -> Status:
            bound.append((pod.metadata.uid, node_name))
            return answer

        handle.provide(bind=record)
    plugin = DefaultBinder(None, handle)
    return asyncio.run(plugin.bind(CycleState(), make_pod_info("a"), "node")), bound


def test_binds_through_the_handle() -> None:
    """The pod and its node reach the binder, once."""
    assert (SUCCESS, [("default/a", "node")]) == bind(SUCCESS)


def test_refusal_is_an_error() -> None:
    """The API server's error is returned."""
    status, _ = bind(failure('pods "a" not found'))
    assert (Code.ERROR, 'pods "a" not found') == (status.code, status.message)


def test_no_api() -> None:
    """Without an API server, binding fails."""
    assert Code.ERROR == bind(None)[0].code
