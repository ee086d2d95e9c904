"""ShadowWatch follows events of a cluster, live or recorded, and repeats its decisions.

Differs:  extenders are not asked, and pods of pod groups are not judged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class DecisionWatch(ABC):
    """Follows a cluster and the decisions of other schedulers, and makes these again.

    Attributes:
        scheduler: Its cache and queue are the cluster; its loop does not run.
        judge: Compares the decisions.
        skipped: Number of pods or decisions that were not judged because of a pod group.
        notes: Remarks that matter for reading a report.
    """

    def __init__(self, setup: ShadowSetup, *, samples: bool, is_live: bool = False) -> None:
        """Set up; `samples` and `is_live` as in `ShadowJudge`.

        Raises:
            ConfigError: The configuration of a plugin is invalid.
        """
        configuration = setup.scheduler.configuration
        self.notes = (_EXTENDERS_NOT_CALLED,) if configuration.extenders else ()
        self.scheduler, self._handlers = assemble(
            setup.scheduler._replace(
                configuration=msgspec.structs.replace(configuration, extenders=())
            ),
            DryRunClient(lambda _report: None),
            random=Random(setup.seed),  # noqa: S311 - ties
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
    """Decides for the pods of other schedulers when they appear and when they are decided."""

    def __init__(self, setup: ShadowSetup, *, is_live: bool = False) -> None:
        """Set up; raises ConfigError. To be called while a loop runs."""
        super().__init__(setup, samples=setup.samples, is_live=is_live)
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
