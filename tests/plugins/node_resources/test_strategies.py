"""The arithmetic of the scoring strategies."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.integers import INT64_MAX, INT64_MIN, quotient
from kubesched.plugins.node_resources.strategies import percent


@given(st.integers(INT64_MIN, INT64_MAX), st.integers(1, INT64_MAX))
def test_percent_overflows_as_int64(part: int, whole: int) -> None:
    """The hundredfold wraps before the division."""
    assert quotient(ctypes.c_int64(part * 100).value, whole) == percent(part, whole)
