from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import NODE, POD
from kubesched.testing.builders import make_node, make_pod
from tests.plugins.building import hint_of

from .attraction import BAR, Json, make_plugin, required, term

NEAR = make_pod(pod_affinity=required(term()))
NEAR_TWO = make_pod(pod_affinity=required(term(), term({"matchLabels": {"tier": "x"}})))
FAR = make_pod(labels={"app": "bar"}, pod_anti_affinity=required(term()))


NOMINATED = make_pod("q", labels={"app": "foo"}, nominated_node_name="n")
SELECTED = required(term(namespaceSelector={"matchLabels": {"a": "b"}}))


def placed(labels: dict[str, str], far: Json | None = None) -> Pod:
    """Return a bound pod."""
    return make_pod("other", labels=labels, node_name="n", pod_anti_affinity=far)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, placed({"app": "foo"}), True, id="wanted-added"),
        pytest.param(NEAR, None, placed({"app": "bar"}), False, id="other-added"),
        pytest.param(NEAR, None, make_pod("q", labels={"app": "foo"}), False, id="unplaced-added"),
        pytest.param(NEAR, placed({}), placed({"app": "foo"}), True, id="becomes-wanted"),
        pytest.param(NEAR, placed({"app": "foo"}), placed({}), False, id="ceases-to-be-wanted"),
        pytest.param(
            NEAR, placed({"app": "foo"}), placed({"app": "foo", "x": "y"}), False, id="stays-wanted"
        ),
        pytest.param(
            NEAR_TWO, placed({}), placed({"app": "foo"}), False, id="meets-one-term-of-two"
        ),
        pytest.param(
            NEAR_TWO, placed({}), placed({"app": "foo", "tier": "x"}), True, id="meets-both-terms"
        ),
        pytest.param(NEAR, NEAR, make_pod(labels={"a": "b"}), True, id="the-pod-itself"),
        pytest.param(FAR, placed({"app": "foo"}), placed({}), True, id="ceases-to-be-shunned"),
        pytest.param(FAR, placed({}), placed({"app": "foo"}), False, id="becomes-shunned"),
        pytest.param(FAR, placed({"app": "foo"}), None, True, id="shunned-deleted"),
        pytest.param(FAR, placed({"app": "bar"}), None, False, id="other-deleted"),
        pytest.param(FAR, make_pod("q", labels={"app": "foo"}), None, False, id="unplaced-deleted"),
        pytest.param(FAR, NOMINATED, None, True, id="nominated-deleted"),
        pytest.param(FAR, placed({}, required(term(BAR))), None, True, id="shunning-deleted"),
        pytest.param(FAR, placed({}, required(term())), None, False, id="shunning-others-deleted"),
        pytest.param(
            make_pod(pod_affinity=SELECTED),
            None,
            placed({"app": "foo"}),
            False,
            id="namespace-selectors-are-not-resolved",
        ),
    ],
)
def test_hint_on_pods(pod: Pod, old: Pod | None, new: Pod | None, expected: bool) -> None:
    """A pod matters if it meets the affinity now, or no longer violates the anti-affinity."""
    assert expected == hint_of(make_plugin(), POD)(pod, old, new)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, {"zone": "a"}, True, id="near-added-with-key"),
        pytest.param(NEAR, None, {"x": "a"}, False, id="near-added-without-key"),
        pytest.param(NEAR, {"zone": "a"}, {"zone": "a", "x": "y"}, False, id="near-other-label"),
        pytest.param(NEAR, {"zone": "a"}, {"zone": "b"}, True, id="near-moved"),
        pytest.param(NEAR, {}, {"zone": "a"}, True, id="near-key-appeared"),
        pytest.param(NEAR, {"zone": "a"}, {}, False, id="near-key-removed"),
        pytest.param(FAR, None, {"zone": "a"}, True, id="far-added-with-key"),
        pytest.param(FAR, None, {}, True, id="far-added-without-key"),
        pytest.param(FAR, {"zone": "a"}, {"zone": "a", "x": "y"}, False, id="far-other-label"),
        pytest.param(FAR, {"zone": "a"}, {"zone": "b"}, True, id="far-moved"),
        pytest.param(FAR, {}, {"zone": "a"}, False, id="far-key-appeared"),
        pytest.param(FAR, {"zone": "a"}, {}, True, id="far-key-removed"),
        pytest.param(make_pod(), None, {"zone": "a"}, False, id="no-terms"),
    ],
)
def test_hint_on_nodes(
    pod: Pod, old: dict[str, str] | None, new: dict[str, str], expected: bool
) -> None:
    """A node matters if it joins, leaves or changes a domain so that the pod may fit."""
    before = None if old is None else make_node(labels=old)
    assert expected == hint_of(make_plugin(), NODE)(pod, before, make_node(labels=new))
