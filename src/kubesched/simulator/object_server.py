"""ObjectServer is the simulated API server's storage: synchronous, without I/O.

It sets defaults, admits, binds and deletes gracefully, and refuses what the real one refuses.
Latency, injected faults and watches are elsewhere.

Upstream: pkg/registry/core/pod/storage/storage.go; pkg/api/v1/pod/util.go, UpdatePodCondition;
          apimachinery/pkg/api/meta, SetStatusCondition; pkg/apis/core/v1/defaults.go;
          plugin/pkg/admission/{priority,defaulttolerationseconds} (v1.36)
Differs:  validation, quota, limit ranges, service accounts, finalizers and owners' garbage
          collection are left out; generated names end in a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, TypeVar, cast

from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import FINISHED, Node, Pod, PodCondition, PodStatus, Toleration
from kubesched.api.errors import ApiError, ConflictError
from kubesched.api.meta import Condition, KubeObject, ObjectMeta
from kubesched.api.scheduling import PodGroup, PriorityClass
from kubesched.api.storage import StorageClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import REGION, ZONE
from kubesched.cluster.controllers.claims import default_class_name
from kubesched.cluster.server import kind_name
from kubesched.cluster.store import Key, Store
from kubesched.simulator.defaults import PriorityClasses, pod_with_defaults, with_defaults
from kubesched.simulator.virtual_loop import timestamp

# Conditions.


def with_condition(pod: Pod, patch: ConditionPatch, now: float) -> Pod:
    """Return the pod with a condition; the same object if it has the condition already.

    The transition time changes only with the status.
    """
    status = pod.status
    conditions = _patched(status.conditions, patch, now, pod.metadata.generation)
    if conditions is status.conditions:
        return pod
    return replace(pod, status=replace(status, conditions=conditions))


def _patched(
    conditions: tuple[PodCondition, ...],
    patch: ConditionPatch,
    now: float,
    observed_generation: int,
) -> tuple[PodCondition, ...]:
    """Return conditions with that of the patch; the same if it is there already.

    A generation of 0 is left out.
    """
    if patch.is_in(conditions):
        return conditions
    return patch.set_in(conditions, PodCondition, observed_generation, timestamp(now))


def with_group_condition(
    group: PodGroup, patch: ConditionPatch, generation: int, now: float
) -> PodGroup:
    """Return the group with a condition; the same object if it has the condition already."""
    conditions = patch.set_in(group.status.conditions, Condition, generation, timestamp(now))
    if conditions == group.status.conditions:
        return group
    return replace(group, status=replace(group.status, conditions=conditions))


# Admission.

_GRACE_SECONDS: Final = 30
"""How long a pod may take to stop, unless it says otherwise."""

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_DEFAULT_TOLERATIONS: Final = tuple(
    Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
    for key in (NOT_READY, UNREACHABLE)
)
_GATED: Final = ConditionPatch(
    "PodScheduled",
    "False",
    "SchedulingGated",
    "Scheduling is blocked due to non-empty scheduling gates",
)


def complete_pod(pod: Pod, classes: PriorityClasses, now: float) -> Pod:
    """Return the pod as it is stored; raises ApiError if its priority class does not exist."""
    pod = pod_with_defaults(pod, classes)
    if pod.spec.priority is None and pod.spec.priority_class_name:
        raise ApiError(
            403,
            "Forbidden",
            f'pods "{pod.metadata.name}" is forbidden: no PriorityClass with name '
            f"{pod.spec.priority_class_name} was found",
        )
    spec = pod.spec
    grace = spec.termination_grace_period_seconds
    spec = replace(
        spec,
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        restart_policy=spec.restart_policy or "Always",
        scheduler_name=spec.scheduler_name or "default-scheduler",
        termination_grace_period_seconds=_GRACE_SECONDS if grace is None else grace,
        tolerations=spec.tolerations + _default_tolerations(spec.tolerations),
    )
    status = replace(pod.status, phase=pod.status.phase or "Pending")
    if spec.scheduling_gates:
        status = replace(status, conditions=_patched(status.conditions, _GATED, now, 0))
    return replace(pod, spec=spec, status=status)


def _default_tolerations(given: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Tolerate a failed node for five minutes, unless the pod has such tolerations."""
    keys = {each.key for each in given if each.effect in ("NoExecute", "")}
    if not keys:
        return _DEFAULT_TOLERATIONS
    return tuple([each for each in _DEFAULT_TOLERATIONS if not keys & {each.key, ""}])


# The server.

T = TypeVar("T", bound=KubeObject)

PODS: Final = "pods"
NODES: Final = "nodes"
_SCHEDULED: Final = ConditionPatch("PodScheduled", "True", "", "")
_READY: Final = ConditionPatch("Ready", "True", "", "")
_NOT_READY: Final = ConditionPatch("Ready", "False", "", "")
_WITHOUT_GENERATION: Final = (Node, PersistentVolume, PersistentVolumeClaim)
TOPOLOGY_LABELS: Final[tuple[str, ...]] = (ZONE, REGION)
# Enough for a watcher that gets changes within milliseconds.
_CHANGES_KEPT: Final = 2_000


def key_of(item: KubeObject) -> Key:
    """Return where an object is stored."""
    return Key(kind_name(type(item)), item.metadata.namespace, item.metadata.name)


def _stamp(item: KubeObject, version: int) -> KubeObject:
    return replace(item, metadata=replace(item.metadata, resource_version=str(version)))


class ObjectServer:
    """The objects in a store, and the requests on them; `now` returns the time in seconds."""

    starts_at_once: ClassVar = False
    """Whether a kubelet starts a pod in the write that binds it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.store: Store[KubeObject] = Store(_stamp, _CHANGES_KEPT)
        self.now = now
        self._created = 0
        self._generated: dict[tuple[str, str], int] = {}
        self._classes: PriorityClasses | None = None

    def timestamp(self) -> str:
        """Return the time as Kubernetes writes it."""
        return timestamp(self.now())

    # Objects of any kind.

    def create(self, item: T) -> T:
        """Add an object, with the API server's defaults.

        Raises AlreadyExistsError if there is one of that name, ApiError if it is not admitted.
        """
        self._created += 1
        metadata = replace(
            item.metadata,
            name=item.metadata.name or self._generated_name(item.metadata),
            uid=item.metadata.uid or f"00000000-0000-4000-8000-{self._created:012x}",
            creation_timestamp=self.timestamp(),
            generation=0 if isinstance(item, _WITHOUT_GENERATION) else 1,
        )
        completed: KubeObject = replace(item, metadata=metadata)
        classes = self._priority_classes()
        if isinstance(completed, Pod):
            completed = complete_pod(completed, classes, self.now())
        else:
            storage_class = default_class_name(one.metadata for one in self.all(StorageClass))
            completed = with_defaults(completed, classes, storage_class)
        created = self.store.create(key_of(completed), completed)
        if isinstance(created, PriorityClass):
            self._classes = None
        return cast("T", created)

    def _generated_name(self, metadata: ObjectMeta) -> str:
        prefix = (metadata.namespace, metadata.generate_name)
        number = self._generated[prefix] = self._generated.get(prefix, 0) + 1
        return f"{metadata.generate_name}{number:05d}"

    def _priority_classes(self) -> PriorityClasses:
        if self._classes is None:
            self._classes = PriorityClasses(self.all(PriorityClass))
        return self._classes

    def update(self, item: T) -> T:
        """Replace an object without checking its version; raises NotFoundError if there is none."""
        return cast("T", self.store.update(key_of(item), item))

    def delete(self, item: KubeObject) -> None:
        """Remove an object, if it is there."""
        key = key_of(item)
        if self.store.find(key) is not None:
            self.store.delete(key)
            if isinstance(item, PriorityClass):
                self._classes = None

    def all(self, type_: type[T]) -> tuple[T, ...]:
        """Return the objects of a class, in order of creation."""
        return cast("tuple[T, ...]", self.store.list(kind_name(type_)))

    def find(self, type_: type[T], namespace: str, name: str) -> T | None:
        """Return an object of a class, None if there is none."""
        return cast("T | None", self.store.find(Key(kind_name(type_), namespace, name)))

    def get(self, type_: type[T], namespace: str, name: str) -> T:
        """Return an object of a class; raises NotFoundError if there is none."""
        return cast("T", self.store.get(Key(kind_name(type_), namespace, name)))

    def node(self, name: str) -> Node | None:
        """Return a node, None if there is none."""
        return self.find(Node, "", name)

    def pod(self, namespace: str, name: str, uid: str = "") -> Pod | None:
        """Return a pod, None if there is none or, with `uid`, only another of that name."""
        found = self.find(Pod, namespace, name)
        return None if found is None or (uid and found.metadata.uid != uid) else found

    # Pods.

    def _require_pod(self, namespace: str, name: str, uid: str) -> Pod:
        pod = self.get(Pod, namespace, name)
        if uid and pod.metadata.uid != uid:
            raise ConflictError(
                f'Operation cannot be fulfilled on pods "{name}": Precondition failed: UID in '
                f"precondition: {uid}, UID in object meta: {pod.metadata.uid}"
            )
        return pod

    def bind(self, namespace: str, name: str, uid: str, node_name: str) -> Pod:
        """Assign a pod to a node, which need not exist.

        `uid` is which pod it must be, if not empty. Raises NotFoundError if there is no such pod,
        ConflictError if it is another pod, goes away, has a node, or is gated.
        """
        pod = self._require_pod(namespace, name, uid)
        reason = _why_not_bound(pod)
        if reason:
            raise ConflictError(
                f'Operation cannot be fulfilled on pods/binding "{name}": pod {name} {reason}'
            )
        metadata, status = self._metadata_on(pod, node_name), pod.status
        now = self.now()
        conditions = _patched(status.conditions, _SCHEDULED, now, 0)
        status = replace(status, nominated_node_name="", conditions=conditions)
        if self.starts_at_once:
            status = _in_phase(status, "Running", now, metadata.generation)
        spec = replace(pod.spec, node_name=node_name)
        return self.update(replace(pod, metadata=metadata, spec=spec, status=status))

    def _metadata_on(self, pod: Pod, node_name: str) -> ObjectMeta:
        """Return a bound pod's metadata, with the zone and region of its node if it has any."""
        node = self.node(node_name)
        found = node.metadata.labels if node is not None else {}
        topology = {name: found[name] for name in TOPOLOGY_LABELS if name in found}
        if not topology:
            return pod.metadata
        return replace(pod.metadata, labels={**pod.metadata.labels, **topology})

    def patch_status(
        self, pod: Pod, condition: ConditionPatch | None, nominated_node_name: str | None
    ) -> Pod:
        """Set a condition and the nomination of a pod; nothing is written if nothing changes.

        Raises NotFoundError if there is no such pod, ConflictError if it is another pod.
        """
        metadata = pod.metadata
        stored = self._require_pod(metadata.namespace, metadata.name, metadata.uid)
        patched = stored if condition is None else with_condition(stored, condition, self.now())
        nominated = patched.status.nominated_node_name
        if nominated_node_name is not None and nominated_node_name != nominated:
            status = replace(patched.status, nominated_node_name=nominated_node_name)
            patched = replace(patched, status=status)
        return stored if patched is stored else self.update(patched)

    def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> PodGroup:
        """Set a condition that is about this group; nothing is written if nothing changes.

        Raises NotFoundError if there is no such group.
        """
        metadata = group.metadata
        stored = self.get(PodGroup, metadata.namespace, metadata.name)
        patched = with_group_condition(stored, condition, metadata.generation, self.now())
        return stored if patched is stored else self.update(patched)

    def delete_pod(
        self, namespace: str, name: str, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Start deleting a pod; one without a running kubelet is removed at once.

        `uid` is which pod it must be, if not empty. Without `grace_seconds`, the pod's own period
        counts. Raises NotFoundError if there is no such pod, ConflictError if it is another pod.
        """
        pod = self._require_pod(namespace, name, uid)
        grace = grace_seconds
        if grace is None:
            grace = pod.spec.termination_grace_period_seconds or 0
        if not pod.spec.node_name or pod.status.phase in FINISHED:
            grace = 0
        metadata = pod.metadata
        left = metadata.deletion_grace_period_seconds
        if metadata.deletion_timestamp and grace and (left or 0) <= grace:
            return
        if grace or left != 0:
            metadata = replace(
                metadata,
                deletion_timestamp=timestamp(self.now() + grace),
                deletion_grace_period_seconds=grace,
                generation=metadata.generation + (not metadata.deletion_timestamp),
            )
            pod = self.update(replace(pod, metadata=metadata))
        if not grace:
            self.delete(pod)

    def set_phase(self, pod: Pod, phase: str) -> Pod:
        """Report a pod's progress, as its kubelet does."""
        status = _in_phase(pod.status, phase, self.now(), pod.metadata.generation)
        return self.update(replace(pod, status=status))


def _in_phase(status: PodStatus, phase: str, now: float, generation: int) -> PodStatus:
    runs = phase == "Running"
    return replace(
        status,
        phase=phase,
        start_time=timestamp(now) if runs and not status.start_time else status.start_time,
        conditions=_patched(status.conditions, _READY if runs else _NOT_READY, now, generation),
    )


def _why_not_bound(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp:
        return "is being deleted, cannot be assigned to a host"
    if pod.spec.node_name:
        return f'is already assigned to node "{pod.spec.node_name}"'
    return "has non-empty .spec.schedulingGates" if pod.spec.scheduling_gates else ""
