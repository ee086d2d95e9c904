"""What the log says while the caches are not synced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from random import Random

import pytest

from kubesched.api.core import Node, Pod
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import kind_of
from kubesched.app.sync_report import report_missing
from kubesched.client.informers import Informers
from kubesched.client.requests import Request
from kubesched.simulator.virtual_loop import run

SERVER = "https://server:6443"


class _NoServer:
    """A connection to a server that is not there."""

    async def send(self, request: Request) -> bytes:
        """Fail."""
        raise _refused()

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Fail."""
        raise _refused()


def _refused() -> ApiError:
    return ApiError(0, "ConnectionRefused", "connect: connection refused")


class _Nobody:
    def added(self, item: KubeObject) -> None:
        """Nobody comes."""

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Nobody changes."""

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Nobody goes."""


async def _wait(seconds: float) -> None:
    informers = Informers(_NoServer(), _Nobody(), Random(1))
    informers.add(kind_of(Node))
    informers.add(kind_of(Pod))
    tasks = [
        asyncio.ensure_future(informers.run()),
        asyncio.ensure_future(report_missing(informers, SERVER)),
    ]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_start_without_delay_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Two seconds are no reason to complain."""
    run(_wait(1.9))
    assert [] == caplog.messages


def test_a_long_wait_says_now_and_then_why(caplog: pytest.LogCaptureFixture) -> None:
    """One line after two seconds, and one every ten."""
    run(_wait(23.0))
    expected = (
        f"Waiting for the API server at {SERVER}: 2 of 2 kinds are not synced, "
        "such as nodes: connect: connection refused"
    )
    assert [expected] * 3 == caplog.messages
