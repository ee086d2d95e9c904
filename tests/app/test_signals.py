"""Signals end the process in order, or at once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from functools import partial

import pytest

from kubesched.app.signals import handled_signals
from kubesched.client.connect import new_event_loop


def told(*numbers: signal.Signals) -> list[str]:
    """Return what is called for signals to this process."""
    calls: list[str] = []

    async def main() -> None:
        with handled_signals(
            lambda: calls.append("stop"),
            lambda: calls.append("debug"),
            lambda: calls.append("leave"),
        ):
            for number in numbers:
                os.kill(os.getpid(), number)
                await asyncio.sleep(0.005)

    asyncio.run(main())
    return calls


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, new_event_loop])
def test_a_blocked_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
) -> None:
    """The process ends although the loop does not get to the signal; the log shows what blocks."""
    left: list[int] = []

    async def main() -> None:
        leave = partial(left.append, 1)
        with handled_signals(lambda: None, lambda: None, leave, patience_seconds=0.2):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.6)  # noqa: ASYNC251 - what is tested
            os.kill(os.getpid(), signal.SIGINT)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert [1, 1] == left
    assert "time.sleep(0.6)" in caplog.text


@pytest.mark.parametrize(
    ("numbers", "calls"),
    [
        pytest.param((signal.SIGTERM,), ["stop"], id="asked"),
        pytest.param((signal.SIGINT, signal.SIGTERM), ["stop", "leave"], id="asked twice"),
        pytest.param(
            (signal.SIGUSR2, signal.SIGTERM, signal.SIGUSR2), ["debug", "stop", "debug"], id="shown"
        ),
    ],
)
def test_signals(numbers: tuple[signal.Signals, ...], calls: list[str]) -> None:
    """The first SIGTERM stops the process, the second ends it at once."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert calls == told(*numbers)
    assert before == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
