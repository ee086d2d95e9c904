"""Room: how many more pods of a shape fit, on each node and together.

A shape of amounts is divided into what is free. Copies of a pod are placed by the scheduler's
plugins until one fits nowhere; nothing is evicted for them. If no filter looks at other nodes, all
nodes are filled at once, else the copies are placed one after another.

Rejects:  shapes that ask for nothing, and amounts that cannot be parsed; pods of other schedulers,
          pods that use devices, and pods of groups with a topology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.answers.pod_explanation import group_of, topology_key_of
from kubesched.api.core import Pod, PodStatus
from kubesched.api.quantity import QuantityError, resource_value
from kubesched.explain.document import DocumentPart
from kubesched.explain.report import Unknown
from kubesched.explain.unknown import UnknownOutcomes
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import UNSIGNED, Scope
from kubesched.scheduler.decision import Placed, Rejected
from kubesched.scheduler.first_rejections import Filtering
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

WatchPods: TypeAlias = Callable[[int], object]
"""Called with the number of pods that fit so far."""

_EXAMPLE: Final = "cpu=2,memory=4Gi"
_DEVICES: Final = "DynamicResources"
_OF_ONE_ROW: Final = (Scope.NODE, Scope.USAGE, Scope.ROW)


class StoppingReason(DocumentPart, frozen=True):
    """Why the next pod fits nowhere.

    Attributes:
        reason: As kubectl shows it.
        nodes: Number of nodes that reject the pod for it; 0 if the pod is rejected as a whole.
    """

    reason: str
    nodes: int


class Room(DocumentPart, frozen=True):
    """How many more pods of a shape fit.

    Attributes:
        shape: The amounts as asked for, or the `namespace/name` of the pod.
        requests: Resource -> what one pod requests: cpu in millicores, memory in bytes.
        by_plugins: Whether the scheduler's plugins placed the pods, one after another. Otherwise
            only amounts and the number of pods are looked at: not taints, cordons or selectors.
        total: Number of pods that fit together.
        stopped_by: Why no more fit, the most frequent reason first; empty for a shape of amounts.
        unknown: The kinds that the answer depends on and the files lack.
    """

    shape: str
    requests: dict[str, int]
    by_plugins: bool
    total: int
    stopped_by: tuple[StoppingReason, ...] = ()
    unknown: tuple[Unknown, ...] = ()


class RoomPerNode(NamedTuple):
    """The room of a cluster, and of each row of its node table."""

    room: Room
    per_row: NDArray[np.int64]


def parse_pod_shape(text: str) -> dict[str, int]:
    """Return the amounts of `cpu=2,memory=4Gi`: cpu in millicores, others in whole units.

    Raises ValueError, which names the wrong word and the remedy.
    """
    shape: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = word.partition("=")
        if not (name and equals and amount):
            raise ValueError(f"{word!r} is not a RESOURCE=AMOUNT; write {_EXAMPLE}")
        if name == "pods":
            raise ValueError("pods is what is counted; name what one pod requests")
        if name in shape:
            raise ValueError(f"{name} is given twice; write it once")
        try:
            number = resource_value(name, amount)
        except QuantityError:
            raise ValueError(
                f"{name}: {amount!r} is not a quantity; write 2, 500m or 4Gi"
            ) from None
        if number <= 0:
            raise ValueError(f"{name}: {amount} is not more than 0")
        shape[name] = number
    if not shape:
        raise ValueError(f"it asks for nothing; write {_EXAMPLE}")
    return shape


def room_for_shape(nodes: NodeTable, shape: Mapping[str, int], text: str) -> RoomPerNode:
    """Return how many more pods fit by their amounts alone.

    `shape` is what one pod requests, not empty; `text` is the shape as the user wrote it.
    """
    fitting = _free_slots(nodes)
    for name, amount in shape.items():
        free = np.maximum(nodes.allocatable_of(name) - nodes.requested_of(name), 0)
        fitting = np.minimum(fitting, free // amount)
    room = Room(text, dict(shape), by_plugins=False, total=sum(fitting.tolist()))
    return RoomPerNode(room, fitting)


def room_for_pod(cluster: ClusterState, pod: Pod, watch: WatchPods | None = None) -> RoomPerNode:
    """Return how many more pods like this one fit; the cluster may hold copies meanwhile.

    `watch` is called now and then with the number that fit so far. Raises ValueError for a pod that
    is of another scheduler, uses devices, or has a group with a topology.
    """
    info = PodInfo(_model(pod))
    profile = cluster.profile_of(info)
    if profile is None:
        known = ", ".join(cluster.profiles)
        raise ValueError(f"it is for the scheduler {info.scheduler_name}; name one: {known}")
    group = group_of(cluster, info)
    if group is not None and (key := topology_key_of(group.spec)):
        raise ValueError(
            f"all pods of its PodGroup {group.metadata.name} must be where {key} is the same; "
            "ask `kubesched fit --max` for a manifest"
        )
    trace = Trace()
    first = cluster.schedule_one(info, trace, preempts=False)
    cycle = trace.cycle
    has_devices = cycle is not None and _DEVICES in profile.plugins.keys() - cycle.skip_filter
    if pod.spec.resource_claims or (has_devices and isinstance(first, Placed)):
        raise ValueError("it uses devices, of which each copy would need its own")
    outcomes = UnknownOutcomes(cluster.snapshot())
    filled: _Filled | None = None
    if isinstance(first, Placed) and trace.restricted_to is None:
        filled = _fill_nodes(cluster, profile, info, trace)
    per_row, stopped = filled or _place_copies(cluster, info, watch)
    cluster.check_plugins()
    if stopped is not None:
        outcomes.rejected(profile, info, stopped.unschedulable_plugins)
    if per_row.any():
        outcomes.placed(profile, info, had_choice=False)
    room = Room(
        info.key,
        dict(info.template.requests),
        by_plugins=True,
        total=sum(per_row.tolist()),
        stopped_by=tuple(_reasons(stopped, len(per_row))),
        unknown=outcomes.kinds(),
    )
    return RoomPerNode(room, per_row)


class _Filled(NamedTuple):
    """How many copies are on each row, and why no more fit."""

    per_row: NDArray[np.int64]
    stopped: Diagnosis | None


def _fill_nodes(
    cluster: ClusterState, profile: Profile, info: PodInfo, trace: Trace
) -> _Filled | None:
    """Put one copy after another on every node at once, if no node matters to another.

    `trace` is of the pod's first decision. Returns None if a filter looks at several nodes, or at
    more than the pods on one, or fails.
    """
    nodes, cycle = cluster.cache.nodes, trace.cycle
    assert cycle is not None, "the pod was placed"
    asked = [
        (position, plugin)
        for position, plugin in enumerate(profile.filter_plugins)
        if plugin.name not in cycle.skip_filter
    ]
    if cluster.nominator or any(
        plugin.scope not in _OF_ONE_ROW or plugin.sign(info) is UNSIGNED for _, plugin in asked
    ):
        return None
    table = nodes.take(np.arange(len(nodes)))
    per_row = np.zeros(len(nodes), np.int64)
    fits = np.zeros(len(nodes), np.bool_)
    fits[trace.feasible_rows] = True
    filtering = Filtering.all_passed(len(nodes))
    while fits.any():
        rows = np.flatnonzero(fits & (per_row < _free_slots(nodes)))
        if not len(rows):
            break
        per_row[rows] += 1
        # One copy serves all rows: no row sees the pods of another.
        copy = _copy(info, int(per_row[rows[0]]))
        table.add_pods([(row, copy) for row in rows.tolist()])
        filtering = Filtering.all_passed(len(nodes))
        try:
            for position, plugin in asked:
                profile.add_filter(filtering, position, plugin, cycle, info, table)
        except PluginFailure:
            # The scheduler may not get as far as the row where it failed.
            return None
        fits &= filtering.passed
    statuses = filtering.answers().statuses()
    return _Filled(per_row, Diagnosis.of_filter(tuple(nodes.names), statuses))


def _place_copies(cluster: ClusterState, info: PodInfo, watch: WatchPods | None) -> _Filled:
    """Place one copy after another as the scheduler does, then remove them."""
    nodes = cluster.cache.nodes
    per_row = np.zeros(len(nodes), np.int64)
    copies: list[PodInfo] = []
    stopped: Diagnosis | None = None
    # A configuration may ignore how many pods a node can run.
    slots = sum(_free_slots(nodes).tolist())
    for number in range(slots + 1):
        copy = _copy(info, number)
        decision = cluster.schedule_one(copy, preempts=False)
        if not isinstance(decision, Placed):
            stopped = decision.diagnosis if isinstance(decision, Rejected) else None
            break
        if number == slots:
            break
        cluster.bind(copy, decision.node_name)
        copies.append(copy)
        per_row[decision.row] += 1
        if watch is not None:
            watch(len(copies))
    for copy in copies:
        cluster.evict(copy)
    return _Filled(per_row, stopped)


def _free_slots(nodes: NodeTable) -> NDArray[np.int64]:
    free: NDArray[np.int64] = np.maximum(nodes.allowed_pods - nodes.pod_counts, 0)
    return free


def _copy(info: PodInfo, number: int) -> PodInfo:
    metadata = replace(info.pod.metadata, uid=f"{info.uid}/copy-{number}")
    return PodInfo(replace(info.pod, metadata=metadata))


def _model(pod: Pod) -> Pod:
    """Return the pod as if it had just been created; its name stays, as claims may contain it."""
    spec = replace(pod.spec, node_name="", scheduling_gates=())
    metadata = replace(pod.metadata, deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def _reasons(stopped: Diagnosis | None, nodes: int) -> Iterable[StoppingReason]:
    if stopped is None:
        return ()
    if stopped.pre_filter_message:
        return (StoppingReason(stopped.pre_filter_message, 0),)
    counts = stopped.reason_counts(nodes)
    ordered = sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    return [StoppingReason(*found) for found in ordered]
