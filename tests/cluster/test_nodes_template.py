"""Nodes of a template, and the fields that the node keeper sets."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.cluster.nodes import NodeTemplate, as_reported
from kubesched.cluster.store import Key

from .sandbox_world import CAPACITY, Json, World, live, on_nodes

NODE = Key("nodes", "", "node-0")
ZONE = "topology.kubernetes.io/zone"


def taints(node: Json) -> list[str]:
    """Return the taints of a node, as kubectl writes them."""
    return [f"{one['key']}:{one['effect']}" for one in node["spec"].get("taints", [])]


def test_nodes_of_a_template() -> None:
    """Names sort in order, zones are assigned in turn, all have the labels and taints."""
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    template = NodeTemplate(CAPACITY, {"pool": "a"}, (taint,), ("x", "y"))
    nodes = template.nodes(11)
    assert ["node-00", "node-01", "node-10"] == [
        nodes[index]["metadata"]["name"] for index in (0, 1, 10)
    ]
    assert ["x", "y", "x"] == [node["metadata"]["labels"][ZONE] for node in nodes[:3]]
    assert {"pool": "a", "kubernetes.io/hostname": "node-10"}.items() <= nodes[10]["metadata"][
        "labels"
    ].items()
    assert [taint] == nodes[3]["spec"]["taints"]
    assert 11 == len({node["status"]["addresses"][0]["address"] for node in nodes})


def test_a_given_node_overrides_the_template() -> None:
    """Its other fields are kept."""
    own = {
        "metadata": {"annotations": {"a": "b"}, "labels": {"pool": "b"}},
        "spec": {"providerID": "x"},
        "status": {"capacity": {"example.com/gpu": "8", "cpu": "96"}, "images": [{"names": ["i"]}]},
    }
    [node] = NodeTemplate(CAPACITY, node=own).nodes(1)
    assert {"a": "b"} == node["metadata"]["annotations"]
    assert "b" == node["metadata"]["labels"]["pool"]
    assert {"providerID": "x"} == node["spec"]
    assert {**CAPACITY, "cpu": "96", "example.com/gpu": "8"} == node["status"]["allocatable"]
    assert [{"names": ["i"]}] == node["status"]["images"]


@on_nodes
async def test_a_created_node_becomes_ready(world: World) -> None:
    """It gets amounts, labels, annotations and conditions, and loses its initial taint."""
    created = world.client.create("nodes", {"metadata": {"name": "own"}})
    await asyncio.sleep(0.1)
    node = world.node("own")
    assert ["node.kubernetes.io/not-ready:NoSchedule"] == taints(created)
    assert [] == taints(node)
    assert CAPACITY == node["status"]["allocatable"]
    assert "own" == node["metadata"]["labels"]["kubernetes.io/hostname"]
    assert node["metadata"]["annotations"]
    states = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    assert {"Ready": "True", "MemoryPressure": "False"}.items() <= states.items()


@on_nodes
async def test_advertised_resources_become_allocatable(world: World) -> None:
    """As docs/tasks/administer-cluster/extended-resource-node of Kubernetes shows it."""

    async def advertise(**amounts: str) -> Json:
        node = world.node()
        status = {**node["status"], "capacity": {**CAPACITY, **amounts}}
        world.client.write(NODE, {**node, "status": status})
        await asyncio.sleep(0.1)
        allocatable: Json = world.node()["status"]["allocatable"]
        return allocatable

    await asyncio.sleep(0.1)
    dongles = {"example.com/dongle": "4"}
    assert {**CAPACITY, **dongles} == await advertise(**dongles)
    assert {**CAPACITY, "example.com/dongle": "2"} == await advertise(**{"example.com/dongle": "2"})
    assert CAPACITY == await advertise(cpu="1000")


@pytest.mark.parametrize(
    ("status", "capacity", "allocatable"),
    [
        pytest.param({}, {"example.com/nic": "1"}, {"example.com/nic": "1"}, id="none"),
        pytest.param(
            {"capacity": {"example.com/gpu": "8", "cpu": "9"}, "allocatable": {"cpu": "7"}},
            {"example.com/gpu": "8", "cpu": "9"},
            {"cpu": "7"},
            id="some",
        ),
        pytest.param({"allocatable": {"cpu": "7"}}, {"cpu": "7"}, {"cpu": "7"}, id="allocatable"),
    ],
)
def test_a_node_has_what_every_kubelet_reports(
    status: Json, capacity: Json, allocatable: Json
) -> None:
    """Extended resources of others are not added to those that it names."""
    usual = {**CAPACITY, "example.com/nic": "1"}
    node = {"metadata": {"name": "n"}, "spec": {}, "status": status}
    found = as_reported(node, usual, "now")["status"]
    assert {**CAPACITY, **capacity} == found["capacity"]
    assert {**CAPACITY, **allocatable} == found["allocatable"]


def test_a_complete_node_is_not_changed() -> None:
    """The same object is returned."""
    node = as_reported({"metadata": {"name": "n"}, "spec": {}}, CAPACITY, "t0")
    assert node is as_reported(node, CAPACITY, "t1")


@pytest.mark.parametrize(
    ("unschedulable", "condition", "expected"),
    [
        pytest.param(True, None, ["unschedulable:NoSchedule"], id="cordoned"),
        pytest.param(
            False,
            ("Ready", "Unknown"),
            ["unreachable:NoSchedule", "unreachable:NoExecute"],
            id="unreachable",
        ),
        pytest.param(
            False,
            ("Ready", "False"),
            ["not-ready:NoSchedule", "not-ready:NoExecute"],
            id="not-ready",
        ),
        pytest.param(
            True,
            ("MemoryPressure", "True"),
            ["unschedulable:NoSchedule", "memory-pressure:NoSchedule"],
            id="pressed-and-cordoned",
        ),
    ],
)
def test_state_taints_follow_the_conditions(
    unschedulable: bool, condition: tuple[str, str] | None, expected: list[str]
) -> None:
    """Other taints stay."""
    other = {"key": "mine", "effect": "NoSchedule"}
    conditions = [{"type": condition[0], "status": condition[1]}] if condition else []
    troubled = {
        "metadata": {"name": "n"},
        "spec": {"unschedulable": unschedulable, "taints": [other]},
        "status": {"conditions": conditions},
    }
    found = as_reported(troubled, CAPACITY, "now")
    assert ["mine:NoSchedule", *(f"node.kubernetes.io/{one}" for one in expected)] == taints(found)
    spec = {"taints": found["spec"]["taints"]}
    well = as_reported({**found, "spec": spec, "status": {}}, CAPACITY, "later")
    assert ["mine:NoSchedule"] == taints(well)


def test_leases_of_nodes() -> None:
    """Renewed every ten seconds, with the node as owner, if asked for."""

    async def story(world: World) -> list[str]:
        await asyncio.sleep(0.1)
        times = []
        for _ in range(2):
            lease = world.get("leases.coordination.k8s.io", "node-0", "kube-node-lease")
            times.append(lease["spec"]["renewTime"][11:19])
            await asyncio.sleep(10)
        return times

    assert ["00:00:00", "00:00:10"] == live(story, renews_leases=True)


def test_a_lease_without_a_spec_is_renewed() -> None:
    """Somebody else may have created it."""

    async def story(world: World) -> list[str]:
        key = Key("leases.coordination.k8s.io", "kube-node-lease", "node-0")
        await asyncio.sleep(5)
        lease = dict(world.get(key.kind, key.name, key.namespace))
        del lease["spec"]
        world.client.write(key, lease)
        await asyncio.sleep(6)
        return list(world.get(key.kind, key.name, key.namespace)["spec"])

    assert ["renewTime"] == live(story, renews_leases=True)


@on_nodes
async def test_no_leases_by_default(world: World) -> None:
    """A thousand nodes would write a hundred per second."""
    await asyncio.sleep(20)
    assert 0 == world.client.store.count("leases.coordination.k8s.io")
