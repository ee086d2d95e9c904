from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.coded import Coded, CodedColumn

VALUES = st.sampled_from(["", "a", "b", "c", "d"])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), VALUES),
        st.tuples(st.just("set"), st.integers(0, 20), VALUES),
        st.tuples(st.just("remove"), st.integers(0, 20)),
    ),
    max_size=60,
)


def column_of(values: list[str]) -> CodedColumn[str]:
    """A column with these rows."""
    column: CodedColumn[str] = CodedColumn()
    for value in values:
        column.append(value)
    return column


def rows_of(column: Coded[str]) -> list[str]:
    """The values, row by row."""
    return [column[row] for row in range(len(column))]


@given(OPERATIONS)
def test_column_is_a_list_with_swap_remove(operations: list[tuple[str, ...]]) -> None:
    """After any changes, rows equal those of a plain list with the same changes."""
    column: CodedColumn[str] = CodedColumn()
    twin: list[str] = []
    for name, *arguments in operations:
        if name == "append":
            column.append(arguments[0])
            twin.append(arguments[0])
        elif twin and name == "set":
            row = int(arguments[0]) % len(twin)
            assert (twin[row] != arguments[1]) == column.set(row, arguments[1])
            twin[row] = arguments[1]
        elif twin and name == "remove":
            row = int(arguments[0]) % len(twin)
            column.swap_remove(row)
            twin[row] = twin[-1]
            twin.pop()
    assert twin == rows_of(column)
    assert len(set(column.values)) == len(column.values)
    assert {value: code for code, value in enumerate(column.values)} == column.positions


@given(st.lists(VALUES, max_size=30), st.lists(VALUES, max_size=5), VALUES)
def test_questions_equal_asking_every_row(values: list[str], wanted: list[str], one: str) -> None:
    """`map`, `equals` and `is_in` equal a loop over the rows."""
    column = column_of(values)
    assert [len(value) for value in values] == column.map(len, np.int64).tolist()
    assert [value == one for value in values] == column.equals(one).tolist()
    assert [value in wanted for value in values] == column.is_in(wanted).tolist()


@given(st.lists(VALUES, min_size=1, max_size=30), st.data())
def test_selection_reads_as_its_rows(values: list[str], data: st.DataObject) -> None:
    """A selection has the values and codes of the chosen rows."""
    column = column_of(values)
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=10))
    taken = column.take(np.array(rows, np.intp))
    assert [values[row] for row in rows] == rows_of(taken)
    assert [column.codes[row] for row in rows] == taken.codes.tolist()
    assert [value == "a" for value in rows_of(taken)] == taken.equals("a").tolist()
    assert [value + "!" for value in rows_of(taken)] == taken.map(
        lambda value: value + "!", np.str_
    ).tolist()


def test_map_asks_once_per_distinct_value() -> None:
    """A function is called twice for a thousand rows with two values."""
    asked: list[str] = []

    def ask(value: str) -> int:
        asked.append(value)
        return 0

    column_of(["a", "b"] * 500).map(ask, np.int64)
    assert ["a", "b"] == asked


def test_unused_values_are_removed() -> None:
    """Earlier selections keep their dictionary."""
    column = column_of(["first", "second"])
    taken = column.take(np.array([0, 1]))
    for number in range(1_000):
        column.set(0, f"value {number}")
    assert len(column.values) < 100
    assert ["value 999", "second"] == rows_of(column)
    assert ["first", "second"] == rows_of(taken)


def test_codes_are_read_only() -> None:
    """Readers cannot change a column."""
    column = column_of(["a"])
    with pytest.raises(ValueError, match="read-only"):
        column.codes[0] = 0


@given(st.lists(VALUES, min_size=1, max_size=10), VALUES, st.data())
def test_with_row_changes_one_row_of_a_copy(
    values: list[str], value: str, data: st.DataObject
) -> None:
    """Other rows, codes and the column itself are unchanged."""
    column, row = column_of(values), data.draw(st.integers(0, len(values) - 1))
    changed = column.with_row(row, value)
    assert [*values[:row], value, *values[row + 1 :]] == rows_of(changed)
    assert values == rows_of(column)
    assert column.values == changed.values[: len(column.values)]
