"""Objects that a scenario describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubesched.api.codec import DecodeError
from kubesched.simulator.scenario import (
    NodeGroup,
    PriorityClassSpec,
    ScenarioDaemonSet,
    ScenarioDeployment,
    ScenarioWorkload,
    TraceSpec,
)
from kubesched.simulator.scenario_objects import (
    daemon_set_of,
    nodes_of,
    pods_of_trace,
    priority_class_of,
    replica_set_of,
    template_of,
)
from kubesched.simulator.traces import run_seconds_of


def test_nodes_of_a_scenario() -> None:
    """Names are numbered, zones assigned in turn, and given fields override the template."""
    group = NodeGroup(
        name="gpu",
        count=3,
        allocatable={"cpu": 8},
        labels={"kind": "gpu"},
        taints=({"key": "gpu", "effect": "NoSchedule"},),
        zones=("a", "b"),
        template={
            "metadata": {"labels": {"kind": "cpu", "rack": "7"}},
            "status": {"allocatable": {"cpu": 4, "memory": "8Gi"}},
        },
    )
    nodes = list(nodes_of(group))
    assert ["gpu-0", "gpu-1", "gpu-2"] == [node.metadata.name for node in nodes]
    zones = [node.metadata.labels["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["a", "b", "a"]
    first = nodes[0]
    assert first.metadata.labels["kubernetes.io/hostname"] == "gpu-0"
    assert (first.metadata.labels["kind"], first.metadata.labels["rack"]) == ("gpu", "7")
    assert {"pods": 110, "cpu": 8, "memory": "8Gi"} == dict(first.status.allocatable)
    assert first.status.capacity == first.status.allocatable
    assert [taint.key for taint in first.spec.taints] == ["gpu"]


def test_the_template_of_a_workload() -> None:
    """Requests are the first container's; labels have the workload's name."""
    workload = ScenarioWorkload(
        name="web",
        requests={"cpu": "1"},
        labels={"tier": "front"},
        priority_class_name="high",
        template={
            "metadata": {"annotations": {"a": "b"}},
            "spec": {
                "containers": [
                    {"name": "one", "resources": {"requests": {"cpu": "5", "memory": "1Gi"}}},
                    {"name": "two"},
                ]
            },
        },
    )
    template = template_of(workload)
    assert (template.metadata.name, template.metadata.annotations) == ("", {"a": "b"})
    assert template.metadata.labels == {"app": "web", "tier": "front"}
    assert template.spec.priority_class_name == "high"
    one, two = template.spec.containers
    assert one.resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert two.resources.requests == {}


def test_a_workload_without_a_template() -> None:
    """It has one container without requests."""
    template = template_of(ScenarioWorkload(name="web"))
    assert [container.name for container in template.spec.containers] == ["main"]


def test_controllers_select_their_pods() -> None:
    """ReplicaSets and DaemonSets select the labels of their template."""
    workload = ScenarioWorkload(
        name="web", deployment=ScenarioDeployment(replicas=3), daemon_set=ScenarioDaemonSet()
    )
    template = template_of(workload)
    replica_set = replica_set_of(workload, template)
    daemon_set = daemon_set_of(workload, template)
    assert replica_set.spec.replicas == 3
    for selector in (replica_set.spec.selector, daemon_set.spec.selector):
        assert selector is not None
        assert selector.match_labels == {"app": "web"}


def test_a_priority_class() -> None:
    """The default preemption policy is Kubernetes'."""
    found = priority_class_of(PriorityClassSpec("high", 10))
    assert (found.metadata.name, found.value, found.preemption_policy) == ("high", 10, None)


# Traces in a table of one's own.

GPU = "nvidia.com/gpu"
TABLE = f"""name,arrival,duration,cpu,memory,{GPU},priorityClassName
late,7000,60000,500m,1Gi,,
early,5000,1000,1,,1,high
endless,6000,,,,,
"""


def _workload(file: Path, content: str | bytes, **more: Any) -> ScenarioWorkload:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    trace = TraceSpec(pods=str(file), **more)
    return ScenarioWorkload(
        name="jobs", namespace="lab", trace=trace, requests={"cpu": "250m"}, labels={"team": "x"}
    )


def test_pods_of_a_table(tmp_path: Path) -> None:
    """Times are divided by the speed, and count from the first arrival."""
    pods = pods_of_trace(_workload(tmp_path / "jobs.csv", TABLE, speed=1000.0), {"high"})
    assert [("early", 0.0, 1.0), ("endless", 1.0, None), ("late", 2.0, 60.0)] == [
        (pod.metadata.name, at, run_seconds_of(pod)) for at, pod in pods
    ]
    assert {("lab", "jobs", "x")} == {
        (pod.metadata.namespace, pod.metadata.labels["app"], pod.metadata.labels["team"])
        for _, pod in pods
    }
    requests = [dict(pod.spec.containers[0].resources.requests) for _, pod in pods]
    assert [{"cpu": "1", GPU: "1"}, {"cpu": "250m"}, {"cpu": "500m", "memory": "1Gi"}] == requests
    assert ["high", "", ""] == [pod.spec.priority_class_name for _, pod in pods]


def test_the_earliest_pods_are_kept(tmp_path: Path) -> None:
    """`count` limits them."""
    pods = pods_of_trace(_workload(tmp_path / "jobs.csv", TABLE, count=1), {"high"})
    assert ["early"] == [pod.metadata.name for _, pod in pods]


def test_openb_takes_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be ignored is an error."""
    monkeypatch.chdir(tmp_path)
    content = "name,cpu_milli,memory_mib,num_gpu\na,1,1,0\n"
    with pytest.raises(DecodeError) as raised:
        pods_of_trace(_workload(Path("pods.csv"), content), ())
    wanted = "pods of openb do not take requests and labels of workload jobs; leave that out"
    assert f"pods.csv: {wanted}" == str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,cpu\na,1\n", "line 1: column arrival is missing; a trace has name, arrival, dur"),
        ("name,arrival,cores\na,0,1\n", "line 1: column 'cores' is unknown; a trace has name"),
        ("name,arrival\na,0\na,1\n", "line 3: column 1 (name): 'a' is in jobs.csv: line 2 already"),
        ("name,arrival\na,-1\n", "column 2 (arrival): a number that is not negative is required"),
        ("name,arrival\na,2024-01-01\n", "not '2024-01-01'"),
        ("name,arrival\na,\n", "column 2 (arrival): a number"),
        ("name,arrival,duration\na,0,nan\n", "line 2: column 3 (duration): a number"),
        ("name,arrival,memory\na,0,1gb\n", "column 3 (memory): a quantity such as 500m or 2Gi"),
        ("name,arrival,cpu\na,0,-1\n", "column 3 (cpu): an amount must not be negative, not -1"),
        (f"name,arrival,{GPU}\na,0,0.5\n", "column 3 (nvidia.com/gpu): a whole number is required"),
        ("name,arrival,priorityClassName\na,0,lo\n", "there is no class 'lo'; there are low"),
        ("name,arrival\n,0\n", "column 1 (name): a name is required"),
        ("name;arrival\na;0\n", "column name, arrival is missing"),
    ],
)
def test_errors_have_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    """They also name what is required."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DecodeError) as raised:
        pods_of_trace(_workload(Path("jobs.csv"), text), ("low",))
    assert message in str(raised.value)
