"""The GPU sharing plugins compared with slow twins: devices, fragmentation and scores."""

from __future__ import annotations

from fractions import Fraction
from itertools import count
from math import exp
from random import Random
from typing import Any

import numpy as np
import pytest

from kubesched.api.core import Pod
from kubesched.api.field_errors import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Code
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import all_rows, make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle

from .running import gpu_sharing

sharing, baselines, fgd = map(gpu_sharing, ("gpu_sharing", "baselines", "fgd"))
fragmentation = gpu_sharing("fragmentation")

GPU: str = sharing.GPU_MILLI
KINDS = (
    fgd.TargetKind(milli_cpu=3_000, gpus=1, gpu_milli=500, pods=7),
    fgd.TargetKind(milli_cpu=8_000, gpus=1, gpu_milli=810, models=("A", "B"), pods=5),
    fgd.TargetKind(milli_cpu=8_000, gpus=1, gpu_milli=500, models=("B",), pods=2),
    fgd.TargetKind(milli_cpu=16_000, gpus=1, gpu_milli=1_000, pods=9),
    fgd.TargetKind(milli_cpu=20_000, gpus=2, gpu_milli=1_000, pods=3),
    fgd.TargetKind(milli_cpu=4_000, pods=4),
)
CYCLE = CycleState()


def _plugin(policy: str) -> Any:
    args = {
        "FragmentationGradientDescent": fgd.FragmentationGradientDescentArgs(target=KINDS),
        "RandomNode": baselines.RandomNodeArgs(seed=3),
    }
    module = fgd if policy.startswith("Frag") else baselines
    return getattr(module, policy)(args.get(policy), FakeHandle())


def _pod(name: str, cpu: int, milli: int = 0, node_name: str = "") -> Pod:
    requests: dict[str, str | int] = {"cpu": f"{cpu}m", **({GPU: milli} if milli else {})}
    return make_pod(name, node_name=node_name, requests=requests)


def _cluster(*devices: int, cpu: int = 32) -> Snapshot:
    return make_snapshot(
        [
            make_node(
                f"node-{at}",
                labels={sharing.MODEL_LABEL: "ABC"[at % 3]},
                allocatable={"cpu": cpu, **({GPU: 1_000 * number} if number else {})},
            )
            for at, number in enumerate(devices)
        ]
    )


def _place(plugin: Any, snapshot: Snapshot, pod: Pod, node_name: str) -> tuple[int, ...]:
    """Place a pod on a node as the scheduler does; return its devices."""
    info, nodes = PodInfo(pod).on_node(node_name), snapshot.nodes
    plugin.pre_filter(CYCLE, info, snapshot)
    nodes.add_pod(info, nodes.row_of[node_name])
    assert plugin.reserve(CYCLE, info, node_name).is_success
    devices: tuple[int, ...] = plugin.devices_of(info, node_name)
    return devices


def _random_cluster(plugin: Any, random: Random) -> tuple[Snapshot, list[list[int]]]:
    """Place random pods where they fit; return the twin's devices."""
    sizes = [random.choice([0, 1, 2, 4]) for _ in range(12)]
    snapshot = _cluster(*sizes)
    twin = [[1_000] * size for size in sizes]
    for number in range(60):
        cpu, milli = random.choice([500, 3_000, 9_000]), random.choice([0, 300, 810, 1_000, 2_000])
        row = random.randrange(len(sizes))
        each, wanted = min(milli, 1_000), max(milli // 1_000, 1) if milli else 0
        fits = sum(left >= each for left in twin[row]) >= wanted
        if fits and snapshot.nodes.requested_of("cpu")[row] + cpu <= 32_000:
            pod = _pod(f"pod-{number}", cpu, milli)
            for device in _place(plugin, snapshot, pod, f"node-{row}"):
                twin[row][device] -= each
    return snapshot, twin


POLICIES = (
    "RandomNode",
    "DotProduct",
    "GpuClustering",
    "GpuPacking",
    "BestFit",
    "FragmentationGradientDescent",
)


# Devices.


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_the_filter_equals_a_twin(policy: str, seed: int) -> None:
    """For the table, some rows and one row; no device is overcommitted."""
    plugin = _plugin(policy)
    snapshot, twin = _random_cluster(plugin, Random(seed))
    nodes = snapshot.nodes
    assert min(min(free, default=0) for free in twin) >= 0
    for milli in (0, 300, 500, 1_000, 3_000):
        pod = PodInfo(_pod("new", 1_000, milli))
        expected = [
            sum(left >= min(milli, 1_000) for left in free) >= max(milli // 1_000, 1)
            if milli
            else True
            for free in twin
        ]
        plugin.pre_filter(CYCLE, pod, snapshot)
        assert expected == plugin.filter(None, pod, nodes).passed.tolist()
        some = np.array([5, 2, 2])
        assert [expected[row] for row in some] == plugin.filter(
            None, pod, nodes.take(some)
        ).passed.tolist()
        assert expected[3] == plugin.filter(None, pod, nodes.row_view(3)).passed[0]


def test_parts_use_the_fullest_device_and_whole_gpus_the_first_free() -> None:
    """The first two parts do not fit together; the third fits beside the second."""
    plugin, snapshot = _plugin("BestFit"), _cluster(4)
    assert (0,) == _place(plugin, snapshot, _pod("a", 100, 600), "node-0")
    assert (1,) == _place(plugin, snapshot, _pod("b", 100, 700), "node-0")
    assert (1,) == _place(plugin, snapshot, _pod("c", 100, 300), "node-0")
    assert (2, 3) == _place(plugin, snapshot, _pod("d", 100, 2_000), "node-0")
    assert () == _place(plugin, snapshot, _pod("e", 100), "node-0")


def test_a_part_must_fit_one_device() -> None:
    """Two devices with 400 each have no room for 800; Reserve rejects it, too."""
    plugin, snapshot = _plugin("BestFit"), _cluster(2)
    for name in "ab":
        _place(plugin, snapshot, _pod(name, 100, 600), "node-0")
    pod = PodInfo(_pod("new", 100, 800))
    assert Code.UNSCHEDULABLE is plugin.filter(None, pod, snapshot.nodes)[0].code
    snapshot.nodes.add_pod(pod.on_node("node-0"), 0)
    assert "node(s) had no GPU with enough left" == plugin.reserve(CYCLE, pod, "node-0").message


def test_random_draws_the_device() -> None:
    """Each device with enough room is chosen at times."""
    found = set()
    plugin, snapshot = _plugin("RandomNode"), _cluster(*[4] * 40)
    for row in range(40):
        found.add(_place(plugin, snapshot, _pod(f"p{row}", 100, 300), f"node-{row}"))
    assert {(0,), (1,), (2,), (3,)} == found


def test_unreserve_may_be_called_twice() -> None:
    """The device is free for a whole GPU again."""
    plugin, snapshot = _plugin("BestFit"), _cluster(1)
    pod = PodInfo(_pod("a", 100, 600)).on_node("node-0")
    _place(plugin, snapshot, pod.pod, "node-0")
    plugin.unreserve(CYCLE, pod, "node-0")
    plugin.unreserve(CYCLE, pod, "node-0")
    snapshot.nodes.remove_pod(pod, 0)
    whole = PodInfo(_pod("b", 100, 1_000))
    assert plugin.filter(None, whole, snapshot.nodes).passed[0]
    assert (0,) == _place(plugin, snapshot, whole.pod, "node-0")


def test_devices_of_deleted_pods_are_free() -> None:
    """Also in what-if questions, which do not change the plugin's state."""
    plugin, snapshot = _plugin("BestFit"), _cluster(2)
    nodes, first = snapshot.nodes, PodInfo(_pod("a", 100, 600)).on_node("node-0")
    _place(plugin, snapshot, first.pod, "node-0")
    _place(plugin, snapshot, _pod("b", 100, 700), "node-0")
    new = PodInfo(_pod("new", 100, 1_000))
    what_if = nodes.take(np.array([0]))
    what_if.remove_pod(nodes.pods[0][first.uid])
    assert plugin.filter(None, new, what_if).passed[0]
    assert not plugin.filter(None, new, nodes).passed[0]
    nodes.remove_pod(nodes.pods[0][first.uid], 0)
    assert plugin.filter(None, new, nodes).passed[0]
    assert (0,) == _place(plugin, snapshot, new.pod, "node-0")


def test_existing_pods_are_assumed_on_the_fullest_devices() -> None:
    """A part of 300 beside one of 700 leaves the second device free."""
    plugin = _plugin("BestFit")
    there = [_pod("a", 100, 700, "node-0"), _pod("b", 100, 300, "node-0")]
    snapshot = make_snapshot([make_node("node-0", allocatable={GPU: 2_000})], there)
    pod = PodInfo(_pod("new", 100, 1_000))
    plugin.pre_filter(CYCLE, pod, snapshot)
    assert [[0, 1_000]] == plugin.gpus(snapshot.nodes).free.tolist()
    assert (1,) == _place(plugin, snapshot, pod.pod, "node-0")


def test_devices_of_a_later_node() -> None:
    """It may have more than earlier nodes."""
    plugin, snapshot = _plugin("BestFit"), _cluster(1)
    _place(plugin, snapshot, _pod("a", 100, 600), "node-0")
    snapshot.nodes.add_node(make_node("later", allocatable={GPU: 2_000}))
    assert [[400, 0], [1_000, 1_000]] == plugin.gpus(snapshot.nodes).free.tolist()


def test_one_and_a_half_gpus_are_rejected() -> None:
    """The message has the amount."""
    plugin, snapshot = _plugin("BestFit"), _cluster(2)
    found = plugin.pre_filter(CYCLE, PodInfo(_pod("a", 100, 1_500)), snapshot).status
    expected = "1500 GPU milli are neither a part of one GPU nor whole GPUs"
    assert (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, expected) == (found.code, found.message)


# Scores.


class TwinNode:
    """A node in plain Python, as policies may see it."""

    def __init__(self, nodes: NodeColumns, row: int, free: list[int]) -> None:
        self.cpu: int = int(nodes.allocatable_of("cpu")[row] - nodes.requested_of("cpu")[row])
        self.free = free
        self.model = nodes.label(sharing.MODEL_LABEL)[row] or ""
        self.millis = [info.template.requests.get(GPU, 0) for info in nodes.pods[row].values()]


def _request(milli: int) -> tuple[int, int]:
    """Return the number of GPUs and the amount of each."""
    return (max(milli // 1_000, 1), min(milli, 1_000)) if milli else (0, 0)


def _dot_product(node: TwinNode, cpu: int, milli: int) -> int:
    product = Fraction(node.cpu * cpu, 128_000**2) + Fraction(sum(node.free) * milli, 8_000**2)
    return int(100 * (1 - product / 2))


def _best_fit(node: TwinNode, cpu: int, milli: int) -> int:
    left = Fraction(node.cpu - cpu, 128_000) + Fraction(sum(node.free) - milli, 8_000)
    return int(100 * (1 - left / 2))


def _clustering(node: TwinNode, _cpu: int, milli: int) -> int:
    if not milli:
        return 0
    kinds = {_kind(other) for other in node.millis if other}
    bonus = 25 if not kinds else 0
    if _kind(milli) in kinds:
        bonus = 75 if len(kinds) == 1 else 50
    return bonus + 25 * (8_000 - sum(node.free)) // 8_000


def _kind(milli: int) -> str:
    return "share" if milli < 1_000 else f"{milli // 1_000}-gpu"


def _packing(node: TwinNode, _cpu: int, milli: int) -> int:
    if not milli:
        return 0
    number, each = _request(milli)
    free = node.free.count(1_000)
    if free == len(node.free):
        return 33 - free
    chosen = sorted(left for left in node.free if left >= each)[:number]
    if 1_000 in chosen:
        return max(33, 50 - chosen.count(1_000))
    return max(50, 100 - sum(left * 100 // 1_000 for left in chosen) // 10)


def _fragmented(cpu: int, free: list[int], model: str) -> int:
    """Sum, over the kinds of pods, the free GPU that a kind cannot use."""
    total = 0
    for kind in KINDS:
        enough = [left for left in free if left >= kind.gpu_milli]
        suits = cpu >= kind.milli_cpu and (not kind.models or model in kind.models)
        uses = kind.gpus and suits and len(enough) >= kind.gpus
        total += kind.pods * (sum(free) - (sum(enough) if uses else 0))
    return total


def _fgd_of(node: TwinNode, cpu: int, after: list[int]) -> int:
    before = _fragmented(node.cpu, node.free, node.model)
    growth = _fragmented(node.cpu - cpu, after, node.model) - before
    return int(100 / (1 + exp(growth / sum(kind.pods for kind in KINDS) / 1_000)))


def _fgd_devices(node: TwinNode, cpu: int, milli: int) -> list[int]:
    """Return the score of each device for a part, UNFIT if it does not fit."""
    return [
        _fgd_of(node, cpu, [*node.free[:at], left - milli, *node.free[at + 1 :]])
        if left >= milli
        else -1
        for at, left in enumerate(node.free)
    ]


def _fgd(node: TwinNode, cpu: int, milli: int) -> int:
    number, each = _request(milli)
    if 0 < each < 1_000:
        return max(_fgd_devices(node, cpu, milli))
    order = count()
    after = [0 if number and left == 1_000 and next(order) < number else left for left in node.free]
    return _fgd_of(node, cpu, after)


TWINS = {
    "DotProduct": _dot_product,
    "GpuClustering": _clustering,
    "GpuPacking": _packing,
    "BestFit": _best_fit,
    "FragmentationGradientDescent": _fgd,
}


@pytest.mark.parametrize("policy", TWINS)
@pytest.mark.parametrize("seed", range(4))
def test_scores_equal_those_of_a_twin(policy: str, seed: int) -> None:
    """For each feasible node: in the table, among some rows, and alone."""
    plugin = _plugin(policy)
    snapshot, twin = _random_cluster(plugin, Random(seed))
    nodes = snapshot.nodes
    compared = 0
    for cpu, milli in ((1_000, 0), (3_000, 300), (8_000, 810), (500, 1_000), (9_000, 2_000)):
        pod = PodInfo(_pod("new", cpu, milli))
        passed = plugin.filter(None, pod, nodes).passed
        scores = plugin.score(None, pod, nodes).tolist()
        rows = [
            row
            for row in np.flatnonzero(passed).tolist()
            if nodes.requested_of("cpu")[row] + cpu <= 32_000
        ]
        expected = [TWINS[policy](TwinNode(nodes, row, twin[row]), cpu, milli) for row in rows]
        assert expected == [scores[row] for row in rows]
        assert expected == plugin.score(None, pod, nodes.take(np.array(rows, np.intp))).tolist()
        alone = [plugin.score(None, pod, nodes.row_view(row))[0] for row in rows]
        assert expected == alone
        for _ in range(2):
            # FGD remembers what it has computed.
            assert expected == [plugin.score_row(None, pod, nodes, row) for row in rows]
        found = [plugin.filter_row(None, pod, nodes, row).is_success for row in range(len(nodes))]
        assert passed.tolist() == found
        assert all(0 <= score <= 100 for score in scores)
        compared += len(rows)
    assert compared > 10


@pytest.mark.parametrize("seed", range(4))
def test_fgd_chooses_the_first_best_device(seed: int) -> None:
    """Best by the twin."""
    plugin, random = _plugin("FragmentationGradientDescent"), Random(seed)
    snapshot, twin = _random_cluster(plugin, random)
    nodes = snapshot.nodes
    compared = 0
    for row, free in enumerate(twin):
        milli = random.choice([200, 500, 810])
        node = TwinNode(nodes, row, free)
        if any(left >= milli for left in free) and node.cpu >= 1_000:
            scores = _fgd_devices(node, 1_000, milli)
            pod = _pod(f"new-{row}", 1_000, milli)
            expected = (scores.index(max(scores)),)
            assert expected == _place(plugin, snapshot, pod, f"node-{row}")
            compared += 1
    assert compared > 1


@pytest.mark.parametrize("seed", range(4))
def test_fragmentation_equals_that_of_a_twin(seed: int) -> None:
    """The sum over kinds and devices."""
    plugin = _plugin("FragmentationGradientDescent")
    snapshot, twin = _random_cluster(plugin, Random(seed))
    target = fragmentation.Target(KINDS)
    nodes = [TwinNode(snapshot.nodes, row, free) for row, free in enumerate(twin)]
    expected = [_fragmented(node.cpu, node.free, node.model) for node in nodes]
    assert expected == [_fragmented_for(target, n.cpu, n.free, n.model) for n in nodes]


def _fragmented_for(target: Any, cpu: int, free: list[int], model: str = "") -> int:
    usable = target.usable(target.code_of(model), target.step_of(cpu), tuple(sorted(free)))
    return int(target.pods * sum(free) - usable)


def test_fragmentation_by_hand() -> None:
    """Of 1400 free, a kind of 600 can use one device with 1000, one of two GPUs none."""
    kinds = (
        fgd.TargetKind(milli_cpu=1_000, gpus=1, gpu_milli=600, pods=3),
        fgd.TargetKind(milli_cpu=1_000, gpus=2, gpu_milli=1_000, pods=1),
    )
    target = fragmentation.Target(kinds)
    found = [_fragmented_for(target, cpu, [1_000, 400]) for cpu in (8_000, 500)]
    assert [3 * 400 + 1_400, 4 * 1_400] == found


# node-0: two GPUs, one with 600 left; node-1: two free; node-2: four, of which two are taken.
BY_HAND = [
    # A small pod multiplies little with what is free.
    ("DotProduct", 300, [99, 99, 99]),
    ("DotProduct", 4_000, [94, 93, 93]),
    # Only its own kind, none, only another kind; and up to 25 for few free GPUs.
    ("GpuClustering", 300, [75 + 20, 25 + 18, 0 + 18]),
    ("GpuClustering", 2_000, [0 + 20, 25 + 18, 75 + 18]),
    ("GpuPacking", 300, [94, 31, 49]),
    ("GpuPacking", 1_000, [49, 31, 49]),
    ("GpuPacking", 2_000, [48, 31, 48]),
    ("BestFit", 300, [80, 77, 78]),
    ("GpuPacking", 0, [0, 0, 0]),
    ("GpuClustering", 0, [0, 0, 0]),
]


@pytest.mark.parametrize(("policy", "milli", "expected"), BY_HAND)
def test_scores_by_hand(policy: str, milli: int, expected: list[int]) -> None:
    """Three small nodes."""
    plugin, snapshot = _plugin(policy), _cluster(2, 2, 4)
    _place(plugin, snapshot, _pod("part", 2_000, 400), "node-0")
    _place(plugin, snapshot, _pod("whole", 2_000, 2_000), "node-2")
    pod = PodInfo(_pod("new", 1_000, milli))
    assert expected == plugin.score(None, pod, snapshot.nodes).tolist()


def test_fgd_scores_by_hand() -> None:
    """Filling a device leaves no fragment; a new one leaves 400 that the kind cannot use."""
    kinds = (fgd.TargetKind(milli_cpu=1_000, gpus=1, gpu_milli=600),)
    args = fgd.FragmentationGradientDescentArgs(target=kinds)
    plugin = fgd.FragmentationGradientDescent(args, FakeHandle())
    snapshot = _cluster(1, 1)
    _place(plugin, snapshot, _pod("part", 1_000, 400), "node-0")
    pod = PodInfo(_pod("new", 1_000, 600))
    expected = [50, int(100 / (1 + exp(0.4)))]
    assert expected == plugin.score(None, pod, snapshot.nodes).tolist()


def test_random_scores_one_feasible_node() -> None:
    """With 100; each feasible node is chosen at times, and no other."""
    plugin, snapshot = _plugin("RandomNode"), _cluster(1, 1, 1, 1)
    pod, feasible = PodInfo(_pod("new", 1_000)), all_rows(snapshot)
    feasible[1] = False
    drawn = set()
    for _ in range(40):
        state = plugin.pre_score(CYCLE, pod, snapshot, feasible).state
        scores = plugin.score(state, pod, snapshot.nodes).tolist()
        assert [0, 0, 0, 100] == sorted(scores)
        drawn.add(scores.index(100))
    assert {0, 2, 3} == drawn


def test_fgd_needs_a_target() -> None:
    """The field error has the path."""
    with pytest.raises(ConfigError) as refused:
        fgd.FragmentationGradientDescent.decode_args({}, FakeHandle(), "args")
    assert ["args.target: Required value: name at least one kind of pod"] == [
        str(error) for error in refused.value.errors
    ]
