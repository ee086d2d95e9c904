from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import NODE, POD
from kubesched.testing.builders import make_node, make_pod
from tests.plugins.building import hint_of

from .spreading import TAINT, Json, constraint, make_plugin

HARD = [constraint("zone")]
TWO_KEYS = [constraint("zone"), constraint("node")]
NOMINATED = make_pod("q", labels={"app": "foo"}, nominated_node_name="n")


@pytest.mark.parametrize(
    ("constraints", "old", "new", "expected"),
    [
        pytest.param(HARD, {"zone": "a"}, {"zone": "b"}, True, id="value-changed"),
        pytest.param(HARD, {"x": "a"}, {"x": "b"}, False, id="other-label-of-a-stranger"),
        pytest.param(HARD, {"zone": "a"}, {"zone": "a", "x": "y"}, False, id="label-added"),
        pytest.param(HARD, None, {"x": "y"}, False, id="added-without-key"),
        pytest.param(HARD, None, {"zone": "a"}, True, id="added-with-key"),
        pytest.param(HARD, {"x": "y"}, None, False, id="deleted-without-key"),
        pytest.param(HARD, {"zone": "a"}, None, True, id="deleted-with-key"),
        pytest.param(HARD, {"zone": "a"}, {}, True, id="key-removed"),
        pytest.param(TWO_KEYS, None, {"zone": "a"}, False, id="added-with-one-of-two"),
        pytest.param(TWO_KEYS, None, {"zone": "a", "node": "n"}, True, id="added-with-both"),
        pytest.param(TWO_KEYS, {"node": "1"}, {"node": "2"}, False, id="changed-one-of-two"),
        pytest.param(
            TWO_KEYS, {"zone": "a", "node": "1"}, {"zone": "a", "node": "2"}, True, id="both-stay"
        ),
    ],
)
def test_hint_on_nodes(
    constraints: list[Json],
    old: dict[str, str] | None,
    new: dict[str, str] | None,
    expected: bool,
) -> None:
    """A node matters if it has all keys, or had."""
    pod = make_pod(topology_spread_constraints=constraints)
    before = None if old is None else make_node(labels=old)
    after = None if new is None else make_node(labels=new)
    assert expected == hint_of(make_plugin(), NODE)(pod, before, after)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [pytest.param({"zone": "a"}, True, id="in"), pytest.param({}, False, id="out")],
)
def test_hint_on_taints(labels: dict[str, str], expected: bool) -> None:
    """Other taints matter on a node that has all keys."""
    pod = make_pod(topology_spread_constraints=HARD)
    old, new = make_node(labels=labels), make_node(labels=labels, taints=[TAINT])
    assert expected == hint_of(make_plugin(), NODE)(pod, old, new)


def placed(labels: dict[str, str], **fields: Any) -> Pod:
    """A bound pod."""
    return make_pod("other", labels=labels, node_name="n", **fields)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, placed({"app": "foo"}), True, id="sibling-added"),
        pytest.param(None, placed({"app": "bar"}), False, id="stranger-added"),
        pytest.param(None, make_pod("q", labels={"app": "foo"}), False, id="unplaced-added"),
        pytest.param(None, placed({"app": "foo"}, namespace="other"), False, id="foreigner-added"),
        pytest.param(placed({"app": "foo"}), None, True, id="sibling-deleted"),
        pytest.param(placed({"app": "bar"}), None, False, id="stranger-deleted"),
        pytest.param(make_pod("q", labels={"app": "foo"}), None, False, id="unplaced-deleted"),
        pytest.param(NOMINATED, None, True, id="nominated-deleted"),
        pytest.param(placed({"app": "foo"}), placed({"app": "bar"}), True, id="becomes-stranger"),
        pytest.param(placed({"app": "bar"}), placed({"app": "foo"}), True, id="becomes-sibling"),
        pytest.param(
            placed({"app": "foo"}), placed({"app": "foo", "x": "y"}), False, id="label-added"
        ),
        pytest.param(placed({"app": "foo"}), placed({"app": "foo"}), False, id="nothing-changed"),
    ],
)
def test_hint_on_pods(old: Pod | None, new: Pod | None, expected: bool) -> None:
    """A pod matters if it is a sibling, or begins or ceases to be one."""
    pod = make_pod(labels={"app": "foo"}, topology_spread_constraints=HARD)
    assert expected == hint_of(make_plugin(), POD)(pod, old, new)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [pytest.param("Honor", True, id="honor"), pytest.param("Ignore", False, id="ignore")],
)
def test_hint_on_own_tolerations(policy: str, expected: bool) -> None:
    """New tolerations of the pod itself matter where taints are honoured."""
    constraints = [constraint("zone", nodeTaintsPolicy=policy)]
    old = make_pod(topology_spread_constraints=constraints)
    new = make_pod(topology_spread_constraints=constraints, tolerations=[{"operator": "Exists"}])
    assert expected == hint_of(make_plugin(), POD)(old, old, new)
