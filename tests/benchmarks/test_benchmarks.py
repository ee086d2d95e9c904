"""The benchmarks run: every workload places its pods, every kernel works."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from benchmarks.__main__ import main
from benchmarks.footprint import measure_footprint
from benchmarks.history import Record, append, last, new_record
from benchmarks.kernels import kernels
from benchmarks.live import measure_live
from benchmarks.long import growth, measure_long
from benchmarks.loop import measure_loop
from benchmarks.objects import Objects
from benchmarks.openb import measure_openb
from benchmarks.scaling import Scaling, measure_scaling
from benchmarks.scene import Scene
from benchmarks.tables import Table, caption, tables
from benchmarks.throughput import Run, load
from benchmarks.workloads import WORKLOADS, Nodes, Workload, workload

from benchmarks import plugins, templates, timing
from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim

ROOT = Path(__file__).resolve().parents[2]

each_workload = pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in WORKLOADS]
)


@each_workload
def test_every_workload_places_its_pods(case: Workload) -> None:
    """At a hundredth of its size."""
    run, seconds = load(case.divided(100))
    found = run.measure(seconds)
    assert len(run.pods) == found.placed == found.pods
    assert {} == run.cluster.pending
    run.cluster.cache.check()


def test_workloads_have_upstreams_names() -> None:
    """Each once, and `workload` finds them."""
    names = [case.name for case in WORKLOADS]
    assert 25 == len(set(names)) == len(names)
    assert WORKLOADS == tuple(map(workload, names))


@pytest.mark.parametrize(
    ("name", "nodes", "before", "measured"),
    [
        pytest.param("SchedulingBasic", 5000, 1000, 10_000, id="basic"),
        pytest.param("MixedSchedulingBasePod", 5000, 10_000, 5000, id="five kinds before"),
        pytest.param(
            "SchedulingRequiredPodAntiAffinityWithNSSelector", 6000, 4000, 2000, id="namespaces"
        ),
        pytest.param("SchedulingDaemonset", 15_001, 0, 30_000, id="one node more"),
    ],
)
def test_workload_sizes_equal_upstreams(name: str, nodes: int, before: int, measured: int) -> None:
    """They are those of the largest performance size."""
    case = workload(name)
    assert (nodes, before, measured) == (case.node_count, case.before_count, case.measured.count)


def test_pods_of_a_template_share_no_objects() -> None:
    """They are equal but for their names."""
    case = workload("SchedulingPodAffinity").divided(1000)
    pods, _ = Objects(case).pods(case.measured)
    first, second = pods[:2]
    assert first.spec == second.spec
    assert first.spec.containers[0] is not second.spec.containers[0]
    assert first.metadata.labels is not second.metadata.labels
    assert len(pods) == len({pod.metadata.uid for pod in pods})


def test_pods_are_created_namespace_by_namespace() -> None:
    """Forty in each of a hundred."""
    case = workload("SchedulingPreferredAntiAffinityWithNSSelector")
    pods, _ = Objects(case).pods(case.before[0])
    spaces = [pod.metadata.namespace for pod in pods]
    assert {f"init-ns-{at}": 40 for at in range(100)} == dict(Counter(spaces))
    assert ["init-ns-0"] * 40 == spaces[:40]


def _nodes_of_green_pods(run: Run) -> list[str]:
    nodes = run.cluster.cache.nodes
    return [
        name
        for name, pods in zip(nodes.names, nodes.pods, strict=True)
        for info in pods.values()
        if info.labels.get("color") == "green"
    ]


def test_anti_affinity_is_respected() -> None:
    """No node has two pods that avoid each other, although room is scarce."""
    run, seconds = load(workload("SchedulingRequiredPodAntiAffinityWithNSSelector").divided(100))
    run.measure(seconds)
    names = _nodes_of_green_pods(run)
    assert 60 == len(names) == len(set(names))


def test_preemption_evicts_three_pods_per_node() -> None:
    """A pod of 3000m takes the place of three of 900m."""
    run, seconds = load(workload("PreemptionBasic").divided(100))
    found = run.measure(seconds)
    assert 2 * found.pods == found.cycles
    assert [2] * 10 == [len(pods) for pods in run.cluster.cache.nodes.pods]


def test_devices_are_allocated_once() -> None:
    """At the end every claim has a device, and no device two claims."""
    run, seconds = load(workload("SchedulingWithResourceClaimTemplate").divided(100))
    run.measure(seconds)
    claims = run.cluster.cache.objects.list(ResourceClaim)
    allocations = [claim.status.allocation for claim in claims]
    devices = {
        (result.pool, result.device)
        for allocation in allocations
        if allocation is not None
        for result in allocation.devices.results
    }
    assert 50 == len(allocations) == len(devices)


def test_churn_pods_are_not_counted() -> None:
    """They never fit, but decisions about them cost time."""
    case = workload("Unschedulable").divided(50)
    run, seconds = load(case)
    found = run.measure(seconds)
    assert (200, 203) == (found.placed, found.cycles)


def test_traced_and_untraced_decisions_alternate() -> None:
    """The given number of either kind."""
    run, _ = load(workload("SchedulingBasic").divided(100))
    assert 20 == run.measure_tracing(20).pods


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Return a small busy cluster."""
    return Scene(40)


def test_kernels_can_be_repeated(scene: Scene) -> None:
    """They leave the cluster unchanged."""
    named = dict(kernels(scene))
    for kernel in named.values():
        kernel()
        kernel()
    scene.cluster.cache.check()
    assert {"coded map", "select_host", "preemption, four victims a node"} <= named.keys()


def test_pods_of_a_plugins_kernel_reach_the_plugin(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They reach its filter or score."""

    def once(function: Callable[[], object]) -> float:
        function()
        return 1.0

    monkeypatch.setattr(plugins, "time_us", once)
    found = plugins.measure_plugins(scene)
    for kind, names in plugins.AIMS.items():
        assert names == () or any(found[kind][name].keys() & {"filter"} for name in names), kind
    assert {"NodeResourcesFit"} == plugins.measure_plugins(scene, "resourcesfit")["plain"].keys()


def test_times_are_in_microseconds() -> None:
    """Ten times the work takes longer."""
    few = timing.time_us(lambda: sum(range(1000)), round_seconds=0.0005)
    many = timing.time_us(lambda: sum(range(100_000)), round_seconds=0.0005)
    assert 0 < few < many


@pytest.mark.slow
def test_scaling_compares_largest_and_smallest() -> None:
    """Sizes alternate; there is one ratio per repeat."""
    found = measure_scaling((50, 100), turns=1)
    assert [50, 100] == list(found.pod_us)
    assert 3 == len(found.ratios)
    assert sorted(found.ratios)[1] == found.ratio


def test_the_loop_binds_every_pod() -> None:
    """Every arrival is confirmed by the watch."""
    found = measure_loop(20, 150)
    assert (20, 150, 150) == (found.nodes, found.pods, found.bound)
    assert 0 < found.virtual_seconds < 1


@pytest.mark.slow
def test_long_runs_are_simulated() -> None:
    """For the given hours, with arrivals at the expected rate."""
    found = measure_long(50, 20)
    assert (50, 20) == (found.nodes, found.virtual_hours)
    assert 300 < found.pods < 700
    assert found.bound > found.pods / 2


@pytest.mark.slow
def test_a_live_scheduler_binds_every_pod() -> None:
    """The process is measured."""
    found = measure_live(5, 50)
    assert (5, 50, 50) == (found.nodes, found.pods, found.bound)
    assert found.cpu_ms_per_pod > 0
    assert found.rss_mib > 0
    assert found.server_rss_mib > 0


@pytest.mark.slow
def test_a_scheduler_lists_a_full_cluster() -> None:
    """The process is measured."""
    found = measure_footprint(5, 50, settled_seconds=0.5)
    assert (5, 50) == (found.nodes, found.pods)
    assert found.cpu_seconds > 0
    assert found.rss_mib > 0


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([], 0.0, id="none"),
        pytest.param([1, 5, 5, 10, 10, 10, 10, 10], 0.3333, id="still-filling"),
        pytest.param([1, 1, 10, 10, 10, 10, 10, 10], 0.0, id="full"),
        pytest.param([10, 10, 10, 10, 12, 14, 15, 15], 0.5, id="growing"),
    ],
)
def test_growth_compares_the_last_quarter_with_the_second(
    samples: list[float], expected: float
) -> None:
    """The first one fills the cluster."""
    assert expected == growth(samples)


@pytest.mark.slow
def test_traces_are_replayed_spread_and_packed() -> None:
    """With the synthetic trace if the real one is missing."""
    found = measure_openb(None, 1)
    assert ["spread", "pack"] == list(found)
    assert found["spread"].pods == found["pack"].pods > 0


def _record() -> Record:
    run, seconds = load(workload("SchedulingBasic").divided(500))
    return msgspec.structs.replace(
        new_record(),
        throughput={"SchedulingBasic": run.measure(seconds)},
        plugins={"plain": {"NodePorts": {"filter": 1.25}}},
        kernels={"coded map": {500: 12.0, 5000: 123.0}},
        scaling=Scaling({500: 50.0, 5000: 60.0}, (1.2, 1.1, 1.3), 1.2),
    )


def test_history_keeps_one_line_per_run(tmp_path: Path) -> None:
    """The last one is read as it was written."""
    path, record = tmp_path / "history.jsonl", _record()
    assert last(path) is None
    append(new_record(), path)
    append(record, path)
    assert 2 == len(path.read_text().splitlines())
    assert record == last(path)


def test_tables_show_every_suite() -> None:
    """One table per suite, with kube-scheduler's figures beside ours."""
    record = _record()
    shown = list(tables(record))
    assert ["Throughput", "Plugins, µs per pod", "Kernels, µs per call"] == [
        table.title for table in shown[:3]
    ]
    assert ("482-534", "1,830", "1,229") == tuple(shown[0].rows[0][-3:])
    assert ("coded map", "12", "123") == tuple(shown[2].rows[0])
    quick = msgspec.structs.replace(record, is_quick=True)
    assert ("-", "-", "-") == tuple(next(tables(quick)).rows[0][-3:])
    assert record.commit in caption(record)


def test_tables_align_names_left_and_figures_right() -> None:
    """As text and as Markdown."""
    table = Table("Title", ("name", "µs"), (("a", "1"), ("long name", "1,000")))
    expected = "Title\n\nname          µs\na              1\nlong name  1,000\n"
    assert expected == table.text()
    assert "### Title\n\n| name | µs |\n| --- | --: |\n| a | 1 |" in table.markdown()


@pytest.mark.slow
def test_the_command_prints_its_record() -> None:
    """For a quick run of one workload."""
    words = ["throughput", "--quick", "--only", "secrets", "--no-history", "-o", "json"]
    command = [sys.executable, "-m", "benchmarks", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)  # noqa: S603 - ours
    record = msgspec.json.decode(done.stdout, type=Record)
    assert ["SchedulingSecrets"] == list(record.throughput)
    assert record.is_quick


def test_an_unknown_workload_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, one line, nothing appended."""
    assert 2 == main(["throughput", "--only", "nothing of the kind"])
    assert "nothing contains" in capsys.readouterr().err


def test_divided_workloads_keep_every_kind() -> None:
    """However small, there is a node and a pod of each kind."""
    case = workload("SchedulingWithNodeInclusionPolicy").divided(100_000)
    assert (1, 1) == tuple(nodes.count for nodes in case.nodes)
    assert 1 == case.measured.count
    zones = replace(case, nodes=(Nodes(4, zones=("a", "b")),))
    found = [item.metadata.labels[templates.ZONE] for item in list(Objects(zones).cluster())[:4]]
    assert ["a", "b", "a", "b"] == found


def test_every_template_is_decoded() -> None:
    """Each key of the table."""
    for name in templates.PODS:
        case = replace(workload("SchedulingBasic").measured, count=1, template=name)
        pods, _ = Objects(workload("SchedulingBasic")).pods(case)
        assert isinstance(pods[0], Pod), name
