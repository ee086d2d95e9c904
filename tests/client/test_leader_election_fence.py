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


def test_dropping_and_extending() -> None:
    """The seconds of a dropped permission do not count for the next one."""
    fence = LeaderFence()
    fence.extend(5.0, _TEN, 15)
    fence.drop()
    assert not fence.holds(6.0)
    fence.extend(7.0, _TEN, 15)
    assert 22.0 == fence.holds_until


def test_record_without_a_time() -> None:
    """Each write then counts from its sending."""
    fence = LeaderFence()
    fence.extend(5.0, None, 15)
    fence.extend(6.0, None, 15)
    assert 21.0 == fence.holds_until
