"""Shadow watches a cluster beside its scheduler, decides for every pod too, and writes nothing.

informers ─▶ VersionOrder ─▶ [recorder ─▶] LiveWatch ─▶ event handlers ─▶ cache
                                             └─▶ judge

ShadowWatch does the same with the decisions of a recording.

Differs:  extenders are not asked, and pods of pod groups are not judged.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from http import HTTPStatus
from itertools import count
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.conditions import find_condition
from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.errors import SetupError
from kubesched.api.meta import KubeObject, ResourceEventHandler
from kubesched.app.collector import tune_collector
from kubesched.app.dry_run import DryRunClient
from kubesched.app.scheduler_informers import report_failures, scheduler_informers
from kubesched.app.shadow_judge import ShadowChoice, ShadowJudge
from kubesched.client.connect import connect
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.errors import without_request
from kubesched.client.informers import Informers
from kubesched.config.args import EVERY_NODE, exhaustive
from kubesched.explain.shadow_report import ShadowReport, ShadowVerdict
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.registry import SchedulerSetup
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedDecision
from kubesched.snapshot.pod_info import scheduler_name_of, uid_of

_LOOK_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 3.0
_HELD_SECONDS_MAX: Final = 10.0
"""Without changes of pods for this long, other changes are passed on."""
_EXTENDERS_NOT_CALLED: Final = "The extenders of the configuration were not asked."


class DecisionWatch(ABC):
    """Follows a cluster and the decisions of other schedulers, and makes these again.

    Attributes:
        scheduler: Its cache and queue are the cluster; its loop does not run.
        judge: Compares the decisions.
        skipped: Number of pods or decisions that were not judged because of a pod group.
        notes: Remarks that matter for reading a report.
    """

    def __init__(
        self, setup: SchedulerSetup, seed: int, *, samples: bool, is_live: bool = False
    ) -> None:
        """Set up; the configuration has a profile for each of the other schedulers.

        `seed` is of the random source that breaks ties; `samples` and `is_live` are as in
        `ShadowJudge`. Raises ConfigError if that of a plugin is invalid.
        """
        configuration = setup.configuration
        self.notes = (_EXTENDERS_NOT_CALLED,) if configuration.extenders else ()
        self.scheduler, self._handlers = assemble(
            setup._replace(configuration=replace(configuration, extenders=())),
            DryRunClient(lambda _report: None),
            random=Random(seed),  # noqa: S311 - ties
        )
        self.judge = ShadowJudge(self.scheduler, samples=samples, is_live=is_live)
        self.skipped = 0

    @abstractmethod
    def synced(self) -> None:
        """Begin: the cluster is known."""

    def added(self, item: KubeObject) -> None:
        """Apply an added object."""
        self._handlers.added(item)
        self.judge.version = item.metadata.resource_version

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Apply a change."""
        self._handlers.updated(old, new)
        self.judge.version = new.metadata.resource_version

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply a deletion."""
        self._handlers.deleted(item, is_final_state_known=is_final_state_known)
        self.judge.version = item.metadata.resource_version

    @abstractmethod
    def decided(self, decision: RecordedDecision) -> None:
        """Compare a decision, which is not applied yet."""

    @abstractmethod
    def undone(self, decision: RecordedDecision) -> None:
        """Take a pod off its node again: it was not bound."""


class _Seen(msgspec.Struct, frozen=True):
    """A pending pod: its number in the order of appearance, and what was decided then."""

    number: int
    first: ShadowChoice


class ShadowWatch(DecisionWatch):
    """Decides for the pods of other schedulers when they appear and when they are decided.

    It looks at all nodes, because it is not known at which node another scheduler begins.
    """

    def __init__(self, setup: SchedulerSetup, seed: int, *, is_live: bool = False) -> None:
        """Set up; raises ConfigError. To be called while a loop runs."""
        given = setup.configuration
        shares = (profile.percentage_of_nodes_to_score for profile in given.profiles)
        of_all = given.percentage_of_nodes_to_score
        samples = any((of_all if share is None else share) != EVERY_NODE for share in shares)
        every = setup._replace(configuration=exhaustive(given))
        super().__init__(every, seed, samples=samples, is_live=is_live)
        self._pending: dict[str, _Seen] = {}
        self._appeared = 0
        self._has_synced = False

    @property
    def pending(self) -> int:
        """Number of pods that wait for a node."""
        return len(self._pending)

    def synced(self) -> None:
        """Begin: the cluster is known."""
        self._has_synced = True
        for pod in tuple(self.scheduler.pods.all()):
            self._appears(pod)

    def added(self, item: KubeObject) -> None:
        """Apply an added object, and decide for a new pod."""
        super().added(item)
        if isinstance(item, Pod | Node):
            self.judge.note_change(None, item)
        if isinstance(item, Pod):
            self._appears(item)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Apply a change."""
        super().updated(old, new)
        if isinstance(old, Node) and isinstance(new, Node):
            self.judge.note_change(old, new)
        if not (isinstance(old, Pod) and isinstance(new, Pod)):
            return
        seen = self._pending.get(uid_of(new))
        self.judge.note_change(old, new, None if seen is None else seen.number)
        if seen is None:
            self._appears(new)
        elif new.spec.node_name or new.status.phase in FINISHED:
            del self._pending[uid_of(new)]

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply a deletion."""
        super().deleted(item, is_final_state_known=is_final_state_known)
        if isinstance(item, Pod | Node):
            self.judge.note_change(item, None)
        if isinstance(item, Pod):
            self._pending.pop(uid_of(item), None)

    def decided(self, decision: RecordedDecision) -> None:
        """Compare a decision of the other scheduler, which is not applied yet."""
        queued = self.scheduler.queue.get_pod(decision.pod)
        if queued is not None and self._was_released(queued):
            self._appears(queued.pod_info.pod)
        seen = self._pending.get(decision.uid)
        if seen is None and queued is not None and queued.is_gated:
            if queued.pod_info.pod.spec.scheduling_group is None:
                self.judge.judge_held(queued.pod_info, decision, queued.gating_plugin)
            else:
                self.skipped += 1
        elif seen is not None and queued is not None:
            self.judge.judge(queued.pod_info, decision, seen.first, seen.number)
            if not decision.node:
                # It is put back into the queue after those that are pending already.
                self._appeared += 1
                self._pending[decision.uid] = _Seen(self._appeared, seen.first)

    def _was_released(self, queued: QueuedPodInfo) -> bool:
        """Whether a change of another object released a pod, which is therefore not seen yet."""
        info = queued.pod_info
        is_alone = info.pod.spec.scheduling_group is None
        return is_alone and not queued.is_gated and info.uid not in self._pending

    def undone(self, decision: RecordedDecision) -> None:
        """Do nothing: a decision that is observed has been carried out."""

    def _appears(self, pod: Pod) -> None:
        """Decide for a pod that waits for the other scheduler, the first time that it is seen."""
        if not self._has_synced or pod.spec.node_name:
            return
        if scheduler_name_of(pod) not in self.scheduler.profiles:
            return
        queued = self.scheduler.queue.get_pod(pod.metadata.key)
        if queued is None or queued.is_gated:
            return
        if pod.spec.scheduling_group is not None:
            self.skipped += 1
            return
        self._appeared += 1
        choice = self.judge.choose(queued.pod_info)
        self._pending[queued.pod_info.uid] = _Seen(self._appeared, choice)


# A live cluster.


class LiveWatch(ShadowWatch):
    """Finds the decisions of another scheduler in the changes of its pods."""

    def __init__(
        self, setup: SchedulerSetup, seed: int, record: Callable[[RecordedDecision], None] | None
    ) -> None:
        """Set up; `record`, if given, is called with each decision before it is applied."""
        super().__init__(setup, seed, is_live=True)
        self._record = record

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Compare what the other scheduler decided, then apply the change."""
        if isinstance(old, Pod) and isinstance(new, Pod) and self._waits(new):
            decision = _decided(old, new)
            if decision is not None:
                self.decided(decision)
                if self._record is not None:
                    self._record(decision)
        super().updated(old, new)

    def _waits(self, pod: Pod) -> bool:
        """Whether a pod waits for a decision, also if a PreEnqueue plugin held it back here."""
        if uid_of(pod) in self._pending:
            return True
        queued = self.scheduler.queue.get_pod(pod.metadata.key) if self._has_synced else None
        return queued is not None and (queued.is_gated or self._was_released(queued))


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


class Shadow:
    """Decides beside another scheduler; `watch` makes and compares the decisions."""

    def __init__(
        self,
        settings: ConnectionSettings,
        setup: SchedulerSetup,
        seed: int,
        recorder: DecisionRecorder | None,
    ) -> None:
        """Set up while a loop runs; nothing is sent yet. Raises ConfigError, as `LiveWatch` does.

        `setup` has one profile, which has the name of the other scheduler.
        """
        (profile,) = setup.configuration.profiles
        self._name = profile.scheduler_name
        self._server = settings.server
        self._rest = connect(settings, qps=-1)
        self._recorder = recorder
        record = None if recorder is None else recorder.observed
        self.watch = LiveWatch(setup, seed, record)
        if recorder is not None:
            recorder.connect(self.watch, self.watch.scheduler)
        self._order = VersionOrder(recorder or self.watch)
        self._informers: Informers = scheduler_informers(
            self._rest,
            self._order,
            self.watch.scheduler,
            setup.feature_gates,
            Random(),  # noqa: S311 - pauses
        )
        self._started = 0.0

    async def run(
        self, stop: asyncio.Event, began: Callable[[], None], warn: Callable[[str], None]
    ) -> None:
        """Watch and compare until stopped; raises SetupError if the cluster cannot be read.

        `began` is called when the cluster is known, `warn` with problems of reading it afterwards.
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
            self._order.pass_held()
            self.watch.judge.settle_all()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._rest.aclose()

    async def _compare(self, began: Callable[[], None], warn: Callable[[str], None]) -> None:
        """Begin once the cluster is known, and warn of problems afterwards, until cancelled."""
        await self._sync()
        tune_collector()
        self._order.begin()
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
        hurried = self.watch.judge.hurried
        if hurried:
            yield (
                f"{hurried:,} of the different decisions may be due to changes of the cluster: "
                "decisions came too fast to try all of its states for them."
            )
        problem = _problem(self._informers, is_patient=False)
        if problem:
            yield f"The cluster could not be read at the end, so decisions are missing: {problem}."


class VersionOrder:
    """Passes on the changes of all kinds in the order in which the API server made them.

    Each kind has a watch of its own. A process that is behind reads all that one watch has before
    it reads the next, and would see changes of nodes long before older changes of pods. So changes
    of other objects are held until a later change of a pod; changes of one kind keep their order.
    """

    def __init__(self, handler: ResourceEventHandler) -> None:
        """Pass all changes on to `handler` at once until `begin`, as lists are in no order."""
        self._handler = handler
        self._held: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._holds = False
        self._passed_at = 0.0

    def begin(self) -> None:
        """Hold changes from now on."""
        self._holds = True
        self._passed_at = asyncio.get_running_loop().time()

    def pass_held(self, before: float = math.inf) -> None:
        """Pass on what is held, up to a version."""
        while self._held and self._held[0][0] < before:
            _, _, change = heappop(self._held)
            change()

    def added(self, item: KubeObject) -> None:
        """Take an added object."""
        self._take(item, partial(self._handler.added, item))

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Take a change."""
        self._take(new, partial(self._handler.updated, old, new))

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Take a deletion."""
        deleted = partial(self._handler.deleted, item, is_final_state_known=is_final_state_known)
        self._take(item, deleted)

    def _take(self, item: KubeObject, change: Callable[[], None]) -> None:
        if not self._holds:
            change()
            return
        now = asyncio.get_running_loop().time()
        text = item.metadata.resource_version
        version = int(text) if text.isdecimal() else 0
        if isinstance(item, Pod):
            self.pass_held(version)
            change()
            self._passed_at = now
            return
        heappush(self._held, (version, next(self._numbers), change))
        if now - self._passed_at > _HELD_SECONDS_MAX:
            self.pass_held()


def _problem(informers: Informers, *, is_patient: bool) -> str:
    """Return why the cluster cannot be read, "" if it can or may be soon."""
    found = {name: informer.failure for name, informer in informers.by_name.items()}
    refused = [name for name, each in found.items() if each.code == HTTPStatus.FORBIDDEN]
    if refused:
        names = ", ".join(refused)
        return (
            f"you may not watch {names} in all namespaces; ask for the ClusterRole kubesched-reader"
        )
    for each in found.values():
        if each.code == HTTPStatus.UNAUTHORIZED:
            return "the server refuses the credentials; log in again, or name another context"
        if each.message and not is_patient:
            return without_request(each.message)
    return ""
