"""Elections of our replicas compared with recorded ones of kube-scheduler 1.36."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest

from kubesched.simulator.virtual_loop import run

from .electing import recorded_exchanges, recorded_terms, replayed_exchanges, replayed_terms
from .in_process_connection import Plain
from .records import read_record
from .replay import Replayed, replay
from .table import ELECTIONS

_RETRY_SECONDS: Final = 0.5
_DEADLINE_SECONDS: Final = 2.0
_DURATION_SECONDS: Final = 3.0
_FOREIGN_DURATION_SECONDS: Final = 4.0
# A candidate waits this much longer than the retry period at most.
_JITTER: Final = 1.2
_LATE_SECONDS: Final = 0.2


class Bounds(NamedTuple):
    """The earliest and the latest time of something."""

    first: float
    last: float

    def __contains__(self, seconds: object) -> bool:
        """Whether a time is within the bounds, with some tolerance for the process."""
        return isinstance(seconds, float) and self.first <= seconds <= self.last + _LATE_SECONDS


_ATTEMPT_SECONDS: Final = _RETRY_SECONDS * (1 + _JITTER)
_TAKEOVERS: Final = {
    # Whoever is killed may have renewed half a second ago.
    "leader-election-sigkill": Bounds(
        _DURATION_SECONDS - _RETRY_SECONDS, _DURATION_SECONDS + _ATTEMPT_SECONDS
    ),
    "leader-election-sigterm": Bounds(0.0, _ATTEMPT_SECONDS),
    "leader-election-expired-foreign": Bounds(
        _FOREIGN_DURATION_SECONDS, _FOREIGN_DURATION_SECONDS + _ATTEMPT_SECONDS
    ),
}
# Whoever cannot renew gives up a deadline after it has last begun to.
_GIVING_UP: Final = Bounds(_DEADLINE_SECONDS, _DEADLINE_SECONDS + _RETRY_SECONDS)


def _played(name: str, seed: int = 0) -> tuple[Plain, Replayed]:
    record = read_record(name)
    replayed, _ = run(replay(record, seed), start=100.5)
    return record, replayed


@pytest.mark.parametrize("name", ELECTIONS)
def test_requests_and_events_equal_the_recorded_ones(name: str) -> None:
    """Those about the lease."""
    record, replayed = _played(name)
    assert recorded_exchanges(record) == replayed_exchanges(record, replayed)


@pytest.mark.parametrize("name", ELECTIONS)
def test_the_states_of_the_lease_equal_the_recorded_ones(name: str) -> None:
    """With as many renewals."""
    record, replayed = _played(name)
    expected, actual = recorded_terms(record), replayed_terms(replayed)
    assert expected.states == actual.states
    for terms in (expected, actual):
        # The first renewal follows at once.
        later = [seconds for seconds in terms.renewals if seconds > _LATE_SECONDS / 2]
        assert all(s in Bounds(_RETRY_SECONDS - 0.01, _RETRY_SECONDS) for s in later)


def _begin(record: Plain, replayed: Replayed, **wanted: str) -> float:
    """Return when the first such step started."""
    at = next(at for at, step in enumerate(record["steps"]) if wanted.items() <= step.items())
    return replayed.begins[at]


def _takeover_seconds(record: Plain, replayed: Replayed) -> float:
    """Return the time until another replica held the lease."""
    holders = [(moment, lease["spec"]["holderIdentity"]) for moment, lease in replayed.leases]
    if not any(step.get("id") == "B" for step in record["steps"]):
        return holders[0][0] - _begin(record, replayed, scheduler="start")
    others = (moment for moment, holder in holders if holder not in {"", holders[0][1]})
    return next(others) - _begin(record, replayed, scheduler="signal")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", sorted(_TAKEOVERS))
def test_the_takeover_is_neither_too_early_nor_too_late(name: str, seed: int) -> None:
    """Whatever the random source returns."""
    record, replayed = _played(name, seed)
    assert record["takeover_seconds"] in _TAKEOVERS[name]
    assert _takeover_seconds(record, replayed) in _TAKEOVERS[name]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        pytest.param("leader-election-server-gone", {"api_server": "unreachable"}, id="gone"),
        pytest.param("leader-election-stolen", {"note": "times are the current time"}, id="stolen"),
    ],
)
def test_a_leader_that_cannot_renew_ends_in_time(name: str, cause: dict[str, str]) -> None:
    """A renew deadline after its next attempt."""
    record, replayed = _played(name)
    assert record["exits"]["A"]["seconds"] in _GIVING_UP
    assert replayed.exits["A"][1] - _begin(record, replayed, **cause) in _GIVING_UP
