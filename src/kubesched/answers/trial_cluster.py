"""TrialCluster is a rehearsal in which controllers and disruption budgets react too.

A deleted pod that has a controller is created again, whether a drain, the loss of its node or
preemption deleted it; one that was pending at first is pending again. Changes can be undone.

Invariants: after `undo`, every object is as it was when `begin` was called, except for its version,
            and so is the random source.
Differs:  pods of a controller of any kind are created again, with the fields of the deleted pod;
          claims with a class that provisions are bound at once if the class binds immediately;
          quotas and limit ranges are not read; volumes take no room from CSIStorageCapacities.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from random import Random
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from kubesched.answers.budgets import BudgetStatuses
from kubesched.answers.workload_pods import is_daemon, new_pods, replacement_of
from kubesched.api.apps import DaemonSet
from kubesched.api.core import Node, Pod, PodResourceClaimStatus
from kubesched.api.errors import AlreadyExistsError
from kubesched.api.meta import KubeObject, ObjectMeta, controller_of
from kubesched.api.names import PODS
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.requirements import SelectorError, parse_selector
from kubesched.api.resource import (
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
    ResourceSlice,
)
from kubesched.api.scheduling import PriorityClass
from kubesched.api.storage import CSINode, CSIStorageCapacity, StorageClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import NO_PROVISIONER, SYSTEM_CLASSES
from kubesched.cluster.controllers.claims import device_claim_of, has_own_claims, volume_claims_of
from kubesched.cluster.nodes import with_state_taints
from kubesched.cluster.server import kind_name
from kubesched.cluster.store import Change, ChangeType, Key
from kubesched.explain.sentences import count
from kubesched.inputs.errors import did_you_mean
from kubesched.inputs.loading import pending_again, with_scheduler_name
from kubesched.plugins.volumes.claims import WAIT_FOR_FIRST_CONSUMER, claims_of
from kubesched.queue.moves import QueuePlace
from kubesched.simulator.instant_server import InstantVolumeWriter
from kubesched.simulator.object_server import NODES, key_of
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.simulator.report import Eviction
from kubesched.snapshot.pod_info import PodInfo, uid_of

T = TypeVar("T", bound=KubeObject)

_EVICTIONS_MAX: Final = 10
"""How often a pod is created again at once while the cluster settles."""

_BINDINGS: Final[Mapping[type, tuple[str, ...]]] = {
    PersistentVolumeClaim: ("volume_name", "storage_class_name"),
    PersistentVolume: ("claim_ref",),
}
"""The fields of specifications that controllers write."""

WatchSteps: TypeAlias = Callable[[int, int, int], object]
"""Called with the numbers of steps done, of steps to do, and of scheduling cycles so far."""


class QuestionError(ValueError):
    """A question cannot be asked of this cluster; names the object and the remedy."""


class TrialCluster:
    """A cluster in which changes can be made, observed and undone.

    Attributes:
        rehearsal: The scheduler, and the objects on its server.
        server: The objects.
        budgets: The disruption budgets.
        successors: The uid of a deleted pod -> the uid of its replacement.
        gone: `namespace/name` -> the uid of the last deleted pod of that name.
        breaks_budget: Whether a pod that a budget protects was deleted since `begin`.
        drained: Node that is drained and not uncordoned yet -> its allocatable pods; "" if open.
        placed_first: The uids of pods that were pending and have a node, and of their successors.
        notes: What was assumed, one sentence each.
    """

    def __init__(self, rehearsal: Rehearsal, scheduler_name: str | None = None) -> None:
        """Follow a rehearsal whose cluster is loaded; `scheduler_name` is that of created pods."""
        self._scheduler_name = scheduler_name
        self.rehearsal = rehearsal
        self.server = rehearsal.server
        self.successors: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self.breaks_budget = False
        self.placed_first: set[str] = set()
        self.notes: dict[str, None] = {}
        self._keys = {uid_of(pod): key_of(pod) for pod in self.server.all(Pod)}
        self._templates = dict(self._templates_in_use())
        self._new_claims: list[Key] = []
        self._evicted_before: Counter[str] = Counter()
        self._late: list[Callable[[], None]] = []
        self.drained: dict[str, str] = {}
        self._volumes = InstantVolumeWriter(self.server)
        self._journal: dict[Key, KubeObject | None] | None = None
        self._before: tuple[dict[str, str], int, dict[str, str]] = ({}, 0, {})
        self._random_states: list[tuple[Any, ...]] = []
        self._recreates = True
        self.budgets = BudgetStatuses(self.server)
        self.server.store.on_write.append(self._written)

    async def settle(self) -> None:
        """Schedule, create pods again and bind claims until nothing changes any more."""
        self._evicted_before.clear()
        await self._bind_claims()
        await self.rehearsal.settle()
        evicted_late = 0
        with ExitStack() as stack:
            while self._new_claims or self._late:
                await self._bind_claims()
                late, self._late = self._late, []
                for create in late:
                    self.server.soon(create)
                evicted_late += bool(late)
                if evicted_late == _EVICTIONS_MAX:
                    # Their preemptor does not get the place, as when Reserve refuses it.
                    self._stop_preemption(stack)
                await self.rehearsal.settle()

    async def place_pending(self) -> None:
        """Settle the cluster before it is changed: placing its pending pods is not a change."""
        waiting = [uid for uid, pod in self.pods().items() if not pod.spec.node_name]
        await self.settle()
        self.placed_first = {uid for uid in waiting if self.has_node(uid)}
        if self.placed_first:
            text = f"{count(len(self.placed_first), 'pending pod')} got a node first"
            evicted = len(self.evictions)
            cost = f", and {count(evicted, 'pod')} would be evicted for that" if evicted else ""
            self.notes[f"{text}{cost}, as without any change."] = None

    def watched(self, watch: WatchSteps | None, steps: int) -> Callable[[], None]:
        """Call `watch` now and after each scheduling cycle; return what to call after each step."""
        if watch is None:
            return lambda: None
        done = cycles = 0

        def step() -> None:
            nonlocal done
            done += 1

        def attempt() -> None:
            nonlocal cycles
            cycles += 1
            watch(done, steps, cycles)

        watch(done, steps, cycles)
        self.rehearsal.outcomes.on_attempt = attempt
        return step

    # Consequences of a write.

    def _written(self, change: Change[KubeObject]) -> None:
        if self._journal is not None:
            self._journal.setdefault(change.key, change.previous)
        if isinstance(change.value, PersistentVolume) and change.type is ChangeType.ADDED:
            self._note_pools_of(change.value.spec.storage_class_name)
        if not isinstance(change.value, Pod):
            return
        before = cast("Pod | None", change.previous)
        after = None if change.type is ChangeType.DELETED else change.value
        if before is None:
            self._keys[uid_of(change.value)] = change.key
        elif after is not None and _is_going(after) and not _is_going(before):
            self.breaks_budget |= self.budgets.protects(before)
            if self._recreates:
                self._create_again(before)
        self.budgets.changed(before, after)
        if after is None:
            self.gone[f"{change.key.namespace}/{change.key.name}"] = uid_of(change.value)

    def _note_pools_of(self, storage_class: str) -> None:
        pools = self.server.all(CSIStorageCapacity)
        if any(pool.storage_class_name == storage_class for pool in pools):
            text = f"The new volumes of StorageClass {storage_class} take no room from each other"
            self.notes[f"{text}: its CSIStorageCapacities stay as they are."] = None

    def _create_again(self, pod: Pod) -> None:
        replacement = replacement_of(pod)
        if replacement is None and uid_of(pod) in self.placed_first:
            again = pending_again(pod)
            replacement = replace(again, metadata=replace(again.metadata, uid=""))
        if replacement is None:
            return

        def create() -> None:
            self._forget_claims_of(pod)
            self._succeed(pod, replacement)

        if self._evicted_before[uid_of(pod)] < _EVICTIONS_MAX:
            self.server.soon(create)
            return
        # Otherwise its preemptor might evict it again and again, and never get its place.
        self._late.append(create)
        owner = controller_of(pod.metadata)
        whose = f"{owner.kind} {pod.metadata.namespace}/{owner.name}" if owner else pod.metadata.key
        text = f"Preemption evicted pods of {whose} {_EVICTIONS_MAX} times in a row"
        self.notes[f"{text}; then they were created after all other pods had been tried."] = None

    def _succeed(self, pod: Pod, replacement: Pod) -> None:
        uid = uid_of(self.create_pod(replacement))
        self.successors[uid_of(pod)] = uid
        self._evicted_before[uid] = self._evicted_before[uid_of(pod)] + 1
        if uid_of(pod) in self.placed_first:
            self.placed_first.add(uid)

    @contextmanager
    def deleting_for_good(self) -> Iterator[None]:
        """Delete pods without creating them again."""
        self._recreates = False
        try:
            yield
        finally:
            self._recreates = True

    @contextmanager
    def moving_only(self) -> Iterator[None]:
        """Schedule no pods but new ones, and those nominated to a node; evict none for them."""
        held = self.hold_pending()
        try:
            with ExitStack() as stack:
                self._stop_preemption(stack)
                yield
        finally:
            self.release(held)

    def _stop_preemption(self, stack: ExitStack) -> None:
        for cycle in self.rehearsal.scheduler.cycles.values():
            stack.enter_context(cycle.restriction.without_post_filters())

    def hold_pending(self) -> list[PodInfo]:
        """Take the pending pods out of the queue, but for nominated ones; return them."""
        queue = self.rehearsal.scheduler.queue
        waiting = [*queue.pods(QueuePlace.UNSCHEDULABLE), *queue.pods(QueuePlace.BACKOFF)]
        held = [one.pod_info for one in waiting if not queue.nominator.node_of(one.pod_info.uid)]
        for info in held:
            queue.delete(info, asyncio.get_running_loop().time())
        return held

    def release(self, held: Iterable[PodInfo]) -> None:
        """Put held pods back into the queue; they are tried once something wakes the scheduler."""
        for info in held:
            self.rehearsal.scheduler.queue.add(info, asyncio.get_running_loop().time())

    # Undo.

    def begin(self) -> None:
        """Record what is changed from now on."""
        self._journal = {}
        self.breaks_budget = False
        self._before = (dict(self.successors), len(self.evictions), dict(self.drained))
        self._random_states = [random.getstate() for random in self._random_sources()]

    def keep(self) -> None:
        """Keep what was changed since `begin`."""
        self._journal = None

    async def undo(self) -> None:
        """Restore what was changed since `begin`."""
        journal, self._journal = self._journal, None
        assert journal is not None, "begin was called"
        outcomes = self.rehearsal.outcomes
        self.successors, evictions, self.drained = self._before
        del outcomes.evictions[evictions:]
        pods = {key: item for key, item in journal.items() if key.kind == kind_name(Pod)}
        with self.deleting_for_good():
            for key, before in pods.items():
                now = self.server.store.find(key)
                if now is not None and not _is_same_pod(now, before):
                    self.server.store.delete(key)
        # Pods need their nodes, and a budget's status follows from its pods.
        order = {kind_name(Pod): 1, kind_name(PodDisruptionBudget): 2}
        for key, before in sorted(journal.items(), key=lambda one: order.get(one[0].kind, 0)):
            self._restore(key, before)
        await self.settle()
        # What follows does not depend on what was tried.
        for random, state in zip(self._random_sources(), self._random_states, strict=True):
            random.setstate(state)

    def _random_sources(self) -> list[Random]:
        return [profile.random for profile in self.rehearsal.scheduler.profiles.values()]

    def _restore(self, key: Key, before: KubeObject | None) -> None:
        store = self.server.store
        now = store.find(key)
        if before is None:
            if now is not None:
                store.delete(key)
        elif now is None:
            store.create(key, before)
        elif now is not before:
            store.update(key, before)

    # Objects.

    def add(self, item: T) -> T:
        """Create an object, or apply it to the one of its name; return it as stored."""
        known = self.server.store.find(key_of(item))
        if known is not None:
            stored = self.server.update(_applied(item, known))
        else:
            if isinstance(item, PersistentVolumeClaim):
                self._new_claims.append(key_of(item))
            stored = self.server.create(item)
        if isinstance(stored, PodDisruptionBudget):
            self.budgets.budget_changed(stored, is_gone=False)
        return stored

    def remove_budget(self, budget: PodDisruptionBudget) -> None:
        """Delete a disruption budget."""
        self.server.delete(budget)
        self.budgets.budget_changed(budget, is_gone=True)

    async def _bind_claims(self) -> None:
        """Provision the volumes of new claims that do not wait for a pod."""
        claims, self._new_claims = self._new_claims, []
        for key in claims:
            claim = self.server.find(PersistentVolumeClaim, key.namespace, key.name)
            if claim is None or claim.spec.volume_name:
                continue
            found = self.server.find(StorageClass, "", claim.spec.storage_class_name or "")
            if (
                found is not None
                and found.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER
                and found.provisioner != NO_PROVISIONER
            ):
                await self._volumes.update_persistent_volume_claim(claim)

    def create_pod(self, pod: Pod) -> Pod:
        """Create a pod, and the claims that only it has."""
        pod = with_scheduler_name(self._with_known_class(pod), self._scheduler_name)
        while True:
            try:
                created = self.server.create(pod)
                break
            except AlreadyExistsError:
                # Another number makes another generated name.
                if pod.metadata.name:
                    raise
        self._create_claims_of(created)
        return created

    def _with_known_class(self, pod: Pod) -> Pod:
        name = pod.spec.priority_class_name
        if not name or pod.spec.priority is not None or name in SYSTEM_CLASSES:
            return pod
        if self.server.find(PriorityClass, "", name) is not None:
            return pod
        self.notes[f"PriorityClass {name} is not in the cluster; priority 0 is used."] = None
        return replace(pod, spec=replace(pod.spec, priority=0))

    def _templates_in_use(self) -> Iterator[tuple[Key, ResourceClaimTemplate]]:
        """Yield templates as the claims made from them show them, if the files lack templates."""
        for pod in self.server.all(Pod):
            for entry, name in pod.resource_claims():
                claim = self.server.find(ResourceClaim, pod.metadata.namespace, name)
                if claim is not None and entry.resource_claim_template_name:
                    metadata = ObjectMeta(
                        namespace=pod.metadata.namespace, name=entry.resource_claim_template_name
                    )
                    spec = ResourceClaimTemplateSpec(spec=claim.spec)
                    template = ResourceClaimTemplate(metadata=metadata, spec=spec)
                    yield key_of(template), template

    def _template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        found = self.server.find(ResourceClaimTemplate, namespace, name)
        return found or self._templates.get(Key(kind_name(ResourceClaimTemplate), namespace, name))

    def _create_claims_of(self, pod: Pod) -> None:
        if not has_own_claims(pod):
            return
        plain = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}
        for claim in volume_claims_of(plain):
            self.add(msgspec.convert(claim, PersistentVolumeClaim))
        found: list[PodResourceClaimStatus] = []
        for asked in pod.spec.resource_claims:
            named = asked.resource_claim_template_name or ""
            template = self._template(pod.metadata.namespace, named)
            if template is not None:
                wanted = device_claim_of(plain, asked.name, msgspec.to_builtins(template))
                name = self.server.create(msgspec.convert(wanted, ResourceClaim)).metadata.name
                found.append(PodResourceClaimStatus(name=asked.name, resource_claim_name=name))
            elif named:
                of = f"{pod.metadata.namespace}/{named}"
                self.notes[f"ResourceClaimTemplate {of} does not exist; pods wait for it."] = None
        if found:
            status = replace(pod.status, resource_claim_statuses=tuple(found))
            self.server.update(replace(pod, status=status))

    def _forget_claims_of(self, pod: Pod) -> None:
        volumes = [one.name for one in claims_of(pod) if one.is_ephemeral]
        devices = [one.resource_claim_name or "" for one in pod.status.resource_claim_statuses]
        for kind, names in ((PersistentVolumeClaim, volumes), (ResourceClaim, devices)):
            for name in names:
                claim = self.server.find(kind, pod.metadata.namespace, name)
                if claim is not None:
                    self.server.delete(claim)

    # Nodes.

    def add_nodes(self, nodes: Iterable[Node], like: str = "") -> None:
        """Add nodes, and the pods that the DaemonSets in the store have on them.

        They have the devices and CSI drivers of the node that they are like.
        """
        objects = (*self.server.all(ResourceSlice), *self.server.all(CSINode)) if like else ()
        for node in nodes:
            self.server.create(node)
            for published in published_by(node, like, objects):
                self.server.create(published)
            for item in self.server.all(DaemonSet):
                for pod in new_pods(item, 0, nodes=[node]).pods:
                    self.create_pod(pod)

    def node(self, name: str) -> Node:
        """Return a node as it was written, also if it is closed."""
        node = self.server.get(Node, "", name)
        pods = self.drained.get(name)
        return _with_pods(node, pods) if pods else node

    def write_node(self, node: Node) -> None:
        """Replace a node, which stays closed; its taints follow from its state."""
        if self.drained.get(node.metadata.name):
            self.drained[node.metadata.name] = str(node.status.allocatable.get(PODS, "0"))
            node = _with_pods(node, "0")
        self.server.update(with_state_taints(node))

    def cordon(self, name: str, *, on: bool = True) -> None:
        """Make a node unschedulable, or schedulable."""
        node = self.node(name)
        if not on:
            self.drained.pop(name, None)
        self.write_node(replace(node, spec=replace(node.spec, unschedulable=on)))

    def close(self, name: str) -> None:
        """Let a node take no more pods, whatever they tolerate, until it is uncordoned."""
        node = self.node(name)
        self.drained[name] = "0"
        self.write_node(node)

    def remove_node(self, name: str) -> list[Pod]:
        """Remove a node with its pods; return them."""
        pods = self.pods_on(name)
        self.drained.pop(name, None)
        self.server.delete(self.server.get(Node, "", name))
        for pod in pods:
            self.delete_pod(pod, for_good=is_daemon(pod))
        return pods

    # Pods.

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods on a node, in the order in which an API server lists them."""
        found = self.rehearsal.pods_on(node_name)
        return sorted(found, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))

    def delete_pod(self, pod: Pod, *, for_good: bool = False) -> None:
        """Delete a pod at once."""
        with self.deleting_for_good() if for_good else nullcontext():
            self.server.delete_pod(pod.metadata.namespace, pod.metadata.name)

    def change_pod(self, pod: Pod) -> None:
        """Give a pod another specification: a running one in place, a pending one in a new pod."""
        replacement = None if pod.spec.node_name else replacement_of(pod)
        if replacement is None:
            self.server.update(pod)
            return
        self.delete_pod(pod, for_good=True)
        self._succeed(pod, replacement)

    def last_successor(self, uid: str) -> str:
        """Return the uid of the last pod that replaced a pod, or of the pod itself."""
        return [uid, *self.successors_of(uid)][-1]

    def successors_of(self, uid: str) -> Iterator[str]:
        """Yield the uids of the pods that replaced a pod, one after another."""
        while uid in self.successors:
            uid = self.successors[uid]
            yield uid

    def has_node(self, uid: str) -> bool:
        """Whether a pod, or its replacement, is on a node."""
        found = self.pod(self.last_successor(uid))
        return found is not None and bool(found.spec.node_name)

    def pod(self, uid: str) -> Pod | None:
        """Return a pod, None if there is none."""
        key = self._keys.get(uid)
        return None if key is None else self.server.pod(key.namespace, key.name, uid)

    def pods(self) -> dict[str, Pod]:
        """Return all pods by uid."""
        return {uid_of(pod): pod for pod in self.server.all(Pod)}

    @property
    def evictions(self) -> list[Eviction]:
        """The pods that preemption evicted, in order."""
        return self.rehearsal.outcomes.evictions


def _applied(item: T, known: KubeObject) -> T:
    """Return an existing object after its manifest is applied: it keeps what controllers wrote."""
    before = known.metadata
    metadata = replace(
        before,
        labels={**before.labels, **item.metadata.labels},
        annotations={**before.annotations, **item.metadata.annotations},
        generation=before.generation + 1,
    )
    changed: Any = replace(item, metadata=metadata)
    status = getattr(known, "status", None)
    if status is not None and changed.status == type(status)():
        changed = replace(changed, status=status)
    for field in _BINDINGS.get(type(known), ()):
        if not getattr(changed.spec, field):
            kept = {field: getattr(cast("Any", known).spec, field)}
            changed = replace(changed, spec=replace(changed.spec, **kept))
    return cast("T", changed)


def published_by(node: Node, like: str, objects: Iterable[KubeObject]) -> Iterator[KubeObject]:
    """Yield what the drivers of a new node publish, as they did for the node that it is like.

    `objects` has the ResourceSlices and CSINodes of the cluster.
    """
    name = node.metadata.name
    for item in objects:
        if isinstance(item, CSINode) and item.metadata.name == like:
            yield replace(item, metadata=ObjectMeta(name=name))
        elif isinstance(item, ResourceSlice) and like and item.spec.node_name == like:
            # A pool of the other node's name would be another node's.
            pool = replace(item.spec.pool, name=f"{item.spec.pool.name}/{name}")
            metadata = ObjectMeta(name=f"{item.metadata.name}-{name}")
            spec = replace(item.spec, node_name=name, pool=pool)
            yield replace(item, metadata=metadata, spec=spec)


def names_of(cluster: TrialCluster) -> list[str]:
    """Return the names of the nodes."""
    return [key.name for key in cluster.server.store.keyed(NODES)]


def selected_nodes(cluster: TrialCluster, selector: str) -> list[str]:
    """Return the nodes that a label selector selects; "" selects all.

    Raises QuestionError if it cannot be parsed, or selects none.
    """
    if not selector:
        if everything := names_of(cluster):
            return everything
        raise QuestionError("the cluster has no nodes")
    try:
        compiled = parse_selector(selector)
    except SelectorError as error:
        raise QuestionError(f"{selector}: {error}") from error
    labels = {node.metadata.name: node.metadata.labels for node in cluster.server.all(Node)}
    found = [name for name, own in labels.items() if compiled.matches(own)]
    if not found:
        raise QuestionError(f"{selector}: no node has these labels{_near_label(selector, labels)}")
    return found


def _near_label(selector: str, labels: Mapping[str, Mapping[str, str]]) -> str:
    """Return a hint at a similar label of nodes, "" if there is none."""
    pairs = {f"{key}={value}" for own in labels.values() for key, value in own.items()}
    hint = did_you_mean(selector, sorted(pairs), "", most=1)
    return f"; {hint}" if hint else ""


def _with_pods(node: Node, pods: str) -> Node:
    allocatable = {**node.status.allocatable, PODS: pods}
    return replace(node, status=replace(node.status, allocatable=allocatable))


def _is_going(pod: Pod) -> bool:
    return bool(pod.metadata.deletion_timestamp)


def _is_same_pod(now: KubeObject, before: KubeObject | None) -> bool:
    return (
        before is not None
        and now.metadata.uid == before.metadata.uid
        and cast("Pod", now).spec.node_name == cast("Pod", before).spec.node_name
    )
