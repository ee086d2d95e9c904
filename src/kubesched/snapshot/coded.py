"""A dictionary-encoded column: a code per row and a short list of distinct values.

Invariants: `values[codes[row]]` is the row's value; `values` has no duplicates; a selection of rows
            uses the codes of the column that it was taken from.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=Hashable)
D = TypeVar("D", bound=np.generic)

_SPARE_VALUES = 64
"""The number of unused values at which the column is encoded again."""


class Coded(Generic[T]):
    """Read access to a dictionary-encoded column.

    Attributes:
        codes: int32 per row, indices into `values`.
        values: The distinct values; some may be unused.
        positions: Value -> index in `values`.
    """

    __slots__ = ("codes", "positions", "values")

    def __init__(self, codes: NDArray[np.int32], values: list[T], positions: dict[T, int]) -> None:
        self.codes = codes
        self.values = values
        self.positions = positions

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> T:
        return self.values[self.codes.item(row)]

    def map(self, function: Callable[[T], object], dtype: type[D]) -> NDArray[D]:
        """Return `function(value)` per row, calling it about once per distinct value."""
        if len(self.codes) * 4 < len(self.values):
            return np.array([function(self.values[code]) for code in self.codes.tolist()], dtype)
        answers: NDArray[D] = np.array([function(value) for value in self.values], dtype)
        return answers[self.codes]

    def equals(self, value: T) -> NDArray[np.bool_]:
        """Return bool per row: whether it has `value`."""
        return np.equal(self.codes, self.positions.get(value, -1))

    def is_in(self, values: Iterable[T]) -> NDArray[np.bool_]:
        """Return bool per row: whether it has one of `values`."""
        positions = self.positions
        wanted = [positions[value] for value in values if value in positions]
        if len(wanted) == 1:
            return np.equal(self.codes, wanted[0])
        # Looked up by code: numpy.isin takes eight times as long.
        is_wanted = np.zeros(len(self.values), np.bool_)
        is_wanted[wanted] = True
        return is_wanted.take(self.codes)

    def used(self, rows: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Return bool per code: whether a row has it, of those in `rows`; None means all."""
        codes = self.codes if rows is None else self.codes.take(rows.nonzero()[0])
        return np.bincount(codes, minlength=len(self.values)) > 0

    def take(self, rows: NDArray[np.intp] | slice) -> Coded[T]:
        """Return the column of these rows, with the same codes."""
        return Coded(self.codes[rows], self.values, self.positions)

    def with_row(self, row: int, value: T) -> Coded[T]:
        """Return the column with another value in one row, with the same codes elsewhere."""
        values, positions = self.values, self.positions
        if value not in positions:
            values, positions = [*values, value], {**positions, value: len(values)}
        codes = self.codes.copy()
        codes[row] = positions[value]
        return Coded(codes, values, positions)


class CodedColumn(Coded[T]):
    """A dictionary-encoded column that its owner changes row by row.

    Attributes:
        version: Increases with every change of a code.
    """

    __slots__ = ("_storage", "_used", "version")

    def __init__(self, values: Iterable[T] = ()) -> None:
        super().__init__(np.zeros(0, np.int32), [], {})
        codes = [self._code(value) for value in values]
        self._storage: NDArray[np.int32] = np.zeros(max(16, len(codes)), np.int32)
        self.version = 0
        # What `used` returned for all rows, and the version at that time.
        self._used: tuple[int, NDArray[np.bool_]] = (-1, np.zeros(0, np.bool_))
        self._resize(len(codes))
        self._storage[: len(codes)] = codes

    def _code(self, value: T) -> int:
        code = self.positions.get(value)
        if code is None:
            code = self.positions[value] = len(self.values)
            self.values.append(value)
        return code

    def _resize(self, rows: int) -> None:
        if rows > len(self._storage):
            self._storage = np.concatenate([self._storage, np.zeros_like(self._storage)])
        self.version += 1
        self.codes = self._storage[:rows]
        self.codes.flags.writeable = False

    def used(self, rows: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Return bool per code: whether a row has it, of those in `rows`; None means all."""
        if rows is not None:
            return super().used(rows)
        version, used = self._used
        if version != self.version:
            used = super().used()
            self._used = self.version, used
        return used

    def append(self, value: T) -> None:
        """Add a row."""
        rows = len(self.codes)
        self._resize(rows + 1)
        self._storage[rows] = self._code(value)
        self._encode_anew_if_stale()

    def set(self, row: int, value: T) -> bool:
        """Set a row's value; return whether it changed."""
        code = self._code(value)
        if self._storage[row] == code:
            return False
        self.version += 1
        self._storage[row] = code
        self._encode_anew_if_stale()
        return True

    def swap_remove(self, row: int) -> None:
        """Remove a row; the last row takes its place."""
        last = len(self.codes) - 1
        self._storage[row] = self._storage[last]
        self._resize(last)

    def _encode_anew_if_stale(self) -> None:
        if len(self.values) <= 2 * len(self.codes) + _SPARE_VALUES:
            return
        values = [self.values[code] for code in self.codes.tolist()]
        # New containers, because earlier selections still use the old ones.
        self.values = []
        self.positions = {}
        self._storage[: len(values)] = [self._code(value) for value in values]
