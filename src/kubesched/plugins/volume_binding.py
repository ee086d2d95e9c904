"""VolumeBinding: place pods where their volumes are or can be created, and bind the volumes.

Upstream: pkg/scheduler/framework/plugins/volumebinding (v1.36)
Reads:    pod.spec.volumes; claims, volumes, storage classes, CSINodes, CSIDrivers and
          CSIStorageCapacities; nodes.names, nodes.labels
Rejects:  UnschedulableAndUnresolvable, because evicting a pod does not move a volume.
Differs:  `scheduling_stage_error_total` counts an error in filtering once, where upstream counts it
          for each node that its workers reach before they stop. In scoring, a pool that reports
          only its largest volume counts as having no capacity, and a claim that names its class
          only in an annotation counts as class ""; upstream crashes on both. If Reserve is
          disabled and PreBind is not, binding fails for pods with claims; upstream's fails for
          those without.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Pod
from kubesched.api.csi_translation import MIGRATED_PLUGINS
from kubesched.api.field_errors import ConfigError, FieldError, child, invalid
from kubesched.api.integers import Int64, quotient, wrap
from kubesched.api.quantity import Quantity, value
from kubesched.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from kubesched.api.volume import PersistentVolumeClaim
from kubesched.config.args import DEFAULT_SHAPE, PluginArgs, UtilizationShapePoint, decode_args
from kubesched.config.validation import validate_function_shape
from kubesched.framework.cluster_event import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Action,
    ClusterEventWithHint,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    UNSIGNED,
    FilterPlugin,
    NeededKind,
    NoState,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from kubesched.framework.services import VolumeSchedulingStage
from kubesched.framework.status import SKIP, SUCCESS, NodeToStatus, Status, failure, unresolvable
from kubesched.plugins.shared.score_curve import PERCENT, ScoreCurve
from kubesched.plugins.volumes.assume_cache import AssumeError
from kubesched.plugins.volumes.binder import BindingCheck, VolumeBinder, VolumeBindingError
from kubesched.plugins.volumes.claims import (
    BY_CLAIM,
    STORAGE,
    PodClaim,
    after_claim_change,
    claim_not_found,
    claims_of,
    class_of_claim,
    has_claims,
    is_fully_bound,
    no_binding_mode,
    ownership_error,
    waits_for_consumer,
)
from kubesched.plugins.volumes.decisions import Decider, PodVolumes, StorageColumns
from kubesched.plugins.volumes.describing import (
    describe_provision,
    describe_unbound_claims,
    kinds_of_claims,
    kinds_of_new_volumes,
)
from kubesched.plugins.volumes.provisioning import volume_size_max
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"
_LOST: Final = "Lost"
_NEVER_MADE: Final = NoState(failure("not found"))


class VolumeBindingArgs(PluginArgs, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The plugin's arguments.

    Attributes:
        bind_timeout_seconds: The timeout of binding.
        shape: The score by utilization; only with the gate StorageCapacityScoring.
    """

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


@dataclass(slots=True, eq=False)
class PodBinding:
    """The volumes of one pod during its cycle.

    Attributes:
        snapshot: The cluster.
        decider: Decides what to do with the claims per row.
        was_filtered: Whether `filter` ran; otherwise nothing is reserved.
        all_bound: Whether all claims are bound.
        reserved: Node name -> the bindings and provisions assumed for it.
    """

    snapshot: Snapshot
    decider: Decider
    was_filtered: bool = False
    all_bound: bool = False
    reserved: dict[str, PodVolumes] = field(default_factory=dict)


class VolumeBinding(
    PreFilterPlugin[PodBinding],
    FilterPlugin[PodBinding],
    PreScorePlugin[PodBinding],
    ScorePlugin[PodBinding],
    ReservePlugin,
    PreBindPlugin,
):
    """Match claims with volumes and nodes; bind them when the pod has a node."""

    name: ClassVar = "VolumeBinding"
    # Only answers for pods without claims are cached, and these depend on nothing.
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    survivors_only: ClassVar = True
    allows_parallel: ClassVar = True
    no_filter_state: ClassVar = "not found"
    no_score_state: ClassVar = "not found"

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args = args
        self._scores = handle.feature_gates.enabled("StorageCapacityScoring")
        self._curve = ScoreCurve(args.shape or DEFAULT_SHAPE)
        self._binder = VolumeBinder()
        self._columns = StorageColumns(self._binder.volumes)

    @classmethod
    def decode_args(
        cls, raw: dict[str, object] | None, handle: Handle, path: str
    ) -> VolumeBindingArgs:
        """Decode and validate; `shape` is allowed only if it has an effect."""
        args = decode_args(VolumeBindingArgs, raw, path)
        scores = handle.feature_gates.enabled("StorageCapacityScoring")
        errors = _errors_of(args, path, scores=scores)
        if errors:
            raise ConfigError(errors)
        return args

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes of storage objects and nodes."""
        add_update = Action.ADD | Action.UPDATE
        return (
            retry_on(STORAGE_CLASS, add_update, after_storage_class_change),
            retry_on(PERSISTENT_VOLUME_CLAIM, add_update, after_claim_change, filing=BY_CLAIM),
            retry_on(PERSISTENT_VOLUME, add_update),
            retry_on(NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            retry_on(CSI_NODE, add_update, after_csi_node_change),
            retry_on(CSI_DRIVER, Action.UPDATE, after_csi_driver_change),
            retry_on(CSI_STORAGE_CAPACITY, add_update, after_capacity_change),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return () for pods without claims; UNSIGNED with claims, as other objects matter."""
        return UNSIGNED if has_claims(pod.spec.volumes) else ()

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[PodBinding]:
        """Reject pods whose claims cannot be served on any node; classify the others' claims."""
        if not has_claims(pod.spec.volumes):
            return PRE_FILTER_SKIP
        objects, used = snapshot.objects, claims_of(pod.pod)
        error = _claims_error(pod.pod, used, objects)
        if error:
            return PreFilterResult(status=unresolvable(error))
        bound: list[PersistentVolumeClaim] = []
        delayed: list[PersistentVolumeClaim] = []
        is_immediate = False
        for one in used:
            claim = self._binder.claims.get(objects, one.name, pod.namespace)
            assert claim is not None, f"claim {one.name} was there a moment ago"
            if is_fully_bound(claim):
                bound.append(claim)
                continue
            waits = waits_for_consumer(claim, objects)
            if waits is None:
                return PreFilterResult(status=failure(no_binding_mode(class_of_claim(claim))))
            if waits and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                is_immediate = True
        if is_immediate:
            return PreFilterResult(status=unresolvable(_UNBOUND_IMMEDIATE))
        decider = Decider(bound, delayed, snapshot, self._columns)
        return PreFilterResult(PodBinding(snapshot, decider))

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return claims and the kinds that their volumes depend on."""
        yield from kinds_of_claims(pod.pod, snapshot.objects)
        yield from kinds_of_new_volumes(pod.pod, snapshot.objects)

    def describe_rejection(self, pod: PodInfo, snapshot: Snapshot) -> str:
        """Return the claims that another controller must bind first."""
        return describe_unbound_claims(pod.pod, snapshot.objects)

    def ignores(self, state: PodBinding, pod: PodInfo, other: PodInfo) -> bool:
        """Return True: answers depend on claims, volumes and nodes, not on pods."""
        return True

    def filter(self, state: PodBinding, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows that cannot reach the bound volumes or serve the unbound claims."""
        state.was_filtered = True
        statuses = state.decider.statuses_of(nodes)
        failures = [one for one in statuses.statuses[1:] if not one.is_rejected]
        if failures and any(one in failures for one, _ in statuses.counts):
            self._count_failure(VolumeSchedulingStage.PREDICATE)
        return statuses

    def describe(self, state: PodBinding, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the claims that cannot be served on the row, and their volumes' requirements."""
        return state.decider.describe(nodes)

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[PodBinding]:
        """Skip unless storage is scored."""
        if not self._scores:
            return PreScoreResult(status=SKIP)
        state = _state_of(cycle)
        if isinstance(state, NoState):
            return PreScoreResult(status=state.status)
        return PreScoreResult(state)

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PodBinding | NoState | None:
        """Return the state of `pre_filter`, or None if storage is not scored."""
        state = _state_of(cycle)
        return None if isinstance(state, NoState) and not self._scores else state

    def score(self, state: PodBinding | None, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return, as int64 per row, the score by utilization; 0 if there is nothing to bind."""
        scores = np.zeros(len(nodes), np.int64)
        if state is None or not state.was_filtered:
            return scores
        decisions, rows = state.decider.decide(), state.decider.rows_of(nodes)
        for at in np.flatnonzero(decisions.statuses.passed[rows]).tolist():
            scores[at] = score_pod_volumes(decisions.pod_volumes(rows.item(at)), self._curve)
        return scores

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Assume the volumes and claims decided for the node, so that later cycles use them."""
        state = _state_of(cycle)
        if not isinstance(state, PodBinding):
            return SUCCESS if state is None else state.status
        objects = state.snapshot.objects
        if not state.was_filtered or self._binder.is_all_bound(objects, pod.pod):
            state.all_bound = True
            return SUCCESS
        row = state.snapshot.nodes.row_of.get(node_name)
        if row is None:
            return failure(f'node "{node_name}" not found')
        decisions = state.decider.decide()
        if not decisions.statuses[row].is_success:
            return decisions.statuses[row]
        state.decider.forget()
        # Kept even if assuming fails, so that `unreserve` restores the same objects.
        state.reserved[node_name] = decided = decisions.pod_volumes(row)
        try:
            state.reserved[node_name] = self._binder.assume(objects, node_name, decided)
        except AssumeError as error:
            self._count_failure(VolumeSchedulingStage.ASSUME)
            return failure(str(error))
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Drop the assumed objects."""
        state = _state_of(cycle)
        if isinstance(state, PodBinding) and node_name in state.reserved:
            self._binder.revert(state.reserved[node_name])

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip if everything is bound."""
        state = _state_of(cycle)
        if not isinstance(state, PodBinding):
            return SKIP if state is None else state.status
        if state.all_bound:
            return SKIP
        if node_name not in state.reserved:
            return failure(f'no pod volume found for node "{node_name}"')
        return SUCCESS

    def describe_wait(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Sequence[str]:
        """Return the claims whose volumes must be provisioned."""
        state = _state_of(cycle)
        if not isinstance(state, PodBinding):
            return ()
        decided = state.reserved.get(node_name)
        if decided is None:
            row = state.snapshot.nodes.row_of[node_name]
            decided = state.decider.decide().pod_volumes(row)
        return [
            describe_provision(provision.claim, state.snapshot.objects)
            for provision in decided.dynamic_provisions
        ]

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write the assumed objects, and wait until the volumes are bound."""
        status = self.pre_bind_pre_flight(cycle, pod, node_name)
        state = _state_of(cycle)
        if not isinstance(state, PodBinding) or not status.is_success:
            return SUCCESS if status.is_skip else status
        writer = self.handle.services.volume_writer
        if writer is None:
            return failure("volumes cannot be bound: there is no API to write them to")
        check = BindingCheck(pod.pod, node_name, state.snapshot, writer)
        is_bound = False
        try:
            status = await self._bind(state, check)
            is_bound = status.is_success
            return status
        finally:
            # Also if the task is cancelled.
            if not is_bound:
                self._count_failure(VolumeSchedulingStage.BIND)

    async def _bind(self, state: PodBinding, check: BindingCheck) -> Status:
        node_name = check.node_name
        assumed = state.reserved[node_name]
        written, error = await self._binder.write(check.writer, assumed)
        state.reserved[node_name] = PodVolumes(written.static_bindings, assumed.dynamic_provisions)
        if error:
            return failure(error)
        try:
            await check.wait_until_bound(written, self.args.bind_timeout_seconds)
        except VolumeBindingError as problem:
            return failure(f"binding volumes: {problem}")
        # The informer has newer versions now.
        self._binder.revert(assumed)
        return SUCCESS

    def _count_failure(self, stage: VolumeSchedulingStage) -> None:
        self.handle.services.observer.volume_scheduling_failed(stage)


def _state_of(cycle: CycleState) -> PodBinding | NoState | None:
    """Return the pod's volumes, None if pre_filter skipped, NoState if it did not run."""
    state = cycle.filter_states.get(VolumeBinding.name, _NEVER_MADE)
    return state if state is None or isinstance(state, PodBinding) else _NEVER_MADE


def _claims_error(pod: Pod, claims: Iterable[PodClaim], objects: Objects) -> str:
    """Return upstream's error if the pod cannot use its claims, or ""."""
    for used in claims:
        name = used.name
        claim = objects.get(PersistentVolumeClaim, name, pod.metadata.namespace)
        if claim is None:
            if used.is_ephemeral:
                return (
                    "waiting for ephemeral volume controller to create the "
                    f'persistentvolumeclaim "{name}"'
                )
            return claim_not_found(name)
        if claim.status.phase == _LOST:
            volume = claim.spec.volume_name
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if used.is_ephemeral and (error := ownership_error(pod, claim)):
            return error
    return ""


def _errors_of(args: VolumeBindingArgs, path: str, *, scores: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if args.bind_timeout_seconds < 0:
        words = "invalid BindTimeoutSeconds, should not be a negative value"
        place = child(path, "bindTimeoutSeconds")
        errors.append(invalid(place, args.bind_timeout_seconds, words))
    if scores:
        errors += validate_function_shape(args.shape or DEFAULT_SHAPE, child(path, "shape"))
    elif args.shape is not None:
        points = [{"utilization": p.utilization, "score": p.score} for p in args.shape]
        words = (
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        )
        errors.append(invalid(child(path, "shape"), points, words))
    return errors


def after_storage_class_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the class is new, or its allowed topologies changed."""
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return True
    return old.allowed_topologies != new.allowed_topologies


def after_csi_node_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the CSINode is new, or its migrated plugins changed."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    before = old.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return before != new.metadata.annotations.get(MIGRATED_PLUGINS, "")


def after_csi_driver_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether a driver of the pod's inline volumes stopped reporting its capacity."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return True
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return False
    driver = new.metadata.name
    return any(
        volume.csi is not None and volume.csi.driver == driver for volume in pod.spec.volumes
    )


def after_capacity_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the pool is new, or has room for larger volumes."""
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return True
    before: Quantity | None = volume_size_max(old)
    now: Quantity | None = volume_size_max(new)
    return now is not None and (before is None or value(now) > value(before))


# The score of a node, by the utilization of the pod's volumes or storage pools.


def score_pod_volumes(volumes: PodVolumes, curve: ScoreCurve) -> int:
    """Return the mean score of the storage classes, 0 to 100; 0 if there are none."""
    classes = _of_bindings(volumes) if volumes.static_bindings else _of_provisions(volumes)
    if not classes:
        return 0
    total = sum(_score(requested, capacity, curve) for requested, capacity in classes.values())
    # Halves are rounded up.
    return (2 * total + len(classes)) // (2 * len(classes))


def _score(requested: int, capacity: int, curve: ScoreCurve) -> int:
    if capacity == 0 or requested > capacity:
        return curve.at(PERCENT)
    return curve.at(quotient(wrap(requested * PERCENT), capacity))


def _of_bindings(volumes: PodVolumes) -> dict[str, tuple[int, int]]:
    """Return class -> sums of requests and capacities, in bytes."""
    classes: dict[str, tuple[int, int]] = {}
    for binding in volumes.static_bindings:
        spec = binding.volume.spec
        requested, capacity = classes.get(spec.storage_class_name, (0, 0))
        requested += value(binding.claim.spec.resources.requests.get(STORAGE, 0))
        capacity += value(spec.capacity.get(STORAGE, 0))
        classes[spec.storage_class_name] = (wrap(requested), wrap(capacity))
    return classes


def _of_provisions(volumes: PodVolumes) -> dict[str, tuple[int, int]]:
    """Return class -> sum of requests, and the free capacity of its pool, in bytes."""
    classes: dict[str, tuple[int, int]] = {}
    for one in volumes.dynamic_provisions:
        if one.pool is None:
            continue
        name = one.claim.spec.storage_class_name or ""
        requested = value(one.claim.spec.resources.requests.get(STORAGE, 0))
        # The same pool serves all claims of a class, so its capacity counts once.
        capacity = 0 if one.pool.capacity is None else value(one.pool.capacity)
        classes[name] = (wrap(classes.get(name, (0, 0))[0] + requested), capacity)
    return classes
