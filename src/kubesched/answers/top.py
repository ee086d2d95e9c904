"""Top: requests of pods and allocatable of nodes, by node, pool, zone, namespace, priority, owner.

Reads:    the node table, the pods on nodes, and pending pods; ReplicaSets and Jobs for owners
Rejects:  unknown labels and resources, and arguments that contradict each other.
Invariants: amounts are integers: cpu in millicores, memory and storage in bytes, the rest in units.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from kubesched.answers.owners import Owners
from kubesched.answers.room import (
    Room,
    RoomPerNode,
    WatchPods,
    parse_pod_shape,
    room_for_shape,
    room_like,
)
from kubesched.api.apps import Job, ReplicaSet
from kubesched.api.core import Pod
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.sentences import names
from kubesched.inputs.errors import UserError, did_you_mean
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.utilisation import region_and_zone, resource_names
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

POOL_LABELS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "doks.digitalocean.com/node-pool",
    "node.kubernetes.io/instance-type",
)
"""Labels that name a node's pool, the most telling first."""
BY_NAME: Final = "name"
BY_ROOM: Final = "room"
_SHARE_DIGITS: Final = 4
_PODS: Final = "pods"


class TopGroup(StrEnum):
    """What the rows are."""

    NODES = "nodes"
    POOLS = "pools"
    ZONES = "zones"
    NAMESPACES = "namespaces"
    PRIORITIES = "priorities"
    OWNERS = "owners"

    @property
    def is_of_nodes(self) -> bool:
        """Whether a row is a group of nodes; otherwise it is a group of pods."""
        return self in (TopGroup.NODES, TopGroup.POOLS, TopGroup.ZONES)


class ResourceRequests(DocumentPart, frozen=True):
    """What pods on nodes request of a resource.

    Attributes:
        resource: The resource's name; `pods` is the number of pods.
        requested: The sum of the requests.
        allocatable: Of the row's nodes; of the whole cluster if the row is a group of pods.
        share: Requested divided by allocatable; None if nothing is allocatable.
    """

    resource: str
    requested: int
    allocatable: int
    share: float | None


class PendingRequests(DocumentPart, frozen=True):
    """Pods without a node.

    Attributes:
        pods: Their number.
        requests: Resource -> the sum of their requests.
    """

    pods: int
    requests: dict[str, int]


class TopRow(DocumentPart, frozen=True, kw_only=True):
    """A node, a group of nodes, or a group of pods.

    Attributes:
        name: The name of the node, pool, zone, namespace, priority class or owner; empty for nodes
            without a pool or zone. A priority without a class has its number.
        kind: The owner's kind, `Pod` for a pod without an owner; else empty.
        namespace: The owner's namespace; else empty.
        priority: The priority's value; None in other groups.
        nodes: Number of nodes: of the group, or with pods of the group.
        cordoned: How many of the group's nodes are cordoned; 0 for a group of pods.
        resources: cpu, memory and pods first, then the others by name.
        pending: The group's pods without a node; None for a group of nodes.
        room: How many more pods of the shape that was asked about fit; None if none was.
    """

    name: str
    kind: str = ""
    namespace: str = ""
    priority: int | None = None
    nodes: int
    cordoned: int
    resources: tuple[ResourceRequests, ...]
    pending: PendingRequests | None = None
    room: int | None = None

    def use_of(self, resource: str) -> ResourceRequests:
        """Return the use of one of the report's resources."""
        return next(use for use in self.resources if use.resource == resource)


class TopReport(Document, frozen=True, kw_only=True):
    """What pods request, and what nodes have allocatable.

    Attributes:
        group: What the rows are.
        pool_label: The label whose value is a node's pool; empty unless the rows are pools.
        sort_by: What the rows are sorted by: `name`, `room`, or a resource, the largest share of
            allocatable first.
        rows: The rows.
        total: All rows together.
        pending: All pods without a node.
        room: How many more pods of a shape fit; None if that was not asked.
    """

    group: TopGroup
    pool_label: str
    sort_by: str
    rows: tuple[TopRow, ...]
    total: TopRow
    pending: PendingRequests
    room: Room | None = None


def pool_label_of(nodes: NodeTable) -> str:
    """Return the first well-known label that names pools and that a node has; "" if none."""
    used = {key for node in nodes.nodes for key in node.metadata.labels}
    return next((label for label in POOL_LABELS if label in used), "")


class ClusterFigures:
    """What is counted of a cluster.

    Attributes:
        nodes: The node table.
        resources: cpu, memory and pods, then by name the others that a node has or a pod on one
            requests.
        waiting: The pods without a node.
        owners: What pods belong to.
    """

    def __init__(self, cluster: ClusterState) -> None:
        """Count a cluster as it is."""
        objects = cluster.cache.objects
        self.nodes = cluster.cache.nodes
        self.resources = tuple(resource_names(self.nodes))
        self.waiting = [info for info in cluster.pending.values() if not info.is_terminating]
        self.owners = Owners(chain(objects.list(ReplicaSet), objects.list(Job)))

    def amounts(self, resource: str) -> tuple[list[int], list[int]]:
        """Return what each node can give of a resource, and what the pods on it request."""
        nodes = self.nodes
        if resource == _PODS:
            given, asked = nodes.allowed_pods, nodes.pod_counts
        else:
            given, asked = nodes.allocatable_of(resource), nodes.requested_of(resource)
        # Python's integers, because sums of absurd amounts may exceed int64.
        return given.tolist(), asked.tolist()

    def places(self, group: TopGroup, pool_label: str) -> Iterator[str]:
        """Yield the name of each node, or of its pool or zone."""
        nodes = self.nodes
        if group is TopGroup.NODES:
            yield from nodes.names
        elif group is TopGroup.POOLS:
            pools = nodes.label(pool_label)
            yield from (pools[row] or "" for row in range(len(nodes)))
        else:
            places = [region_and_zone(nodes.zones[row]) for row in range(len(nodes))]
            has_regions = len({region for region, _ in places}) > 1
            for region, zone in places:
                yield "/".join(filter(None, (region, zone))) if has_regions else zone


class _Key(NamedTuple):
    """The identity of a row; sorts by name."""

    falling_priority: int
    namespace: str
    name: str
    kind: str


@dataclass(slots=True)
class _Tally:
    """The sums of a row."""

    allocatable: Counter[str] = field(default_factory=Counter)
    requested: Counter[str] = field(default_factory=Counter)
    nodes: set[int] = field(default_factory=set)
    cordoned: int = 0
    room: int = 0
    pending: Counter[str] = field(default_factory=Counter)


_Tallies: TypeAlias = dict[_Key, _Tally]


def top(
    cluster: ClusterState,
    group: TopGroup,
    *,
    pool_label: str = "",
    sort_by: str = "cpu",
    room: RoomPerNode | None = None,
) -> TopReport:
    """Add up requests.

    `pool_label` is needed for pools only, `room` for groups of nodes only. `sort_by` is `name`,
    `room` or a resource.
    """
    figures = ClusterFigures(cluster)
    resources = list(dict.fromkeys([*figures.resources, *_asked_by(figures.waiting)]))
    total = _Tally()
    keys = [_Key(0, "", "", "")] * len(figures.nodes)
    _add_nodes(dict.fromkeys(keys, total), keys, figures, resources, room)
    for info in figures.waiting:
        _add_pending(total, info)
    if group.is_of_nodes:
        keys = [_Key(0, "", name, "") for name in figures.places(group, pool_label)]
        tallies: _Tallies = {key: _Tally() for key in keys}
        _add_nodes(tallies, keys, figures, resources, room)
    else:
        tallies = _tallies_of_pods(figures, group)
        for tally in tallies.values():
            tally.allocatable = total.allocatable
    rows = [_row(group, key, tally, resources, room) for key, tally in sorted(tallies.items())]
    if sort_by != BY_NAME:
        rows.sort(key=lambda row: _size(row, sort_by), reverse=True)
    return TopReport(
        group=group,
        pool_label=pool_label if group is TopGroup.POOLS else "",
        sort_by=sort_by,
        rows=tuple(rows),
        total=_row(TopGroup.NODES, _Key(0, "", "total", ""), total, resources, room),
        pending=_pending(total),
        room=None if room is None else room.room,
    )


def _asked_by(pods: Iterable[PodInfo]) -> list[str]:
    return sorted(
        {name for info in pods for name, amount in info.template.requests.items() if amount}
    )


def _row(
    group: TopGroup,
    key: _Key,
    tally: _Tally,
    resources: Sequence[str],
    room: RoomPerNode | None,
) -> TopRow:
    return TopRow(
        name=key.name,
        kind=key.kind,
        namespace=key.namespace,
        priority=-key.falling_priority if group is TopGroup.PRIORITIES else None,
        nodes=len(tally.nodes),
        cordoned=tally.cordoned,
        resources=tuple([_use(tally, name) for name in resources]),
        pending=None if group.is_of_nodes else _pending(tally),
        room=None if room is None else tally.room,
    )


def _use(tally: _Tally, name: str) -> ResourceRequests:
    asked, given = tally.requested[name], tally.allocatable[name]
    share = round(asked / given, _SHARE_DIGITS) if given > 0 else None
    return ResourceRequests(name, asked, given, share)


def _pending(tally: _Tally) -> PendingRequests:
    requests = {name: amount for name, amount in tally.pending.items() if name != _PODS}
    return PendingRequests(tally.pending[_PODS], requests)


def _size(row: TopRow, sort_by: str) -> tuple[float, int]:
    if sort_by == BY_ROOM:
        return 0.0, row.room or 0
    use = row.use_of(sort_by)
    return use.share or 0.0, use.requested


# Nodes.


def _add_nodes(
    tallies: _Tallies,
    keys: Sequence[_Key],
    figures: ClusterFigures,
    resources: Iterable[str],
    room: RoomPerNode | None,
) -> None:
    """Add each row of the table to the tally of its key."""
    for row, key in enumerate(keys):
        tally = tallies[key]
        tally.nodes.add(row)
        tally.cordoned += bool(figures.nodes.unschedulable[row])
    for name in resources:
        for key, given, asked in zip(keys, *figures.amounts(name), strict=True):
            tally = tallies[key]
            tally.allocatable[name] += given
            tally.requested[name] += asked
    if room is not None:
        for key, number in zip(keys, room.per_row.tolist(), strict=True):
            tallies[key].room += number


# Pods.


def _tallies_of_pods(figures: ClusterFigures, group: TopGroup) -> _Tallies:
    tallies: defaultdict[_Key, _Tally] = defaultdict(_Tally)
    for row, pods in enumerate(figures.nodes.pods):
        for info in pods.values():
            tally = tallies[_key_of(info, group, figures.owners)]
            tally.nodes.add(row)
            tally.requested[_PODS] += 1
            tally.requested.update(info.template.held)
    for info in figures.waiting:
        _add_pending(tallies[_key_of(info, group, figures.owners)], info)
    return tallies


def _add_pending(tally: _Tally, info: PodInfo) -> None:
    tally.pending[_PODS] += 1
    for name, amount in info.template.requests.items():
        if amount:
            tally.pending[name] += amount


def _key_of(info: PodInfo, group: TopGroup, owners: Owners) -> _Key:
    """Return the row of a pod."""
    if group is TopGroup.NAMESPACES:
        return _Key(0, "", info.namespace, "")
    if group is TopGroup.PRIORITIES:
        name = info.spec.priority_class_name or str(info.priority)
        return _Key(-info.priority, "", name, "")
    return _Key(0, *owners.of(info))


# What is asked.


class TopQuestion(NamedTuple):
    """What is asked.

    Attributes:
        group: What the rows are.
        pool_label: The label that names pools; "" for a well-known one.
        sort_by: As written.
        room: The shape to count the room for, as written; None for none.
        room_like: The pod to count the room for, as `find_pod` takes it; None for none.
        shape: The amounts of `room`, by resource as written.
    """

    group: TopGroup
    pool_label: str
    sort_by: str
    room: str | None
    room_like: str | None
    shape: dict[str, int]


def top_question(
    group: str, pool_label: str, sort_by: str, room: str | None, room_like: str | None
) -> TopQuestion:
    """Check what is asked, as far as that needs no cluster, and return it.

    Raises:
        UserError: There is no such group, the shape is wrong, or options contradict each other.
    """
    if group not in [*TopGroup]:
        hint = did_you_mean(group, TopGroup, f"there are {', '.join(TopGroup)}", most=1)
        raise UserError(f"{group}: there is no such group; {hint}")
    rows = TopGroup(group)
    has_room = room is not None or room_like is not None
    if room is not None and room_like is not None:
        raise UserError("--room and --room-like are two shapes; leave out one")
    if has_room and not rows.is_of_nodes:
        flag = "--room" if room is not None else "--room-like"
        raise UserError(f"{flag} is for nodes, pools and zones; there is no room in {rows}")
    if pool_label and rows is not TopGroup.POOLS:
        raise UserError(f"--pool-label is for pools, and the rows are {rows}; write top pools")
    if sort_by == BY_ROOM and not has_room:
        raise UserError("--sort-by room: no room is counted; add --room or --room-like")
    try:
        shape = {} if room is None else parse_pod_shape(room)
    except ValueError as error:
        raise UserError(f"--room: {error}") from error
    return TopQuestion(rows, pool_label, sort_by, room, room_like, shape)


def ask_top(
    cluster: ClusterState, question: TopQuestion, like: Pod | None, watch: WatchPods | None = None
) -> TopReport:
    """Answer the question; `like` is the pod that its `room_like` names.

    `watch` is called now and then with the number of pods like it that fit so far.

    Raises:
        UserError: A label or resource does not exist.
        PluginError: A plugin raised.
    """
    group = question.group
    nodes = cluster.cache.nodes
    label = _pool_label(nodes, question.pool_label) if group is TopGroup.POOLS else ""
    sort_by = question.sort_by
    if sort_by not in (BY_NAME, BY_ROOM):
        sort_by = _resource("--sort-by", sort_by, cluster)
    room: RoomPerNode | None = None
    if question.room is not None:
        shape = {
            _resource("--room", name, cluster): amount for name, amount in question.shape.items()
        }
        room = room_for_shape(nodes, shape, question.room)
    elif like is not None:
        try:
            room = room_like(cluster, like, watch)
        except ValueError as error:
            raise UserError(f"--room-like {question.room_like}: {error}") from error
    return top(cluster, group, pool_label=label, sort_by=sort_by, room=room)


def _pool_label(nodes: NodeTable, given: str) -> str:
    label = given or pool_label_of(nodes)
    keys = {key: None for node in nodes.nodes for key in node.metadata.labels}
    if label in keys or not len(nodes):
        return label
    if not label:
        own = sorted(key for key in keys if "kubernetes.io/" not in key)
        hint = f", such as {names(own)}" if own else ""
        raise UserError(
            f"no node has a label that is known to name its pool; add --pool-label KEY{hint}"
        )
    hint = did_you_mean(label, keys, f"there are {', '.join(sorted(keys)[:5])}", most=1)
    raise UserError(f"--pool-label {label}: no node has this label; {hint}")


def _resource(flag: str, text: str, cluster: ClusterState) -> str:
    """Return a resource that a node has or a pod requests; `gpu` stands for `nvidia.com/gpu`.

    Raises:
        UserError: There is no such resource.
    """
    known = dict.fromkeys(resource_names(cluster.cache.nodes))
    for info in cluster.pending.values():
        known |= dict.fromkeys(info.template.requests)
    short = [name for name in known if name.rpartition("/")[2] == text]
    if text in known or len(short) == 1:
        return text if text in known else short[0]
    hint = f"did you mean {' or '.join(short)}?"
    if not short:
        hint = did_you_mean(text, known, f"there are {', '.join(known)}")
    raise UserError(f"{flag} {text}: no node has and no pod requests it; {hint}")
