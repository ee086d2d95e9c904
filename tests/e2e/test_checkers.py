"""Checkers find violations, and nothing in a correct history."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from .checkers import violations
from .history import Bound, Entry, LeaseWrite, Pod

_A = LeaseWrite(0.0, "a", "host_a", 0, 15)
_B = LeaseWrite(20.0, "b", "host_b", 1, 15)
_RELEASED = LeaseWrite(5.0, "a", "", 0, 1)
_ONE = Pod(1.0, "one", "uid-1", is_there=True)
_TWO = Pod(1.0, "two", "uid-2", is_there=True)
_ONE_BY_A = Bound(2.0, "a", "one", "uid-1", "node-1")
_TWO_BY_B = Bound(21.0, "b", "two", "uid-2", "node-1")


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([_A, _ONE, _TWO, _ONE_BY_A, _B, _TWO_BY_B], id="one after the other"),
        pytest.param([_A, _RELEASED, replace(_B, seconds=5.1)], id="given back"),
        pytest.param([_A, _ONE, replace(_ONE, is_there=False)], id="deleted before it was bound"),
        pytest.param([_A, _ONE, _RELEASED, _ONE_BY_A], id="late, but before anybody else"),
    ],
)
def test_correct_histories_have_no_violations(entries: list[Entry]) -> None:
    """No checker reports anything."""
    assert [] == violations(entries)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param(
            [_A, _ONE, _B, _ONE_BY_A], "a bound one while b was the leader", id="after a takeover"
        ),
        pytest.param(
            [_ONE, _ONE_BY_A], "a bound one while nobody was the leader", id="without a lease"
        ),
        pytest.param(
            [_A, _ONE, _ONE_BY_A, replace(_ONE_BY_A, node="node-2", former_node="node-1")],
            "one was bound to node-1 and again to node-2",
            id="twice",
        ),
        pytest.param([_A, _ONE], "1 pods were never bound, such as one", id="lost"),
        pytest.param(
            [_A, replace(_B, seconds=3.0)], "b took the lease of a after 3.00 s", id="stolen"
        ),
        pytest.param(
            [_A, replace(_RELEASED, writer="b")], "b gave back the lease of a", id="given away"
        ),
        pytest.param(
            [_A, replace(_B, transitions=0)],
            "b counted 0 transitions instead of 1",
            id="not counted",
        ),
        pytest.param(
            [_A, _B, replace(_B, writer="a", seconds=40.0)],
            "a wrote a lease for host_b",
            id="for another",
        ),
    ],
)
def test_each_violation_is_found(entries: list[Entry], expected: str) -> None:
    """Every checker can fail."""
    assert expected in violations(entries)
