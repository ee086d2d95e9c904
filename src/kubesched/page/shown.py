"""What a live page shows: the documents of a cluster or of a running simulation, and answers.

Long work runs in one thread of its own, so that the server stays responsive.

Invariants: only published documents are shown, and all of them describe the same moment.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Protocol

import msgspec

from kubesched.answers.cluster import Cluster
from kubesched.answers.scenario_play import ScenarioPlay
from kubesched.explain.document import Document
from kubesched.framework.registry import SchedulerSetup
from kubesched.inputs.cluster_input import live_input
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import FollowedCluster
from kubesched.inputs.scenario_input import Play
from kubesched.inputs.sources import SchedulerOptions
from kubesched.simulator.playback import PlaybackRecorder
from kubesched.simulator.timeline_report import TimelineReport

_PAUSE: Final = 3.0
"""The pause after a view, in multiples of the time it took: views use a quarter of a processor."""


class SentDocuments(NamedTuple):
    """The title of a page and its documents as JSON, and a digest that changes with them."""

    body: bytes
    tag: str


class ShownSource(Protocol):
    """What a page shows."""

    title: str

    async def documents(self) -> SentDocuments:
        """Return the documents as they are now. Raises UserError if there are none."""

    async def ask(self, question: Callable[[Cluster], Document]) -> Document:
        """Return the answer to a question; raises UserError, and what the question raises."""


def _sent(title: str, documents: Sequence[Document]) -> SentDocuments:
    shown = {"title": title, "documents": [document.to_dict() for document in documents]}
    body = msgspec.json.encode(shown)
    return SentDocuments(body, hashlib.sha256(body).hexdigest())


class ShownCluster:
    """A cluster from files, or a live one; its view is renewed when the cluster has changed."""

    def __init__(
        self,
        cluster: Cluster | FollowedCluster,
        title: str,
        scheduler: SchedulerSetup,
        options: SchedulerOptions,
    ) -> None:
        """Show a cluster; the caller keeps a live one up to date.

        Answers about a live cluster use `scheduler` and its options.
        """
        self.title = title
        self._followed = cluster if isinstance(cluster, FollowedCluster) else None
        self._cluster = None if isinstance(cluster, FollowedCluster) else cluster
        self._scheduler = scheduler
        self._options = options
        self._version = -1
        self._sent: SentDocuments | None = None
        self._due = 0.0
        self._thread = ThreadPoolExecutor(1, "page")
        self._turn = asyncio.Lock()

    async def documents(self) -> SentDocuments:
        """Return the view, recomputed if the cluster has changed; less often for a large cluster.

        Raises UserError if the cluster cannot be read at present.
        """
        loop = asyncio.get_running_loop()
        # Readers that come at the same time wait for one computation.
        async with self._turn:
            self._check()
            if self._sent is not None and loop.time() < self._due:
                return self._sent
            began = loop.time()
            cluster = await self._newest()
            if self._sent is None:
                self._sent = await loop.run_in_executor(
                    self._thread, lambda: _sent(self.title, [cluster.view()])
                )
                self._due = loop.time() + _PAUSE * (loop.time() - began)
            return self._sent

    async def ask(self, question: Callable[[Cluster], Document]) -> Document:
        """Return the answer to a question about the cluster as it is now."""
        async with self._turn:
            self._check()
            cluster = await self._newest()
        return await asyncio.get_running_loop().run_in_executor(self._thread, question, cluster)

    def _check(self) -> None:
        if self._followed is not None and self._followed.problem:
            raise UserError(self._followed.problem)

    async def _newest(self) -> Cluster:
        followed = self._followed
        is_old = self._cluster is None or (followed and self._version != followed.version)
        if followed is not None and is_old:
            version, live = followed.version, followed.live()
            self._cluster = await asyncio.get_running_loop().run_in_executor(
                self._thread, lambda: Cluster(live_input(live), self._scheduler, self._options)
            )
            self._version, self._sent = version, None
        assert self._cluster is not None, "files are read before"
        return self._cluster


class ShownPlay:
    """A scenario that is shown during its simulation and afterwards."""

    def __init__(self, play: Play) -> None:
        self.title = play.scenario.name
        self._play = play
        self._recorder = PlaybackRecorder()
        self._report: TimelineReport | None = None
        self._sent: SentDocuments | None = None
        self._wanted: asyncio.Future[SentDocuments] | None = None
        self._loop = asyncio.get_running_loop()
        self._is_stopped = False

    async def run(self) -> TimelineReport:
        """Simulate to the end, or until `stop`; raises what the simulation raises."""
        play = ScenarioPlay(self._play)
        self._report = await self._loop.run_in_executor(
            ThreadPoolExecutor(1, "page"),
            lambda: play.simulated(watch=self._watch, recorder=self._recorder),
        )
        self._answer(self._report.duration_seconds)
        return self._report

    def stop(self) -> None:
        """End the simulation."""
        self._is_stopped = True

    async def documents(self) -> SentDocuments:
        """Return the record so far, and at the end the report too."""
        report = self._report
        if report is None:
            if self._wanted is None:
                self._wanted = self._loop.create_future()
            return await asyncio.shield(self._wanted)
        if self._sent is None:
            playback = self._recorder.playback(report.scenario, report.duration_seconds)
            self._sent = _sent(self.title, [playback, report])
        return self._sent

    async def ask(self, question: Callable[[Cluster], Document]) -> Document:
        """Raise UserError: a scenario has no cluster to ask about."""
        raise UserError("this page plays a scenario; there is no cluster to ask")

    # In the simulation's thread.

    def _watch(self, at_seconds: float, _attempts: int, _bound: int) -> bool:
        """Answer waiting readers between two steps; return whether to continue."""
        if self._wanted is not None:
            self._answer(at_seconds)
        return not self._is_stopped

    def _answer(self, at_seconds: float) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            sent = _sent(self.title, [self._recorder.playback(self.title, at_seconds)])
            self._loop.call_soon_threadsafe(wanted.set_result, sent)
