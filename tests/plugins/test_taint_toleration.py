from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.framework.cluster_event import NODE, POD
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Code
from kubesched.plugins.taint_toleration import TaintToleration
from kubesched.testing.builders import all_rows, make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import hint_of

Json: TypeAlias = "dict[str, str]"

EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
NUMBERS = ("5", "10", "05", "+5", "-3", "x", "9223372036854775808")
REASON = "node(s) had untolerated taint(s)"

taints = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "b"]),
        "value": st.sampled_from(["", "x", *NUMBERS]),
        "effect": st.sampled_from(EFFECTS),
    }
)
tolerations = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["", "a", "b"]),
        "operator": st.sampled_from(["", "Equal", "Exists", "Lt", "Gt", "Near"]),
        "value": st.sampled_from(["", "x", *NUMBERS]),
        "effect": st.sampled_from(["", *EFFECTS]),
    }
)


def make_plugin(comparison: bool = False) -> TaintToleration:
    """Build the plugin, with or without numeric operators."""
    return TaintToleration(None, FakeHandle({"TaintTolerationComparisonOperators": comparison}))


def number(text: str) -> int | None:
    """A canonical decimal int64."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if str(value) == text and -(2**63) <= value < 2**63 else None


def bears(toleration: Json, taint: Json, comparison: bool) -> bool:
    """One toleration and one taint, read off the specification."""
    if toleration["effect"] not in {"", taint["effect"]}:
        return False
    if toleration["key"] not in {"", taint["key"]}:
        return False
    operator = toleration["operator"]
    if operator in {"", "Equal"}:
        return toleration["value"] == taint["value"]
    if operator in {"Lt", "Gt"} and comparison:
        bound, value = number(toleration["value"]), number(taint["value"])
        if bound is None or value is None:
            return False
        return value < bound if operator == "Lt" else value > bound
    return operator == "Exists"


@pytest.mark.slow
@given(
    st.lists(st.lists(taints, max_size=3), min_size=1, max_size=6),
    st.lists(tolerations, max_size=3),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_rows_are_answered_as_the_specification_says(
    nodes: list[list[Json]], borne: list[Json], comparison: bool
) -> None:
    """Filter, score and normalisation of a table equal those of each node by itself."""
    plugin = make_plugin(comparison)
    cluster = make_snapshot(make_node(f"n{row}", taints=each) for row, each in enumerate(nodes))
    pod = make_pod_info(tolerations=borne)

    def untolerated(node: list[Json], effects: tuple[str, ...], by: list[Json]) -> int:
        return sum(
            taint["effect"] in effects and not any(bears(one, taint, comparison) for one in by)
            for taint in node
        )

    answers = plugin.filter(None, pod, cluster.nodes)
    rejected = [untolerated(node, EFFECTS[:2], borne) > 0 for node in nodes]
    assert rejected == (~answers.passed).tolist()
    result = plugin.pre_score(CycleState(), pod, cluster, all_rows(cluster))
    assert result.status.is_success
    assert result.state is not None
    soft = [one for one in borne if one["effect"] in {"", EFFECTS[2]}]
    counts = [untolerated(node, EFFECTS[2:], soft) for node in nodes]
    scores = plugin.score(result.state, pod, cluster.nodes)
    assert counts == scores.tolist()
    most = max(counts)
    expected = [100 - (100 * count // most if most else 0) for count in counts]
    rows = np.arange(len(nodes))
    assert expected == plugin.normalize_score(result.state, pod, scores, rows).tolist()

    for row in range(len(nodes)):
        one = cluster.nodes.take(np.array([row]))
        assert answers[row] == plugin.filter(None, pod, one)[0]
        assert counts[row] == plugin.score(result.state, pod, one)[0]
        assert rejected[row] == bool(plugin.describe(None, pod, one))


def test_rejection() -> None:
    """A hard taint is unresolvable, with upstream's message; explain names the taint."""
    node = make_node(taints=[{"key": "gpu", "value": "no", "effect": "NoExecute"}])
    table = make_snapshot([node]).nodes
    status = make_plugin().filter(None, make_pod_info(), table)[0]
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == status.code
    assert (REASON,) == status.reasons
    assert "taint gpu=no:NoExecute" == make_plugin().describe(None, make_pod_info(), table)


def test_signature_is_the_tolerations() -> None:
    """Pods with equal tolerations share their answers; others do not."""
    plugin = make_plugin()
    exists = [{"key": "a", "operator": "Exists"}]
    assert plugin.sign(make_pod_info("a", tolerations=exists)) == plugin.sign(
        make_pod_info("b", tolerations=exists, labels={"x": "y"})
    )
    assert plugin.sign(make_pod_info()) != plugin.sign(make_pod_info(tolerations=exists))


FOO = {"key": "foo", "value": "bar", "effect": "NoSchedule"}
FOO_BORNE = [{"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("borne", "old", "new", "expected"),
    [
        pytest.param(FOO_BORNE, None, [FOO], True, id="tolerated-node-came"),
        pytest.param([], None, [FOO], False, id="untolerated-node-came"),
        pytest.param([], None, [], True, id="untainted-node-came"),
        pytest.param([], [FOO], [], True, id="taint-went"),
        pytest.param([], [], [FOO], False, id="taint-came"),
        pytest.param(FOO_BORNE, [], [FOO], False, id="fitted-before"),
        pytest.param(FOO_BORNE, [{**FOO, "key": "x"}], [FOO], True, id="taint-became-tolerated"),
    ],
)
def test_hint_after_node_change(
    borne: list[Json], old: list[Json] | None, new: list[Json], expected: bool
) -> None:
    """A node that newly fits causes a retry."""
    hint = hint_of(make_plugin(), NODE)
    before = None if old is None else make_node(taints=old)
    assert expected == hint(make_pod(tolerations=borne), before, make_node(taints=new))


def test_hint_after_pod_change() -> None:
    """A change of tolerations retries only the pod itself."""
    hint = hint_of(make_plugin(), POD)
    pod, other = make_pod("a"), make_pod("b")
    assert hint(pod, pod, make_pod("a", tolerations=FOO_BORNE))
    assert not hint(pod, other, make_pod("b", tolerations=FOO_BORNE))


def test_events() -> None:
    """The events are those of upstream."""
    labels = [one.event.resource for one in make_plugin().events_to_register()]
    assert ["Node", "Pod"] == labels
    assert [1 | 1 << 4, 1 << 10] == [
        int(one.event.action) for one in make_plugin().events_to_register()
    ]
