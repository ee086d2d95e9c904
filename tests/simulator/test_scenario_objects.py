"""Objects that a scenario describes."""

from __future__ import annotations

from kubesched.simulator.scenario import (
    NodeGroup,
    PriorityClassSpec,
    ScenarioDaemonSet,
    ScenarioDeployment,
    ScenarioWorkload,
)
from kubesched.simulator.scenario_objects import (
    daemon_set_of,
    nodes_of,
    priority_class_of,
    replica_set_of,
    template_of,
)


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
