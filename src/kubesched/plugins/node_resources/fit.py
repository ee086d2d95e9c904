"""NodeResourcesFit: a pod fits where its requests are free; a strategy scores such nodes.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go (v1.36)
Reads:    pod requests; nodes.{allocatable,requested,non_zero_requested,allowed_pods,pod_counts};
          DeviceClasses that back extended resources, and their devices
Rejects:  Unschedulable; UnschedulableAndUnresolvable if even the empty node would be too small.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node, Pod
from kubesched.api.field_errors import (
    FieldError,
    child,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.api.integers import wrap
from kubesched.api.names import PODS, is_extended_resource_name, is_scalar_resource_name
from kubesched.api.pod_requests import pod_requests
from kubesched.api.quantity import resource_value
from kubesched.api.resource import IMPLICIT_EXTENDED_RESOURCE_PREFIX, DeviceClass
from kubesched.config.args import (
    DEFAULT_RESOURCES,
    PluginArgs,
    ResourceSpec,
    UtilizationShapePoint,
    decode_args,
)
from kubesched.config.types import ConfigStruct
from kubesched.config.validation import (
    validate_function_shape,
    validate_label_name,
    validate_resources,
)
from kubesched.framework.cluster_event import (
    DEVICE_CLASS,
    NODE,
    POD,
    Action,
    ClusterEventWithHint,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.dra.devices import needed_classes
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    UNSIGNED,
    FilterPlugin,
    NeededKind,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    Scope,
    ScorePlugin,
)
from kubesched.framework.pod_groups import PlacementScorePlugin, PodGroupAssignments
from kubesched.framework.status import SUCCESS, NodeToStatus, Status
from kubesched.plugins.node_resources.device_counts import BackingDevices
from kubesched.plugins.node_resources.scoring import (
    Demands,
    NodeScorer,
    ResourceScorer,
    demands_of,
    score_together,
)
from kubesched.plugins.node_resources.shortages import (
    FreeAmounts,
    Requests,
    ResourceRequest,
    describe_shortages,
    find_shortages,
    shortages_of_row,
)
from kubesched.plugins.node_resources.strategies import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
)
from kubesched.snapshot.node_columns import NATIVE
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
_TYPES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)


class RequestedToCapacityRatioParam(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """A scoring function of utilization.

    Attributes:
        shape: Its points, by rising utilization.
    """

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """How feasible nodes are scored, and by which resources.

    Attributes:
        type: `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`.
        resources: The resources to score by.
        requested_to_capacity_ratio: The scoring function of RequestedToCapacityRatio.
    """

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(PluginArgs, frozen=True, kw_only=True):
    """The arguments.

    Attributes:
        ignored_resources: Extended resources that are not checked.
        ignored_resource_groups: Prefixes of extended resources, before the slash, that are not
            checked.
        scoring_strategy: How feasible nodes are scored.
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED, DEFAULT_RESOURCES)

    def errors(self, path: str) -> Iterable[FieldError]:
        """Yield the errors; the defaults have been filled in (`config.args.complete_args`)."""
        for at, name in enumerate(self.ignored_resources):
            yield from validate_label_name(name, child(path, "ignoredResources", at))
        for at, group in enumerate(self.ignored_resource_groups):
            place = child(path, "ignoredResourceGroups", at)
            if "/" in group:
                yield invalid(place, group, "resource group name can't contain '/'")
            yield from validate_label_name(group, place)
        yield from _strategy_errors(self.scoring_strategy, child(path, "scoringStrategy"))


def _strategy_errors(strategy: ScoringStrategy, path: str) -> Iterable[FieldError]:
    if strategy.type not in _TYPES:
        yield not_supported(child(path, "type"), strategy.type, _TYPES)
    yield from validate_resources(strategy.resources, child(path, "resources"))
    place = child(path, "requestedToCapacityRatio")
    param = strategy.requested_to_capacity_ratio
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if param is not None:
            yield forbidden(place, "must be nil when type is not RequestedToCapacityRatio")
    elif param is None:
        yield required(place, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from validate_function_shape(param.shape, child(place, "shape"))


class NodeResourcesFit(
    PreFilterPlugin[Requests],
    FilterPlugin[Requests],
    PreScorePlugin[Demands],
    ScorePlugin[Demands],
    PlacementScorePlugin,
):
    """Filter on free resources, score by the configured strategy; prefer full placements."""

    name: ClassVar = "NodeResourcesFit"
    args_type: ClassVar = NodeResourcesFitArgs
    scope: ClassVar = Scope.USAGE
    signed_kinds: ClassVar = (DeviceClass,)
    no_filter_state: ClassVar = (
        'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    )

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._free = FreeAmounts()
        self._resources = args.scoring_strategy.resources
        self._scorer = NodeScorer(_formula_of(args.scoring_strategy))
        self._devices = BackingDevices(handle)

    @classmethod
    def check_args(cls, raw: dict[str, object] | None, handle: Handle, path: str) -> None:
        """Decode only, because upstream validates these arguments when it builds the plugin."""
        decode_args(NodeResourcesFitArgs, raw, path)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return deletions and scale-downs of pods, changes of nodes and of device classes."""
        pods = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
        nodes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        classes = Action.ADD | Action.UPDATE
        events = (
            retry_on(POD, pods, _after_pod_change, per_template=True),
            retry_on(NODE, nodes, self._after_node_change, per_template=True),
            retry_on(DEVICE_CLASS, classes, _after_device_class_change),
        )
        return events if self._devices.enabled else events[:2]

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the requests; UNSIGNED if devices may back one, as other objects matter then."""
        requests = pod.template.requests
        if self._devices.back_any(requests.items()):
            return UNSIGNED
        scored = self._scored_requests(pod)
        amounts = tuple([scored.get(spec.name, 0) for spec in self._resources])
        return (tuple(counted_requests(requests)), amounts)

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[Requests]:
        """Return the requests that nodes must meet."""
        requests = [
            ResourceRequest(name, amount, self._devices.back(name, snapshot.objects))
            for name, amount in counted_requests(pod.template.requests)
            if not self._is_ignored(name)
        ]
        return PreFilterResult(Requests(requests))

    def filter(self, state: Requests, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows that lack a pod slot or one of the requested resources."""
        rows = len(nodes)
        if rows > 1 and self._free.suffice(state.by_name, nodes):
            return NodeToStatus.passing(rows)
        found = find_shortages(state, nodes)
        if rows > 1 and len(found.statuses) == 1:
            self._free.measure(state.names, nodes)
        return found

    def filter_row(self, state: Requests, pod: PodInfo, nodes: NodeTable, row: int) -> Status:
        """Reject a row that lacks a pod slot or one of the requested resources."""
        return shortages_of_row(state, nodes, row)

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return device classes if no node offers a resource that devices could provide."""
        classes = needed_classes(pod, snapshot) if self._devices.enabled else None
        return () if classes is None else (classes,)

    def describe(self, state: Requests, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the requested, free and allocatable amount of each missing resource."""
        return "; ".join(describe_shortages(state, nodes))

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[Demands]:
        """Return the pod's requests for the scored resources."""
        demands = demands_of(self._resources, self._scored_requests(pod), non_zero=True)
        return PreScoreResult(self._devices.count(demands, snapshot, feasible))

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Demands | None:
        """Return the state of `pre_score`."""
        return self.pre_score(cycle, pod, snapshot, feasible).state

    def score(self, state: Demands, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return the strategy's score, as int64 per row."""
        return self._scorer.score(state, nodes)

    def score_row(self, state: Demands, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Return the strategy's score of a row."""
        return self._scorer.score_row(state, nodes, row)

    def score_placement(
        self, namespace: str, name: str, assignments: PodGroupAssignments, snapshot: Snapshot
    ) -> tuple[int, Status]:
        """Return how much of the placement would be in use (0 to 100), for any strategy."""
        asked: dict[str, int] = {}
        for proposed in assignments.proposed:
            for resource, amount in self._scored_requests(proposed.pod).items():
                asked[resource] = wrap(asked.get(resource, 0) + amount)
        demands = demands_of(self._resources, asked, non_zero=True)
        rows = assignments.placement.rows
        return score_together(MostAllocated(), demands, snapshot.nodes, rows), SUCCESS

    @staticmethod
    def _scored_requests(pod: PodInfo) -> dict[str, int]:
        # Upstream's scorer ignores pod-level requests, although the filter uses them.
        return pod.template.container_requests

    def _is_ignored(self, resource: str) -> bool:
        if not self._ignored and not self._ignored_groups:
            return False
        group, _, _ = resource.partition("/")
        return is_extended_resource_name(resource) and (
            resource in self._ignored or group in self._ignored_groups
        )

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        """Whether the pod would fit on the empty node, and the node has grown or is new."""
        if not isinstance(new, Node) or not isinstance(old, Node | None):
            return new is not None
        requests = tuple(counted_requests(pod_requests(pod)))
        if _offered(new, PODS) < 1:
            return False
        for name, amount in requests:
            if amount > _offered(new, name) and not self._is_delegated(name, new):
                return False
        if old is None or _offered(new, PODS) > _offered(old, PODS):
            return True
        return any(
            _offered(new, name) > _offered(old, name) or self._is_delegated(name, new)
            for name, _ in requests
        )

    def _is_delegated(self, resource: str, node: Node) -> bool:
        """Whether devices provide a resource that the node does not offer."""
        lacks = resource not in NATIVE and _offered(node, resource) <= 0
        return lacks and self._devices.back(resource, self.handle.objects)


def _formula_of(strategy: ScoringStrategy) -> ResourceScorer:
    if strategy.type == MOST_ALLOCATED:
        return MostAllocated()
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        param = strategy.requested_to_capacity_ratio
        assert param is not None, "the arguments were validated"
        return RequestedToCapacityRatio(param.shape)
    return LeastAllocated()


def counted_requests(requests: dict[str, int]) -> list[tuple[str, int]]:
    """Return the requests that nodes account for: native resources first, then by name."""
    counted = [(name, requests[name]) for name in NATIVE if requests.get(name, 0) > 0]
    if len(counted) < len(requests):
        counted += [
            (name, requests[name])
            for name in sorted(requests)
            if requests[name] != 0 and name not in NATIVE and is_scalar_resource_name(name)
        ]
    return counted


def _after_pod_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether a pod that has or is nominated to a node was deleted, or `pod` requests less.

    Or whether a bound pod frees a resource that `pod` requests.
    """
    if not isinstance(old, Pod):
        return True
    if new is None:
        return bool(old.spec.node_name or old.status.nominated_node_name)
    if not isinstance(new, Pod) or new.metadata.uid == pod.metadata.uid:
        return True
    if not new.spec.node_name:
        return False
    before, after = pod_requests(old, use_status=True), pod_requests(new, use_status=True)
    wanted = pod_requests(pod, use_status=True)
    return any(before.get(name, 0) > after.get(name, 0) for name, _ in counted_requests(wanted))


def _after_device_class_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the class newly backs a resource that the pod requests."""
    if not isinstance(new, DeviceClass) or not isinstance(old, DeviceClass | None):
        return True
    name = new.spec.extended_resource_name
    requests = pod_requests(pod)
    if old is None:
        if IMPLICIT_EXTENDED_RESOURCE_PREFIX + new.metadata.name in requests:
            return True
    elif (old.spec.extended_resource_name or "") == (name or ""):
        return False
    return name is not None and name in requests


def _offered(node: Node, resource: str) -> int:
    return resource_value(resource, node.status.allocatable.get(resource, 0))
