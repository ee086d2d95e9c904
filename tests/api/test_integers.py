"""Integers as Go's int64."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.integers import INT64_MAX, INT64_MIN, quotient, truncate, wrap

INT64 = st.integers(INT64_MIN, INT64_MAX)


@given(st.integers(-(1 << 72), 1 << 72))
def test_wrap_keeps_64_bits(number: int) -> None:
    """A number that does not fit wraps around, as in C."""
    assert ctypes.c_int64(number).value == wrap(number)


@given(INT64, INT64.filter(bool))
def test_quotient_rounds_toward_zero(dividend: int, divisor: int) -> None:
    """Quotient and remainder fit together, and the remainder has the dividend's sign."""
    whole = quotient(dividend, divisor)
    rest = dividend - whole * divisor
    assert abs(rest) < abs(divisor) or (dividend == INT64_MIN and divisor == -1)
    assert rest == 0 or (rest < 0) == (dividend < 0)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(99.9, 99, id="down"),
        pytest.param(-99.9, -99, id="up"),
        pytest.param(2.0**63, INT64_MIN, id="too large"),
        pytest.param(-(2.0**80), INT64_MIN, id="too small"),
    ],
)
def test_truncate(number: float, expected: int) -> None:
    """Floats lose their fraction; those out of range become the smallest integer."""
    assert expected == truncate(number)
