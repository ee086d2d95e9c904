"""Pods that share a GPU: which pod has how much of which device, and where another one fits.

A node has `alibabacloud.com/gpu-milli: 8000` if it has eight GPUs. A pod that asks for less than
1000 gets that part of one device, any other a number of whole, completely free devices.
NodeResourcesFit sees only the sum over a node's devices; this filter looks at each device.

A policy is a subclass that scores. Its devices are those of one profile: use one policy at a time.

Differs:  the devices are kept by the plugin and not written to the pod. Devices of pods that were
          there before are not known: they are assumed to be the fullest that suffice.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubesched.framework import (
    ASSIGNED_POD,
    NODE,
    SUCCESS,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    CycleState,
    FilterPlugin,
    Handle,
    NodeColumns,
    NodeTable,
    NodeToStatus,
    PodInfo,
    PodTemplate,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Scope,
    ScorePlugin,
    SelectedRows,
    Snapshot,
    Status,
    unresolvable,
    unschedulable,
)

GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
MODEL_LABEL: Final = "alibabacloud.com/gpu-card-model"
WHOLE: Final = 1000

_COLUMNS: Final = 8
"""The number of properties in `Gpus.numbers` before those of devices."""

Milli = NDArray[np.int64]
Devices = dict[str, tuple[int, ...]]
"""A node's devices by the uid of the pod that has them."""


class Request(NamedTuple):
    """What a pod asks for: cpu, and `count` GPUs of which it needs `milli` each.

    Attributes:
        total: The sum over its devices.
        is_shared: Whether it takes a part of a device.
        kind: A bit for "a part of a device", or for the number of whole ones; 0 without GPU.
    """

    cpu: int
    count: int
    milli: int
    total: int
    is_shared: bool
    kind: int


def request_of(pod: PodInfo) -> Request:
    """Return what a pod asks for; a part is of one device, more are whole ones."""
    return _request_of(pod.template)


@lru_cache(maxsize=4096)
def _request_of(template: PodTemplate) -> Request:
    requests = template.requests
    cpu, total = requests.get("cpu", 0), requests.get(GPU_MILLI, 0)
    if 0 < total < WHOLE:
        return Request(cpu, 1, total, total, is_shared=True, kind=1)
    count = total // WHOLE
    kind = (1 << count) * bool(count)
    return Request(cpu, count, WHOLE, count * WHOLE, is_shared=False, kind=kind)


class Gpus:
    """The GPUs of some nodes: an int64 array per property.

    Attributes:
        numbers: Properties x rows, in the order below, then devices x rows.
        count: The number of devices.
        left: What is left of all devices together.
        taken: What is not.
        largest: What is left of the device with the most.
        whole: The number of completely free devices.
        kinds: The kinds of requests that the pods have, a bit each.
        code: A number that is equal for nodes of one model with the same left of each device.
        model: The policy's number of their model.
        free: Rows x devices, what is left of each; 0 where a node has fewer devices.
    """

    count = property(lambda gpus: gpus.numbers[0])
    left = property(lambda gpus: gpus.numbers[1])
    taken = property(lambda gpus: gpus.numbers[2])
    largest = property(lambda gpus: gpus.numbers[3])
    whole = property(lambda gpus: gpus.numbers[4])
    kinds = property(lambda gpus: gpus.numbers[5])
    code = property(lambda gpus: gpus.numbers[6])
    model = property(lambda gpus: gpus.numbers[7])
    free = property(lambda gpus: gpus.numbers[_COLUMNS:].T)

    def __init__(self, numbers: Milli, codes: dict[tuple[int, ...], int]) -> None:
        self.numbers = numbers
        self._codes = codes

    @classmethod
    def none(cls, rows: int, devices: int) -> "Gpus":
        """Return rows without devices, with place for some."""
        return cls(np.zeros((_COLUMNS + devices, rows), np.int64), {})

    def take(self, rows: NDArray[np.intp] | slice) -> "Gpus":
        """Return some rows: a copy of them, but of a slice a view."""
        numbers = self.numbers
        taken = numbers[:, rows] if isinstance(rows, slice) else numbers.take(rows, axis=1)
        return Gpus(taken, self._codes)

    def write(self, row: int, kinds: int, free: Sequence[int]) -> None:
        """Replace what is left of a row's devices."""
        count = self.count.item(row)
        model = self.model.item(row)
        code = self._codes.setdefault((model, *free), len(self._codes))
        left = sum(free)
        sums = left, WHOLE * count - left, max(free), free.count(WHOLE)
        self.numbers[1:, row] = [*sums, kinds, code, model, *free]


class GpusOfRow(NamedTuple):
    """The GPUs of one node: the properties of `Gpus` as numbers."""

    count: int
    left: int
    taken: int
    largest: int
    whole: int
    kinds: int
    code: int
    model: int
    free: list[int]


def can_take(gpus: Gpus | GpusOfRow, request: Request) -> NDArray[np.bool_] | bool:
    """Return whether enough devices have enough left, per row or for the only one."""
    if request.is_shared:
        return gpus.largest >= request.milli
    return gpus.whole >= request.count


def _of_row(column: Milli) -> GpusOfRow:
    numbers = column.tolist()
    return GpusOfRow(*numbers[:_COLUMNS], numbers[_COLUMNS:])


class GpuSharing(PreFilterPlugin[None], FilterPlugin[None], ScorePlugin[None], ReservePlugin):
    """Keeps the devices, and rejects nodes on which no device has enough left."""

    name: ClassVar = "GpuSharing"
    scope: ClassVar = Scope.ROW
    rejection: ClassVar = unschedulable("node(s) had no GPU with enough left")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # No policy reads more of a pod than its requests.
        cls.per_template = True

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._devices_of: dict[str, Devices] = {}
        self._snapshot: Snapshot | None = None
        self._epoch = -1

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return what may help a rejected pod: pods that leave, and nodes."""
        return (
            ClusterEventWithHint(ClusterEvent(ASSIGNED_POD, Action.DELETE)),
            ClusterEventWithHint(ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return cpu and GPUs, which is all that is read of the pod."""
        return request_of(pod)

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[None]:
        """Remember the cluster, which also shows at Reserve who is on the node."""
        self._snapshot = snapshot
        total = pod.template.requests.get(GPU_MILLI, 0)
        if total > WHOLE and total % WHOLE:
            status = unresolvable(f"{total} GPU milli are neither a part of one GPU nor whole GPUs")
            return PreFilterResult(status=status)
        return PreFilterResult()

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject the nodes with too few devices that have enough left."""
        request = request_of(pod)
        if not request.count:
            return NodeToStatus.passing(len(nodes))
        enough = can_take(self.gpus(nodes), request)
        if np.count_nonzero(enough) == len(nodes):
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus.rejecting(~enough, self.rejection)

    def filter_row(self, state: None, pod: PodInfo, nodes: NodeTable, row: int) -> Status:
        """Reject a node with too few devices that have enough left."""
        request = request_of(pod)
        if not request.count or can_take(self.gpus_of_row(nodes, row), request):
            return SUCCESS
        return self.rejection

    @abstractmethod
    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Return 0 to 100 per row, before the pod is placed."""

    def model_code(self, model: str | None) -> int:
        """Return a number for a model of GPU, for `Gpus.model`; 0 if the policy needs none."""
        return 0

    def pick(self, free: Sequence[int], milli_cpu: int, request: Request, model: str | None) -> int:
        """Return which device of a node a pod shares; the fullest that suffices, then the first.

        Args:
            free: What is left of each device; one of them has enough.
            milli_cpu: What is left of the node's cpu, before the pod is placed.
            request: What the pod asks for.
            model: The model of the node's GPUs.
        """
        return fullest_sufficient(free, request.milli)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take devices: the picked one for a part, the first free ones for whole GPUs."""
        request = request_of(pod)
        if not request.count:
            return SUCCESS
        table = self._current().nodes
        row = table.row_of[node_name]
        free, kinds, devices_of = self._settled(table, row, without=pod)
        chosen = _sufficient(free, request)
        if len(chosen) < request.count:
            return self.rejection
        if request.is_shared:
            cpu = table.allocatable_of("cpu").item(row) - table.requested_of("cpu").item(row)
            model = table.label(MODEL_LABEL)[row]
            chosen = (self.pick(free, cpu + request.cpu, request, model),)
        self._devices_of[node_name] = {**devices_of, pod.uid: chosen}
        for device in chosen:
            free[device] -= request.milli
        self._write(row, kinds | request.kind, free)
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give the devices back."""
        if self._devices_of.get(node_name, {}).pop(pod.uid, None) is not None:
            table = self._current().nodes
            row = table.row_of[node_name]
            others = _others(table, row, pod)
            free, kinds, _ = self._share_out(node_name, others, self._rows[row].count)
            self._write(row, kinds, free)

    def devices_of(self, pod: PodInfo, node_name: str) -> tuple[int, ...]:
        """Return the devices that a pod has on a node."""
        return self._devices_of.get(node_name, {}).get(pod.uid, ())

    def gpus(self, nodes: NodeTable) -> Gpus:
        """Return the GPUs of the rows of `nodes`; callers must not write to it."""
        snapshot = self._current()
        if nodes is snapshot.nodes:
            return self._settle(self._gpus, nodes)
        origin = nodes.origin if isinstance(nodes, SelectedRows) else None
        if self._selected[0] is not origin or origin is None:
            # Otherwise the score is asked for the rows that the filter was just asked for.
            taken = self._gpus.take(snapshot.rows_of(nodes))
            self._selected = origin, self._settle(taken, nodes)
        return self._selected[1]

    def gpus_of_row(self, nodes: NodeTable, row: int) -> GpusOfRow:
        """Return the GPUs of one row of `nodes`, without arrays."""
        snapshot = self._current()
        if nodes is snapshot.nodes:
            found = self._rows[row]
            if found.taken == nodes.amounts_on(row, GPU_MILLI)[1]:
                return found
        return _of_row(self.gpus(nodes.row_view(row)).numbers[:, 0])

    def _settle(self, gpus: Gpus, nodes: NodeTable) -> Gpus:
        """Return the GPUs of `nodes` after sharing devices out where other pods are there now."""
        unsettled = gpus.taken != nodes.requested_of(GPU_MILLI)
        if not np.count_nonzero(unsettled):
            return gpus
        # Pods have left, or `nodes` asks what would be without some, or with others.
        gpus = gpus.take(np.arange(len(nodes)))
        for row in np.flatnonzero(unsettled).tolist():
            free, kinds, _ = self._share_out(
                nodes.names[row], nodes.pods[row], gpus.count.item(row)
            )
            gpus.write(row, kinds, free)
        return gpus

    def _current(self) -> Snapshot:
        """Return the cluster, after sharing all devices out if nodes have changed."""
        snapshot = self._snapshot
        assert snapshot is not None, "pre_filter comes first"
        table = snapshot.nodes
        if self._epoch != table.epoch:
            self._epoch = table.epoch
            counts = (table.allocatable_of(GPU_MILLI) // WHOLE).tolist()
            self._gpus = Gpus.none(len(counts), max(counts, default=0) or 1)
            self._selected: tuple[object, Gpus] = (None, self._gpus)
            self._gpus.count[:] = counts
            self._gpus.model[:] = table.label(MODEL_LABEL).map(self.model_code, np.int64)
            self._rows = [*map(_of_row, self._gpus.numbers.T)]
            for row, count in enumerate(counts):
                free, kinds, _ = self._share_out(table.names[row], table.pods[row], count)
                self._write(row, kinds, free)
        return snapshot

    def _write(self, row: int, kinds: int, free: Sequence[int]) -> None:
        self._gpus.write(row, kinds, free)
        self._rows[row] = _of_row(self._gpus.numbers[:, row])

    def _settled(
        self, table: NodeColumns, row: int, without: PodInfo
    ) -> tuple[list[int], int, Devices]:
        """Return what the others leave of each device of a row, their kinds, and their devices."""
        gpus, name = self._rows[row], table.names[row]
        taken = table.amounts_on(row, GPU_MILLI)[1] - request_of(without).total
        if taken == gpus.taken:
            return [*gpus.free], gpus.kinds, self._devices_of.get(name, {})
        return self._share_out(name, _others(table, row, without), gpus.count)

    def _share_out(
        self, node_name: str, pods: Mapping[str, PodInfo], count: int
    ) -> tuple[list[int], int, Devices]:
        """Return what pods leave of each of a node's devices, their kinds, and their devices."""
        free = [WHOLE] * count + [0] * (self._gpus.free.shape[1] - count)
        kinds, known = 0, self._devices_of.get(node_name, {})
        devices_of: Devices = {}
        # Known devices first: those of the other pods are chosen among what is left.
        for uid in sorted(pods, key=lambda uid: uid not in known):
            request = request_of(pods[uid])
            if request.count:
                devices_of[uid] = devices = known.get(uid) or _assumed(free, request)
                kinds |= request.kind
                for device in devices:
                    free[device] -= request.milli
        return free, kinds, devices_of


def _others(table: NodeColumns, row: int, without: PodInfo) -> dict[str, PodInfo]:
    return {uid: pod for uid, pod in table.pods[row].items() if uid != without.uid}


def fullest_sufficient(free: Sequence[int], milli: int) -> int:
    """Return the first of the devices with the least that suffices."""
    return min((left, device) for device, left in enumerate(free) if left >= milli)[1]


def _sufficient(free: Sequence[int], request: Request) -> tuple[int, ...]:
    """Return the first devices with enough left, as many as the pod asks for or fewer."""
    enough = [device for device, left in enumerate(free) if left >= request.milli]
    return tuple(enough[: request.count])


def _assumed(free: Sequence[int], request: Request) -> tuple[int, ...]:
    found = _sufficient(free, request)
    if len(found) < request.count:
        return ()
    return (fullest_sufficient(free, request.milli),) if request.is_shared else found
