"""An event loop on virtual time: when nothing is ready, the clock jumps to the next timer.

Whatever runs on asyncio runs here unchanged, only that waiting takes no time. Nothing outside the
process is waited for: no threads, no sockets.

Unlike asyncio's own loops, this one does not go on when a callback raises: `run` raises it.

Invariants: time never goes back, and moves in ticks of about a microsecond; callbacks of one
            moment run in an order that depends on the order of the calls that scheduled them,
            and on nothing else.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
_Ready = list[tuple[selectors.SelectorKey, int]]

# Enough for a report of who waits; a simulation may have thousands of tasks.
_TASKS_NAMED_MAX: Final = 10
# A power of two, so that sums and remainders of times are exact for centuries.
_TICKS_PER_SECOND: Final = 2**20


class DeadlockError(RuntimeError):
    """Nothing is ready and no timer is set, so nothing will ever happen again."""


def _in_ticks(seconds: float) -> float:
    """Return a time, or the next one that is a whole number of ticks."""
    return math.ceil(seconds * _TICKS_PER_SECOND) / _TICKS_PER_SECOND


class VirtualClock:
    """Seconds since the start of a simulation.

    Attributes:
        now: The present moment, in whole ticks.
    """

    def __init__(self, start: float = 0.0) -> None:
        self.now = _in_ticks(start)

    def advance(self, seconds: float) -> None:
        """Move on by whole ticks."""
        self.now += seconds


class _JumpingSelector(selectors.BaseSelector):
    """A selector whose waiting moves a clock instead of taking time."""

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
    """An event loop that tells a virtual clock's time."""

    def __init__(self, clock: VirtualClock, on_idle: Callable[[], None]) -> None:
        self._virtual_clock = clock
        self._jumping_selector = _JumpingSelector(clock, on_idle)
        super().__init__(self._jumping_selector)
        # What asyncio adds to the time before it asks which timers are due. Its own nanosecond is
        # lost in large numbers, and after half a year a timer for now would never be due.
        self._clock_resolution = 0.5 / _TICKS_PER_SECOND
        self.set_exception_handler(self._take_note)

    def _take_note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody handled ends the run as soon as the loop looks for something to do."""
        raised = context.get("exception")
        if isinstance(raised, BaseException):
            self._jumping_selector.raised.append(raised)

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
        """Call back at a time, in whole ticks: any delay moves the clock, however short it is.

        Otherwise a loop that waits for the rest of a second, when that is next to nothing, would
        do so for ever.
        """
        return super().call_at(_in_ticks(when), callback, *args, context=context)


def run(
    main: Coroutine[Any, Any, T],
    start: float = 0.0,
    on_idle: Callable[[], None] = lambda: None,
) -> T:
    """Run a coroutine to its end on virtual time; return what it returns.

    Args:
        main: The coroutine; what it leaves running is cancelled.
        start: The time to begin with, in seconds.
        on_idle: Called each time everything that could happen at a moment has happened, before
            the clock moves on; what it raises ends the run.

    Raises:
        DeadlockError: `main` waits, and nothing will ever happen.
        Exception: What `main`, a callback or a task that nobody waits for raises.
    """
    clock = VirtualClock(start)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock, on_idle)) as runner:
        return runner.run(main)


def _deadlock_message() -> str:
    names = sorted(task.get_name() for task in asyncio.all_tasks() if not task.done())
    listed = ", ".join(names[:_TASKS_NAMED_MAX])
    more = f" and {len(names) - _TASKS_NAMED_MAX} more" if len(names) > _TASKS_NAMED_MAX else ""
    return f"nothing is ready and no timer is set; waiting for ever: {listed or 'nobody'}{more}"
