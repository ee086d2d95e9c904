"""Times a function: the minimum of several rounds, each long enough for the clock."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

_ROUND_SECONDS: Final = 0.02
_ROUNDS: Final = 5
_BUDGET_SECONDS: Final = 0.4
"""The time limit for repeating a function that is slower than a round."""


def time_us(function: Callable[[], object], *, round_seconds: float = _ROUND_SECONDS) -> float:
    """Return microseconds per call.

    The minimum of the rounds is least affected by other load on the machine.
    """
    loops, seconds = 1, _round(function, 1)
    while seconds < round_seconds / 2:
        # Warm up, so that cold caches do not affect the length of a round.
        loops = max(2 * loops, min(100 * loops, int(loops * round_seconds / max(seconds, 1e-9))))
        seconds = _round(function, loops)
    least, spent = seconds, seconds
    for _ in range(_ROUNDS - 1):
        if spent > max(_BUDGET_SECONDS, _ROUNDS * round_seconds):
            break
        seconds = _round(function, loops)
        least, spent = min(least, seconds), spent + seconds
    return _three_digits(least / loops * 1e6)


def _round(function: Callable[[], object], loops: int) -> float:
    before = perf_counter()
    for _ in range(loops):
        function()
    return perf_counter() - before


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")
