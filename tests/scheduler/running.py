"""The whole scheduler on virtual time, with an API server of a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import inf
from random import Random
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Node, Pod, PodCondition
from kubesched.api.errors import ApiError, ConflictError, NotFoundError
from kubesched.api.meta import Condition, ObjectMeta
from kubesched.api.scheduling import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    TopologyConstraint,
)
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import API_VERSION, KIND
from kubesched.framework.cluster_event import ClusterEvent
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.assembly import NO_WRITERS, Writers, assemble
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.extenders import Connect
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Instruments, Observer
from kubesched.simulator import virtual_loop
from kubesched.testing.builders import make_pod
from tests.loops import as_test

GANGS: Final = {"GenericWorkload": True, "GangScheduling": True}

T = TypeVar("T", Pod, PodGroup)


class FakeApi:
    """Carries out each request at once, and calls the scheduler's event handlers.

    Attributes:
        pods, groups: By name.
        events: What was recorded, as `reason pod: note`.
        refused: Names of pods whose binding is refused.
        bindings: `pod node`, in the order of binding.
        stop_seconds: How long a deleted pod takes to stop.
    """

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        self.events: list[str] = []
        self.refused: set[str] = set()
        self.bindings: list[str] = []
        self.stop_seconds = 0.0
        self.handlers: EventHandlers
        self._version = 0

    def create(self, *items: Pod | Node | PodGroup) -> None:
        """Add objects."""
        for item in items:
            if isinstance(item, Pod):
                self.pods[item.metadata.name] = item
            elif isinstance(item, PodGroup):
                self.groups[item.metadata.name] = item
            self.handlers.added(item)

    def update(self, pod: Pod) -> None:
        """Change a pod."""
        self._version += 1
        metadata = replace(pod.metadata, resource_version=str(self._version))
        old, new = self.pods[pod.metadata.name], replace(pod, metadata=metadata)
        self.pods[pod.metadata.name] = new
        self.handlers.updated(old, new)

    def delete(self, name: str) -> None:
        """Remove a pod."""
        self.handlers.deleted(self.pods.pop(name))

    def _pod(self, pod: Pod) -> Pod:
        known = self.pods.get(pod.metadata.name)
        if known is None:
            raise NotFoundError(f'pods "{pod.metadata.name}" not found')
        return known

    # kubesched.scheduler.api_client.ApiClient

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Assign the pod."""
        known = self._pod(pod)
        if known.metadata.name in self.refused:
            raise ApiError(403, "Forbidden", "refused")
        if known.spec.node_name:
            raise ConflictError("already assigned")
        self.bindings.append(f"{known.metadata.name} {node_name}")
        self.update(
            replace(
                known,
                spec=replace(known.spec, node_name=node_name),
                status=replace(known.status, nominated_node_name=""),
            )
        )

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Keep the last condition only."""
        known = self._pod(pod)
        status = known.status
        if condition is not None:
            kept = PodCondition(
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
            )
            status = replace(status, conditions=(kept,))
        if nominated_node_name is not None:
            status = replace(status, nominated_node_name=nominated_node_name)
        if status != known.status:
            self.update(replace(known, status=status))

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Set the condition."""
        old = self.groups[group.metadata.name]
        kept = Condition(
            type=condition.type,
            status=condition.status,
            reason=condition.reason,
            message=condition.message,
            observed_generation=group.metadata.generation,
        )
        new = replace(old, status=replace(old.status, conditions=(kept,)))
        self.groups[group.metadata.name] = new
        self.handlers.updated(old, new)

    async def delete_pod(self, pod: Pod) -> None:
        """Remove the pod, at once or when it has stopped."""
        known = self._pod(pod)
        name = known.metadata.name
        if not self.stop_seconds:
            self.delete(name)
            return
        metadata = replace(known.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self.update(replace(known, metadata=metadata))
        asyncio.get_running_loop().call_later(self.stop_seconds, self.delete, name)

    def record_event(self, event: EventRecord) -> None:
        """Keep the event."""
        self.events.append(f"{event.reason} {event.regarding.metadata.name}: {event.note}")


class HandledEvents(Instruments):
    """Records the labels of the events that were handled."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []

    @contextmanager
    def handling(self, *events: ClusterEvent, prepared_seconds: float = 0.0) -> Iterator[None]:
        """Record events."""
        yield
        self.labels += [event.label for event in events]


class Running:
    """A running scheduler.

    Attributes:
        api: The API server.
        scheduler: The loop.
    """

    def __init__(self, api: FakeApi, scheduler: Scheduler) -> None:
        self.api = api
        self.scheduler = scheduler

    async def settle(self, seconds: float = 0.5) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)
        self.scheduler.cache.check()
        self.scheduler.queue.check()

    @property
    def nodes(self) -> dict[str, str]:
        """Pod -> the node it is bound to."""
        return {
            name: pod.spec.node_name for name, pod in self.api.pods.items() if pod.spec.node_name
        }

    @property
    def waiting(self) -> list[str]:
        """Return the pods that wait at Permit."""
        return [waiting.pod.name for waiting in self.scheduler.waiting_pods]

    def condition(self, name: str) -> tuple[str, str]:
        """Return reason and message of a pod's last condition."""
        conditions = self.api.pods[name].status.conditions
        return (conditions[-1].reason, conditions[-1].message) if conditions else ("", "")

    def group(self, name: str) -> tuple[str, str, str]:
        """Return status, reason and message of a group's condition."""
        conditions = self.api.groups[name].status.conditions
        if not conditions:
            return "", "", ""
        return conditions[-1].status, conditions[-1].reason, conditions[-1].message


@asynccontextmanager
async def running(
    *,
    gates: Mapping[str, bool] | None = None,
    registry: Registry | None = None,
    profile: Mapping[str, Any] | None = None,
    profiles: Sequence[Mapping[str, Any]] = (),
    observers: Sequence[Observer] = (),
    instruments: Instruments | None = None,
    writers: Writers = NO_WRITERS,
    writes_at_once: float = inf,
    extenders: Sequence[Mapping[str, Any]] = (),
    connect: Connect | None = None,
) -> AsyncIterator[Running]:
    """Run a scheduler until the block ends.

    Args:
        gates: Feature gates that differ from the defaults.
        registry: The plugins; those in tree if not given.
        profile: The one profile; the default one if not given.
        profiles: All profiles, if there are several.
        observers: The loop's.
        instruments: Measure the scheduler.
        writers: Write claims and volumes.
        writes_at_once: While so many writes are unanswered, no further pod is decided.
        extenders: The configurations of extenders.
        connect: Creates the transport of an extender.
    """
    feature_gates = FeatureGates(dict(gates or {}))
    raw: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "extenders": list(extenders)}
    if profile or profiles:
        raw["profiles"] = list(profiles) or [profile]
    configuration = load_configuration(raw, feature_gates)
    api = FakeApi()
    scheduler, api.handlers = assemble(
        SchedulerSetup(configuration, registry or in_tree_registry(), feature_gates),
        api,
        random=Random(0),
        observers=observers,
        connect=connect,
        instruments=instruments,
        writers=writers,
        writes_at_once=writes_at_once,
    )
    task = asyncio.create_task(scheduler.run())
    try:
        yield Running(api, scheduler)
    finally:
        scheduler.stop()
        await task
        await scheduler.drain()


def with_scheduler(
    **options: Any,
) -> Callable[[Callable[..., Awaitable[object]]], Callable[..., None]]:
    """Run a test on virtual time; its first argument is a running scheduler with these options."""

    async def play(story: Callable[..., Awaitable[object]]) -> None:
        async with running(**options) as cluster:
            await story(cluster)

    return lambda test: as_test(test, lambda story: virtual_loop.run(play(story)))


def make_member(name: str, group: str = "gang", **fields: Any) -> Pod:
    """Build a pod of a group that requests one CPU."""
    spec = {"schedulingGroup": {"podGroupName": group}, **fields.pop("spec", {})}
    return make_pod(name, **{"requests": {"cpu": "1"}, "spec": spec, **fields})


def make_group(
    name: str = "gang", min_count: int | None = None, *, key: str = "", priority: int | None = None
) -> PodGroup:
    """Build a group: a gang if `min_count` is given, for one domain if a topology key is given."""
    gang = None if min_count is None else GangSchedulingPolicy(min_count=min_count)
    basic = BasicSchedulingPolicy() if gang is None else None
    topology = PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=key),))
    return PodGroup(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", generation=1),
        spec=PodGroupSpec(
            scheduling_policy=PodGroupSchedulingPolicy(basic=basic, gang=gang),
            scheduling_constraints=topology if key else None,
            priority=priority,
        ),
    )
