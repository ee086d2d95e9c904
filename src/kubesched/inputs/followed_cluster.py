"""FollowedCluster keeps the objects of a live cluster up to date, with a user's own permissions.

    followed = FollowedCluster(source)
    following = asyncio.create_task(followed.run())
    await followed.wait_for_sync()
    followed.live()                     # the objects as they are now

Reads:    the kinds of `live_cluster`, listed once and then watched
Rejects:  servers that do not answer or refuse the user; users who may not list pods or nodes.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final, cast

from msgspec.structs import replace

from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject, KubeStruct
from kubesched.client.connect import connect
from kubesched.client.informers import Informer, Informers
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import (
    NEEDED,
    READ_KINDS,
    LiveCluster,
    forbidden,
    live_target,
    problem_of,
)
from kubesched.inputs.sources import ClusterSource

_LOOK_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 3.0
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_UNREADABLE: Final = (_FORBIDDEN, _NOT_FOUND)


class FollowedCluster:
    """The objects of a live cluster.

    Attributes:
        version: Number of changes so far; those of an object's version alone do not count.
        name: Of the cluster, such as `context kind-dev`.
    """

    def __init__(self, source: ClusterSource) -> None:
        """Set up; `run` begins. To be called while a loop runs.

        Args:
            source: Names the cluster.

        Raises:
            UserError: It names none.
            SetupError: A kubeconfig or certificate cannot be used.
        """
        settings, self.name = live_target(source)
        self.version = 0
        self._place = f"{self.name} ({settings.server})"
        self._namespace = settings.namespace or "default"
        self._rest = connect(settings, qps=-1)
        self._informers = Informers(self._rest, self, Random())  # noqa: S311 - pauses
        for kind in READ_KINDS:
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
        """Wait until every kind is known, or known not to be readable.

        Raises:
            UserError: The cluster cannot be read; names context, server, reason and remedy.
        """
        loop = asyncio.get_running_loop()
        patience_ends = loop.time() + _PATIENCE_SECONDS
        while not all(map(_is_settled, self._all())):
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
        found = [one for one in self._all() if one.kind.type in NEEDED]
        return any(one.statistics().last_code in (_UNAUTHORIZED, _FORBIDDEN) for one in found)

    @property
    def problem(self) -> str:
        """Why nodes or pods cannot be read at present, "" if they can."""
        found = {one.kind: one.statistics() for one in self._all() if one.kind.type in NEEDED}
        refused = [kind for kind, each in found.items() if each.last_code == _FORBIDDEN]
        if refused:
            return f"{self._place}: {forbidden(refused)}"
        for each in found.values():
            if each.last_error:
                error = ApiError(each.last_code, "", each.last_error)
                return f"{self._place}: {problem_of(error)}"
        return ""

    def live(self) -> LiveCluster:
        """Return the objects as they are now."""
        known = [one for one in self._all() if one.has_synced]
        refused = [
            one.kind
            for one in self._all()
            if not one.has_synced and one.statistics().last_code == _FORBIDDEN
        ]
        return LiveCluster(
            [item for one in known for item in one.items.values()],
            tuple(one.kind.type for one in known),
            [f"not known: {forbidden(refused)}"] if refused else [],
            self.name,
            self._namespace,
        )

    # Called by the informers.

    def added(self, item: KubeObject) -> None:
        """Count a change."""
        self.version += 1

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Count a change, unless nothing that is read has changed."""
        version = old.metadata.resource_version
        metadata = replace(new.metadata, resource_version=version)
        self.version += replace(cast("KubeStruct", new), metadata=metadata) != cast("object", old)

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Count a change."""
        self.version += 1


def _is_settled(informer: Informer) -> bool:
    """Whether the objects of a kind are known, or are known not to be readable."""
    return informer.has_synced or informer.statistics().last_code in _UNREADABLE
