"""What the hints of in-tree plugins promise: one answer per template, none beyond their filing."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cluster_event import (
    ASSIGNED_POD,
    NODE,
    POD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
)
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod


@pytest.mark.parametrize(
    ("event", "old", "new"),
    [
        pytest.param(
            ClusterEvent(NODE, Action.ADD),
            None,
            make_node("n", allocatable={"cpu": "4"}),
            id="node",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            make_node("n"),
            make_node("n", labels={"zone": "a"}),
            id="label",
        ),
        pytest.param(
            ClusterEvent(ASSIGNED_POD, Action.ADD), None, make_pod("x", node_name="n"), id="pod"
        ),
        pytest.param(
            ClusterEvent(ASSIGNED_POD, Action.DELETE),
            make_pod("x", node_name="n"),
            None,
            id="no pod",
        ),
    ],
)
def test_in_tree_hints_per_template_do_not_look_further(
    event: ClusterEvent, old: object, new: object
) -> None:
    """Name, uid, annotations and status of the waiting pod change no answer."""
    gates = FeatureGates()
    cluster = ClusterState(in_tree_setup(gates))
    profile = cluster.profiles["default-scheduler"]
    profile.objects = cluster.cache.objects
    one = make_pod("a", requests={"cpu": "1"})
    other = make_pod(
        "b",
        requests={"cpu": "1"},
        metadata={"annotations": {"a": "b"}},
        status={"nominatedNodeName": "n"},
    )
    assert PodInfo(one).template is PodInfo(other).template
    hints = [
        each.hint
        for plugin in profile.plugins.values()
        for each in plugin.events_to_register() or ()
        if each.per_template and each.event.matches(event) and each.hint is not None
    ]
    assert hints
    assert [hint(one, old, new) for hint in hints] == [hint(other, old, new) for hint in hints]


LABELS: Final = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
SELECTORS: Final = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"a": "x"}},
        {"matchLabels": {"a": "y", "b": "x"}},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
    ]
)
TERMS: Final = st.lists(
    st.builds(
        lambda selector, scope: {"topologyKey": "zone", "labelSelector": selector, **scope},
        SELECTORS,
        st.sampled_from([{}, {"namespaces": ["n", "m"]}, {"namespaceSelector": {}}]),
    ),
    max_size=2,
)
CONSTRAINTS: Final = st.lists(
    st.builds(
        lambda action, selector, keys: {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": action,
            "labelSelector": selector,
            "matchLabelKeys": keys,
        },
        st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        SELECTORS,
        st.sampled_from([[], ["a"]]),
    ),
    max_size=2,
)


@st.composite
def pods(draw: st.DrawFn, name: str, node_name: str = "n") -> Pod:
    """A pod with affinity terms and spread constraints."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    kinds = ("podAffinity", "podAntiAffinity")
    spec: dict[str, Any] = {
        "affinity": {kind: {required: draw(TERMS)} for kind in kinds if draw(st.booleans())},
        "topologySpreadConstraints": draw(CONSTRAINTS),
    }
    namespace = draw(st.sampled_from("nnm"))
    return make_pod(
        name, uid=name, namespace=namespace, labels=draw(LABELS), node_name=node_name, spec=spec
    )


@cache
def filed_hints() -> list[ClusterEventWithHint]:
    """Return the registrations of changes of pods that have a filing."""
    profile = ClusterState(in_tree_setup(FeatureGates())).profiles["default-scheduler"]
    return [
        each
        for plugin in profile.plugins.values()
        for each in plugin.events_to_register() or ()
        if each.filing is not None and each.event.resource == POD
    ]


@pytest.mark.parametrize("change", ["add", "update", "delete"])
@settings(max_examples=400)
@given(pods("waiting", node_name=""), pods("other"), pods("other"))
def test_a_filing_leads_to_every_pod_that_the_hint_retries(
    change: str, waiting: Pod, before: Pod, after: Pod
) -> None:
    """A change of another pod that its names do not lead to would be missed."""
    old, new = None if change == "add" else before, None if change == "delete" else after
    assert len(filed_hints()) == 2
    for each in filed_hints():
        assert each.hint is not None
        assert each.filing is not None
        if each.hint(waiting, old, new):
            names = each.filing.of_change(old, new)
            assert names is None or set(names) & set(each.filing.of_pod(waiting))
