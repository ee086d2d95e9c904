"""Virtual time: waiting takes no real time, order is repeatable, deadlocks are errors."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.times import parse_time
from kubesched.simulator.virtual_loop import SECONDS_MAX, DeadlockError, run, timestamp
from tests.loops import on_virtual_time

YEAR = 365 * 86_400.0


async def asleep(seconds: float) -> float:
    """Sleep, and return the time after it."""
    await asyncio.sleep(seconds)
    return asyncio.get_running_loop().time()


def test_virtual_time_jumps_to_the_next_timer() -> None:
    """A year's sleep takes no real time."""
    assert pytest.approx(YEAR) == run(asleep(YEAR))


def test_virtual_time_begins_with_start() -> None:
    """It is in seconds."""
    assert run(asleep(0), start=7.5) == 7.5


@given(st.lists(st.floats(0, 1e7, allow_nan=False), min_size=1, max_size=30))
@on_virtual_time
async def test_timers_fire_in_order_and_on_time(delays: Iterable[float]) -> None:
    """They are up to a few ticks late; the earliest is first."""
    fired: list[tuple[float, float]] = []

    async def sleeper(delay: float) -> None:
        fired.append((delay, await asleep(delay)))

    await asyncio.gather(*map(sleeper, delays))
    assert [at for _, at in fired] == sorted(at for _, at in fired)
    assert all(pytest.approx(delay, abs=3e-6) == at for delay, at in fired)


@given(st.floats(0, 1e8))
def test_waiting_for_the_rest_of_a_second_ends(start: float) -> None:
    """However short the rest is, waiting for it moves the clock."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        for _ in range(5):
            await asyncio.sleep(1.0 - loop.time() % 1.0)
        return loop.time()

    end = run(main(), start=start)
    assert start + 3 < end <= start + 5 + 1e-4


@pytest.mark.parametrize("start", [0.0, 1e7, 2e7, 1e9, 86_400.0 * 365 * 100])
def test_a_timer_for_now_is_due_at_once(start: float) -> None:
    """However long the simulation has lasted; the next tick is later."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[float] = loop.create_future()
        loop.call_at(loop.time() + 2**-20, lambda: done.set_result(loop.time()))
        now: asyncio.Future[float] = loop.create_future()
        loop.call_at(loop.time(), lambda: now.set_result(loop.time()))
        return [await now - start, await done - start]

    assert [0.0, 2**-20] == run(main(), start=start)


@on_virtual_time
async def test_any_delay_moves_the_clock() -> None:
    """A picosecond does, too."""
    assert await asleep(1e-12) > 0


def test_timers_of_one_time_fire_in_a_fixed_order() -> None:
    """Every run has the same order."""

    async def main() -> list[int]:
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(300):
            loop.call_at(float(number % 3), fired.append, number)
            if number % 2:
                loop.call_at(1.0, fired.append, -number).cancel()
        await asyncio.sleep(5)
        return fired

    first = run(main())
    assert first == run(main())
    assert sorted(first) == list(range(300))


def test_a_deadlock_names_the_waiting_tasks() -> None:
    """The run ends with an error."""

    async def forever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.create_task(forever(), name="the-one-who-waits")

    with pytest.raises(DeadlockError, match="the-one-who-waits"):
        run(main())


def test_a_deadlock_of_many_tasks_names_some() -> None:
    """The message stays readable with a thousand tasks."""

    async def main() -> None:
        never = asyncio.Event()
        await asyncio.gather(*(never.wait() for _ in range(1_000)))

    with pytest.raises(DeadlockError, match=r"and 991 more$"):
        run(main())


@on_virtual_time
async def test_a_timeout_is_no_deadlock() -> None:
    """It fires at its time."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), timeout=3600)
    assert 3600 == asyncio.get_running_loop().time()


def test_on_idle_is_called_once_per_time() -> None:
    """After everything else of that time."""
    moments: list[int] = []
    happened: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for at in (1, 1, 2):
            loop.call_at(at, happened.append, at)
        await asyncio.sleep(2)

    run(main(), on_idle=lambda: moments.append(len(happened)))
    assert moments == [0, 2]


def test_an_exception_of_on_idle_ends_the_run() -> None:
    """So checkers stop a simulation where it went wrong."""

    def check() -> None:
        raise AssertionError("broken")

    with pytest.raises(AssertionError, match="broken"):
        run(asyncio.sleep(1), on_idle=check)


def test_an_exception_of_a_callback_ends_the_run() -> None:
    """It is not only logged."""

    async def main() -> None:
        asyncio.get_running_loop().call_later(1, lambda: 1 // 0)
        await asyncio.sleep(10)

    with pytest.raises(ZeroDivisionError):
        run(main())


def test_a_virtual_loop_inside_another_loop() -> None:
    """As in a notebook, whose cells run in one."""

    async def outer() -> float:
        return run(asleep(YEAR))

    assert pytest.approx(YEAR) == asyncio.run(outer())


def test_an_interrupt_inside_another_loop_ends_the_run() -> None:
    """Otherwise its thread would continue."""

    def again() -> None:
        asyncio.get_running_loop().call_later(1, again)

    def interrupt() -> None:
        if not interrupted:
            interrupted.append(True)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    async def endless() -> None:
        again()
        await asyncio.Event().wait()

    async def outer() -> None:
        run(endless(), on_idle=interrupt)

    interrupted: list[bool] = []
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(outer())
    finally:
        loop.close()


# Timestamps.


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0.0, "2026-01-01T00:00:00Z", id="begin"),
        pytest.param(59.999, "2026-01-01T00:00:59Z", id="whole-seconds"),
        pytest.param(86_400.0, "2026-01-02T00:00:00Z", id="day"),
    ],
)
def test_a_timestamp_has_whole_seconds(seconds: float, expected: str) -> None:
    """Fractions are cut off."""
    assert expected == timestamp(seconds)


def test_the_longest_duration_has_a_timestamp() -> None:
    """It is a hundred years."""
    assert parse_time(timestamp(SECONDS_MAX)) - parse_time(timestamp(0)) == SECONDS_MAX * 10**9
