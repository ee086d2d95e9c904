"""Times, identities and names."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.clock import Clock, after, moment_of

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def clock(seed: int = 1) -> Clock:
    """A clock that stands still."""
    return Clock(lambda: NOON, Random(seed))


@given(st.integers())
def test_uids_are_random_uuids(seed: int) -> None:
    """An identity is a UUID of version 4."""
    made = uuid.UUID(clock(seed).uid())
    assert (4, uuid.RFC_4122) == (made.version, made.variant)


def test_the_same_dice_draw_the_same() -> None:
    """A run can be repeated from its seed."""
    assert clock().uid() == clock().uid()


@given(st.text(max_size=100))
def test_generated_names_are_short(prefix: str) -> None:
    """A generated name begins as asked, ends with five characters, and has at most 63."""
    name = clock().name_after(prefix)
    assert len(name) <= 63
    assert name[:-5] == prefix[:58]


def test_timestamps_are_whole_seconds() -> None:
    """A time of an object reads back."""
    assert clock().timestamp(30) == "2024-05-01T12:00:30Z"
    assert moment_of(clock().timestamp()) == NOON


def test_far_moments_wrap_as_upstream_s_do() -> None:
    """Seconds that are too many for Go's durations lead somewhere, and not to an error."""
    assert after(NOON, 30).isoformat() == "2024-05-01T12:00:30+00:00"
    assert after(NOON, -30).isoformat() == "2024-05-01T11:59:30+00:00"
    assert after(NOON, 2**63 // 10**9 + 1) < NOON
    assert clock().timestamp(2**63 - 1) == "2024-05-01T11:59:59Z"
