"""The states of PodTopologySpread: pods per domain of hard constraints, and scores of soft ones.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, preFilterState;
          scoring.go (v1.36)
Reads:    nodes.labels; pods on nodes
Differs:  the lowest count is exact for any change of a what-if; upstream's two critical paths are
          exact only while pods of a single node change, which is the only case there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.well_known import HOSTNAME
from kubesched.framework.plugin import NODE_SCORE_MAX
from kubesched.plugins.pod_topology_spread.constraints import (
    Included,
    IncludedNodes,
    SpreadConstraint,
    have_all_keys,
)
from kubesched.plugins.shared.siblings import count_siblings
from kubesched.snapshot.coded import Coded
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_sums import DomainSums

_INT32_MAX: Final = (1 << 31) - 1


@dataclass(slots=True, eq=False)
class SpreadDomains:
    """The domains of one hard constraint.

    Attributes:
        constraint: The constraint.
        sums: Pods per domain.
        is_domain: Bool per code of the label: whether an included node has this value.
    """

    constraint: SpreadConstraint
    sums: DomainSums
    is_domain: NDArray[np.bool_]

    @classmethod
    def of(
        cls, constraint: SpreadConstraint, nodes: NodeColumns, included: IncludedNodes
    ) -> SpreadDomains:
        """Count the matching pods per domain of the whole table."""
        label = nodes.label(constraint.topology_key)
        sums = DomainSums.of(label, constraint.pods.over(nodes.groups), included.rows)
        return cls(constraint, sums, included.is_domain)

    def clone(self) -> SpreadDomains:
        """Return a copy that can be changed independently."""
        return replace(self, sums=self.sums.clone())

    @property
    def least(self) -> int:
        """The lowest count of a domain; 0 if there are fewer than `min_domains`."""
        if np.count_nonzero(self.is_domain) < self.constraint.min_domains:
            return 0
        counts: NDArray[np.int64] = np.where(self.is_domain, self.sums.counts, _INT32_MAX)
        # Faster than `min` for a few numbers.
        return counts.item(counts.argmin())


@dataclass(slots=True, eq=False)
class SpreadState:
    """The domains of all hard constraints, in the order of the constraints."""

    domains: tuple[SpreadDomains, ...]

    def clone(self) -> SpreadState:
        """Return a copy that can be changed independently."""
        return SpreadState(tuple(domains.clone() for domains in self.domains))


class SpreadScores(msgspec.Struct, frozen=True):
    """The state for scoring: the fewer matching pods in a domain, the better.

    Sequences have one entry per soft constraint.

    Attributes:
        constraints: The soft constraints.
        weights: The weight of a pod, which grows with the number of domains.
        worths: The amount that a domain adds to the score of its rows, as float64 per code of the
            node label; None for the hostname, where each row counts its own pods.
        having_all_keys: Bool per row of the whole table; None if no row is ignored.
    """

    constraints: tuple[SpreadConstraint, ...]
    weights: tuple[float, ...]
    worths: tuple[NDArray[np.float64] | None, ...]
    having_all_keys: NDArray[np.bool_] | None

    @classmethod
    def of(
        cls,
        constraints: tuple[SpreadConstraint, ...],
        nodes: NodeColumns,
        feasible: NDArray[np.bool_],
        included: Included,
    ) -> SpreadScores:
        """Weigh the soft constraints, and count the matching pods per domain of the whole table.

        `feasible` is a bool per row, `included` says which nodes count.
        """
        having = included.having_all_keys
        candidates = feasible if having is None else feasible & having
        scored = int(np.count_nonzero(candidates))
        rows = None if scored == len(nodes) else candidates
        weights: list[float] = []
        worths: list[NDArray[np.float64] | None] = []
        for constraint, counted in zip(constraints, included.each, strict=True):
            if constraint.topology_key == HOSTNAME:
                weights.append(_weight(scored))
                worths.append(None)
                continue
            label = nodes.label(constraint.topology_key)
            weights.append(_weight(_count_domains(label, rows)))
            pods = constraint.pods.over(nodes.groups).by_code(label, counted.rows)
            worths.append(_worth_of_domains(label, pods, weights[-1], constraint.max_skew))
        return cls(constraints, tuple(weights), tuple(worths), having)

    def score(self, namespace: str, nodes: NodeTable) -> NDArray[np.int64]:
        """Return, as int64 per row, the sum over its domains for a pod of `namespace`."""
        if len(self.worths) == 1 and (worth := self.worths[0]) is not None:
            # Domains are fewer than rows.
            label = nodes.label(self.constraints[0].topology_key)
            scores = _rounded(worth).take(label.codes)
        else:
            scores = _rounded(self._sums(namespace, nodes))
        if self.having_all_keys is not None:
            having = have_all_keys(self.constraints, nodes)
            if having is not None:
                scores[~having] = 0
        return scores

    def _sums(self, namespace: str, nodes: NodeTable) -> NDArray[np.float64]:
        total = np.zeros(len(nodes))
        for constraint, weight, worth in zip(
            self.constraints, self.weights, self.worths, strict=True
        ):
            label = nodes.label(constraint.topology_key)
            if worth is None:
                added = count_siblings(constraint.selector, namespace, nodes) * weight + (
                    constraint.max_skew - 1
                )
                if None in label.positions:
                    added[label.equals(None)] = 0.0
            else:
                added = worth.take(label.codes)
            total += added
        return total

    def normalize(self, scores: NDArray[np.int64], rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return scores from 0 to 100, reversed; `rows` are the table rows of `scores`."""
        counted: NDArray[np.bool_] | None = None
        if self.having_all_keys is not None:
            counted = self.having_all_keys[rows]
        among = scores if counted is None else scores[counted]
        if not len(among):
            return np.zeros_like(scores)
        least, most = int(among.min()), int(among.max())
        if most <= 0:
            normalized = np.full_like(scores, NODE_SCORE_MAX)
        else:
            normalized = NODE_SCORE_MAX * (most + least - scores) // most
        return normalized if counted is None else np.where(counted, normalized, 0)


def _weight(domains: int) -> float:
    return math.log(domains + 2)


def _count_domains(label: Coded[str | None], rows: NDArray[np.bool_] | None) -> int:
    """Count the label's values among the rows; as upstream, a missing label counts as ""."""
    found = label.used(rows)
    count = int(np.count_nonzero(found))
    absent, empty = label.positions.get(None), label.positions.get("")
    if absent is not None and empty is not None and found[absent] and found[empty]:
        return count - 1
    return count


def _worth_of_domains(
    label: Coded[str | None], pods: NDArray[np.int64], weight: float, max_skew: int
) -> NDArray[np.float64]:
    absent, empty = label.positions.get(None), label.positions.get("")
    if absent is not None and empty is not None:
        pods[empty] += pods[absent]
    worth = pods.astype(np.float64)
    worth *= weight
    worth += max_skew - 1
    if absent is not None:
        worth[absent] = 0.0
    return worth


def _rounded(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round halves up, like Go's math.Round; no value is negative."""
    whole = np.trunc(values)
    whole += values - whole >= 0.5
    return whole.astype(np.int64)
