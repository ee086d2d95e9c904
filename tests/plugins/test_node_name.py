from __future__ import annotations

import numpy as np
import pytest

from kubesched.framework.status import Code
from kubesched.plugins.node_name import NodeName
from kubesched.testing.builders import make_node, make_pod_info, make_table
from kubesched.testing.handle import FakeHandle

PLUGIN = NodeName(None, FakeHandle())
TABLE = make_table(make_node(name) for name in ("a", "b", "c"))


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ("", [True, True, True]),
        ("b", [False, True, False]),
        ("nowhere", [False, False, False]),
    ],
)
def test_filter(wanted: str, fits: list[bool]) -> None:
    """A pod that names a node fits there only; one-row tables agree."""
    pod = make_pod_info(node_name=wanted)
    answers = PLUGIN.filter(None, pod, TABLE)
    assert fits == answers.passed.tolist()
    for row in range(3):
        one = TABLE.take(np.array([row]))
        assert answers[row] == PLUGIN.filter(None, pod, one)[0]
        if not fits[row]:
            assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == answers[row].code
            assert ("node(s) didn't match the requested node name",) == answers[row].reasons
            assert f"pod asks for node {wanted}" == PLUGIN.describe(None, pod, one)


def test_events() -> None:
    """Any new node causes a retry."""
    (registration,) = PLUGIN.events_to_register()
    assert ("NodeAdd", None) == (registration.event.label, registration.hint)


def test_signature_is_the_name() -> None:
    """Nothing else of the pod is read."""
    assert PLUGIN.sign(make_pod_info("x", node_name="a")) == PLUGIN.sign(
        make_pod_info("y", node_name="a", priority=3)
    )
    assert PLUGIN.sign(make_pod_info(node_name="a")) != PLUGIN.sign(make_pod_info())
