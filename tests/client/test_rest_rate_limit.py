from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.errors import SetupError
from kubesched.client.rest import TokenBucket, limiter_of
from tests.loops import on_virtual_time


@on_virtual_time
async def test_burst_then_steady_rate() -> None:
    """The bucket is full at first; later waits end at the rate, in order."""
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(10, 3)
    turns: list[tuple[int, float]] = []

    async def ask(number: int) -> None:
        await bucket.wait()
        turns.append((number, loop.time()))

    await asyncio.gather(*(ask(number) for number in range(6)))
    assert [0, 1, 2, 3, 4, 5] == [number for number, _ in turns]
    assert [0, 0, 0, 0.1, 0.2, 0.3] == pytest.approx([time for _, time in turns], abs=1e-4)


@on_virtual_time
async def test_tokens_come_back_up_to_the_burst() -> None:
    """A pause fills the bucket, and never beyond its size."""
    bucket = TokenBucket(1, 2)
    waits = [await bucket.wait() for _ in range(3)]
    await asyncio.sleep(1.1)
    waits += [await bucket.wait() for _ in range(2)]
    await asyncio.sleep(100)
    waits += [await bucket.wait() for _ in range(3)]
    assert [0, 0, 1, 0, 0.9, 0, 0, 1] == pytest.approx(waits, abs=1e-4)


@settings(max_examples=40)
@given(
    st.floats(0.5, 50),
    st.integers(1, 20),
    st.lists(st.floats(0, 3), min_size=1, max_size=30),
    st.lists(st.booleans(), min_size=30, max_size=30),
)
@on_virtual_time
async def test_never_more_than_rate_and_burst(
    qps: float, burst: int, pauses: list[float], gives_up: list[bool]
) -> None:
    """In any period at most burst + time * rate waits end, with any cancellations."""
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(qps, burst)
    ended: list[float] = []

    async def ask() -> None:
        await bucket.wait()
        ended.append(loop.time())

    tasks = []
    for pause, is_short in zip(pauses, gives_up, strict=False):
        task = asyncio.create_task(ask())
        tasks.append(task)
        await asyncio.sleep(pause / 4)
        if is_short:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for first, start in enumerate(ended):
        for last in range(first, len(ended)):
            assert last - first + 1 <= burst + (ended[last] - start) * qps + 1e-3


@on_virtual_time
async def test_configured_values() -> None:
    """0 is client-go's default, below 0 is no limit, and a burst has to let something through."""
    assert limiter_of(-1, 0) is None
    default = limiter_of(0, 0)
    assert default is not None
    assert [*[0] * 10, 0.2] == pytest.approx([await default.wait() for _ in range(11)], abs=1e-4)
    for qps, burst in ((50, -1), (50, 0), (0, -1)):
        with pytest.raises(SetupError, match="burst is required to be greater than 0"):
            limiter_of(qps, burst)
