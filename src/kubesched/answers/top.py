"""Top: requests of pods and allocatable of nodes, by node, pool, zone, namespace, priority, owner.

Reads:    the node table, the pods on nodes, and pending pods; ReplicaSets and Jobs for owners
Rejects:  unknown labels and resources, and arguments that contradict each other.
Invariants: amounts are integers: cpu in millicores, memory and storage in bytes, the rest in units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from kubesched.answers.room import (
    Room,
    RoomPerNode,
    WatchPods,
    parse_pod_shape,
    room_for_pod,
    room_for_shape,
)
from kubesched.answers.workload_pods import Owners
from kubesched.api.apps import Job, ReplicaSet
from kubesched.api.core import Pod
from kubesched.api.names import PODS
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.sentences import grouped_by, names
from kubesched.framework.dra.devices import device_classes_of
from kubesched.inputs.errors import UserError, did_you_mean
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.report import share_of
from kubesched.simulator.utilisation import amounts_of, region_and_zone, resource_names
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

_Amounts: TypeAlias = tuple[list[int], list[int]]
"""Per node, what it can give of a resource, and what the pods on it request."""


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

    `resources` are cpu, memory and pods, then by name the others that a node has or a pod on one
    requests. Pods that are `waiting` have no node.
    """

    def __init__(self, cluster: ClusterState) -> None:
        objects = cluster.cache.objects
        self.nodes = cluster.cache.nodes
        self.resources = tuple(resource_names(self.nodes))
        self.waiting = [info for info in cluster.pending.values() if not info.is_terminating]
        self.owners = Owners(chain(objects.list(ReplicaSet), objects.list(Job)))

    def amounts(self, resource: str) -> _Amounts:
        """Return the amounts of a resource."""
        given, asked = amounts_of(self.nodes, resource)
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
    """The identity of a group of pods; sorts by name."""

    falling_priority: int
    namespace: str
    name: str
    kind: str


def top(
    cluster: ClusterState,
    group: TopGroup,
    pool_label: str = "",
    sort_by: str = "cpu",
    room: str | None = None,
    room_like: str | None = None,
    like: Pod | None = None,
    watch: WatchPods | None = None,
) -> TopReport:
    """Answer a question that `check_question` accepts; the arguments are those of `Cluster.top`.

    `like` is the pod that `room_like` names. Raises UserError if a label or resource does not
    exist, or room for it is not counted.
    """
    label = _pool_label(cluster.cache.nodes, pool_label) if group is TopGroup.POOLS else ""
    if sort_by not in (BY_NAME, BY_ROOM):
        sort_by = _resource("--sort-by", sort_by, cluster)
    found: RoomPerNode | None = None
    if room is not None:
        found = _room_for_shape(cluster, room)
    elif like is not None:
        try:
            found = room_for_pod(cluster, like, watch)
        except ValueError as error:
            raise UserError(f"--room-like {room_like}: {error}") from error
    figures = ClusterFigures(cluster)
    requests = [info.template.requests for info in figures.waiting]
    asked = {name for each in requests for name, amount in each.items() if amount}
    names = dict.fromkeys([*figures.resources, *sorted(asked)])
    columns = {name: figures.amounts(name) for name in names}
    total = _row_of_nodes("total", [*range(len(figures.nodes))], figures, columns, found)
    if group.is_of_nodes:
        places: dict[str, list[int]] = {}
        for at, name in enumerate(figures.places(group, label)):
            places.setdefault(name, []).append(at)
        rows = [
            _row_of_nodes(name, places[name], figures, columns, found) for name in sorted(places)
        ]
    else:
        rows = list(_rows_of_pods(group, figures, total))
    if sort_by != BY_NAME:
        rows.sort(key=lambda row: _size(row, sort_by), reverse=True)
    return TopReport(
        group=group,
        pool_label=label,
        sort_by=sort_by,
        rows=tuple(rows),
        total=total,
        pending=_pending(figures.waiting),
        room=None if found is None else found.room,
    )


def _row_of_nodes(
    name: str,
    rows: Sequence[int],
    figures: ClusterFigures,
    columns: Mapping[str, _Amounts],
    room: RoomPerNode | None,
) -> TopRow:
    """Return the sums of some rows of the table; `columns` has the amounts per resource."""
    return TopRow(
        name=name,
        nodes=len(rows),
        cordoned=int(figures.nodes.unschedulable[rows].sum()),
        resources=tuple(
            requests_of(resource, sum(asked[row] for row in rows), sum(given[row] for row in rows))
            for resource, (given, asked) in columns.items()
        ),
        room=None if room is None else sum(room.per_row[rows].tolist()),
    )


def _rows_of_pods(group: TopGroup, figures: ClusterFigures, total: TopRow) -> Iterator[TopRow]:
    """Yield what each group of pods requests of the whole cluster, by name."""
    on_rows = [(row, info) for row, pods in enumerate(figures.nodes.pods) for info in pods.values()]
    placed = grouped_by(on_rows, lambda one: _key_of(one[1], group, figures.owners))
    waiting = grouped_by(figures.waiting, lambda info: _key_of(info, group, figures.owners))
    for key in sorted(placed.keys() | waiting.keys()):
        there = placed.get(key, [])
        requested = Counter({PODS: len(there)})
        for _, info in there:
            requested.update(info.template.held)
        yield TopRow(
            name=key.name,
            kind=key.kind,
            namespace=key.namespace,
            priority=-key.falling_priority if group is TopGroup.PRIORITIES else None,
            nodes=len({row for row, _ in there}),
            cordoned=0,
            resources=tuple(
                requests_of(use.resource, requested[use.resource], use.allocatable)
                for use in total.resources
            ),
            pending=_pending(waiting.get(key, [])),
        )


def requests_of(resource: str, requested: int, allocatable: int) -> ResourceRequests:
    """Return what is requested of a resource, with its share."""
    return ResourceRequests(resource, requested, allocatable, share_of(requested, allocatable))


def _pending(pods: Sequence[PodInfo]) -> PendingRequests:
    requests: Counter[str] = Counter()
    for info in pods:
        requests.update({name: n for name, n in info.template.requests.items() if n})
    return PendingRequests(len(pods), dict(requests))


def _size(row: TopRow, sort_by: str) -> tuple[float, int]:
    if sort_by == BY_ROOM:
        return 0.0, row.room or 0
    use = row.use_of(sort_by)
    return use.share or 0.0, use.requested


def _key_of(info: PodInfo, group: TopGroup, owners: Owners) -> _Key:
    if group is TopGroup.NAMESPACES:
        return _Key(0, "", info.namespace, "")
    if group is TopGroup.PRIORITIES:
        name = info.spec.priority_class_name or str(info.priority)
        return _Key(-info.priority, "", name, "")
    return _Key(0, *owners.of(info))


# What is asked.


def check_question(
    group: str, pool_label: str, sort_by: str, room: str | None, room_like: str | None
) -> TopGroup:
    """Check what is asked, as far as that needs no cluster, and return what the rows are.

    The arguments are those of `Cluster.top`. Raises UserError if there is no such group, the shape
    is wrong, or options contradict each other.
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
    if room is not None:
        _shape(room)
    return rows


def _shape(room: str) -> dict[str, int]:
    """Return the amounts of a shape; raises UserError if it is wrong."""
    try:
        return parse_pod_shape(room)
    except ValueError as error:
        raise UserError(f"--room: {error}") from error


def _room_for_shape(cluster: ClusterState, text: str) -> RoomPerNode:
    """Return the room for a shape; raises UserError if it is not counted."""
    shape = {_resource("--room", name, cluster): n for name, n in _shape(text).items()}
    classes = device_classes_of(cluster.cache.objects)
    if backed := next(filter(classes.backs, shape), ""):
        provider = classes.by_resource[backed].metadata.name
        raise UserError(
            f"--room {text}: devices of DeviceClass {provider} provide {backed}, and are not "
            "counted here; ask `kubesched fit --max` for a manifest"
        )
    return room_for_shape(cluster.cache.nodes, shape, text)


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
    """Return a resource that a node has or a pod requests; raises UserError if there is none.

    `gpu` stands for `nvidia.com/gpu`.
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
