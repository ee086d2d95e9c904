"""An event loop on virtual time: when nothing is ready, the clock jumps to the next timer.

asyncio code runs here unchanged, but waiting takes no time. The loop waits for nothing outside the
process: no threads, no sockets.

Unlike asyncio's loops, this one stops when a callback raises, and `run` raises the exception.

Invariants: time never goes back, and moves in ticks of about a microsecond; callbacks of one moment
            run in an order that depends on the order of the calls that scheduled them, and on
            nothing else; second 0 is the start of a fixed year in timestamps.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar, TypeVarTuple

from kubesched.api.times import parse_time, second_time

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
_Ready = list[tuple[selectors.SelectorKey, int]]

# Enough for an error message; a simulation may have thousands of tasks.
_TASKS_NAMED_MAX: Final = 10
# A power of two, so that sums and remainders of times are exact for centuries.
_TICKS_PER_SECOND: Final = 2**20


class DeadlockError(RuntimeError):
    """Nothing is ready and no timer is set, so the loop would wait for ever."""


def _in_ticks(seconds: float) -> float:
    """Round a time up to a whole number of ticks."""
    return math.ceil(seconds * _TICKS_PER_SECOND) / _TICKS_PER_SECOND


class VirtualClock:
    """Seconds since the start of a simulation.

    Attributes:
        now: The current time, in whole ticks.
    """

    def __init__(self, start: float = 0.0) -> None:
        self.now = _in_ticks(start)

    def advance(self, seconds: float) -> None:
        """Move the clock forward by whole ticks."""
        self.now += seconds


class _JumpingSelector(selectors.BaseSelector):
    """A selector that moves the clock instead of waiting."""

    def __init__(self, clock: VirtualClock, on_idle: Callable[[], None]) -> None:
        self._clock = clock
        self._on_idle = on_idle
        self.raised: list[BaseException] = []
        self._selector = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> _Ready:
        if self.raised:
            raise self.raised.pop(0)
        if timeout == 0:
            return []
        # Only a signal writes to the loop's own socket, and nothing else is registered.
        ready = self._selector.select(0)
        if ready:
            return ready
        self._on_idle()
        if timeout is None:
            raise DeadlockError(_deadlock_message())
        self._clock.advance(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._selector.get_map()

    def close(self) -> None:
        self._selector.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a virtual clock."""

    def __init__(self, clock: VirtualClock, on_idle: Callable[[], None]) -> None:
        self._virtual_clock = clock
        self._jumping_selector = _JumpingSelector(clock, on_idle)
        super().__init__(self._jumping_selector)
        # asyncio adds this to the time when it looks for due timers. Its default of a nanosecond is
        # lost in large numbers: after half a year, a timer for now would never be due.
        self._clock_resolution = 0.5 / _TICKS_PER_SECOND
        self.set_exception_handler(self._on_exception)

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Record an unhandled exception; the loop raises it in its next step."""
        raised = context.get("exception")
        if isinstance(raised, BaseException):
            self.end_with(raised)

    def end_with(self, error: BaseException) -> None:
        """Raise an exception in the loop's next step; any thread may call this."""
        self._jumping_selector.raised.append(error)

    def time(self) -> float:
        """Return the virtual seconds since the start."""
        return self._virtual_clock.now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback at a time rounded up to whole ticks: any delay moves the clock.

        Otherwise a loop that waits for a tiny rest of a second would do so for ever.
        """
        return super().call_at(_in_ticks(when), callback, *args, context=context)


def run(
    main: Coroutine[Any, Any, T],
    start: float = 0.0,
    on_idle: Callable[[], None] = lambda: None,
) -> T:
    """Run a coroutine to its end on virtual time; return what it returns.

    If the thread has a running event loop, such as a notebook's, that one waits meanwhile.

    Args:
        main: The coroutine; tasks it leaves running are cancelled.
        start: The initial time, in seconds.
        on_idle: Called before the clock moves, when nothing else is ready; an exception ends the
            run.

    Raises:
        DeadlockError: if `main` waits and no timer is set.
        Exception: any exception of `main`, a callback or a task that nothing awaits.
    """
    loop = VirtualLoop(VirtualClock(start), on_idle)

    def play() -> T:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return play()
    # A thread runs one loop only.
    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(play)
        try:
            return playing.result()
        except KeyboardInterrupt as interrupt:
            loop.end_with(interrupt)
            raise


def _deadlock_message() -> str:
    names = sorted(task.get_name() for task in asyncio.all_tasks() if not task.done())
    listed = ", ".join(names[:_TASKS_NAMED_MAX])
    more = f" and {len(names) - _TASKS_NAMED_MAX} more" if len(names) > _TASKS_NAMED_MAX else ""
    return f"nothing is ready and no timer is set; waiting for ever: {listed or 'nobody'}{more}"


# Timestamps.

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 1_000_000_000
SECONDS_MAX: Final = 86_400.0 * 365 * 100


def timestamp(seconds: float) -> str:
    """Return the RFC 3339 time of a virtual second, in whole seconds as metav1.Time."""
    return _timestamp(int(seconds))


# The fields of one object mostly get the same time.
@lru_cache(maxsize=16)
def _timestamp(seconds: int) -> str:
    return second_time(EPOCH + timedelta(seconds=seconds))


def seconds_of(text: str) -> float:
    """Return the virtual second of an RFC 3339 time.

    Raises:
        ValueError: if the text is not an RFC 3339 time.
    """
    return parse_time(text) / _NANOSECONDS - EPOCH.timestamp()
