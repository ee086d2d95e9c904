"""SpreadState: the numbers of pods per domain of a pod's hard topology spread constraints.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, preFilterState (v1.36)
Differs:  the lowest count is exact for any change of a what-if; upstream's two critical paths are
          exact only while pods of a single node change, which is the only case there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.plugins.pod_topology_spread.constraints import SpreadConstraint
from kubesched.plugins.shared.topology_domains import DomainSums, code_without_label
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.pod_sums import PodCounts

_INT32_MAX: Final = (1 << 31) - 1


@dataclass(slots=True, eq=False)
class SpreadDomains:
    """The domains of one constraint.

    Attributes:
        constraint: The constraint.
        sums: Pods per domain.
        size: The number of domains.
        _counts: Pods per code of the label; the largest int32 for codes that are no domain.
        _least: The lowest of these counts.
    """

    constraint: SpreadConstraint
    sums: DomainSums
    size: int
    _counts: NDArray[np.int64]
    _least: int

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
        is_domain = np.bincount(codes, minlength=len(label.values)) > 0
        among = np.where(is_domain, counts, _INT32_MAX)
        # Faster than `min` for so few numbers.
        least = among.item(among.argmin()) if len(among) else _INT32_MAX
        sums = DomainSums(counts, code_without_label(label))
        return cls(constraint, sums, int(np.count_nonzero(is_domain)), among, least)

    def clone(self) -> SpreadDomains:
        """Return a copy that can be changed independently."""
        return replace(self, sums=self.sums.clone())

    @property
    def least(self) -> int:
        """The lowest count of a domain; 0 if there are fewer than `min_domains`."""
        if self.size < self.constraint.min_domains:
            return 0
        if not self.sums.moved:
            return self._least
        counts = self._counts.copy()
        for code, amount in self.sums.moved.items():
            counts[code] += amount
        return int(counts.min())


@dataclass(slots=True, eq=False)
class SpreadState:
    """The domains of all hard constraints, in the order of the constraints."""

    domains: tuple[SpreadDomains, ...]

    @property
    def constraints(self) -> tuple[SpreadConstraint, ...]:
        """The hard constraints."""
        return tuple(domains.constraint for domains in self.domains)

    def clone(self) -> SpreadState:
        """Return a copy that can be changed independently."""
        return SpreadState(tuple(domains.clone() for domains in self.domains))
