"""ShadowWatch follows events of a cluster, live or recorded, and repeats its decisions.

Differs:  extenders are not asked, and pods of pod groups are not judged.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.app.dry_run import DryRunClient
from kubesched.app.shadow_judge import ShadowChoice, ShadowJudge
from kubesched.framework.registry import SchedulerSetup
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.decision_recorder import RecordedDecision
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.loop import Scheduler
from kubesched.snapshot.pod_info import scheduler_name_of, uid_of

_EXTENDERS_NOT_CALLED: Final = "The extenders of the configuration were not asked."


class ShadowSetup(msgspec.Struct, frozen=True):
    """The scheduler that decides again what others have decided.

    Attributes:
        scheduler: Its configuration has a profile for each of the other schedulers.
        seed: Of the random source that breaks ties.
        samples: Whether the other scheduler looks at a part of the nodes of a large cluster.
    """

    scheduler: SchedulerSetup
    seed: int
    samples: bool

    def idle_scheduler(self) -> tuple[Scheduler, EventHandlers]:
        """Return a scheduler whose loop is not to run, without extenders, and its event handlers.

        Raises:
            ConfigError: The configuration of a plugin is invalid.
        """
        configuration = msgspec.structs.replace(self.scheduler.configuration, extenders=())
        return assemble(
            self.scheduler._replace(configuration=configuration),
            DryRunClient(lambda _report: None),
            random=Random(self.seed),  # noqa: S311 - ties
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the report: the parts of the configuration that are not used."""
        return (_EXTENDERS_NOT_CALLED,) if self.scheduler.configuration.extenders else ()


class _Seen(msgspec.Struct, frozen=True):
    """A pending pod: its number in the order of appearance, and what was decided then."""

    number: int
    first: ShadowChoice


class ShadowWatch:
    """Decides for the pods of other schedulers when they appear and when they are decided.

    Attributes:
        scheduler: Its cache and queue are the cluster; its loop does not run.
        judge: Compares the decisions.
        skipped: Number of pods that were not judged because they belong to a pod group.
        notes: Remarks that matter for reading a report.
    """

    def __init__(self, setup: ShadowSetup) -> None:
        """Set up; raises ConfigError. To be called while a loop runs."""
        self.scheduler, self._handlers = setup.idle_scheduler()
        self.judge = ShadowJudge(self.scheduler, samples=setup.samples)
        self.skipped = 0
        self.notes = setup.notes
        self._pending: dict[str, _Seen] = {}
        self._appeared = 0
        self._has_synced = False

    @property
    def pending(self) -> int:
        """Number of pods that wait for a node."""
        return len(self._pending)

    def awaits(self, uid: str) -> bool:
        """Whether the next decision for a pod is judged."""
        return uid in self._pending

    def synced(self) -> None:
        """Begin: the cluster is known."""
        self._has_synced = True
        for pod in tuple(self.scheduler.pods.all()):
            self._appears(pod)

    def added(self, item: KubeObject) -> None:
        """Apply an added object, and decide for a new pod."""
        self._handlers.added(item)
        self._note(None, item)
        if isinstance(item, Pod):
            self._appears(item)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Apply a change."""
        self._handlers.updated(old, new)
        seen = self._pending.get(uid_of(new)) if isinstance(new, Pod) else None
        self._note(old, new, None if seen is None else seen.number)
        if not isinstance(new, Pod):
            return
        if seen is None:
            self._appears(new)
        elif new.spec.node_name or new.status.phase in FINISHED:
            del self._pending[uid_of(new)]

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply a deletion."""
        self._handlers.deleted(item, is_final_state_known=is_final_state_known)
        self._note(item, None)
        if isinstance(item, Pod):
            self._pending.pop(uid_of(item), None)

    def decided(self, decision: RecordedDecision) -> None:
        """Compare a decision of the other scheduler, which is not applied yet."""
        seen = self._pending.get(decision.uid)
        queued = self.scheduler.queue.get_pod(decision.pod)
        if seen is not None and queued is not None:
            self.judge.judge(queued.pod_info, decision, seen.first, seen.number)
            if not decision.node:
                # It is put back into the queue after those that are pending already.
                self._appeared += 1
                self._pending[decision.uid] = _Seen(self._appeared, seen.first)

    def undone(self, decision: RecordedDecision) -> None:
        """Do nothing: a decision that is observed has been carried out."""

    def _note(
        self,
        old: KubeObject | None,
        new: KubeObject | None,
        number: int | None = None,
    ) -> None:
        item = new or old
        assert item is not None
        self.judge.version = item.metadata.resource_version
        if isinstance(item, Pod | Node):
            assert isinstance(old, Pod | Node | None)
            assert isinstance(new, Pod | Node | None)
            self.judge.note_change(old, new, number)

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
