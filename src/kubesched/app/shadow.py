"""Shadow watches a cluster beside its scheduler, decides for every pod too, and writes nothing.

    informers ─▶ Shadow ─▶ event handlers ─▶ cache
                   └─▶ judge: compares, before the change is applied

Differs:  extenders are not asked, and pods of pod groups are not judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.api.errors import SetupError
from kubesched.api.meta import KubeObject
from kubesched.app.environment import tune_collector
from kubesched.app.live_writers import DryRunClient
from kubesched.app.scheduler_informers import scheduler_informers
from kubesched.app.shadow_judge import ShadowChoice, ShadowDecision, ShadowJudge
from kubesched.client.connect import connect
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.informers import Informers
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import Configuration
from kubesched.explain.shadow_report import ShadowReport, ShadowVerdict
from kubesched.framework.disabled_fields import without_disabled_fields
from kubesched.framework.registry import Registry
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.eventhandlers import FINISHED
from kubesched.snapshot.pod_info import PodInfo, scheduler_name_of, uid_of

_LOOK_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 3.0
_FORBIDDEN: Final = 403
_UNAUTHORIZED: Final = 401


class _Seen(msgspec.Struct, frozen=True):
    """A pending pod: its number in the order of appearance, and what was decided then."""

    number: int
    first: ShadowChoice


class Shadow:
    """Decides beside another scheduler.

    Attributes:
        judge: Compares the decisions.
        skipped: Number of pods that were not judged because they belong to a pod group.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        configuration: Configuration,
        registry: Registry,
        gates: FeatureGates,
        *,
        seed: int,
        samples: bool,
    ) -> None:
        """Set up; nothing is sent yet. To be called while a loop runs.

        Args:
            settings: The API server and the user.
            configuration: With one profile, which has the name of the other scheduler, and which
                evaluates all nodes.
            registry: The plugins that the profile may name.
            gates: The feature gates.
            seed: Of the random source that breaks ties.
            samples: Whether the other scheduler looks at a part of the nodes of a large cluster.

        Raises:
            ConfigError: The configuration of a plugin is invalid.
        """
        (profile,) = configuration.profiles
        self._name = profile.scheduler_name
        self._gates = gates
        self._server = settings.server
        self._has_extenders = bool(configuration.extenders)
        self._rest = connect(settings, qps=-1)
        self._scheduler, self._handlers = assemble(
            msgspec.structs.replace(configuration, extenders=()),
            registry,
            gates,
            DryRunClient(lambda _report: None),
            random=Random(seed),  # noqa: S311 - ties
        )
        self._informers: Informers = scheduler_informers(
            self._rest,
            self,
            self._scheduler,
            gates,
            Random(),  # noqa: S311 - pauses
        )
        self.judge = ShadowJudge(self._scheduler, self._name, samples=samples)
        self.skipped = 0
        self._pending: dict[str, _Seen] = {}
        self._appeared = 0
        self._has_begun = False
        self._started = 0.0

    async def run(self, stop: asyncio.Event, began: Callable[[], None]) -> None:
        """Watch and compare until stopped.

        Args:
            stop: Ends it.
            began: Called when the cluster is known, and the comparison begins.

        Raises:
            SetupError: The cluster cannot be read.
        """
        loop = asyncio.get_running_loop()
        self._started = loop.time()
        following = asyncio.ensure_future(self._informers.run())
        stopping = asyncio.ensure_future(stop.wait())
        try:
            syncing = asyncio.ensure_future(self._sync())
            await asyncio.wait((following, stopping, syncing), return_when=asyncio.FIRST_COMPLETED)
            if syncing.done():
                syncing.result()
                self._begin()
                began()
                await asyncio.wait((following, stopping), return_when=asyncio.FIRST_COMPLETED)
            syncing.cancel()
            if following.done():
                following.result()
        finally:
            self.judge.settle_all()
            for task in (following, stopping):
                task.cancel()
            await asyncio.gather(following, stopping, return_exceptions=True)
            await self._rest.aclose()

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

    def _begin(self) -> None:
        tune_collector()
        self._has_begun = True
        for pod in tuple(self._scheduler.pods.all()):
            self._appears(pod)

    def report(self) -> ShadowReport:
        """Return the report so far."""
        judge = self.judge
        counts = judge.counts
        return ShadowReport(
            scheduler_name=self._name,
            seconds=round(asyncio.get_running_loop().time() - self._started, 1),
            nodes=len(self._scheduler.cache.nodes),
            judged=counts.total(),
            bound=judge.bound,
            agreed=counts[ShadowVerdict.AGREED],
            agreed_late=judge.agreed_late,
            ties=counts[ShadowVerdict.TIE],
            changed=counts[ShadowVerdict.CHANGED],
            sampled=counts[ShadowVerdict.SAMPLED],
            different=counts[ShadowVerdict.DIFFERENT],
            pending=len(self._pending),
            skipped=self.skipped,
            notes=self._notes(),
            disagreements=tuple(judge.disagreements),
        )

    def _notes(self) -> tuple[str, ...]:
        if self._has_extenders:
            return ("The extenders of the configuration were not asked.",)
        return ()

    # Events of the informers.

    def added(self, item: KubeObject) -> None:
        """Apply an added object, and decide for a new pod."""
        self._handlers.added(item)
        self._note(None, item)
        if isinstance(item, Pod):
            self._appears(item)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Compare what the other scheduler decided, then apply the change."""
        seen = self._pending.get(uid_of(new)) if isinstance(new, Pod) else None
        if seen is None:
            self._handlers.updated(old, new)
            self._note(old, new)
            if isinstance(new, Pod):
                self._appears(new)
            return
        assert isinstance(old, Pod)
        assert isinstance(new, Pod)
        theirs = _decided(old, new)
        if theirs is not None:
            info = PodInfo(without_disabled_fields(old, self._gates))
            version = new.metadata.resource_version
            self.judge.judge(info, theirs, seen.first, seen.number, version)
        self._handlers.updated(old, new)
        self._note(old, new, seen.number)
        if new.spec.node_name or new.status.phase in FINISHED:
            del self._pending[uid_of(new)]

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply a deletion."""
        self._handlers.deleted(item, is_final_state_known=is_final_state_known)
        self._note(item, None)
        if isinstance(item, Pod):
            self._pending.pop(uid_of(item), None)

    def _note(
        self, old: KubeObject | None, new: KubeObject | None, number: int | None = None
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
        if not self._has_begun or scheduler_name_of(pod) != self._name or pod.spec.node_name:
            return
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        queued = self._scheduler.queue.get_pod(key)
        if queued is None or queued.is_gated:
            return
        if pod.spec.scheduling_group is not None:
            self.skipped += 1
            return
        self._appeared += 1
        choice = self.judge.choose(queued.pod_info)
        self._pending[queued.pod_info.uid] = _Seen(self._appeared, choice)


def _decided(old: Pod, new: Pod) -> ShadowDecision | None:
    """Return what the other scheduler decided in this change of a pending pod; None if nothing."""
    if new.spec.node_name:
        return ShadowDecision(new.spec.node_name)
    message = _rejection(new)
    return ShadowDecision(message=message) if message and message != _rejection(old) else None


def _rejection(pod: Pod) -> str:
    return next(
        (
            condition.message
            for condition in pod.status.conditions
            if condition.type == "PodScheduled" and condition.reason == "Unschedulable"
        ),
        "",
    )


def _problem(informers: Informers, *, is_patient: bool) -> str:
    """Return why the cluster cannot be read, "" if it can or may be soon."""
    found = {name: informer.statistics() for name, informer in informers.by_name.items()}
    refused = [name for name, each in found.items() if each.last_code == _FORBIDDEN]
    if refused:
        names = ", ".join(refused)
        return (
            f"you may not watch {names} in all namespaces; ask for the ClusterRole kubesched-reader"
        )
    for each in found.values():
        if each.last_code == _UNAUTHORIZED:
            return "the server refuses the credentials; log in again, or name another context"
        if each.last_error and not is_patient:
            return each.last_error
    return ""
