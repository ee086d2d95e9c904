"""OneByOne decides whether a few rows are renewed one by one, or together with arrays.

The first is cheaper where most rows have been in their state before. Whether they have, shows when
it is done; so where it did not pay, it is tried again after a while.
"""

from __future__ import annotations

from typing import ClassVar


class OneByOne:
    """Whether it pays, by what it took so far.

    The costs are rough, in microseconds.
    """

    _ROWS_MAX: ClassVar = 16
    _ARRAYS: ClassVar = 130
    _KNOWN_STATE: ClassVar = 5
    _NEW_STATE: ClassVar = 50
    _PATIENCE: ClassVar = 10
    _LEAD_MAX: ClassVar = 1000

    def __init__(self, *, may_pay: bool) -> None:
        self._may_pay = may_pay
        self._lead = 0

    def pays(self, rows: int) -> bool:
        """Whether to renew so many rows one by one this time; asked once for each renewal."""
        if rows > self._ROWS_MAX or not self._may_pay:
            return False
        if self._lead < 0:
            self._lead += self._PATIENCE
            return False
        return True

    def was_done(self, rows: int, new_states: int) -> None:
        """Take in what it took."""
        took = rows * self._KNOWN_STATE + new_states * self._NEW_STATE
        self._lead = min(self._lead + self._ARRAYS - took, self._LEAD_MAX)
