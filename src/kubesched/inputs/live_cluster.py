"""The objects of a live cluster, read once or followed, with the permissions of a read-only role.

Reads:    `READ_KINDS`.
Rejects:  servers that do not answer or refuse the user; users who may not list pods or nodes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from http import HTTPStatus
from random import Random
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import CoreEvent, Event, Lease, Node, Pod
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import KINDS, Kind, known_kinds
from kubesched.client.connect import connect, in_cluster_settings, new_event_loop
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.errors import without_request
from kubesched.client.informers import Informer, Informers
from kubesched.client.kubeconfig import load_kubeconfig, merged_kubeconfig
from kubesched.client.pager import KindList, list_kinds
from kubesched.client.requests import RequestObserver
from kubesched.inputs.completed_input import ClusterInput
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import showing

READER_ROLE: Final = "kubesched-reader"
"""The ClusterRole that allows to read everything that is read here."""
_NOT_READ: Final = (CoreEvent, Event, Lease)
READ_KINDS: Final = tuple(kind for kind in KINDS if kind.type not in _NOT_READ)
"""The kinds that are read: those that decisions, their explanations or a drain depend on.

The custom resources of plugins are read, too.
"""
_NEEDED: Final = (Pod, Node)
"""The kinds without which there is no answer."""
_REQUEST_SECONDS_MAX: Final = 60.0


def read_live(source: ClusterSource) -> ClusterInput:
    """Read the cluster of a context, or the one that this process runs in; without defaults.

    Raises UserError with context, server, reason and remedy; SetupError as `live_target` does.
    """
    settings, name = live_target(source)
    place = f"{name} ({settings.server})"
    lists: list[KindList] = []
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_read(settings, name, lists))
    except ApiError as error:
        raise UserError(f"{place}: {problem_of(error)}") from error
    refused = [found.kind for found in lists if found.is_forbidden]
    if needed := [kind for kind in refused if kind.type in _NEEDED]:
        raise UserError(f"{place}: {forbidden(needed)}")
    known = {found.kind: found.items for found in lists if not found.is_forbidden}
    return _input(known, refused, name, settings)


def _input(
    known: Mapping[Kind, Iterable[KubeObject]],
    refused: Sequence[Kind],
    name: str,
    settings: ConnectionSettings,
) -> ClusterInput:
    return ClusterInput(
        [item for items in known.values() for item in items],
        [f"not known: {forbidden(refused)}"] if refused else [],
        tuple(kind.type for kind in known),
        name,
        settings.namespace or "default",
    )


def live_target(source: ClusterSource) -> tuple[ConnectionSettings, str]:
    """Return the connection that the source names, and its name.

    Raises UserError if it names none, and SetupError for a kubeconfig that cannot be used.
    """
    if source.kubeconfig is not None:
        found = load_kubeconfig(str(source.kubeconfig))
    else:
        found = merged_kubeconfig(os.environ)
    context = source.context or found.current_context
    if context:
        return found.settings(context), f"context {context}"
    if found.files:
        known = ", ".join(found.contexts) or "none"
        files = os.pathsep.join(found.files)
        raise UserError(f"{files}: there is no current-context; name one with --context: {known}")
    settings = in_cluster_settings(os.environ)
    if settings is not None:
        return settings, "this cluster"
    listed = os.environ.get("KUBECONFIG", "")
    missing = f"none of KUBECONFIG, {listed}, exists" if listed else "there is no kubeconfig"
    raise UserError(f"no cluster is named, and {missing}; name files, or --kubeconfig FILE")


def _read_kinds() -> tuple[Kind, ...]:
    return tuple(kind for kind in known_kinds() if kind.type not in _NOT_READ)


async def _read(settings: ConnectionSettings, name: str, lists: list[KindList]) -> None:
    # The lists are not returned, because asyncio formats the result of its main task at the end.
    received = _Received()
    connected = connect(settings, qps=-1, timeout_seconds=_REQUEST_SECONDS_MAX, observer=received)
    async with (
        aclosing(connected) as rest,
        showing(lambda: f"Reading {name}: {received.byte_count / 1e6:.0f} MB"),
    ):
        lists += await list_kinds(rest, _read_kinds())


# Errors.


def problem_of(error: ApiError) -> str:
    """Return why a server gave no answer, with the remedy."""
    if error.code == HTTPStatus.UNAUTHORIZED:
        return "the server refuses the credentials; log in again, or name another context"
    if error.code == HTTPStatus.NOT_FOUND:
        return "the server is no API server of Kubernetes; check the context's cluster"
    if error.code:
        return f"the server failed: {error}"
    return f"{without_request(str(error))}; check the context's cluster and user"


def forbidden(kinds: Iterable[Kind]) -> str:
    """Return the message for a user who may not list some kinds, with the remedy."""
    names = ", ".join(f"{kind.plural}.{kind.group}".rstrip(".") for kind in kinds)
    return f"you may not list {names} in all namespaces; ask for the ClusterRole {READER_ROLE}"


# Progress.


class _Received(RequestObserver):
    """Counts the bytes of responses."""

    def __init__(self) -> None:
        self.byte_count = 0

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Count a response."""
        self.byte_count += response_bytes


# A cluster that is followed.

_LOOK_SECONDS: Final = 0.05
_SYNC_SECONDS_MAX: Final = 3.0
_UNREADABLE: Final = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)


class FollowedCluster:
    """The objects of a live cluster.

    Attributes:
        version: Number of changes so far; those of an object's version alone do not count.
        name: Of the cluster, such as `context kind-dev`.
    """

    def __init__(self, source: ClusterSource) -> None:
        """Set up while an event loop runs; raises what `live_target` and `connect` raise."""
        self._settings, self.name = live_target(source)
        self.version = 0
        self._place = f"{self.name} ({self._settings.server})"
        self._rest = connect(self._settings, qps=-1)
        self._informers = Informers(self._rest, self, Random())  # noqa: S311 - pauses
        for kind in _read_kinds():
            self._informers.add(kind)

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        try:
            await self._informers.run()
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; `run` does so at its end."""
        await self._rest.aclose()

    async def wait_for_sync(self) -> None:
        """Wait until every kind is known, or cannot be read; raises UserError with the problem."""
        loop = asyncio.get_running_loop()
        patience_ends = loop.time() + _SYNC_SECONDS_MAX
        while not all(one.has_synced or one.failure.code in _UNREADABLE for one in self._all()):
            problem = self.problem
            if problem and (self._is_refused or loop.time() >= patience_ends):
                raise UserError(problem)
            await asyncio.sleep(_LOOK_SECONDS)
        if self._is_refused:
            raise UserError(self.problem)

    def _all(self) -> tuple[Informer, ...]:
        return tuple(self._informers.by_name.values())

    @property
    def _is_refused(self) -> bool:
        found = [one for one in self._all() if one.kind.type in _NEEDED]
        # The message names all of them.
        are_answered = all(one.has_synced or one.failure.code for one in found)
        return are_answered and any(
            one.failure.code in (HTTPStatus.UNAUTHORIZED, *_UNREADABLE) for one in found
        )

    @property
    def problem(self) -> str:
        """Why nodes or pods cannot be read at present, "" if they can."""
        found = {one.kind: one.failure for one in self._all() if one.kind.type in _NEEDED}
        refused = [kind for kind, each in found.items() if each.code == HTTPStatus.FORBIDDEN]
        if refused:
            return f"{self._place}: {forbidden(refused)}"
        for each in found.values():
            if each.message:
                error = ApiError(each.code, "", each.message)
                return f"{self._place}: {problem_of(error)}"
        return ""

    def live(self) -> ClusterInput:
        """Return the objects as they are now, without defaults."""
        known = {one.kind: one.items for one in self._all() if one.has_synced}
        refused = [
            one.kind
            for one in self._all()
            if not one.has_synced and one.failure.code == HTTPStatus.FORBIDDEN
        ]
        return _input(known, refused, self.name, self._settings)

    # Called by the informers.

    def added(self, item: KubeObject) -> None:
        """Count a change."""
        self.version += 1

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Count a change, unless nothing that is read has changed."""
        version = old.metadata.resource_version
        metadata = replace(new.metadata, resource_version=version)
        self.version += replace(new, metadata=metadata) != old

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Count a change."""
        self.version += 1
