"""Statuses, their texts, and one status per row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)

A, B = unschedulable("a"), unresolvable("b", "c")

_statuses = st.sampled_from([SUCCESS, A, B, failure("x"), SKIP])


@pytest.mark.parametrize(
    ("code", "number", "label", "is_rejected"),
    [
        (Code.SUCCESS, 0, "Success", False),
        (Code.ERROR, 1, "Error", False),
        (Code.UNSCHEDULABLE, 2, "Unschedulable", True),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 3, "UnschedulableAndUnresolvable", True),
        (Code.WAIT, 4, "Wait", False),
        (Code.SKIP, 5, "Skip", False),
        (Code.PENDING, 6, "Pending", True),
    ],
)
def test_codes(code: Code, number: int, label: str, *, is_rejected: bool) -> None:
    """Codes have upstream's numbers and names; three of them reject."""
    assert (number, label, is_rejected) == (int(code), code.label, code.is_rejected)
    assert is_rejected == Status(code).is_rejected


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param(SUCCESS, "", id="success"),
        pytest.param(unschedulable("one", "two"), "one, two", id="reasons"),
        pytest.param(failure("broken"), "broken", id="error"),
        pytest.param(Status(Code.ERROR, ("why",), error="broken"), "broken, why", id="both"),
    ],
)
def test_message(status: Status, message: str) -> None:
    """The error precedes the reasons."""
    assert message == status.message


def test_by() -> None:
    """A rejection is attributed once; success is not attributed."""
    assert "P" == A.by("P").plugin
    assert "P" == A.by("P").by("Q").plugin
    assert SUCCESS is SUCCESS.by("P")
    assert (Code.ERROR, "x", "P") == (
        failure("x").by("P").code,
        failure("x").by("P").error,
        failure("x").by("P").plugin,
    )


def test_kinds() -> None:
    """Success, Skip, rejection and failure exclude each other."""
    for status in (SUCCESS, SKIP, A, B, failure("x")):
        kinds = [status.is_success, status.is_skip, status.is_rejected, status.code is Code.ERROR]
        assert 1 == sum(kinds)


@given(st.lists(_statuses, max_size=10))
def test_of_keeps_every_status(statuses: list[Status]) -> None:
    """Encoding one status per row loses nothing and keeps each distinct one once."""
    column = NodeToStatus.of(statuses)
    assert statuses == [column[row] for row in range(len(column))]
    assert [status.is_success for status in statuses] == column.passed.tolist()
    assert SUCCESS is column.statuses[0]
    assert len(set(column.statuses)) == len(column.statuses)


def test_success_with_reasons_is_success() -> None:
    """The reasons of a success are dropped."""
    column = NodeToStatus.of([Status(Code.SUCCESS, ("well",)), A])
    assert [True, False] == column.passed.tolist()


def test_the_same_for_all_rows() -> None:
    """All rows pass, or all have one status."""
    assert [SUCCESS] * 3 == [NodeToStatus.passing(3)[row] for row in range(3)]
    assert [A] * 3 == [NodeToStatus.everywhere(3, A)[row] for row in range(3)]
    assert 0 == len(NodeToStatus.passing(0))


def test_rejecting() -> None:
    """Rows in the mask have the status, the others pass."""
    column = NodeToStatus.rejecting(np.array([False, True]), A)
    assert [SUCCESS, A] == [column[row] for row in range(2)]


def test_rejecting_takes_a_mask() -> None:
    """Numbers of rows are refused, and columns; a list of bools is a mask."""
    with pytest.raises(TypeError, match="by a mask of bools, not by int64"):
        NodeToStatus.rejecting(np.array([8, 16]), A)
    with pytest.raises(TypeError, match=r"by a mask of bools, not by the shape \(2, 1\)"):
        NodeToStatus.rejecting(np.array([[True], [False]]), A)
    column = NodeToStatus.rejecting([False, True], A)  # type: ignore[arg-type]
    assert [SUCCESS, A] == [column[row] for row in range(2)]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=8))
def test_first_of(masks: list[tuple[bool, bool]]) -> None:
    """A row has the status of the first mask that holds for it."""
    first, second = (np.array([mask[at] for mask in masks], np.bool_) for at in range(2))
    column = NodeToStatus.first_of([(first, A), (second, B)], len(masks))
    expected = [A if one else B if two else SUCCESS for one, two in masks]
    assert expected == [column[row] for row in range(len(masks))]


@given(st.lists(st.integers(0, 5) | st.just(5000), max_size=20), st.sampled_from([1, 70]))
def test_encode(keys: list[int], times: int) -> None:
    """Rows with equal keys share one status; key 0 means success."""
    keys *= times
    asked: list[int] = []

    def status_of(key: int) -> Status:
        asked.append(key)
        return unschedulable(str(key))

    column = NodeToStatus.encode(np.array(keys, np.int64), status_of)
    expected = [unschedulable(str(key)) if key else SUCCESS for key in keys]
    assert expected == [column[row] for row in range(len(keys))]
    assert sorted(set(keys) - {0}) == asked
