from __future__ import annotations

import numpy as np
import pytest

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Code
from kubesched.plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    NodeDeclaredFeatures,
)
from kubesched.testing.builders import Json, make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle

RESTART, NAMESPACES = RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK
PLUGIN = NodeDeclaredFeatures(None, FakeHandle())

RESTARTING: Json = {
    "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]
}
HOST_NETWORK: Json = {"hostNetwork": True, "hostUsers": False}


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"containers": [RESTARTING]}, {RESTART}, id="container"),
        pytest.param({"initContainers": [RESTARTING]}, {RESTART}, id="init-container"),
        pytest.param(
            {"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]},
            set(),
            id="other-action",
        ),
        pytest.param(HOST_NETWORK, {NAMESPACES}, id="user-namespace-on-host-network"),
        pytest.param({"hostNetwork": True}, set(), id="host-users-by-default"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="host-users"),
        pytest.param({"hostUsers": False}, set(), id="no-host-network"),
        pytest.param(
            {"containers": [RESTARTING], **HOST_NETWORK}, {RESTART, NAMESPACES}, id="both"
        ),
    ],
)
def test_pre_filter(spec: Json, needed: set[str]) -> None:
    """The required features follow from the spec; most pods are skipped."""
    pod = make_pod_info(spec=spec)
    result = PLUGIN.pre_filter(CycleState(), pod, make_snapshot())
    assert (not needed) == result.status.is_skip
    assert needed == (result.state or set())
    assert frozenset(needed) == PLUGIN.sign(pod)


def test_filter() -> None:
    """A node must declare everything the pod needs; one-row tables agree."""
    declared = ((), (RESTART,), (NAMESPACES,), (RESTART, NAMESPACES), ("Aaa", RESTART, "Zzz"))
    table = make_snapshot(
        make_node(f"n{at}", declared_features=features) for at, features in enumerate(declared)
    ).nodes
    pod = make_pod_info(spec={"containers": [RESTARTING]})
    state = frozenset({RESTART})
    answers = PLUGIN.filter(state, pod, table)
    assert [False, True, False, True, True] == answers.passed.tolist()
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == answers[0].code
    assert ("node(s) didn't match Pod's required features",) == answers[0].reasons
    for row in range(len(declared)):
        one = table.take(np.array([row]))
        assert answers[row] == PLUGIN.filter(state, pod, one)[0]
    described = PLUGIN.describe(state, pod, table.take(np.array([2])))
    assert f"not declared: {RESTART}" == described


def test_gate_off() -> None:
    """Without the feature the plugin does nothing."""
    plugin = NodeDeclaredFeatures(None, FakeHandle({"NodeDeclaredFeatures": False}))
    pod = make_pod_info(spec=HOST_NETWORK)
    assert plugin.pre_filter(CycleState(), pod, make_snapshot()).status.is_skip
    assert () == plugin.events_to_register()


def test_hints() -> None:
    """A node that came or declares other features; the pod itself if it needs other features."""
    node, pod = PLUGIN.events_to_register()
    assert [("Node", 1 | 1 << 7), ("Pod", (1 << 13) - (1 << 2))] == [
        (one.event.resource, int(one.event.action)) for one in (node, pod)
    ]
    assert node.hint is not None
    assert pod.hint is not None
    target, old, new = make_pod(), make_node(), make_node(declared_features=[RESTART])
    assert node.hint(target, None, old)
    assert node.hint(target, old, new)
    assert not node.hint(target, new, new)
    assert not pod.hint(target, target, make_pod(labels={"a": "b"}))
    assert pod.hint(target, target, make_pod(spec=HOST_NETWORK))
    assert not pod.hint(target, make_pod("x"), make_pod("x", spec=HOST_NETWORK))
