"""Amounts as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.quantity import milli_value, value
from kubesched.plugins.node_resources.shortages import format_amount


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        pytest.param("cpu", 1500, "1.5", id="cores"),
        pytest.param("cpu", 3000, "3", id="whole cores"),
        pytest.param("cpu", -250, "-0.25", id="less than none"),
        pytest.param("cpu", 1, "0.001", id="a milli"),
        pytest.param("memory", 3 << 29, "1.5Gi", id="one and a half"),
        pytest.param("memory", 1 << 40, "1Ti", id="terabinary"),
        pytest.param("memory", (1 << 30) + 1, "1073741825", id="uneven"),
        pytest.param("memory", 0, "0", id="nothing"),
        pytest.param("memory", -(1 << 20), "-1Mi", id="overcommitted"),
        pytest.param("ephemeral-storage", 5 << 10, "5Ki", id="storage"),
        pytest.param("hugepages-2Mi", 4 << 20, "4Mi", id="huge pages"),
        pytest.param("example.com/gpu", 2048, "2048", id="devices"),
    ],
)
def test_format_amount(resource: str, amount: int, expected: str) -> None:
    """Cpu in cores, bytes with binary suffixes, the rest as counted."""
    assert expected == format_amount(resource, amount)


@given(st.integers(0, 1 << 62))
def test_amounts_lose_nothing(amount: int) -> None:
    """Formatting keeps the exact amount."""
    assert amount == value(format_amount("memory", amount))
    assert amount == milli_value(format_amount("cpu", amount))
