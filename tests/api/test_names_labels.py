"""The format of label keys and values."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.names import label_key_errors, label_value_errors


@pytest.mark.parametrize(
    ("key", "is_valid"),
    [
        ("a", True),
        ("A-b_c.9", True),
        ("example.com/a", True),
        ("x" * 63, True),
        ("x" * 64, False),
        (f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}/n", True),
        (f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 63}/n", False),
        ("", False),
        ("/a", False),
        ("a/", False),
        ("a/b/c", False),
        ("Example.com/a", False),
        ("-a", False),
        ("a-", False),
        ("a b", False),
        ("a\n", False),
        ("\u00e4", False),
    ],
)
def test_key(key: str, is_valid: bool) -> None:
    """An optional DNS name, and a name of up to 63 bytes."""
    assert is_valid == (not label_key_errors(key))


@given(st.text("aA0-_./\n\u00e4", max_size=70))
def test_value(value: str) -> None:
    """Empty, or up to 63 bytes with alphanumeric ends."""
    form = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z", re.ASCII)
    is_valid = form.match(value) is not None and len(value.encode()) <= 63
    assert is_valid == (not label_value_errors(value))
