"""DynamicResources: allocate devices to the ResourceClaims of pods.

Upstream: pkg/scheduler/framework/plugins/dynamicresources (v1.36)
Reads:    pod.spec.resourceClaims, pod requests; ResourceClaims, ResourceSlices, DeviceClasses;
          nodes.metadata, nodes.allocatable
Rejects:  UnschedulableAndUnresolvable, because evicting a pod does not free a device at once.
Differs:  the search for devices ends after a number of tries proportional to `filterTimeout`; the
          claims of pod groups and node allocatable resources by claims, both alpha, are not
          supported; pods of a group share pending allocations in the group's next cycle, too.
          PostFilter does not wait for its write, so a failure is logged and not reported.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import ceil
from typing import ClassVar, Final
from uuid import UUID

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.api.core import Pod
from kubesched.api.field_errors import ConfigError, FieldError, child, forbidden, invalid
from kubesched.api.go_text import go_duration
from kubesched.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from kubesched.config.args import PluginArgs, decode_args
from kubesched.config.decoding import DurationSeconds
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cluster_event import (
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Action,
    ClusterEventWithHint,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.dra.devices import (
    NodeSelectorError,
    check_node_selector,
    device_classes_of,
    needed_classes,
    slices_with_taints,
    with_taints,
)
from kubesched.framework.dra.pools import PoolIndex
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    UNSIGNED,
    FilterPlugin,
    NeededKind,
    NoState,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Scope,
    ScorePlugin,
    normalize_scores,
)
from kubesched.framework.pod_groups import pod_group_name_of
from kubesched.framework.services import ClaimWriter
from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.plugins.dynamic_resources.allocator import Allocator
from kubesched.plugins.dynamic_resources.binding import (
    ClaimBinder,
    ClaimBindingError,
    is_timed_out,
    with_finalizer,
)
from kubesched.plugins.dynamic_resources.claims import (
    BY_CLAIM,
    ClaimsNotReadyError,
    GetClaim,
    after_claim_change,
    after_pod_change,
    can_be_deallocated,
    has_binding_conditions,
    is_reserved_for,
    pod_resource_claims,
)
from kubesched.plugins.dynamic_resources.extended_resources import (
    ExtendedResources,
    is_in_memory,
    new_special_claim,
    requested_resources,
)
from kubesched.plugins.dynamic_resources.node_devices import DeviceMatcher, Features
from kubesched.plugins.dynamic_resources.remembered_searches import RememberedSearches
from kubesched.plugins.dynamic_resources.results import number_shares
from kubesched.plugins.dynamic_resources.state import ClaimInformation, DynamicResourcesState
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import ObjectName, Objects
from kubesched.snapshot.pod_info import PodInfo, uid_of
from kubesched.snapshot.snapshot import Snapshot

_FILTER_TIMEOUT_SECONDS: Final = 10.0
_BINDING_TIMEOUT_SECONDS: Final = 600.0
_TRIES_PER_SECOND: Final = 200_000

_NO_STATE: Final = failure("not found")
_NO_CLAIMS: Final = DynamicResourcesState()
"""The state of every pod without claims; never changed."""


class DynamicResourcesArgs(PluginArgs, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments.

    Attributes:
        filter_timeout_seconds: The timeout of the search for devices on one node; 0 is none.
        binding_timeout_seconds: How long devices may take to become ready.
    """

    filter_timeout_seconds: DurationSeconds | None = msgspec.field(
        default=None, name="filterTimeout"
    )
    binding_timeout_seconds: DurationSeconds | None = msgspec.field(
        default=None, name="bindingTimeout"
    )


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin[DynamicResourcesState],
    FilterPlugin[DynamicResourcesState],
    PostFilterPlugin,
    ScorePlugin[DynamicResourcesState],
    ReservePlugin,
    PreBindPlugin,
):
    """Allocate claims in Filter, and write them in PreBind."""

    name: ClassVar = "DynamicResources"
    # Only pods without devices are signed, and their answers depend on nothing.
    scope: ClassVar = Scope.NODE
    signed_kinds: ClassVar = (DeviceClass,)
    survivors_only: ClassVar = True
    allows_parallel: ClassVar = True
    no_filter_state: ClassVar = _NO_STATE.error

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        enabled = handle.feature_gates.enabled
        self._extended_resources = enabled("DRAExtendedResource")
        self._has_pod_groups = enabled("GenericWorkload")
        self._taint_rules = enabled("DRADeviceTaintRules")
        self._features = Features(
            prioritized_list=enabled("DRAPrioritizedList"),
            partitionable_devices=enabled("DRAPartitionableDevices"),
            device_taints=enabled("DRADeviceTaints"),
            binding_conditions=_has_binding_conditions(handle.feature_gates),
            consumable_capacity=enabled("DRAConsumableCapacity"),
        )
        timeout = args.filter_timeout_seconds
        if not enabled("DRASchedulerFilterTimeout"):
            timeout = 0.0
        elif timeout is None:
            timeout = _FILTER_TIMEOUT_SECONDS
        # Rounded up, because 0 tries mean no limit.
        self._tries_max = ceil(timeout * _TRIES_PER_SECOND)
        self._binding_timeout_seconds = args.binding_timeout_seconds or _BINDING_TIMEOUT_SECONDS
        self._tracker = handle.services.claim_tracker
        # What searches read of the cluster, with the versions that it was made from.
        self._searched: tuple[object, RememberedSearches, DeviceMatcher] | None = None
        self._changed_slices: ChangeReader[ObjectName] = ChangeReader()

    @property
    def _writer(self) -> ClaimWriter | None:
        return self.handle.services.claim_writer

    @classmethod
    def decode_args(
        cls, raw: dict[str, object] | None, handle: Handle, path: str
    ) -> DynamicResourcesArgs:
        """Decode and validate the arguments. Raises ConfigError with every field error."""
        args = decode_args(DynamicResourcesArgs, raw, path)
        if errors := tuple(_errors_of(args, handle.feature_gates, path)):
            raise ConfigError(errors)
        return args

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes of slices, classes, claims, pods and nodes."""
        add_update = Action.ADD | Action.UPDATE
        node_actions = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        return (
            retry_on(NODE, node_actions),
            retry_on(RESOURCE_CLAIM, add_update, self._after_claim, filing=BY_CLAIM),
            retry_on(POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._after_pod),
            retry_on(DEVICE_CLASS, add_update),
            retry_on(RESOURCE_SLICE, add_update),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return () for pods without devices; otherwise UNSIGNED."""
        if pod.spec.resource_claims:
            return UNSIGNED
        objects = self.handle.objects
        if not objects.any(DeviceClass):
            return None
        classes = device_classes_of(objects)
        return UNSIGNED if any(map(classes.backs, pod.template.requests)) else None

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Reject the pod until all its claims exist."""
        if not pod.spec.resource_claims:
            return SUCCESS
        try:
            pod_resource_claims(pod.pod, self._getter(snapshot.objects))
        except ClaimsNotReadyError as error:
            return unresolvable(str(error))
        return SUCCESS

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[DynamicResourcesState]:
        """Find the claims, and the devices if a claim must be allocated."""
        names = requested_resources(pod.template.requests) if self._extended_resources else []
        if not pod.spec.resource_claims and not names:
            return PreFilterResult(_NO_CLAIMS, SKIP)
        try:
            claims = pod_resource_claims(pod.pod, self._getter(snapshot.objects))
        except ClaimsNotReadyError as error:
            return PreFilterResult(_NO_CLAIMS, unresolvable(str(error)))
        extended = self._extended(pod.pod, names, snapshot.objects)
        every = [ClaimInformation(claim) for claim in claims]
        if extended is not None:
            every.append(ClaimInformation(extended.claim, is_special=True))
        if not every:
            return PreFilterResult(_NO_CLAIMS, SKIP)
        problem = next(self._problems(every, self._group_of(pod.pod), snapshot.objects), None)
        if problem is not None:
            return PreFilterResult(_NO_CLAIMS, problem)
        is_timed_out = self._is_timed_out if self._features.binding_conditions else None
        state = DynamicResourcesState(every, extended, snapshot, is_timed_out)
        if state.to_allocate():
            self._prepare_search(state, snapshot)
        return PreFilterResult(state)

    def filter(self, state: DynamicResourcesState, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows where claims cannot be used or allocated; keep the allocations found."""
        return state.filter_all(nodes)

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return claims, and slices and classes if a claim must be allocated."""
        objects, claims = snapshot.objects, pod.spec.resource_claims
        if claims:
            yield NeededKind(ResourceClaim, "pods name them, and they hold devices")
            try:
                found = pod_resource_claims(pod.pod, self._getter(objects))
            except ClaimsNotReadyError:
                if objects.knows(ResourceClaim):
                    return
                found = []
            if found and all(claim.status.allocation is not None for claim in found):
                return
            yield NeededKind(DeviceClass, "they define which devices a claim may have")
        elif self._extended_resources and (classes := needed_classes(pod, snapshot)):
            yield classes
        else:
            return
        if claims or objects.any(DeviceClass):
            yield NeededKind(ResourceSlice, "they list the devices of nodes")
            if self._taint_rules:
                yield NeededKind(DeviceTaintRule, "they taint devices")

    def describe(self, state: DynamicResourcesState, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the requests that the node cannot satisfy, with counts of its devices."""
        return state.describe(nodes.nodes[0])

    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Deallocate a claim that only this pod uses, so that other devices can be tried."""
        state = self._state(cycle)
        if state is None:
            return PostFilterResult(_NO_STATE)
        if not state.claims:
            return PostFilterResult(unschedulable("no new claims to deallocate"))
        return PostFilterResult(self._make_room(state, pod.pod))

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> DynamicResourcesState | NoState:
        """Return the state of `filter`."""
        state = self._state(cycle)
        if state is not None:
            return state
        # Without alternatives to score, the state is not needed.
        return NoState(_NO_STATE) if self._features.prioritized_list else _NO_CLAIMS

    def score(
        self, state: DynamicResourcesState, pod: PodInfo, nodes: NodeTable
    ) -> NDArray[np.int64]:
        """Return, as int64 per row, how early the chosen alternatives of requests are listed."""
        if not self._features.prioritized_list or not state.has_alternatives():
            return np.zeros(len(nodes), np.int64)
        return np.array(list(map(state.score, nodes.names)), np.int64)

    def normalize_score(
        self,
        state: DynamicResourcesState,
        pod: PodInfo,
        scores: NDArray[np.int64],
        rows: NDArray[np.intp],
    ) -> NDArray[np.int64]:
        """Scale to 0..100; a higher number is better."""
        return normalize_scores(scores)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Reserve the devices found for the node until the claims are written."""
        state = self._state(cycle)
        if state is None:
            return _NO_STATE
        if state.allocator is None:
            return SUCCESS
        to_allocate = state.to_allocate()
        found = state.allocation_on(node_name)
        if found is None or not found.results:
            if all(one.is_special for one in to_allocate):
                # The node's allocatable amounts include the extended resources.
                return SUCCESS
            return failure("claim allocation not found for node")
        group = self._group_of(pod.pod)
        for one, result in zip(to_allocate, found.results, strict=True):
            allocation = number_shares(result, self._new_id)
            claim = one.needed_with(found.special)
            status = replace(claim.status, allocation=allocation)
            allocated = with_finalizer(replace(claim, status=status))
            pending = self._tracker.add_pending(claim.metadata.uid, allocated, pod.uid, group)
            # Another pod of the group may have numbered the shares already.
            one.reserved = pending.status.allocation
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Release the devices, and remove the pod from claims that were written."""
        state = self._state(cycle)
        if state is None:
            return
        for one in state.claims:
            claim, metadata = one.claim, one.claim.metadata
            if self._tracker.remove_pending(one.uid, pod.uid):
                self._tracker.restore(metadata.namespace, metadata.name)
            if self._writer is None:
                continue
            if one.is_special and not is_in_memory(claim):
                self._writer.delete_soon(claim)
            elif claim.status.allocation is not None and is_reserved_for(claim, pod.pod):
                self._writer.release_soon(claim, pod.pod)

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return success if the pod has claims to write."""
        state = self._state(cycle)
        if state is None:
            return _NO_STATE
        return SUCCESS if state.claims else SKIP

    def describe_wait(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Sequence[str]:
        """Return the devices that are not ready."""
        state = self._state(cycle)
        if state is None or not self._features.binding_conditions:
            return ()
        return tuple(state.describe_wait(node_name))

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write allocations and reservations, then wait until the devices are ready."""
        state = self._state(cycle)
        if state is None:
            return _NO_STATE
        if self._writer is None:
            return failure("no client to write ResourceClaims with")
        special = state.end_search(node_name)
        objects, observer = self.handle.objects, self.handle.services.observer
        binder = ClaimBinder(
            self._writer,
            self._tracker,
            objects,
            state.claims,
            special,
            pod.pod,
            node_name,
            observer,
            self._features.binding_conditions,
        )
        try:
            await binder.bind()
            may_wait = any(has_binding_conditions(one.claim) for one in state.claims)
            if may_wait and self._features.binding_conditions:
                await binder.wait(self._binding_timeout_seconds)
        except ClaimBindingError as error:
            return failure(str(error))
        return SUCCESS

    # Hints.

    def _after_claim(self, pod: Pod, old: object | None, new: object | None) -> bool:
        return after_claim_change(pod, old, new, self._getter(self.handle.objects))

    def _after_pod(self, pod: Pod, old: object | None, new: object | None) -> bool:
        return after_pod_change(pod, new, self._getter(self.handle.objects))

    # Before filtering.

    def _getter(self, objects: Objects) -> GetClaim:
        return lambda namespace, name: self._tracker.get(objects, namespace, name)

    def _state(self, cycle: CycleState) -> DynamicResourcesState | None:
        """Return the pod's state, or None if pre_filter did not run."""
        state = cycle.filter_states.get(self.name)
        return state if isinstance(state, DynamicResourcesState) else None

    def _extended(
        self, pod: Pod, names: Sequence[str], objects: Objects
    ) -> ExtendedResources | None:
        """Return the pod's extended resources with its special claim; None if it needs none."""
        classes = device_classes_of(objects)
        if not any(map(classes.backs, names)):
            return None
        claim = self._tracker.special_claim(objects, uid_of(pod)) or new_special_claim(pod)
        return ExtendedResources(pod, names, classes, claim)

    def _group_of(self, pod: Pod) -> str:
        """Return the name of the pod's group, or ""."""
        return pod_group_name_of(pod) if self._has_pod_groups else ""

    def _problems(
        self, claims: Iterable[ClaimInformation], group: str, objects: Objects
    ) -> Iterator[Status]:
        """Note shared allocations; yield why claims cannot be used or allocated at all."""
        for one in claims:
            claim, allocation = one.claim, one.claim.status.allocation
            if allocation is not None:
                try:
                    if allocation.node_selector is not None:
                        check_node_selector(allocation.node_selector)
                except NodeSelectorError as error:
                    yield failure(str(error))
            elif (shared := self._tracker.shared_allocation(one.uid, group)) is not None:
                one.shared = shared
            elif self._tracker.pending_allocation(one.uid) is not None:
                yield unresolvable(
                    f"resource claim {claim.metadata.key} is in the process of being allocated"
                )
            elif not one.is_special:
                yield from self._problems_of_requests(claim, objects)

    def _problems_of_requests(self, claim: ResourceClaim, objects: Objects) -> Iterator[Status]:
        for request in claim.spec.devices.requests:
            where = f"resource claim {claim.metadata.key}, request {request.name}"
            if request.exactly is not None:
                yield from _problems_of_class(
                    request.exactly.device_class_name, request.name, objects
                )
                continue
            if not request.first_available:
                yield unresolvable(f"{where}: unknown request type")
            elif not self._features.prioritized_list:
                yield unresolvable(
                    f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled"
                )
            for sub in request.first_available:
                name = f"{request.name}/{sub.name}"
                yield from _problems_of_class(sub.device_class_name, name, objects)

    def _prepare_search(self, state: DynamicResourcesState, snapshot: Snapshot) -> None:
        """Set the allocator, and what earlier searches among the same devices have found."""
        objects, nodes = snapshot.objects, len(snapshot.nodes)
        classes, allocated = device_classes_of(objects), self._tracker.allocated_state(objects)
        stamp, known = (objects, objects.version(DeviceTaintRule), classes), self._searched
        names = self._changed_slices.read(objects.changes_of(ResourceSlice))
        rules = tuple(objects.list(DeviceTaintRule)) if self._taint_rules else ()
        if (
            known is None
            or names is None
            or known[0] != stamp
            or not known[1].update(slices_with_taints(objects, names, rules), nodes)
        ):
            slices = with_taints(objects.list(ResourceSlice), rules)
            index = PoolIndex(slices, partitionable=self._features.partitionable_devices)
            known = self._searched = stamp, RememberedSearches(allocated, index), DeviceMatcher()
        _, searches, matcher = known
        state.remembered = searches
        state.allocator = Allocator(
            allocated, classes, searches.index, matcher, self._features, self._tries_max
        )

    def _is_timed_out(self, claim: ResourceClaim) -> bool:
        return self._writer is not None and is_timed_out(
            claim, self._binding_timeout_seconds, self._writer.now
        )

    # After filtering.

    def _make_room(self, state: DynamicResourcesState, pod: Pod) -> Status:
        special = state.special_claim
        unavailable = list(state.unavailable)
        # As upstream, the choice is random.
        self.handle.random.shuffle(unavailable)
        for one in unavailable:
            if one.is_special:
                # It is deleted instead.
                break
            if can_be_deallocated(one.claim, pod):
                if self._writer is not None:
                    self._writer.deallocate_soon(replace(one.claim, status=ResourceClaimStatus()))
                return unschedulable("deallocation of ResourceClaim completed")
        if special is not None and not is_in_memory(special):
            if self._writer is not None:
                self._writer.delete_soon(special)
            return unschedulable("deletion of ResourceClaim completed")
        return unschedulable("still not schedulable")

    # Reserving.

    def _new_id(self) -> str:
        return str(UUID(int=self.handle.random.getrandbits(128), version=4))


def _errors_of(args: DynamicResourcesArgs, gates: FeatureGates, path: str) -> Iterator[FieldError]:
    filters, binds = gates.enabled("DRASchedulerFilterTimeout"), _has_binding_conditions(gates)
    binding_gates = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
    filter_, binding = args.filter_timeout_seconds, args.binding_timeout_seconds
    for field, seconds, is_on, gate, least, words in (
        ("filterTimeout", filter_, filters, "DRASchedulingFilterTimeout", 0, "zero or positive"),
        ("bindingTimeout", binding, binds, binding_gates, 1, "at least 1 second"),
    ):
        place = child(path, field)
        if seconds is not None and not is_on:
            yield forbidden(place, f"{gate} feature gate is disabled")
        elif seconds is not None and seconds < least:
            yield invalid(place, go_duration(seconds), f"must be {words}")


def _has_binding_conditions(gates: FeatureGates) -> bool:
    """Whether binding may have to wait for devices."""
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled(
        "DRAResourceClaimDeviceStatus"
    )


def _problems_of_class(name: str, request_name: str, objects: Objects) -> Iterator[Status]:
    if not name:
        yield failure(f"request {request_name}: unsupported request type")
    elif name not in device_classes_of(objects).by_name:
        yield unresolvable(f"request {request_name}: device class {name} does not exist")
