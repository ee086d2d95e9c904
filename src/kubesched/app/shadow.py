"""Shadow watches a cluster beside its scheduler, decides for every pod too, and writes nothing.

informers ─▶ Shadow ─▶ [recorder ─▶] ShadowWatch ─▶ event handlers ─▶ cache
                └─ decisions of the other scheduler ─▶ ShadowWatch ─▶ judge
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from kubesched.api.conditions import find_condition
from kubesched.api.core import Pod
from kubesched.api.errors import SetupError
from kubesched.api.meta import KubeObject
from kubesched.app.collector import tune_collector
from kubesched.app.scheduler_informers import report_failures, scheduler_informers
from kubesched.app.shadow_watch import ShadowSetup, ShadowWatch
from kubesched.client.connect import connect
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.errors import without_request
from kubesched.client.informers import Informers
from kubesched.explain.shadow_report import ShadowReport, ShadowVerdict
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedDecision
from kubesched.snapshot.pod_info import uid_of

_LOOK_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 3.0
_FORBIDDEN: Final = 403
_UNAUTHORIZED: Final = 401


class Shadow:
    """Decides beside another scheduler; `watch` makes and compares the decisions."""

    def __init__(
        self,
        settings: ConnectionSettings,
        setup: ShadowSetup,
        recorder: DecisionRecorder | None = None,
    ) -> None:
        """Set up while a loop runs; nothing is sent yet.

        `setup` has one profile, which has the name of the other scheduler and evaluates all nodes.

        Raises:
            ConfigError: The configuration of a plugin is invalid.
        """
        (profile,) = setup.scheduler.configuration.profiles
        self._name = profile.scheduler_name
        self._server = settings.server
        self._rest = connect(settings, qps=-1)
        self.watch = ShadowWatch(setup)
        self._recorder = recorder
        self._handlers: ShadowWatch | DecisionRecorder = self.watch
        if recorder is not None:
            recorder.connect(self.watch, self.watch.scheduler)
            self._handlers = recorder
        self._informers: Informers = scheduler_informers(
            self._rest,
            self,
            self.watch.scheduler,
            setup.scheduler.feature_gates,
            Random(),  # noqa: S311 - pauses
        )
        self._started = 0.0

    async def run(
        self, stop: asyncio.Event, began: Callable[[], None], warn: Callable[[str], None]
    ) -> None:
        """Watch and compare until stopped.

        `began` is called when the cluster is known, `warn` with problems of reading it afterwards.

        Raises:
            SetupError: The cluster cannot be read.
        """
        self._started = asyncio.get_running_loop().time()
        tasks = [
            asyncio.ensure_future(self._informers.run()),
            asyncio.ensure_future(self._compare(began, warn)),
            asyncio.ensure_future(stop.wait()),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.watch.judge.settle_all()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._rest.aclose()

    async def _compare(self, began: Callable[[], None], warn: Callable[[str], None]) -> None:
        """Begin once the cluster is known, and warn of problems afterwards, until cancelled."""
        await self._sync()
        tune_collector()
        self.watch.synced()
        if self._recorder is not None:
            self._recorder.synced()
        began()
        await report_failures(self._informers, self._server, warn)

    async def _sync(self) -> None:
        """Wait until all kinds are known; raises SetupError if one of them cannot be read."""
        loop = asyncio.get_running_loop()
        patience_ends = loop.time() + _PATIENCE_SECONDS
        while not self._informers.has_synced:
            is_patient = loop.time() < patience_ends
            problem = _problem(self._informers, is_patient=is_patient)
            if problem:
                raise SetupError(f"{self._server}: {problem}")
            await asyncio.sleep(_LOOK_SECONDS)

    def report(self) -> ShadowReport:
        """Return the report so far."""
        watch, judge = self.watch, self.watch.judge
        counts = judge.counts
        return ShadowReport(
            scheduler_name=self._name,
            seconds=round(asyncio.get_running_loop().time() - self._started, 1),
            nodes=len(watch.scheduler.cache.nodes),
            judged=counts.total(),
            bound=judge.bound,
            agreed=counts[ShadowVerdict.AGREED],
            agreed_late=judge.agreed_late,
            ties=counts[ShadowVerdict.TIE],
            changed=counts[ShadowVerdict.CHANGED],
            sampled=counts[ShadowVerdict.SAMPLED],
            different=counts[ShadowVerdict.DIFFERENT],
            pending=watch.pending,
            skipped=watch.skipped,
            notes=(*watch.notes, *self._notes),
            disagreements=tuple(judge.disagreements),
        )

    @property
    def _notes(self) -> Iterable[str]:
        problem = _problem(self._informers, is_patient=False)
        if problem:
            yield f"The cluster could not be read at the end, so decisions are missing: {problem}."

    # Events of the informers.

    def added(self, item: KubeObject) -> None:
        """Apply an added object."""
        self._handlers.added(item)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Compare what the other scheduler decided, then apply the change."""
        if isinstance(old, Pod) and isinstance(new, Pod) and self.watch.awaits(uid_of(new)):
            decision = _decided(old, new)
            if decision is not None:
                self.watch.decided(decision)
                if self._recorder is not None:
                    self._recorder.observed(decision)
        self._handlers.updated(old, new)

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply a deletion."""
        self._handlers.deleted(item, is_final_state_known=is_final_state_known)


def _decided(old: Pod, new: Pod) -> RecordedDecision | None:
    """Return what the other scheduler decided in this change of a pending pod; None if nothing."""
    node = new.spec.node_name
    message = "" if node else _rejection(new)
    if not node and message in {"", _rejection(old)}:
        return None
    metadata = new.metadata
    return RecordedDecision(
        metadata.key, uid_of(new), node, message, version=metadata.resource_version
    )


def _rejection(pod: Pod) -> str:
    scheduled = find_condition(pod.status.conditions, "PodScheduled")
    if scheduled is None or scheduled.reason != "Unschedulable":
        return ""
    return scheduled.message


def _problem(informers: Informers, *, is_patient: bool) -> str:
    """Return why the cluster cannot be read, "" if it can or may be soon."""
    found = {name: informer.failure for name, informer in informers.by_name.items()}
    refused = [name for name, each in found.items() if each.code == _FORBIDDEN]
    if refused:
        names = ", ".join(refused)
        return (
            f"you may not watch {names} in all namespaces; ask for the ClusterRole kubesched-reader"
        )
    for each in found.values():
        if each.code == _UNAUTHORIZED:
            return "the server refuses the credentials; log in again, or name another context"
        if each.message and not is_patient:
            return without_request(each.message)
    return ""
