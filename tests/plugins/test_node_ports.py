from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.framework.cluster_event import POD
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Code
from kubesched.plugins.node_ports import NodePorts
from kubesched.snapshot.host_ports import ANY_ADDRESS
from kubesched.testing.builders import Json, make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import hint_of

PLUGIN = NodePorts(None, FakeHandle())
REASON = "node(s) didn't have free ports for the requested pod ports"

port_lists = st.lists(
    st.fixed_dictionaries(
        {
            "hostPort": st.sampled_from([0, 80, 81]),
            "hostIP": st.sampled_from(["", ANY_ADDRESS, "127.0.0.1", "10.0.0.1"]),
            "protocol": st.sampled_from(["", "TCP", "UDP"]),
        }
    ),
    max_size=3,
)


def port(number: int, address: str = "", protocol: str = "") -> Json:
    """A host port."""
    return {"hostPort": number, "hostIP": address, "protocol": protocol}


LOCAL, LOCAL_UDP = port(8080, "127.0.0.1"), port(8080, "127.0.0.1", "UDP")


def collide(one: Json, other: Json) -> bool:
    """Two container ports, read off the specification."""
    if not one["hostPort"] or one["hostPort"] != other["hostPort"]:
        return False
    if (one["protocol"] or "TCP") != (other["protocol"] or "TCP"):
        return False
    addresses = {one["hostIP"] or ANY_ADDRESS, other["hostIP"] or ANY_ADDRESS}
    return len(addresses) == 1 or ANY_ADDRESS in addresses


@pytest.mark.slow
@given(
    st.lists(st.lists(port_lists, max_size=2), min_size=1, max_size=4),
    port_lists,
    st.sampled_from(["containers", "sidecars"]),
)
@settings(max_examples=200, deadline=None)
def test_rows_are_answered_as_the_specification_says(
    nodes: list[list[list[Json]]], wanted: list[Json], kind: str
) -> None:
    """A row is rejected exactly if some wanted port collides with one of a pod there."""
    cluster = make_snapshot(
        [make_node(f"n{row}") for row in range(len(nodes))],
        [
            make_pod(f"p{row}-{at}", node_name=f"n{row}", host_ports=ports)
            for row, pods in enumerate(nodes)
            for at, ports in enumerate(pods)
        ],
    )
    sidecar = {"restartPolicy": "Always", "ports": wanted}
    pod = (
        make_pod_info("pod", host_ports=wanted)
        if kind == "containers"
        else make_pod_info("pod", init_containers=[sidecar])
    )
    result = PLUGIN.pre_filter(CycleState(), pod, cluster)
    assert result.status.is_skip == (not any(one["hostPort"] for one in wanted))
    if result.state is None:
        return
    answers = PLUGIN.filter(result.state, pod, cluster.nodes)
    expected = [
        any(collide(one, other) for one in wanted for ports in pods for other in ports)
        for pods in nodes
    ]
    assert expected == (~answers.passed).tolist()
    for row in range(len(nodes)):
        one = cluster.nodes.take(np.array([row]))
        assert answers[row] == PLUGIN.filter(result.state, pod, one)[0]
        assert expected[row] == bool(PLUGIN.describe(result.state, pod, one))


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        pytest.param([], [port(8080)], True, id="nothing-used"),
        pytest.param([port(9090, "127.0.0.1")], [LOCAL], True, id="other-port"),
        pytest.param([LOCAL], [LOCAL], False, id="same-address"),
        pytest.param([LOCAL], [port(8080, "127.0.0.2")], True, id="other-address"),
        pytest.param([LOCAL_UDP], [LOCAL], True, id="other-protocol"),
        pytest.param([LOCAL], [port(8001), LOCAL], False, id="second-collides"),
        pytest.param([LOCAL], [port(8080, ANY_ADDRESS)], False, id="all-addresses-wanted"),
        pytest.param([port(8080)], [LOCAL], False, id="all-addresses-used"),
        pytest.param([LOCAL_UDP], [port(8080)], True, id="all-addresses-of-a-protocol"),
        pytest.param([], [port(80), port(80)], True, id="own-duplicates-do-not-count"),
    ],
)
def test_filter(used: list[Json], wanted: list[Json], fits: bool) -> None:
    """Ports conflict if protocol and number are equal and the addresses overlap."""
    table = make_snapshot([make_node()], [make_pod("a", node_name="node", host_ports=used)]).nodes
    pod = make_pod_info(host_ports=wanted)
    status = PLUGIN.filter(pod.template.host_ports, pod, table)[0]
    assert fits == status.is_success
    if not fits:
        assert Code.UNSCHEDULABLE == status.code
        assert (REASON,) == status.reasons


def test_describe_names_the_holder() -> None:
    """The text has the port and the pod that uses it."""
    table = make_snapshot(
        [make_node()],
        [
            make_pod("a", node_name="node", host_ports=[80]),
            make_pod("b", node_name="node", host_ports=[port(80, "10.0.0.1", "UDP")]),
        ],
    ).nodes
    pod = make_pod_info(host_ports=[port(80, "10.0.0.1")])
    described = PLUGIN.describe(pod.template.host_ports, pod, table)
    assert "port 10.0.0.1:80/TCP is held by default/a" == described


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(make_pod("b", host_ports=[80]), False, id="was-nowhere"),
        pytest.param(make_pod("b", node_name="n"), False, id="had-no-ports"),
        pytest.param(make_pod("b", node_name="n", host_ports=[81]), False, id="other-ports"),
        pytest.param(make_pod("b", node_name="n", host_ports=[80]), True, id="freed-the-port"),
        pytest.param(
            make_pod("b", nominated_node_name="n", host_ports=[80]), True, id="was-nominated"
        ),
        pytest.param(None, True, id="unknown-object"),
    ],
)
def test_hint_after_pod_deletion(deleted: object, expected: bool) -> None:
    """The deletion of a pod that used a requested port causes a retry."""
    assert expected == hint_of(PLUGIN, POD)(make_pod("a", host_ports=[80]), deleted, None)


def test_any_new_node_is_worth_a_try() -> None:
    """New nodes always cause a retry."""
    registration = PLUGIN.events_to_register()[1]
    assert registration.hint is None
    assert "NodeAdd" == registration.event.label


def test_signature() -> None:
    """Pods with the same host ports share their answers."""
    assert PLUGIN.sign(make_pod_info("a", host_ports=[80])) == PLUGIN.sign(
        make_pod_info("b", host_ports=[port(80, ANY_ADDRESS, "TCP")], labels={"a": "b"})
    )
    assert PLUGIN.sign(make_pod_info()) != PLUGIN.sign(make_pod_info(host_ports=[80]))
