"""Whole simulations: the production scheduler in a simulated world."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.timeline_report import TimelineReport

HARD = """
version: 1
name: hard
duration: 12m
nodes:
  - {name: small, count: 4, allocatable: {cpu: 4, memory: 8Gi, pods: 12}, zones: [a, b]}
  - {name: late, count: 1, at: 8m, allocatable: {cpu: 8, memory: 8Gi}, zones: [c]}
priorityClasses:
  - {name: high, value: 1000}
  - {name: polite, value: 900, preemptionPolicy: Never}
workloads:
  - name: batch
    pods: {perHour: 200, runTime: {exponential: 3m}, restart: true}
    requests: {cpu: 1, memory: 512Mi}
  - name: urgent
    pods: {every: 2m, burst: 4, runTime: {fixed: 1m}}
    requests: {cpu: 2, memory: 1Gi}
    priorityClassName: high
  - name: polite
    pods: {every: 90s, burst: 2, runTime: {uniform: {min: 10s, max: 2m}}}
    requests: {cpu: 1500m, memory: 1Gi}
    priorityClassName: polite
  - name: web
    deployment: {replicas: 5, scale: [{at: 5m, replicas: 8}, {at: 9m, replicas: 3}]}
    requests: {cpu: 500m, memory: 512Mi}
  - name: agent
    daemonSet: {}
    requests: {cpu: 100m, memory: 64Mi}
events:
  - {at: 3m, every: 6m, drain: {names: ["small-*"], count: 1}}
  - {at: 5m, every: 6m, uncordon: {}}
  - {at: 4m, every: 5m, fail: {names: ["small-*"], count: 1, duration: 2m}}
  - {at: 2m, every: 3m, delete: {names: ["web-*", "batch-*"], count: 3}}
  - {at: 6m, label: {names: ["small-1"], set: {topology.kubernetes.io/zone: c}}}
  - {at: 10m, remove: {names: ["small-3"]}}
faults:
  bind: {conflict: 0.1, error: 0.1, unanswered: 0.05, slow: 0.2, slowBy: 10s}
  status: {conflict: 0.3, unanswered: 0.1, slow: 0.2}
  delete: {error: 0.3, unanswered: 0.1, slow: 0.2}
  watch: {every: 1m, outage: 10s, expired: 0.5}
  deletedWhileBinding: 0.05
latencies: {watch: 200ms, request: 100ms, nodeFailureDetection: 20s}
report: {checkEvery: 20s}
"""


CLASS_A = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 1}"


def _simulate(raw: object, **options: Any) -> TimelineReport:
    assert isinstance(raw, str | dict)
    return simulate(load_scenario(raw), in_tree_registry(), **options)


def _scenario(**fields: Any) -> dict[str, Any]:
    nodes = [{"name": "node", "count": 2, "allocatable": {"cpu": 4, "memory": "8Gi"}}]
    return {"version": 1, "duration": "1h", "nodes": nodes, **fields}


def _pods(count: int, **fields: Any) -> dict[str, Any]:
    pods = {"every": "1m", "count": count, "runTime": {"fixed": "10m"}}
    return {"name": "w", "pods": pods, "requests": {"cpu": 1}, **fields}


def test_pods_arrive_run_and_finish() -> None:
    """If there is room, they are bound at once."""
    report = _simulate(_scenario(workloads=[_pods(20, requests={"cpu": "500m"})]))
    totals = report.totals
    assert (totals.arrived, totals.bound, totals.finished, totals.pending) == (20, 20, 20, 0)
    highest = report.waits[0].max_seconds
    assert highest is not None
    assert highest < 1.0
    assert report.checks > 100


def test_pods_wait_in_a_full_cluster() -> None:
    """Eight pods of ten minutes fit; the others wait for them."""
    workload = _pods(16)
    workload["pods"]["every"] = "1s"
    report = _simulate(_scenario(workloads=[workload]))
    assert report.totals.finished == 16
    wait = report.waits[0].max_seconds
    assert wait is not None
    assert 580 < wait < 640
    assert report.resources[0].peak_share == 1.0


def test_equal_rejections_write_no_status() -> None:
    """Each finished pod requeues all pending ones; their condition does not change."""
    workload = _pods(16)
    workload["pods"]["every"] = "1s"
    report = _simulate(_scenario(workloads=[workload]))
    sent = {request.kind: request.sent for request in report.requests}
    assert report.totals.rejected > 30
    assert sent["status"] == 8


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param({"drain": {"names": ["node-0"]}}, {"drained": 4, "lost": 4}, id="drain"),
        pytest.param(
            {"drain": {"names": ["node-0"], "disableEviction": True}},
            {"drained": 4, "lost": 4},
            id="drain without eviction",
        ),
        pytest.param({"fail": {"names": ["node-0"]}}, {"evicted": 4}, id="fail"),
        pytest.param(
            {"fail": {"names": ["node-0"], "duration": "1m"}}, {"restarted": 4}, id="recover"
        ),
        pytest.param({"remove": {"names": ["node-0"]}}, {"removed": 4, "lost": 4}, id="remove"),
        pytest.param({"delete": {"names": ["w-0"]}}, {"lost": 1}, id="delete"),
    ],
)
def test_pods_stopped_by_their_node(event: dict[str, Any], expected: dict[str, int]) -> None:
    """The totals count what happened to them."""
    workload = _pods(8, pods={"at": ["0s"], "burst": 8})
    totals = _simulate(
        _scenario(workloads=[workload], events=[{"at": "10m", **event}], duration="30m")
    ).totals
    names = ("drained", "evicted", "removed", "restarted", "lost", "disrupted")
    found = {name: getattr(totals, name) for name in names}
    assert {name: count for name, count in found.items() if count} == expected


def test_an_empty_cluster_is_no_deadlock() -> None:
    """The simulation ends at its duration."""
    report = _simulate({"version": 1, "duration": "10m"})
    assert report.duration_seconds == 600.0
    assert report.totals.arrived == 0


def test_the_decision_log_is_in_order_of_time() -> None:
    """One line per decision and binding."""
    lines: list[bytes] = []
    report = _simulate(_scenario(workloads=[_pods(3)]), write_decision=lines.append)
    decoded = [msgspec.json.decode(line) for line in lines]
    assert len(lines) == report.decisions
    assert ["placed", "bound"] * 3 == [line["what"] for line in decoded]
    assert [line["at"] for line in decoded] == sorted(line["at"] for line in decoded)
    assert decoded[0]["pod"] == "default/w-0"


def test_rejections_in_the_log_have_upstreams_message() -> None:
    """It counts the nodes by reason."""
    lines: list[bytes] = []
    big = _pods(1, requests={"cpu": 9})
    report = _simulate(_scenario(workloads=[big]), write_decision=lines.append)
    first = msgspec.json.decode(lines[0])
    assert (first["what"], report.totals.pending) == ("rejected", 1)
    assert first["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_preemption_in_a_scenario() -> None:
    """Urgent pods evict others, and victims that restart are pending again."""
    low = _pods(8, name="low")
    low["pods"] |= {"every": "1s", "restart": True, "runTime": {"fixed": "20m"}}
    high = _pods(1, name="high", priorityClassName="high")
    high["pods"]["start"] = "5m"
    classes = [{"name": "high", "value": 10}]
    report = _simulate(_scenario(workloads=[low, high], priorityClasses=classes))
    overall, urgent, usual = report.waits
    assert report.totals.disrupted == usual.disrupted == 1
    assert urgent.bound == 1
    assert urgent.max_seconds is not None
    assert urgent.max_seconds < 60
    assert report.totals.finished == 9
    assert overall.arrived == 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_invariants_hold_with_all_failures_at_once(seed: int) -> None:
    """Pods are bound in the end."""
    report = _simulate(HARD, seed=seed)
    totals = report.totals
    assert totals.arrived == totals.bound + totals.gave_up + totals.pending
    assert totals.bound > 50
    assert totals.binding_failures > 0
    assert report.relists > 0


@pytest.mark.slow
def test_equal_seeds_give_equal_bytes() -> None:
    """Report and log do not depend on PYTHONHASHSEED."""
    code = (
        "import sys, msgspec\n"
        "from kubesched.plugins.registry import in_tree_registry\n"
        "from kubesched.simulator.run import simulate\n"
        "from kubesched.simulator.scenario_loading import load_scenario\n"
        "scenario = load_scenario(sys.stdin.read())\n"
        "report = simulate(scenario, in_tree_registry(), seed=5)\n"
        "sys.stdout.buffer.write(msgspec.json.encode(report))\n"
    )
    source = Path(__file__).parents[2] / "src"
    outputs = [
        subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", code],
            input=HARD.replace("12m\n", "4m\n", 1).encode(),
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(source)},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    ]
    assert outputs[0] == outputs[1]
    assert msgspec.json.decode(outputs[0], type=TimelineReport).decisions > 100


def test_different_seeds_differ() -> None:
    """Their reports have different digests."""
    workload = _pods(50)
    workload["pods"] = {"perHour": 50}
    digests = [_simulate(_scenario(workloads=[workload]), seed=seed) for seed in (1, 2)]
    assert digests[0].decision_digest != digests[1].decision_digest


def test_watch_failures_do_not_change_arrivals() -> None:
    """Each has its own random stream."""
    workload = _pods(0)
    workload["pods"] = {"perHour": 50, "runTime": {"exponential": "5m"}}
    quiet = _simulate(_scenario(workloads=[workload]))
    faults = {"watch": {"every": "1m"}, "status": {"conflict": 0.5}}
    troubled = _simulate(_scenario(workloads=[workload], faults=faults))
    assert quiet.totals.arrived == troubled.totals.arrived
    assert troubled.relists > 0


def test_the_scenarios_configuration_is_used() -> None:
    """Its scoring puts all pods on one node instead of two."""
    args = {"scoringStrategy": {"type": "MostAllocated"}}
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}
    profile = {
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
        "plugins": {"score": score},
    }
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configuration = {**kind, "profiles": [profile]}
    lines: list[bytes] = []
    _simulate(
        _scenario(workloads=[_pods(4)], scheduler={"configuration": configuration}),
        write_decision=lines.append,
    )
    nodes = {line["node"] for line in map(msgspec.json.decode, lines) if line["what"] == "bound"}
    assert len(nodes) == 1


def test_invalid_scheduler_configurations() -> None:
    """Unknown kinds and feature gates are field errors."""
    with pytest.raises(ConfigError):
        _simulate(_scenario(scheduler={"configuration": {"kind": "Other"}}))
    with pytest.raises(ConfigError):
        _simulate(_scenario(scheduler={"featureGates": {"NoSuchGate": True}}))


def test_a_cluster_of_files(tmp_path: Path) -> None:
    """Nodes and pods of a trace, and other objects."""
    (tmp_path / "nodes.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nbig,8000,8192,0,\n", encoding="utf-8"
    )
    (tmp_path / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,creation_time,deletion_time,scheduled_time\n"
        "one,1000,512,0,100,400,100\ntwo,1000,512,0,200,900,200\n",
        encoding="utf-8",
    )
    (tmp_path / "more.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: resident}\n"
        "spec: {nodeName: big, containers: [{name: c}]}\n",
        encoding="utf-8",
    )
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "version: 1\nduration: 1h\nobjects: [more.yaml]\nnodes: [{trace: nodes.csv}]\n"
        "workloads: [{name: t, trace: {pods: pods.csv, speed: 2}}]\n",
        encoding="utf-8",
    )
    lines: list[bytes] = []
    report = simulate(load_scenario(path), in_tree_registry(), write_decision=lines.append)
    assert (report.totals.arrived, report.totals.finished, report.totals.running) == (2, 2, 1)
    bound = [msgspec.json.decode(line)["at"] for line in lines if b'"bound"' in line]
    assert pytest.approx([0.0, 50.0], abs=0.1) == bound


def test_workloads_with_names_of_objects(tmp_path: Path) -> None:
    """An object of the same kind is a field error."""
    file = tmp_path / "objects.yaml"
    file.write_text("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web}\n")
    replicas = {"name": "web", "deployment": {"replicas": 1}}
    scenario = _scenario(objects=[str(file)], workloads=[{"name": "a", "daemonSet": {}}, replicas])
    with pytest.raises(ConfigError, match=r'^workloads\[1\]\.name: Duplicate value: "web"$'):
        _simulate(scenario)


@pytest.mark.parametrize("start", ["0s", "30m"])
def test_names_that_are_taken_when_pods_and_nodes_come(tmp_path: Path, start: str) -> None:
    """They are errors of their fields: the report would lack what they name."""
    jobs, nodes = tmp_path / "jobs.csv", tmp_path / "nodes.csv"
    jobs.write_text("name,arrival\nj1,0\n")
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nworker-0,1000,1000,0,\n")
    trace = {"pods": str(jobs)}
    traces = [{"name": "a", "trace": trace}, {"name": "b", "trace": {**trace, "start": start}}]
    with pytest.raises(ConfigError, match=r'^workloads\[1\]: pods "j1" already exists$'):
        _simulate(_scenario(workloads=traces))
    group = {"name": "worker", "allocatable": {"cpu": 1}}
    with pytest.raises(ConfigError, match=r'^nodes\[1\]: nodes "worker-0" already exists$'):
        _simulate(_scenario(nodes=[group, {"trace": str(nodes), "at": start}]))
    other = {**traces[1], "namespace": "other"}
    assert 2 == _simulate(_scenario(workloads=[traces[0], other])).totals.arrived


def test_names_of_restarted_pods_that_are_taken() -> None:
    """As those of other pods: the number of the run is part of the name."""
    other = {"name": "web-0", "pods": {"at": ["0s", "1s"]}}
    runs = {"at": ["10s"], "restart": True, "runTime": {"fixed": "30s"}}
    with pytest.raises(ConfigError, match=r'^workloads: pods "web-0-1" already exists$'):
        _simulate(_scenario(workloads=[other, {"name": "web", "pods": runs}]))


def test_a_watch_can_stop_the_simulation() -> None:
    """The report is about the time until then, and is marked as partial."""
    seen: list[tuple[float, int, int]] = []

    def watch(now: float, attempts: int, bound: int) -> bool:
        seen.append((now, attempts, bound))
        return now < 600.0

    report = _simulate(_scenario(workloads=[_pods(20)]), watch=watch)
    assert report.partial
    assert 600.0 <= report.duration_seconds < 660.0
    totals = report.totals
    assert (report.duration_seconds, totals.attempts, totals.bound) == seen[-1]
    assert not _simulate(_scenario(workloads=[_pods(1)]), watch=lambda *_: True).partial


def test_checks_do_not_change_the_report() -> None:
    """They can be left out."""
    scenario = _scenario(workloads=[_pods(5)])
    checked, unchecked = _simulate(scenario), _simulate(scenario, checks=False)
    assert unchecked.checks == 0
    assert checked.decision_digest == unchecked.decision_digest


def test_classes_of_workloads_are_checked_with_the_objects(tmp_path: Path) -> None:
    """Pods of a class that does not exist would be missing without a word."""
    file = tmp_path / "classes.yaml"
    file.write_text(CLASS_A, encoding="utf-8")
    known, unknown = (_pods(1, priorityClassName=name) for name in "ab")
    assert 1 == _simulate(_scenario(objects=[str(file)], workloads=[known])).totals.arrived
    with pytest.raises(ConfigError, match=r"workloads\[0\].priorityClassName: Unsupported value: "):
        _simulate(_scenario(objects=[str(file)], workloads=[unknown]))


def test_objects_that_the_api_server_rejects(tmp_path: Path) -> None:
    """They are errors; the class of a pod may come after it."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {priorityClassName: a}\n---\n"
    file = tmp_path / "objects.yaml"
    file.write_text(f"{pod}{CLASS_A}", encoding="utf-8")
    assert 1 == _simulate(_scenario(objects=[str(file)])).totals.arrived
    file.write_text(pod, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"objects: .*no PriorityClass with name a was found"):
        _simulate(_scenario(objects=[str(file)]))


def test_a_class_in_a_row_of_a_trace_precedes_the_workloads(tmp_path: Path) -> None:
    """The workload's is for rows without."""
    file = tmp_path / "jobs.csv"
    file.write_text("name,arrival,priorityClassName\na,0,\nb,0,high\n", encoding="utf-8")
    classes = [{"name": "low", "value": 1}, {"name": "high", "value": 2}]
    jobs = {"name": "jobs", "trace": {"pods": str(file)}, "priorityClassName": "low"}
    report = _simulate(_scenario(priorityClasses=classes, workloads=[jobs]))
    assert ["all", "2", "1"] == [wait.priority for wait in report.waits]
