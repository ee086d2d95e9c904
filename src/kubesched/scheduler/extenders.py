"""HttpExtender is the client of one HTTP extender; Extenders calls all those of a scheduler.

Upstream: pkg/scheduler/extender.go; pkg/scheduler/scheduler.go, buildExtenders;
          pkg/scheduler/schedule_one.go, findNodesThatPassExtenders, prioritizeNodes,
          extendersBinding; pkg/scheduler/framework/preemption/preemption.go, callExtenders (v1.36)
Reads:    pod.spec.containers and initContainers: requests, limits; it sends whole pods
Invariants: ignorable extenders come after the others; otherwise the order of the configuration
            holds.
Differs:  a node that the extender sends back counts as the node of that name; its other fields are
          not read, and one without a row is refused as upstream refuses unknown names. Failures of
          nodes that are not in the table are not kept. A node that is named twice counts once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.integers import wrap
from kubesched.config.types import ExtenderConfiguration
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable, unschedulable
from kubesched.scheduler import extender_wire as wire
from kubesched.scheduler.scheduling_log import log_extender_scores
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

log = logging.getLogger(__name__)

T = TypeVar("T")

TIMEOUT_SECONDS_DEFAULT: Final = 5.0

_OK: Final = 200
_SCORE_SCALE: Final = 10
"""Extenders score from 0 to 10, plugins from 0 to 100."""


class ExtenderTransport(Protocol):
    """Sends HTTP requests to one extender.

    An implementation obeys `enable_https` and `tls_config` of the configuration; with HTTPS and no
    CA it does not verify the extender's certificate.
    """

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """POST JSON; return the status code and body of the response.

        The timeout limits the whole exchange. Raises OSError if there is no response,
        TimeoutError after the timeout.
        """


class ExtenderError(Exception):
    """The call of an extender failed."""


class Passed(msgspec.Struct, frozen=True):
    """The rows that pass an extender, or all extenders.

    Attributes:
        rows: The rows, ascending.
        are_bare: Whether an extender returned whole Node objects, which carry no pods.
    """

    rows: NDArray[np.intp]
    are_bare: bool = False


class HttpExtender:
    """One extender.

    Attributes:
        name: Its `urlPrefix`.
        is_ignorable: Whether scheduling continues without it when it fails.
        filters, prioritizes, preempts, binds: Which verbs are configured.
    """

    def __init__(self, configuration: ExtenderConfiguration, transport: ExtenderTransport) -> None:
        self.name = configuration.url_prefix
        self.is_ignorable = configuration.ignorable
        self.filters = bool(configuration.filter_verb)
        self.prioritizes = bool(configuration.prioritize_verb)
        self.preempts = bool(configuration.preempt_verb)
        self.binds = bool(configuration.bind_verb)
        self._configuration = configuration
        self._transport = transport
        self._timeout_seconds = configuration.http_timeout_seconds or TIMEOUT_SECONDS_DEFAULT
        self._managed = frozenset(each.name for each in configuration.managed_resources)

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether the pod uses a managed resource; always true if none is configured."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(amounts)
            for container in pod.containers
            for amounts in (container.resources.requests, container.resources.limits)
        )

    async def filter(
        self, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp], failures: dict[int, Status]
    ) -> Passed:
        """Return which of `rows` can take the pod; add its statuses of others to `failures`.

        Raises ExtenderError if the call fails or the response is invalid.
        """
        body = self._args(pod, nodes, rows)
        result = await self._send(self._configuration.filter_verb, body, wire.decode_filter_result)
        if result.error:
            raise ExtenderError(result.error)
        if self._configuration.node_cache_capable and result.node_names is not None:
            asked = {nodes.names[row]: row for row in rows.tolist()}
            passed = Passed(self._rows_of(result.node_names, asked))
        elif result.nodes is not None:
            passed = Passed(self._rows_of(result.nodes, nodes.row_of), are_bare=True)
        else:
            passed = Passed(np.zeros(0, np.intp))
        _add_failures(result, nodes.row_of, failures)
        return passed

    def _rows_of(self, names: Sequence[str], row_of: Mapping[str, int]) -> NDArray[np.intp]:
        for name in names:
            if name not in row_of:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found '
                    "in the input node list"
                )
        return np.unique(np.array([row_of[name] for name in names], np.intp))

    async def prioritize(
        self, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp]
    ) -> dict[str, int]:
        """Return the weighted scores of the extender by node name; 0 if it does not prioritize.

        Raises ExtenderError if the call fails.
        """
        if not self.prioritizes:
            priorities = tuple((nodes.names[row], 0) for row in rows.tolist())
        else:
            body = self._args(pod, nodes, rows)
            priorities = await self._send(
                self._configuration.prioritize_verb, body, wire.decode_host_priorities
            )
        log_extender_scores(pod, self.name, priorities)
        added: dict[str, int] = {}
        for name, score in priorities:
            added[name] = added.get(name, 0) + score * self._configuration.weight * _SCORE_SCALE
        return added

    async def process_preemption(
        self, pod: PodInfo, candidates: Sequence[Candidate], nodes: NodeTable
    ) -> tuple[Candidate, ...]:
        """Return the candidates that the extender keeps, with the victims it chose.

        Raises ExtenderError if the call fails or the response has unknown nodes or pods.
        """
        body = wire.encode_preemption_args(
            pod.pod, candidates, uids_only=self._configuration.node_cache_capable
        )
        victims = await self._send(
            self._configuration.preempt_verb, body, wire.decode_preemption_result
        )
        return tuple(self._candidate(name, found, nodes) for name, found in victims.items())

    def _candidate(self, name: str, victims: wire.MetaVictims, nodes: NodeTable) -> Candidate:
        row = nodes.row_of.get(name)
        if row is None:
            raise ExtenderError(f'nodeinfo not found for node name "{name}"')
        there = nodes.pods[row]
        for uid in victims.uids:
            if uid not in there:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: "
                    f"{name}, but the pod is not found on that node"
                )
        return Candidate(name, tuple(there[uid] for uid in victims.uids), victims.pdb_violations)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Let the extender bind the pod; raises ExtenderError if it fails to."""
        body = wire.encode_binding_args(pod, node_name)
        error_text = await self._send(
            self._configuration.bind_verb, body, wire.decode_binding_error
        )
        if error_text:
            raise ExtenderError(error_text)

    def _args(self, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp]) -> bytes:
        sent = [nodes.nodes[row] for row in rows.tolist()]
        return wire.encode_args(pod.pod, sent, names_only=self._configuration.node_cache_capable)

    async def _send(self, verb: str, body: bytes, decode: Callable[[bytes], T]) -> T:
        url = f"{self.name.rstrip('/')}/{verb}"
        try:
            status, answer = await self._transport.post(url, body, self._timeout_seconds)
        except OSError as error:
            text = str(error) or type(error).__name__
            raise ExtenderError(f'Post "{url}": {text}') from error
        if status != _OK:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {status}")
        try:
            return decode(answer)
        except wire.WireError as error:
            raise ExtenderError(str(error)) from error


def _add_failures(
    result: wire.FilterResult, row_of: Mapping[str, int], failures: dict[int, Status]
) -> None:
    """Add the status of failed rows; unresolvable takes precedence over unschedulable."""
    for failed, status in (
        (result.failed, unschedulable),
        (result.failed_and_unresolvable, unresolvable),
    ):
        failures.update(
            (row_of[name], status(text)) for name, text in failed.items() if name in row_of
        )


# All extenders.

Connect = Callable[[ExtenderConfiguration], ExtenderTransport]


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

    def __init__(self, configurations: Iterable[ExtenderConfiguration], connect: Connect) -> None:
        """Set up the extenders of a configuration; `connect` creates the transport of each."""
        extenders = [HttpExtender(each, connect(each)) for each in configurations]
        self._extenders = sorted(extenders, key=lambda extender: extender.is_ignorable)

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
        Raises ExtenderError if one that is not ignorable fails.
        """
        passed = Passed(rows)
        for extender in self._interested(pod):
            if not len(passed.rows):
                break
            if not extender.filters:
                continue
            try:
                left = await extender.filter(pod, nodes, passed.rows, failures)
            except ExtenderError as error:
                _raise_unless_ignorable(extender, error)
                continue
            passed = Passed(left.rows, passed.are_bare or left.are_bare)
        return passed

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

        Raises ExtenderError if one that is not ignorable fails, or leaves a node without victims.
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
