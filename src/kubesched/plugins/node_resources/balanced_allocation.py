"""NodeResourcesBalancedAllocation: prefer nodes whose resources would be used more evenly.

Upstream: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go (v1.36)
Reads:    pod requests; nodes.{allocatable,requested}; DeviceClasses that back extended resources,
          and their devices
Invariants: float operations are upstream's, in the same order, so that truncation gives equal
            scores; all rows at once and one row at a time give equal scores.
Differs:  devices of a class that has selectors are counted; upstream crashes on them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import sqrt
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.field_errors import FieldError, child, duplicate, invalid
from kubesched.api.integers import quotient, truncate, wrap
from kubesched.api.resource import DeviceClass
from kubesched.config.args import DEFAULT_RESOURCES, PluginArgs, ResourceSpec
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    NODE_SCORE_MAX,
    UNSIGNED,
    PreScorePlugin,
    PreScoreResult,
    Scope,
    ScorePlugin,
)
from kubesched.framework.status import SKIP
from kubesched.plugins.node_resources.device_counts import BackingDevices
from kubesched.plugins.node_resources.scoring import (
    Amounts,
    Demands,
    NodeScorer,
    Numbers,
    demands_of,
)
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_HALF: Final = NODE_SCORE_MAX // 2


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True, kw_only=True):
    """The arguments.

    Attributes:
        resources: The resources to balance.
    """

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def errors(self, path: str) -> Iterator[FieldError]:
        """Yield errors of resources that are listed twice, or have another weight than 1."""
        seen: set[str] = set()
        for at, spec in enumerate(self.resources):
            place = child(path, "resources", at)
            if spec.name in seen:
                yield duplicate(child(place, "name"), spec.name)
            seen.add(spec.name)
            if spec.weight != 1:
                yield invalid(child(place, "weight"), spec.weight, "must be 1")


class NodeResourcesBalancedAllocation(PreScorePlugin[Demands], ScorePlugin[Demands]):
    """Score by how much the pod improves or worsens the balance."""

    name: ClassVar = "NodeResourcesBalancedAllocation"
    args_type: ClassVar = NodeResourcesBalancedAllocationArgs
    scope: ClassVar = Scope.USAGE
    signed_kinds: ClassVar = (DeviceClass,)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resources = args.resources
        self._names = tuple(spec.name for spec in args.resources)
        self._scorer = NodeScorer(BalancedAllocation())
        self._devices = BackingDevices(handle)

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the requests; UNSIGNED if devices may back one, as other objects matter then."""
        requests = self._requests(pod)
        is_backed = self._devices.back_any(zip(self._names, requests, strict=True))
        return UNSIGNED if is_backed else requests

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[Demands]:
        """Return the requests to score; skip pods without any, which would all get one node."""
        if not any(self._requests(pod)):
            return PreScoreResult(status=SKIP)
        demands = demands_of(self._resources, pod.template.held, non_zero=False)
        return PreScoreResult(self._devices.count(demands, snapshot, feasible))

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Demands:
        """Return the state of `pre_score`; without resources for pods without requests."""
        return self.pre_score(cycle, pod, snapshot, feasible).state or Demands()

    def score(self, state: Demands, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return, as int64 per row, the score of the balance with and without the pod."""
        if not state.amounts:
            return np.zeros(len(nodes), np.int64)
        return self._scorer.score(state, nodes)

    def score_row(self, state: Demands, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Return the score of a row's balance with and without the pod."""
        return self._scorer.score_row(state, nodes, row) if state.amounts else 0

    def _requests(self, pod: PodInfo) -> tuple[int, ...]:
        held = pod.template.held
        return tuple([held.get(name, 0) for name in self._names])


class BalancedAllocation:
    """Score from 50 (the pod worsens the balance) through 75 (no change) to 100."""

    def score_row(
        self,
        requested: Sequence[int],
        allocated: Sequence[int],
        allocatable: Sequence[int],
        weights: Sequence[int],
    ) -> int:
        """Return the score of one row."""
        gain = wrap(
            _balance_of_row(requested, allocatable) - _balance_of_row(allocated, allocatable)
        )
        return _HALF + quotient(wrap(_HALF + gain), 2)

    def prepare_row(self, allocated: Sequence[int], allocatable: Sequence[int]) -> Sequence[float]:
        """Return the use of each resource, and 150 minus the balance."""
        return *allocated, 3 * _HALF - _balance_of_row(allocated, allocatable)

    def prepare(self, allocated: Amounts, allocatable: Amounts) -> Numbers:
        """Return `prepare_row` of many rows, as numbers x rows."""
        kept = 3 * _HALF - _balances(allocated / allocatable)
        return np.concatenate((allocated, kept[None]))

    def score_rows(
        self, prepared: Numbers, allocatable: Numbers, amounts: Numbers, weights: Sequence[int]
    ) -> Amounts:
        """Return the scores of prepared rows."""
        # In place, because allocating memory costs more than the arithmetic.
        fractions = prepared[:-1] + amounts
        fractions /= allocatable
        scores = _balances(fractions)
        # 50 plus half of 50 and the gain, which is -50 at least: rounding down is rounding to zero.
        scores += prepared[-1]
        scores *= 0.5
        return scores.astype(np.int64)


def _balance_of_row(used: Sequence[int], allocatable: Sequence[int]) -> int:
    fractions = [
        min(float(amount) / float(offered), 1.0)
        for amount, offered in zip(used, allocatable, strict=True)
    ]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        # sum() compensates for rounding, which upstream does not.
        total = squares = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / len(fractions)
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = sqrt(squares / len(fractions))
    return truncate((1 - deviation) * NODE_SCORE_MAX)


def _balances(fractions: Numbers) -> Numbers:
    """Return `_balance_of_row` of rows by what is used of each resource. Overwrites it."""
    np.minimum(fractions, 1.0, out=fractions)
    first: Numbers = fractions[0]
    if len(fractions) == 2:
        # Twice the deviation. Halving a float is exact, so this rounds as upstream does.
        first -= fractions[1]
        np.abs(first, out=first)
        balances = np.subtract(2.0, first, out=first)
        balances *= NODE_SCORE_MAX // 2
    else:
        balances = np.subtract(1.0, _deviation(fractions), out=first)
        balances *= NODE_SCORE_MAX
    return np.floor(balances, out=balances)


def _deviation(fractions: Numbers) -> Numbers:
    """Return the standard deviation of each column. Overwrites the fractions."""
    first: Numbers = fractions[0]
    resources = len(fractions)
    if resources == 1:
        return np.zeros_like(first)
    mean = first.copy()
    for at in range(1, resources):
        mean += fractions[at]
    mean /= resources
    fractions -= mean
    fractions *= fractions
    squares: Numbers = fractions[0]
    for at in range(1, resources):
        squares += fractions[at]
    squares /= resources
    return np.sqrt(squares, out=squares)
