"""Evictions carry out preemptions: clear nominations, evict the victims, the last one alone.

Upstream: pkg/scheduler/framework/preemption/executor.go (v1.36)
Invariants: a pod whose preemption runs is held back until its last victim is seen terminating.
Differs:  all victims are evicted concurrently; upstream limits this to the `parallelism` of the
          configuration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Final, Self

import msgspec

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord
from kubesched.api.errors import ApiError, NotFoundError
from kubesched.cache.cache import Cache
from kubesched.framework.waiting_pods import WaitingPods
from kubesched.scheduler.api_client import ApiClient
from kubesched.scheduler.observer import Observer
from kubesched.scheduler.status_writer import StatusWriter, drain, with_retries
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo

PLUGIN: Final = "DefaultPreemption"

log = logging.getLogger(__name__)


class Preemptor(msgspec.Struct, frozen=True):
    """The pod or pod group that victims are evicted for.

    Attributes:
        type: `pod` or `podgroup`.
        uid: The uid of the pod or group.
        key: Its namespace and name.
        priority: Its priority; nominations of lower priority are cleared.
        pods: The pods to activate if the preemption fails.
    """

    type: str
    uid: str
    key: str
    priority: int
    pods: tuple[PodInfo, ...]

    @classmethod
    def of_pod(cls, pod: PodInfo) -> Self:
        """Return a pod as a preemptor."""
        return cls("pod", pod.uid, pod.key, pod.priority, (pod,))


class Preemption(msgspec.Struct, frozen=True):
    """A preemption to carry out.

    Attributes:
        preemptor: The pod or pod group that needs the resources.
        node_name: The node; `cluster` for a group.
        victims: The pods to evict, most important first.
        scheduler_name: The profile that decided it.
    """

    preemptor: Preemptor
    node_name: str
    victims: tuple[PodInfo, ...]
    scheduler_name: str


class Evictions:
    """Runs preemptions in the background.

    Attributes:
        status_writer: Writes nominations.
        cancel_binding: (uid, cause) -> whether a pod in PreBind could still be called back.
    """

    def __init__(
        self,
        api: ApiClient,
        cache: Cache,
        nominator: Nominator,
        waiting_pods: WaitingPods,
        status_writer: StatusWriter,
        activate: Callable[[Sequence[PodInfo]], None],
        observers: Sequence[Observer],
        *,
        in_background: bool,
    ) -> None:
        """Set up; `in_background` is the gate SchedulerAsyncPreemption."""
        self._api = api
        self._cache = cache
        self._nominator = nominator
        self._waiting_pods = waiting_pods
        self.status_writer = status_writer
        self._activate = activate
        self.cancel_binding: Callable[[str, str], bool] = lambda _uid, _cause: False
        self._observers = observers
        self._in_background = in_background
        # The uid of each preemptor, with the victim that is evicted last once that has begun.
        self._running: dict[str, str | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return the number of running preemptions."""
        return len(self._tasks)

    def is_running(self, uid: str) -> bool:
        """Whether a pod or group preempts and its last victim is not yet seen terminating."""
        if uid not in self._running:
            return False
        last = self._running[uid]
        if last is None:
            return True
        victim = self._cache.get_pod(last)
        return victim is not None and not victim.is_terminating

    async def carry_out(self, preemption: Preemption) -> str:
        """Evict, now or in the background; return the error message, "" if there is none."""
        if self._in_background:
            self._start(preemption)
            return ""
        try:
            await self._run_to_end(preemption)
        except ApiError as error:
            log.warning("Preemption for %s failed: %s", preemption.preemptor.key, error)
            return error.message
        return ""

    def _start(self, preemption: Preemption) -> None:
        """Start evicting, unless every victim is terminating already."""
        victims = [v for v in preemption.victims if not self._is_terminating(v)]
        if not victims:
            return
        self._notify_preempting(preemption)
        self._running[preemption.preemptor.uid] = None
        # Pods that are decided before the task begins keep their nominations.
        lower = self._lower_nominations(preemption)
        task = asyncio.ensure_future(self._run(preemption, victims, lower))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _notify_preempting(self, preemption: Preemption) -> None:
        for observer in self._observers:
            observer.preempting(len(preemption.victims))

    async def _run_to_end(self, preemption: Preemption) -> None:
        """Evict all victims concurrently and wait, as without SchedulerAsyncPreemption.

        Raises the ApiError of the first refusal; the other evictions are cancelled.
        """
        self._notify_preempting(preemption)
        victims = [v for v in preemption.victims if not self._is_terminating(v)]
        await _all(self._evict(victim, preemption) for victim in victims)
        lower = self._lower_nominations(preemption)
        await self._clear_nominations(lower, preemption.node_name)

    async def drain(self) -> None:
        """Wait until nothing runs."""
        await drain(self._tasks)

    def _is_terminating(self, victim: PodInfo) -> bool:
        known = self._cache.get_pod(victim.uid)
        return known is None or known.is_terminating

    async def _run(
        self, preemption: Preemption, victims: list[PodInfo], lower: list[PodInfo]
    ) -> None:
        uid = preemption.preemptor.uid
        started = asyncio.get_running_loop().time()
        try:
            is_success = await self._clear_nominations(lower, preemption.node_name)
            *others, last = victims
            await _all(self._evict(victim, preemption) for victim in others)
            self._running[uid] = last.uid
            await self._evict(last, preemption)
        except ApiError as error:
            log.warning("Preemption for %s failed: %s", preemption.preemptor.key, error)
            is_success = False
        finally:
            self._running.pop(uid, None)
        for observer in self._observers:
            observer.preempted(preemption, started, is_success=is_success)
        if not is_success:
            # The event that would have requeued it may never come.
            self._activate(preemption.preemptor.pods)

    def _lower_nominations(self, preemption: Preemption) -> list[PodInfo]:
        priority = preemption.preemptor.priority
        nominated = self._nominator.on_node(preemption.node_name)
        return [other for other in nominated if other.priority < priority]

    async def _clear_nominations(self, pods: Sequence[PodInfo], node_name: str) -> bool:
        """Clear the nominations of pods still nominated to a node; return whether all succeeded."""
        requests = [
            self.status_writer.write(pod.pod, nominated_node_name="")
            for pod in pods
            if self._nominator.node_of(pod.uid) == node_name
        ]
        return all(await asyncio.gather(*requests))

    async def _evict(self, victim: PodInfo, preemption: Preemption) -> None:
        waiting = self._waiting_pods.get(victim.uid)
        in_memory = (waiting is not None and waiting.preempt(PLUGIN, "preempted")) or (
            self.cancel_binding(victim.uid, f"preempted by {PLUGIN}")
        )
        if not in_memory:
            try:
                await self._delete(victim, preemption)
            except NotFoundError:
                return
            for observer in self._observers:
                observer.evicted(victim, preemption)
        preemptor = preemption.preemptor
        note = f"Preempted by {preemptor.type} {preemptor.uid} on node {preemption.node_name}"
        self._api.record_event(
            EventRecord(
                regarding=victim.pod,
                type="Normal",
                reason="Preempted",
                action="Preempting",
                # Upstream passes an internal type as the related object, which the API cannot
                # encode.
                note=f"{note} (in kube-scheduler memory)." if in_memory else note,
                reporting_controller=preemption.scheduler_name,
            )
        )

    async def _delete(self, victim: PodInfo, preemption: Preemption) -> None:
        condition = ConditionPatch(
            "DisruptionTarget",
            "True",
            "PreemptionByScheduler",
            f"{preemption.scheduler_name}: preempting to accommodate a higher priority "
            f"{preemption.preemptor.type}",
        )
        await with_retries(lambda: self._api.patch_pod_status(victim.pod, condition))
        await self._api.delete_pod(victim.pod)


async def _all(evictions: Iterable[Coroutine[object, object, None]]) -> None:
    """Await all; on the first failure cancel the rest and raise it.

    Evictions that have reached the API server by then still take place.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for eviction in evictions:
                group.create_task(eviction)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
