from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.field_errors import ConfigError
from kubesched.framework.cluster_event import NODE
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import NOT_SHARED
from kubesched.framework.status import Code, Status
from kubesched.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import (
    Json,
    PodFields,
    all_rows,
    make_node,
    make_pod,
    make_pod_info,
    make_snapshot,
)
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import build, hint_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
POD_REASON = "node(s) didn't match Pod's node affinity/selector"
ENFORCED_REASON = "node(s) didn't match scheduler-enforced node affinity"
UNPARSABLE = {"matchExpressions": [{"key": "x", "operator": "Near"}]}
NEAR_IS_UNKNOWN = (
    'matchExpressions[0].operator: Unsupported value: "Near": supported values: '
    '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
)


def has(key: str, *values: str) -> dict[str, object]:
    """A term that requires one of the values."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def named(*values: str, operator: str = "In") -> Json:
    """A field requirement on the name."""
    return {"key": "metadata.name", "operator": operator, "values": list(values)}


def name_is(*values: str) -> dict[str, object]:
    """A term that requires all of these names, one by one."""
    return {"matchFields": [named(value) for value in values]}


def required(*terms: Json) -> dict[str, object]:
    """An affinity with required terms."""
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def preferred(*terms: tuple[int, Json]) -> dict[str, object]:
    """An affinity with preferred terms."""
    return {PREFERRED: [{"weight": weight, "preference": term} for weight, term in terms]}


FOO, KEY, AZ1 = has("foo", "bar"), has("key", "value"), has("az", "az1")
IN_A = required(has("zone", "a"))
ERROR_OR_A = required(UNPARSABLE, has("zone", "a"))


def make_plugin(added: Json | None = None) -> NodeAffinity:
    """Build the plugin with an added affinity."""
    return build(NodeAffinity, {} if added is None else {"addedAffinity": added})


def pre_filter(plugin: NodeAffinity, pod: PodInfo) -> tuple[Status, frozenset[str] | None]:
    """Status and node names."""
    result = plugin.pre_filter(CycleState(), pod, make_snapshot())
    return result.status, result.node_names


@pytest.mark.parametrize(
    ("selector", "affinity", "added", "skips"),
    [
        pytest.param(None, None, None, True, id="asks-for-nothing"),
        pytest.param({}, None, None, False, id="empty-selector"),
        pytest.param({"x": "a"}, None, None, False, id="selector"),
        pytest.param(None, required(), None, False, id="required-without-terms"),
        pytest.param(None, required(has("x", "a")), None, False, id="required"),
        pytest.param(None, preferred((1, has("x", "a"))), None, True, id="preferred-only"),
        pytest.param(None, None, required(has("x", "a")), False, id="added"),
        pytest.param(None, None, preferred((1, has("x", "a"))), True, id="added-preferred-only"),
    ],
)
def test_pre_filter_skips(
    selector: dict[str, str] | None, affinity: Json | None, added: Json | None, skips: bool
) -> None:
    """Only a pod without any requirement is skipped."""
    pod = make_pod_info(node_selector=selector, node_affinity=affinity)
    status, names = pre_filter(make_plugin(added), pod)
    assert skips == status.is_skip
    assert skips or status.is_success
    assert names is None


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([name_is("a")], {"a"}, id="one"),
        pytest.param([name_is("a"), name_is("b")], {"a", "b"}, id="terms"),
        pytest.param([name_is("a", "a")], {"a"}, id="same-twice"),
        pytest.param([name_is("a") | has("x", "a")], {"a"}, id="with-labels"),
        pytest.param([name_is("a"), has("x", "a")], None, id="other-term-open"),
        pytest.param([name_is("a"), {}], None, id="empty-term-is-open"),
        pytest.param([{"matchFields": [named("a", operator="NotIn")]}], None, id="not-in"),
        pytest.param([name_is("a", "b"), name_is("c")], {"c"}, id="conflict-in-one-term"),
        pytest.param([{"matchFields": [named("a", "b")]}], {"a", "b"}, id="faulty-still-names"),
        pytest.param(
            [{"matchFields": [{"key": "x", "operator": "In", "values": ["a"]}]}],
            None,
            id="other-field",
        ),
    ],
)
def test_pre_filter_names_nodes(terms: list[Json], expected: set[str] | None) -> None:
    """Only the nodes that the terms name are possible; a term without names allows all."""
    status, names = pre_filter(make_plugin(), make_pod_info(node_affinity=required(*terms)))
    assert status.is_success
    assert expected == (None if names is None else set(names))


@pytest.mark.parametrize("selector", [None, {"zone": "foo"}])
@pytest.mark.parametrize("labels", [{}, {"zone": "foo"}])
@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([name_is("a")], id="one"),
        pytest.param([name_is("b"), name_is("a")], id="two"),
        pytest.param([name_is("a") | has("zone", "foo")], id="with-labels"),
        pytest.param([{"matchFields": [named("a", "b")]}], id="two names in one field"),
    ],
)
def test_names_decide_alone(
    terms: list[Json], labels: dict[str, str], selector: dict[str, str] | None
) -> None:
    """The state of PreFilter, with which the filter compares names only, changes no answer."""
    plugin, node = make_plugin(), make_node("a", labels=labels)
    pod = make_pod_info(node_affinity=required(*terms), node_selector=selector)
    snapshot = make_snapshot([node])
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    expected = plugin.filter(None, pod, snapshot.nodes)[0]
    assert expected == plugin.filter(state, pod, snapshot.nodes)[0]


def test_pre_filter_conflict() -> None:
    """Terms that no node name can satisfy reject the pod."""
    pod = make_pod_info(node_affinity=required(name_is("a", "b")))
    status, _ = pre_filter(make_plugin(), pod)
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == status.code
    assert ("pod affinity terms conflict",) == status.reasons


@pytest.mark.parametrize(
    ("affinity", "added", "reason", "described"),
    [
        pytest.param(required(has("zone", "foo")), None, "", "", id="match"),
        pytest.param(
            required(has("zone", "bar")),
            None,
            POD_REASON,
            "wants zone In (bar), node has zone=foo",
            id="pod",
        ),
        pytest.param(
            required(has("zone", "foo")), required(name_is("node")), "", "", id="match-both"
        ),
        pytest.param(
            required(has("zone", "bar")),
            required(name_is("other")),
            ENFORCED_REASON,
            "wants metadata.name In (other)",
            id="added-comes-first",
        ),
        pytest.param(
            None,
            required(has("gpu", "a")),
            ENFORCED_REASON,
            "wants gpu In (a), node has no label gpu",
            id="added-alone",
        ),
        pytest.param(
            required(), None, POD_REASON, "there is no term that could match", id="no-terms"
        ),
        pytest.param(
            required({}), None, POD_REASON, "an empty term matches no node", id="empty-term"
        ),
        pytest.param(required(UNPARSABLE), None, POD_REASON, NEAR_IS_UNKNOWN, id="unparsable"),
        pytest.param(
            None,
            required(),
            ENFORCED_REASON,
            "there is no term that could match",
            id="added-without-terms",
        ),
    ],
)
def test_filter_reasons(
    affinity: Json | None, added: Json | None, reason: str, described: str
) -> None:
    """The added affinity is checked first; both are unresolvable; explain shows the cause."""
    plugin = make_plugin(added)
    pod = make_pod_info(node_affinity=affinity)
    table = make_snapshot([make_node(labels={"zone": "foo"})]).nodes
    status = plugin.filter(None, pod, table)[0]
    assert ((reason,) if reason else ()) == status.reasons
    if reason:
        assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == status.code
        assert described == plugin.describe(None, pod, table)


def test_describe_node_selector() -> None:
    """The first label that does not match is shown with the node's value."""
    table = make_snapshot([make_node(labels={"disk": "hdd"})]).nodes
    for selector, expected in (
        ({"disk": "ssd"}, "pod wants disk=ssd, node has disk=hdd"),
        ({"disk": "hdd", "gpu": "a"}, "pod wants gpu=a, node has no label gpu"),
    ):
        pod = make_pod_info(node_selector=selector)
        assert expected == make_plugin().describe(None, pod, table)


NODES = (
    {"foo": "bar"},
    {"key": "value", "az": "az1"},
    {"foo": "bar", "az": "az2"},
    {"foo": "bar", "key": "value", "az": "az1"},
)


@pytest.mark.parametrize(
    ("affinity", "added", "expected"),
    [
        pytest.param(None, None, None, id="skipped"),
        pytest.param(required(FOO), None, None, id="required-only-is-skipped"),
        pytest.param({PREFERRED: []}, None, [0, 0, 0, 0], id="empty-list-is-not-skipped"),
        pytest.param(preferred((2, FOO)), None, [100, 0, 100, 100], id="one-term"),
        pytest.param(preferred((2, FOO), (4, KEY), (5, AZ1)), None, [18, 81, 18, 100], id="sum"),
        pytest.param(preferred((0, FOO)), None, [0, 0, 0, 0], id="weight-0"),
        pytest.param(preferred((0, UNPARSABLE)), None, [0, 0, 0, 0], id="weight-0-is-not-parsed"),
        pytest.param(preferred((7, {})), None, [0, 0, 0, 0], id="empty-preference"),
        pytest.param(None, preferred((3, AZ1)), [0, 100, 0, 100], id="added-alone"),
        pytest.param(
            preferred((2, FOO)), preferred((1, KEY)), [66, 33, 66, 100], id="added-and-own"
        ),
        pytest.param(None, preferred(), None, id="added-empty-list-is-skipped"),
    ],
)
def test_scores(affinity: Json | None, added: Json | None, expected: list[int] | None) -> None:
    """Weights of matching terms add up and are scaled by the largest sum."""
    plugin = make_plugin(added)
    pod = make_pod_info(node_affinity=affinity)
    cluster = make_snapshot(make_node(f"n{at}", labels=each) for at, each in enumerate(NODES))
    result = plugin.pre_score(CycleState(), pod, cluster, all_rows(cluster))
    assert (expected is None) == result.status.is_skip
    if expected is None:
        return
    assert result.status.is_success
    assert result.state is not None
    scores = plugin.score(result.state, pod, cluster.nodes)
    one = cluster.nodes.take(np.array([3]))
    assert scores[3:].tolist() == plugin.score(result.state, pod, one).tolist()
    rows = np.arange(len(NODES))
    assert expected == plugin.normalize_score(result.state, pod, scores, rows).tolist()


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([(1, UNPARSABLE)], f"[0].{NEAR_IS_UNKNOWN}", id="one"),
        pytest.param(
            [(1, {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["abc"]}]})],
            '[0].matchExpressions[0].values[0]: Invalid value: "abc": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
            id="no-integer",
        ),
        pytest.param(
            [(1, has("x", "a")), (1, UNPARSABLE), (2, UNPARSABLE)],
            f"[[1].{NEAR_IS_UNKNOWN}, [2].{NEAR_IS_UNKNOWN}]",
            id="several",
        ),
    ],
)
def test_preferred_terms_that_do_not_parse_are_an_error(
    terms: list[tuple[int, Json]], expected: str
) -> None:
    """Unlike required terms, preferred ones end the cycle."""
    cluster = make_snapshot([make_node()])
    pod = make_pod_info(node_affinity=preferred(*terms))
    status = make_plugin().pre_score(CycleState(), pod, cluster, all_rows(cluster)).status
    assert Code.ERROR == status.code
    assert expected == status.message


def test_arguments() -> None:
    """Every field error of the added affinity is reported with its path."""
    with pytest.raises(ConfigError) as caught:
        make_plugin(
            required(has("x", "a"), UNPARSABLE, {"matchFields": [named()]})
            | preferred(
                (0, UNPARSABLE), (1, {"matchExpressions": [{"key": "-", "operator": "In"}]})
            )
        )
    path = "args.addedAffinity"
    first, second, third, fourth = map(str, caught.value.errors)
    assert f"{path}.{REQUIRED}.nodeSelectorTerms[1].{NEAR_IS_UNKNOWN}" == first
    assert (
        f"{path}.{REQUIRED}.nodeSelectorTerms[2].matchFields[0].values: "
        "Invalid value: null: must have one element"
    ) == second
    assert third.startswith(f"{path}.{PREFERRED}[1].matchExpressions[0].key: Invalid value:")
    assert (
        f"{path}.{PREFERRED}[1].matchExpressions[0].values: Invalid value: null: "
        "for 'in', 'notin' operators, values set can't be empty"
    ) == fourth


def test_no_arguments() -> None:
    """Without arguments nothing is added."""
    assert NodeAffinityArgs() == NodeAffinity.decode_args(None, FakeHandle(), "args")


def test_unknown_arguments() -> None:
    """An unknown field is a field error at any depth."""
    with pytest.raises(ConfigError, match=r"args\.addedAffinity\.required"):
        NodeAffinity.decode_args({"addedAffinity": {"required": {}}}, FakeHandle(), "args")


A, B = {"zone": "a"}, {"zone": "b"}


@pytest.mark.parametrize(
    ("affinity", "added", "old", "new", "expected"),
    [
        pytest.param(IN_A, None, None, A, True, id="matching-node-came"),
        pytest.param(IN_A, None, None, B, False, id="other-node-came"),
        pytest.param(IN_A, None, B, A, True, id="starts-to-match"),
        pytest.param(IN_A, None, A, A, False, id="matched-before"),
        pytest.param(IN_A, None, A, B, False, id="stops-to-match"),
        pytest.param(None, required(has("zone", "b")), None, A, False, id="added-does-not-match"),
        pytest.param(None, IN_A, None, A, True, id="added-matches"),
        pytest.param(None, IN_A, B, A, False, id="only-added-changed"),
        pytest.param(required(UNPARSABLE), None, B, A, True, id="error-is-a-try"),
        pytest.param(ERROR_OR_A, None, A, A, False, id="error-that-matched"),
        pytest.param(ERROR_OR_A, None, B, A, True, id="error-before-only"),
        pytest.param(ERROR_OR_A, None, A, B, True, id="error-now-only"),
    ],
)
def test_hint_after_node_change(
    affinity: Json | None,
    added: Json | None,
    old: dict[str, str] | None,
    new: dict[str, str],
    expected: bool,
) -> None:
    """A retry needs a node that matches the profile, and the pod now but not before."""
    before = None if old is None else make_node(labels=old)
    pod = make_pod(node_affinity=affinity)
    assert expected == hint_of(make_plugin(added), NODE)(pod, before, make_node(labels=new))


def test_hint_asks_the_node_selector_first() -> None:
    """An invalid term does not matter if the node selector does not match."""
    hint = hint_of(make_plugin(), NODE)
    pod = make_pod(node_selector=B, node_affinity=required(UNPARSABLE))
    assert not hint(pod, None, make_node(labels=A))
    assert hint(pod, None, make_node(labels=B))


@given(
    st.lists(st.sampled_from([{}, A, B]), min_size=1, max_size=6),
    st.sampled_from([None, {}, A, B]),
    st.sampled_from([None, IN_A, required(has("zone", "b"), has("x"))]),
    st.sampled_from([None, required(has("zone", "a", "b")), required()]),
)
@settings(deadline=None)
def test_rows_are_answered_one_by_one(
    labels: list[dict[str, str]],
    selector: dict[str, str] | None,
    affinity: Json | None,
    added: Json | None,
) -> None:
    """A table of many rows and tables of one row agree, status by status."""
    plugin = make_plugin(added)
    pod = make_pod_info(node_selector=selector, node_affinity=affinity)
    table = make_snapshot(make_node(f"n{at}", labels=each) for at, each in enumerate(labels)).nodes
    answers = plugin.filter(None, pod, table)
    for row in range(len(table)):
        assert answers[row] == plugin.filter(None, pod, table.take(np.array([row])))[0]


def test_signature() -> None:
    """Absent and empty differ; names and labels of the pod are not read."""
    sign = make_plugin().sign
    asked: tuple[PodFields, ...] = (
        {},
        {"node_selector": {}},
        {"node_selector": A},
        {"node_affinity": required()},
        {"node_affinity": IN_A},
        {"node_affinity": preferred((1, has("zone", "a")))},
        {"node_affinity": {PREFERRED: []}},
    )
    signatures = {sign(make_pod_info(**fields)) for fields in asked}
    assert len(asked) == len(signatures)
    again = {sign(make_pod_info("other", **fields)) for fields in asked}
    assert signatures == again


def test_pods_that_name_nodes_share_the_answers_of_other_plugins() -> None:
    """A DaemonSet's pods differ in the name of their node alone."""
    for name in "ab":
        pod = make_pod_info(node_affinity=required({"matchFields": [named(name)]}))
        assert NOT_SHARED is make_plugin().sign(pod)
    either = required(name_is("a"), {"matchExpressions": []})
    assert NOT_SHARED is not make_plugin().sign(make_pod_info(node_affinity=either))
