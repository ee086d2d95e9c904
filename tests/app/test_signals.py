"""Signals end the process in order, or at once."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from kubesched.app.signals import handled_signals


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
