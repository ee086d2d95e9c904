"""Status is a plugin's answer; NodeToStatus holds one per row of the node table.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go (v1.36)
Invariants: `SUCCESS` is a value, never None; `NodeToStatus.statuses[0]` is `SUCCESS`.
Differs:  success is a value, where upstream uses a nil status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray


class Code(IntEnum):
    """The seven outcomes of an extension point, with upstream's numbers."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """Upstream's name of the code, as in metrics and recorded decisions."""
        return _LABELS[self]

    @property
    def is_rejected(self) -> bool:
        """Whether the pod does not fit (yet), as opposed to a failure."""
        return self in _REJECTED


# Read several times per pod; looking a member up in its class costs more than comparing it.
_SUCCESS: Final = Code.SUCCESS
_SKIP: Final = Code.SKIP

_LABELS: Final = {
    code: "".join(word.capitalize() for word in code.name.split("_")) for code in Code
}
_REJECTED: Final = frozenset(
    {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
)

_ROWS_FEW: Final = 64
"""Up to this number of rows, a dict encodes keys faster than arrays."""
_KEYS_FEW: Final = 1 << 12
"""Keys below are counted, which is faster than to sort them."""


class Status(msgspec.Struct, frozen=True):
    """A plugin's outcome for one pod, or for one pod on one node.

    Attributes:
        code: The outcome.
        reasons: Texts for users, in upstream's words.
        plugin: The plugin that returned the status; the profile fills it in.
        error: The error text if the code is `ERROR`.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the code is `SUCCESS`."""
        return self.code is _SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the code is `SKIP`: the plugin has nothing to do for this pod."""
        return self.code is _SKIP

    @property
    def is_rejected(self) -> bool:
        """Whether the pod does not fit (yet), as opposed to a failure."""
        return self.code in _REJECTED

    @property
    def all_reasons(self) -> tuple[str, ...]:
        """The error text, if any, and the reasons."""
        return (self.error, *self.reasons) if self.error else self.reasons

    @property
    def message(self) -> str:
        """All reasons, joined by commas."""
        return ", ".join(self.all_reasons)

    def by(self, plugin: str) -> Status:
        """Return the status attributed to `plugin`, unless it is a success or has a plugin."""
        if self.plugin or self.code is _SUCCESS:
            return self
        return Status(self.code, self.reasons, plugin, self.error)


SUCCESS: Final = Status()
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return a rejection that evicting pods from the node may resolve."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a rejection that evicting pods cannot resolve."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def failure(error: str) -> Status:
    """Return an error, which ends the scheduling cycle."""
    return Status(Code.ERROR, error=error)


@lru_cache(64)
def _zeros(rows: int) -> NDArray[np.int32]:
    zeros = np.zeros(rows, np.int32)
    zeros.flags.writeable = False
    return zeros


class NodeToStatus:
    """One status per row, dictionary-encoded: row `r` has `statuses[index[r]]`.

    Attributes:
        index: int32 per row; 0 means success.
        statuses: The distinct statuses; the first is `SUCCESS`. If it is alone, every row passes.
    """

    __slots__ = ("_counts", "index", "statuses")

    def __init__(self, index: NDArray[np.int32], statuses: Sequence[Status]) -> None:
        self.index = index
        self.statuses = statuses
        self._counts: Sequence[tuple[Status, int]] | None = None

    @classmethod
    def passing(cls, rows: int) -> Self:
        """Return success for every row."""
        return cls(_zeros(rows), (SUCCESS,))

    @classmethod
    def everywhere(cls, rows: int, status: Status) -> Self:
        """Return the same status for every row."""
        return cls(np.ones(rows, np.int32), (SUCCESS, status))

    @classmethod
    def rejecting(cls, rejected: NDArray[np.bool_], status: Status) -> Self:
        """Return `status` for rows where `rejected` is true, success for the others.

        Raises:
            TypeError: `rejected` is not a mask.
        """
        mask = np.asarray(rejected)
        if mask.dtype != np.bool_ or mask.ndim != 1:
            found = mask.dtype if mask.ndim == 1 else f"the shape {mask.shape}"
            raise TypeError(f"rows are rejected by a mask of bools, not by {found}")
        return cls(mask.astype(np.int32), (SUCCESS, status))

    @classmethod
    def first_of(cls, rejections: Iterable[tuple[NDArray[np.bool_], Status]], rows: int) -> Self:
        """Return for each row the status of the first pair whose mask is true there."""
        index = np.zeros(rows, np.int32)
        statuses = [SUCCESS]
        for mask, status in rejections:
            index[mask & (index == 0)] = len(statuses)
            statuses.append(status)
        return cls(index, statuses)

    @classmethod
    def of(cls, statuses: Sequence[Status]) -> Self:
        """Encode a list with one status per row."""
        rejections = {row: each for row, each in enumerate(statuses) if not each.is_success}
        return cls.of_some(rejections, len(statuses))

    @classmethod
    def of_some(cls, statuses: Mapping[int, Status], rows: int, others: Status = SUCCESS) -> Self:
        """Return these statuses by row, and the same status for all other rows."""
        codes: dict[Status, int] = {SUCCESS: 0}
        index = np.full(rows, codes.setdefault(others, len(codes)), np.int32)
        for row, status in statuses.items():
            index[row] = codes.setdefault(status, len(codes))
        return cls(index, [*codes])

    @classmethod
    def encode(cls, keys: NDArray[np.int64], status_of: Callable[[int], Status]) -> Self:
        """Return the status of each row's key; 0 means success, and no key is negative.

        Calls `status_of` once per distinct key.
        """
        # Usually nearly all rows have the same key.
        others = np.flatnonzero(keys != keys[:1])
        if len(others) <= _ROWS_FEW:
            first, some = keys[:1].tolist(), keys[others].tolist()
            distinct = sorted({0, *first, *some})
            codes = {key: code for code, key in enumerate(distinct)}
            index = np.full(len(keys), codes[first[0]] if first else 0, np.int32)
            index[others] = [codes[key] for key in some]
        elif keys.max() < _KEYS_FEW:
            counts = np.bincount(keys)
            counts[0] = 1
            distinct = np.flatnonzero(counts).tolist()
            position = np.zeros(len(counts), np.int32)
            position[distinct] = np.arange(len(distinct))
            index = position.take(keys)
        else:
            sorted_keys, inverse = np.unique(np.append(0, keys), return_inverse=True)
            distinct, index = sorted_keys.tolist(), inverse[1:].astype(np.int32)
        return cls(index, [SUCCESS, *map(status_of, distinct[1:])])

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, row: int) -> Status:
        return self.statuses[self.index.item(row)]

    @property
    def counts(self) -> Sequence[tuple[Status, int]]:
        """The distinct statuses but success, with their numbers of rows; read once it is final."""
        if self._counts is None:
            counts = np.bincount(self.index, minlength=len(self.statuses)).tolist()
            both = zip(self.statuses[1:], counts[1:], strict=True)
            self._counts = [(status, rows) for status, rows in both if rows]
        return self._counts

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Whether the status of each row is success."""
        return np.equal(self.index, 0)
