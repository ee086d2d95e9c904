from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kubesched.client.leader_election import LeaderFence

_TEN = datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_holds_one_lease_duration_from_sending() -> None:
    """The permission ends by itself, at the very moment a candidate may take over."""
    fence = LeaderFence()
    assert not fence.holds(0.0)
    fence.extend(5.0, _TEN, 15)
    assert fence.holds(19.999)
    assert not fence.holds(20.0)


def test_second_renewal_in_the_same_second_does_not_extend() -> None:
    """Candidates that see whole seconds do not see it."""
    fence = LeaderFence()
    fence.extend(5.0, _TEN, 15)
    fence.extend(5.5, _TEN + timedelta(milliseconds=500), 15)
    assert 20.0 == fence.holds_until
    fence.extend(6.0, _TEN + timedelta(seconds=1), 15)
    assert 21.0 == fence.holds_until


def test_dropping_ends_it_and_a_new_term_begins_it() -> None:
    """What was given back holds no more; the next term's first second counts anew."""
    fence = LeaderFence()
    fence.extend(5.0, _TEN, 15)
    fence.drop()
    assert not fence.holds(6.0)
    fence.extend(7.0, _TEN, 15)
    assert 22.0 == fence.holds_until


def test_record_without_a_time_counts_from_sending() -> None:
    """Without a time in the record every write is a change."""
    fence = LeaderFence()
    fence.extend(5.0, None, 15)
    fence.extend(6.0, None, 15)
    assert 21.0 == fence.holds_until
