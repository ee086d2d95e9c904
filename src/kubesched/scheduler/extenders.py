"""Extenders calls all HTTP extenders of a scheduler, one after another or concurrently.

Upstream: pkg/scheduler/scheduler.go, buildExtenders; pkg/scheduler/schedule_one.go,
          findNodesThatPassExtenders, prioritizeNodes, extendersBinding;
          pkg/scheduler/framework/preemption/preemption.go, callExtenders (v1.36)
Invariants: ignorable extenders come after the others; otherwise the order of the configuration
            holds.
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.integers import wrap
from kubesched.config.types import ExtenderConfiguration
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.status import SUCCESS, Status, failure
from kubesched.scheduler.extender import ExtenderError, ExtenderTransport, HttpExtender
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

log = logging.getLogger(__name__)

Connect = Callable[[ExtenderConfiguration], ExtenderTransport]


class Passed(msgspec.Struct, frozen=True):
    """The rows that pass all extenders, and whether the nodes were returned without pods."""

    rows: NDArray[np.intp]
    are_bare: bool = False


class Scores(msgspec.Struct, frozen=True):
    """The scores of all extenders.

    Attributes:
        added: int64 per requested row, to add to the total.
        are_given: Bool per requested row: whether any extender scored it.
    """

    added: NDArray[np.int64]
    are_given: NDArray[np.bool_]


class Extenders:
    """The extenders of all profiles."""

    def __init__(self, extenders: Iterable[HttpExtender]) -> None:
        self._extenders = sorted(extenders, key=lambda extender: extender.is_ignorable)

    @classmethod
    def of(cls, configurations: Iterable[ExtenderConfiguration], connect: Connect) -> Extenders:
        """Return the extenders of a configuration; `connect` creates the transport of each."""
        return cls(HttpExtender(each, connect(each)) for each in configurations)

    def _interested(self, pod: PodInfo) -> list[HttpExtender]:
        return [extender for extender in self._extenders if extender.is_interested(pod)]

    async def filter(
        self,
        pod: PodInfo,
        nodes: NodeTable,
        rows: NDArray[np.intp],
        failures: dict[int, Status],
    ) -> Passed:
        """Filter the rows that pass the filter plugins through one extender after another.

        The extenders' statuses are added to `failures`, by row, even if a later extender fails.

        Raises:
            ExtenderError: if one that is not ignorable fails.
        """
        are_bare = False
        for extender in self._interested(pod):
            if not len(rows):
                break
            if not extender.filters:
                continue
            try:
                filtered = await extender.filter(pod, nodes, rows)
            except ExtenderError as error:
                _raise_unless_ignorable(extender, error)
                continue
            failures.update(filtered.failures)
            rows = filtered.rows
            are_bare |= filtered.are_bare
        return Passed(rows, are_bare)

    async def prioritize(self, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp]) -> Scores:
        """Collect the scores of all extenders concurrently; one that fails gives none."""
        answers = await asyncio.gather(
            *(_scores_of(extender, pod, nodes, rows) for extender in self._interested(pod))
        )
        at = {nodes.names[row]: place for place, row in enumerate(rows.tolist())}
        sums = [0] * len(rows)
        are_given = np.zeros(len(rows), np.bool_)
        for answer in answers:
            for name, amount in answer.items():
                place = at.get(name)
                if place is not None:
                    sums[place] += amount
                    are_given[place] = True
        return Scores(np.array([wrap(total) for total in sums], np.int64), are_given)

    async def narrow(
        self, pod: PodInfo, candidates: Sequence[Candidate], nodes: NodeTable
    ) -> Sequence[Candidate] | None:
        """Narrow preemption candidates, extender by extender; None if no extender took part.

        Raises:
            ExtenderError: if one that is not ignorable fails, or leaves a node without victims.
        """
        narrowed: Sequence[Candidate] | None = None
        for extender in self._interested(pod):
            if not extender.preempts:
                continue
            try:
                kept = await extender.process_preemption(pod, candidates, nodes)
            except ExtenderError as error:
                _raise_unless_ignorable(extender, error)
                continue
            narrowed = candidates = _with_victims(extender, kept)
            if not candidates:
                break
        return narrowed

    async def bind(self, pod: PodInfo, node_name: str) -> Status | None:
        """Let the first interested extender with a bind verb bind; None if there is none."""
        for extender in self._interested(pod):
            if not extender.binds:
                continue
            try:
                await extender.bind(pod, node_name)
            except ExtenderError as error:
                if not extender.is_ignorable:
                    return failure(str(error))
                _log_ignored(extender, error)
                continue
            return SUCCESS
        return None


async def _scores_of(
    extender: HttpExtender, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp]
) -> dict[str, int]:
    try:
        return await extender.prioritize(pod, nodes, rows)
    except ExtenderError as error:
        _log_ignored(extender, error)
        return {}


def _with_victims(extender: HttpExtender, kept: Sequence[Candidate]) -> list[Candidate]:
    for candidate in kept:
        if not candidate.victims and not extender.is_ignorable:
            name = candidate.node_name
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
    return [candidate for candidate in kept if candidate.victims]


def _raise_unless_ignorable(extender: HttpExtender, error: ExtenderError) -> None:
    if not extender.is_ignorable:
        raise error
    _log_ignored(extender, error)


def _log_ignored(extender: HttpExtender, error: ExtenderError) -> None:
    log.info("Ignoring the error of extender %s: %s", extender.name, error)
