"""SpreadState: the numbers of pods per domain of a pod's hard topology spread constraints.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, preFilterState (v1.36)
Differs:  the lowest count is exact for any change of a what-if; upstream's two critical paths are
          exact only while pods of a single node change, which is the only case there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.plugins.pod_topology_spread.constraints import SpreadConstraint
from kubesched.plugins.shared.topology_domains import DomainSums, code_without_label
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.pod_sums import PodCounts

_INT32_MAX: Final = (1 << 31) - 1


class _LeastCounts:
    """The lowest count of all domains, and of all but one. Immutable.

    Attributes:
        size: The number of domains.
        least: The lowest count; the largest int32 if there are no domains.
    """

    __slots__ = ("_code", "_counts", "_others", "least", "size")

    def __init__(self, counts: NDArray[np.int64], domains: NDArray[np.bool_]) -> None:
        self.size = int(np.count_nonzero(domains))
        self._counts = np.where(domains, counts, _INT32_MAX)
        self._code = int(self._counts.argmin()) if len(counts) else 0
        self.least = int(self._counts[self._code]) if len(counts) else _INT32_MAX
        self._others: int | None = None

    def with_moved(self, moved: dict[int, int]) -> int:
        """Return the lowest count after changes (code -> amount)."""
        if len(moved) == 1:
            ((code, amount),) = moved.items()
            return min(self._without(code), int(self._counts[code]) + amount)
        counts = self._counts.copy()
        for code, amount in moved.items():
            counts[code] += amount
        return int(counts.min())

    def _without(self, code: int) -> int:
        if code != self._code:
            return self.least
        if self._others is None:
            counts = self._counts.copy()
            counts[code] = _INT32_MAX
            self._others = int(counts.min())
        return self._others


class SpreadDomains:
    """The domains of one constraint.

    Attributes:
        constraint: The constraint.
        sums: Pods per domain.
    """

    __slots__ = ("_leasts", "constraint", "sums")

    def __init__(
        self, constraint: SpreadConstraint, sums: DomainSums, leasts: _LeastCounts
    ) -> None:
        self.constraint = constraint
        self.sums = sums
        self._leasts = leasts

    @classmethod
    def of(
        cls,
        constraint: SpreadConstraint,
        label: Coded[str | None],
        pods: PodCounts,
        rows: NDArray[np.bool_] | None,
    ) -> SpreadDomains:
        """Count the matching pods per domain, given their number per row.

        `label` is the column of the topology key, of the whole table; `rows` says per row whether
        it is included, None includes all.
        """
        counts = pods.by_code(label, rows)
        codes = label.codes if rows is None else label.codes[rows]
        domains = np.bincount(codes, minlength=len(label.values)) > 0
        sums = DomainSums(counts, code_without_label(label))
        return cls(constraint, sums, _LeastCounts(counts, domains))

    def clone(self) -> SpreadDomains:
        """Return a copy that can be changed independently."""
        return SpreadDomains(self.constraint, self.sums.clone(), self._leasts)

    @property
    def least(self) -> int:
        """The lowest count of a domain; 0 if there are fewer than `min_domains`."""
        if self._leasts.size < self.constraint.min_domains:
            return 0
        return self._leasts.with_moved(self.sums.moved) if self.sums.moved else self._leasts.least


class SpreadState:
    """The domains of all hard constraints, in the order of the constraints."""

    __slots__ = ("domains",)

    def __init__(self, domains: tuple[SpreadDomains, ...]) -> None:
        self.domains = domains

    @property
    def constraints(self) -> tuple[SpreadConstraint, ...]:
        """The hard constraints."""
        return tuple(domains.constraint for domains in self.domains)

    def clone(self) -> SpreadState:
        """Return a copy that can be changed independently."""
        return SpreadState(tuple(domains.clone() for domains in self.domains))
