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
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeVar, TypeVarTuple

from kubesched.api.times import parse_time

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

# Enough for an error message; a simulation may have thousands of tasks.
_TASKS_NAMED_MAX: Final = 10
# A power of two, so that sums and remainders of times are exact for centuries.
_TICKS_PER_SECOND: Final = 2**20
# A heap with fewer timers is not searched for cancelled ones.
_TIMERS_MIN: Final = 100


class DeadlockError(RuntimeError):
    """Nothing is ready and no timer is set, so the loop would wait for ever."""


def _in_ticks(seconds: float) -> float:
    """Round a time up to a whole number of ticks."""
    return math.ceil(seconds * _TICKS_PER_SECOND) / _TICKS_PER_SECOND


class _Call(float):
    """The handle of a call, and the time when it is due: numbers are compared faster than handles.

    `callback` is None if the call was cancelled, `loop` once the clock has reached the time.
    """

    __slots__ = ("args", "callback", "context", "loop")
    callback: Callable[..., object] | None
    args: tuple[Any, ...]
    context: Context
    loop: VirtualLoop | None

    def when(self) -> float:
        """Return the virtual second when it is due."""
        return float(self)

    def cancel(self) -> None:
        """Cancel the call; cancelling twice is fine."""
        if self.callback is not None:
            self.callback, self.args = None, ()
            if self.loop is not None:
                self.loop.cancelled_timers += 1

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.callback is None


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop with a virtual clock; `cancelled_timers` counts those still in the heap."""

    _ready: deque[_Call]
    _stopping: bool

    def __init__(self, start: float, on_idle: Callable[[], None]) -> None:
        """Start at a second; `on_idle` is called before the clock moves."""
        super().__init__()
        self._seconds = _in_ticks(start)
        self._on_idle = on_idle
        self._raised: list[BaseException] = []
        self._timers: list[_Call] = []
        self.cancelled_timers = 0
        self.set_exception_handler(self._on_exception)

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Record an unhandled exception; the loop raises it in its next step."""
        raised = context.get("exception")
        if isinstance(raised, BaseException):
            self.end_with(raised)

    def end_with(self, error: BaseException) -> None:
        """Raise an exception in the loop's next step; any thread may call this."""
        self._raised.append(error)

    def time(self) -> float:
        """Return the virtual seconds since the start."""
        return self._seconds

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
        return self._timer(when, callback, args, context)

    def _timer(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        timer = _Call(_in_ticks(when))
        timer.callback, timer.args, timer.loop = callback, args, self
        timer.context = copy_context() if context is None else context
        heappush(self._timers, timer)
        return timer  # type: ignore[return-value]  # it has the same methods

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a callback for the next step of the loop."""
        call = _Call(self._seconds)
        call.callback, call.args, call.loop = callback, args, None
        call.context = copy_context() if context is None else context
        self._ready.append(call)
        return call  # type: ignore[return-value]  # it has the same methods

    # The loop never sleeps, so no thread has to wake it.
    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback after a delay in seconds; see `call_at`."""
        return self._timer(self._seconds + delay, callback, args, context)

    def _run_once(self) -> None:
        """Run what is ready; before that, move the clock to the next timer if nothing is."""
        if self._raised:
            raise self._raised.pop(0)
        ready, timers = self._ready, self._timers
        cancelled = self.cancelled_timers
        if cancelled and timers and (2 * cancelled > len(timers) or timers[0].callback is None):
            self._drop_cancelled()
        if not (ready or self._stopping or (timers and timers[0] <= self._seconds)):
            self._on_idle()
            if not timers:
                raise DeadlockError(_deadlock_message())
            self._seconds = float(timers[0])
        while timers and timers[0] <= self._seconds:
            timer = heappop(timers)
            timer.loop = None
            ready.append(timer)
        for _ in range(len(ready)):
            call = ready.popleft()
            callback = call.callback
            if callback is not None:
                call.context.run(callback, *call.args)

    def _drop_cancelled(self) -> None:
        timers = self._timers
        if len(timers) > _TIMERS_MIN and 2 * self.cancelled_timers > len(timers):
            timers[:] = [timer for timer in timers if timer.callback is not None]
            heapify(timers)
            self.cancelled_timers = 0
        while timers and timers[0].callback is None:
            heappop(timers)
            self.cancelled_timers -= 1


def run(
    main: Coroutine[Any, Any, T], start: float = 0.0, on_idle: Callable[[], None] = lambda: None
) -> T:
    """Run a coroutine to its end on virtual time, from a second on; return what it returns.

    Tasks that it leaves running are cancelled. `on_idle` is called before the clock moves, when
    nothing else is ready. If the thread has a running event loop, such as a notebook's, that one
    waits meanwhile.

    Raises:
        DeadlockError: if `main` waits and no timer is set.
        Exception: any exception of `main`, `on_idle`, a callback or a task that nothing awaits.
    """
    loop = VirtualLoop(start, on_idle)

    def play() -> T:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return play()
    # A thread runs one loop only.
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(play).result()
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
_START: Final = EPOCH.replace(tzinfo=None)
_NANOSECONDS: Final = 1_000_000_000
SECONDS_MAX: Final = 86_400.0 * 365 * 100


def timestamp(seconds: float) -> str:
    """Return the RFC 3339 time of a virtual second, in whole seconds as metav1.Time."""
    return _timestamp(int(seconds))


# The fields of one object mostly get the same time, and objects get theirs in order.
@lru_cache(maxsize=16)
def _timestamp(seconds: int) -> str:
    minutes, left = divmod(seconds, 60)
    return f"{_minute(minutes)}:{left:02d}Z"


@lru_cache(maxsize=16)
def _minute(minutes: int) -> str:
    return (_START + timedelta(minutes=minutes)).isoformat(timespec="minutes")


def seconds_of(text: str) -> float:
    """Return the virtual second of an RFC 3339 time; raises ValueError if it is not one."""
    return parse_time(text) / _NANOSECONDS - EPOCH.timestamp()
