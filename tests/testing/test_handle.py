from __future__ import annotations

import numpy as np
import pytest

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.plugins.node_name import NodeName
from kubesched.plugins.node_ports import NodePorts
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle


def handle_with_plugins() -> FakeHandle:
    """A handle that runs two filters."""
    handle = FakeHandle()
    handle.plugins += [NodeName(None, handle), NodePorts(None, handle)]
    return handle


def test_fake_handle_is_a_handle() -> None:
    """It implements the real interface."""
    handle: Handle = FakeHandle()
    assert "default-scheduler" == handle.scheduler_name


def test_gates() -> None:
    """Gates have their defaults unless they are given."""
    assert FakeHandle().feature_gates.enabled("NodeDeclaredFeatures")
    handle = FakeHandle({"NodeDeclaredFeatures": False})
    assert not handle.feature_gates.enabled("NodeDeclaredFeatures")


def test_the_random_source_is_seeded() -> None:
    """Equal seeds give equal random numbers."""
    assert FakeHandle(seed=5).random.random() == FakeHandle(seed=5).random.random()


def test_filter_rows_gives_the_first_rejection() -> None:
    """Plugins run in their order, and each rejection has its plugin's name."""
    handle = handle_with_plugins()
    cluster = make_snapshot(
        [make_node("a"), make_node("b")], [make_pod("x", node_name="b", host_ports=[80])]
    )
    for wanted, expected in (("a", ["", "NodeName"]), ("b", ["NodeName", "NodePorts"])):
        cycle, pod = CycleState(), make_pod_info(node_name=wanted, host_ports=[80])
        assert handle.pre_filter(cycle, pod, cluster).is_success
        answers = handle.filter_rows(cycle, pod, cluster.nodes)
        assert expected == [answers[row].plugin for row in range(2)]


@pytest.mark.parametrize(
    ("priority", "fits"),
    [
        pytest.param(0, False, id="of-lower-priority-sees-the-nominated-pod"),
        pytest.param(5, False, id="of-equal-priority-sees-it-too"),
        pytest.param(9, True, id="of-higher-priority-does-not"),
    ],
)
def test_nominated_pods_count(priority: int, fits: bool) -> None:
    """Pods nominated to the node count for pods of equal or lower priority, not for good."""
    handle = handle_with_plugins()
    nominated = make_pod("x", nominated_node_name="a", host_ports=[80], priority=5)
    cluster = make_snapshot([make_node("a")], [nominated])
    cycle, pod = CycleState(), make_pod_info(priority=priority, host_ports=[80])
    handle.pre_filter(cycle, pod, cluster)
    node = cluster.nodes.take(np.array([0]))
    status = handle.filter_with_nominated_pods(cycle, pod, cluster, node)
    assert fits == status.is_success
    assert [0] == node.pod_counts.tolist()


def test_what_ifs_change_the_row() -> None:
    """Pods are added to the row and removed from it."""
    handle = handle_with_plugins()
    other = make_pod_info("x", host_ports=[80])
    cluster = make_snapshot([make_node("a")])
    cycle, pod = CycleState(), make_pod_info(host_ports=[80])
    handle.pre_filter(cycle, pod, cluster)
    node = cluster.nodes.take(np.array([0]))
    assert handle.add_pod(cycle, pod, other, node).is_success
    assert not handle.filter_rows(cycle, pod, node)[0].is_success
    assert handle.remove_pod(cycle, pod, other, node).is_success
    assert handle.filter_rows(cycle, pod, node)[0].is_success


def test_activated_pods_are_recorded() -> None:
    """Activated pods are recorded."""
    handle, pod = FakeHandle(), make_pod_info()
    handle.activate([pod])
    assert [pod] == handle.activated
