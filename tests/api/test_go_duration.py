from __future__ import annotations

import pytest

from kubesched.api.go_duration import go_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (5.0, "5s"),
        (1.5, "1.5s"),
        (90, "1m30s"),
        (60, "1m0s"),
        (3600, "1h0m0s"),
        (3661.25, "1h1m1.25s"),
        (0.5, "500ms"),
        (0.0015, "1.5ms"),
        (1e-6, "1µs"),
        (3e-9, "3ns"),
    ],
)
def test_durations_as_go_prints_them(seconds: float, text: str) -> None:
    """Units as time.Duration has them."""
    assert text == go_duration(seconds)
