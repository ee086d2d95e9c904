"""Virtual seconds as Kubernetes' times."""

from __future__ import annotations

import pytest

from kubesched.api.times import parse_time
from kubesched.simulator.virtual_loop import SECONDS_MAX, timestamp


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0.0, "2026-01-01T00:00:00Z", id="begin"),
        pytest.param(59.999, "2026-01-01T00:00:59Z", id="whole-seconds"),
        pytest.param(86_400.0, "2026-01-02T00:00:00Z", id="day"),
    ],
)
def test_timestamp(seconds: float, expected: str) -> None:
    """A time is cut to whole seconds."""
    assert expected == timestamp(seconds)


def test_the_longest_time_can_be_written_and_read() -> None:
    """A hundred years on, times can still be told."""
    assert parse_time(timestamp(SECONDS_MAX)) - parse_time(timestamp(0)) == SECONDS_MAX * 10**9
