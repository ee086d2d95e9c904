"""Warnings as they are sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.warning_texts import sendable


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["a", "b", "a", ""], ("a", "b"), id="each once"),
        pytest.param(["a\nb", "c", "\x7f"], ("c",), id="no control characters"),
        pytest.param(["a" * 4096], ("a" * 4096,), id="what just fits"),
        pytest.param(["a" * 4096, "b"], ("a" * 256, "b"), id="too much is cut"),
        pytest.param(["a" * 4097], ("a" * 256,), id="one that is too long"),
        pytest.param(["ä" * 300, "b" * 4000], ("ä" * 256, "b" * 256), id="characters, not bytes"),
    ],
)
def test_what_is_sent(texts: list[str], expected: tuple[str, ...]) -> None:
    """Each text is sent once, and all of them in so much room."""
    assert expected == sendable(texts)


def test_what_came_before_the_room_was_full_is_sent() -> None:
    """Nothing follows after the shortened texts have filled the room, but all before stays."""
    short = [f"{number:03d}" for number in range(400)]
    long = [f"{number:03d}" + "x" * 300 for number in range(400)]
    assert tuple(short) == sendable(short)
    sent = sendable([*short, *long])
    # 1,200 characters of short ones; ten whole long ones fit, cut ones until 4,096 are reached.
    assert len(sent) == 400 + 12
    assert sent[400:] == tuple(one[:256] for one in long[:12])


@given(st.lists(st.text(max_size=400), max_size=40))
def test_order_is_kept(texts: list[str]) -> None:
    """Whatever is sent begins a text that was given, in order."""
    rest = iter(dict.fromkeys(texts))
    assert all(any(text.startswith(one) for text in rest) for one in sendable(texts))
