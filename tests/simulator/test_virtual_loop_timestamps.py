"""Virtual seconds as timestamps of Kubernetes."""

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
def test_a_timestamp_has_whole_seconds(seconds: float, expected: str) -> None:
    """Fractions are cut off."""
    assert expected == timestamp(seconds)


def test_the_longest_duration_has_a_timestamp() -> None:
    """A hundred years."""
    assert parse_time(timestamp(SECONDS_MAX)) - parse_time(timestamp(0)) == SECONDS_MAX * 10**9
