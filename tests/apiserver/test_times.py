"""Times as they are read and written, identities and names."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.times import Clock, after

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def clock(seed: int = 1) -> Clock:
    """A clock that does not move."""
    return Clock(lambda: NOON, Random(seed))


@given(st.integers())
def test_uids_are_random_uuids(seed: int) -> None:
    """An identity is a UUID of version 4."""
    made = uuid.UUID(clock(seed).uid())
    assert (4, uuid.RFC_4122) == (made.version, made.variant)


def test_equal_seeds_give_equal_identities() -> None:
    """A run can be repeated from its seed."""
    assert clock().uid() == clock().uid()


@given(st.text(max_size=100))
def test_generated_names_are_short(prefix: str) -> None:
    """A generated name has the given prefix, five characters more, and at most 63 in all."""
    name = clock().name_after(prefix)
    assert len(name) <= 63
    assert name[:-5] == prefix[:58]


def test_timestamps_are_whole_seconds() -> None:
    """Fractions are left out."""
    assert clock().timestamp(30) == "2024-05-01T12:00:30Z"


def test_overflowing_durations() -> None:
    """Seconds beyond Go's durations wrap around without an error."""
    assert after(NOON, 30).isoformat() == "2024-05-01T12:00:30+00:00"
    assert after(NOON, -30).isoformat() == "2024-05-01T11:59:30+00:00"
    assert after(NOON, 2**63 // 10**9 + 1) < NOON
    assert clock().timestamp(2**63 - 1) == "2024-05-01T11:59:59Z"
