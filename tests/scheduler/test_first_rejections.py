"""The first rejection per row, compared with a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.status import SUCCESS, NodeToStatus, Status, unresolvable, unschedulable
from kubesched.scheduler.first_rejections import PASSED, Filtering, FirstRejections

ROWS = 6
A, B, C = unschedulable("a"), unresolvable("b"), unschedulable("c", "d")

_columns = st.lists(st.sampled_from([SUCCESS, A, B, C]), min_size=ROWS, max_size=ROWS)
_asked = st.lists(
    st.tuples(st.integers(0, 9), _columns), max_size=6, unique_by=lambda pair: pair[0]
)


def _statuses(answers: FirstRejections) -> list[Status]:
    found = answers.statuses()
    return [found[row] for row in range(len(found))]


@given(_asked)
def test_the_earliest_filter_wins(asked: list[tuple[int, list[Status]]]) -> None:
    """Earliest by position, whatever the order of the calls."""
    answers = FirstRejections.all_passed(ROWS)
    twin: dict[int, tuple[int, Status]] = {}
    for position, column in asked:
        came_first = [
            row
            for row, status in enumerate(column)
            if not status.is_success and position < twin.get(row, (PASSED,))[0]
        ]
        for row in came_first:
            twin[row] = (position, column[row].by(f"P{position}"))
        assert bool(came_first) == answers.add(position, f"P{position}", NodeToStatus.of(column))
    assert [twin.get(row, (PASSED, SUCCESS))[1] for row in range(ROWS)] == _statuses(answers)
    assert [row not in twin for row in range(ROWS)] == answers.passed.tolist()
    positions = [twin.get(row, (PASSED, SUCCESS))[0] for row in range(ROWS)]
    assert positions == answers.failed_at.tolist()


def test_a_copy_is_independent() -> None:
    """Adding to a copy does not change the original, though they share the table of statuses."""
    original = FirstRejections.all_passed(2)
    copy = original.copy()
    copy.add(0, "P", NodeToStatus.of([A, SUCCESS]))
    assert [SUCCESS, SUCCESS] == _statuses(original)
    assert [A.by("P"), SUCCESS] == _statuses(copy)


def test_override_replaces_a_rejection() -> None:
    """Later filters do not replace it."""
    filtering = Filtering.all_passed(2)
    filtering.add(3, "P", NodeToStatus.of([A, A]))
    filtering.override({0: B.by("Elsewhere")})
    filtering.add(0, "First", NodeToStatus.of([C, SUCCESS]))
    assert [B.by("Elsewhere"), A.by("P")] == _statuses(filtering.answers())
    assert [False, False] == filtering.passed.tolist()


def test_statuses_keep_their_plugin() -> None:
    """A status with a plugin's name keeps it."""
    answers = FirstRejections.all_passed(1)
    answers.add(0, "Outer", NodeToStatus.of([A.by("Inner")]))
    assert [A.by("Inner")] == _statuses(answers)


@pytest.mark.parametrize("rows", [1, 20])
def test_statuses_for_rejected_rows_only_are_not_listed(rows: int) -> None:
    """The number of rows does not matter."""
    answers = FirstRejections.all_passed(rows)
    assert answers.add(0, "First", NodeToStatus.everywhere(rows, unschedulable("first")))
    assert not answers.add(1, "Later", NodeToStatus.everywhere(rows, unschedulable("later")))
    assert ["", "First"] == [status.plugin for status in answers.codes]


def test_codes() -> None:
    """Equal statuses share a code; success is 0."""
    answers = FirstRejections.all_passed(1)
    assert [0, 1, 2, 1] == [answers.code(status) for status in (SUCCESS, A, B, unschedulable("a"))]
    assert [SUCCESS, A, B] == [*answers.codes]
