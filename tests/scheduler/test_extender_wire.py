"""The wire format of extenders: Go's field names are written, and read in any case."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.preemption.report import Candidate
from kubesched.scheduler.extender_wire import (
    FilterResult,
    MetaVictims,
    WireError,
    decode_binding_error,
    decode_filter_result,
    decode_host_priorities,
    decode_preemption_result,
    encode_args,
    encode_binding_args,
    encode_preemption_args,
)
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod

POD = make_pod("p", uid="u-p")
NODES = [make_node("b"), make_node("a", labels={"zone": "z"})]
VICTIMS = tuple(PodInfo(make_pod(name, uid=f"u-{name}")) for name in ("v2", "v1"))
CANDIDATES = [Candidate("b", VICTIMS, 3), Candidate("a", VICTIMS[:1])]
BIG = 1 << 63


# Questions.


def test_an_extender_with_a_cache_gets_names() -> None:
    """The names are in order; nodes are null."""
    sent = json.loads(encode_args(POD, NODES, names_only=True))
    assert ["Pod", "Nodes", "NodeNames"] == list(sent)
    assert sent["Nodes"] is None
    assert ["b", "a"] == sent["NodeNames"]
    assert "u-p" == sent["Pod"]["metadata"]["uid"]


def test_an_extender_without_a_cache_gets_nodes() -> None:
    """Names are null."""
    sent = json.loads(encode_args(POD, NODES, names_only=False))
    assert sent["NodeNames"] is None
    assert ["metadata", "items"] == list(sent["Nodes"])
    assert ["b", "a"] == [node["metadata"]["name"] for node in sent["Nodes"]["items"]]
    assert {"zone": "z"} == sent["Nodes"]["items"][1]["metadata"]["labels"]


def test_an_extender_with_a_cache_gets_uids_of_victims() -> None:
    """Node names are sorted, like keys of Go's maps."""
    sent = json.loads(encode_preemption_args(POD, CANDIDATES, uids_only=True))
    expected = {
        "a": {"Pods": [{"UID": "u-v2"}], "NumPDBViolations": 0},
        "b": {"Pods": [{"UID": "u-v2"}, {"UID": "u-v1"}], "NumPDBViolations": 3},
    }
    assert ["Pod", "NodeNameToVictims", "NodeNameToMetaVictims"] == list(sent)
    assert sent["NodeNameToVictims"] is None
    assert expected == sent["NodeNameToMetaVictims"]
    assert ["a", "b"] == list(sent["NodeNameToMetaVictims"])


def test_an_extender_without_a_cache_gets_victims() -> None:
    """Victims are sent as whole pods."""
    sent = json.loads(encode_preemption_args(POD, CANDIDATES, uids_only=False))
    assert sent["NodeNameToMetaVictims"] is None
    victims = sent["NodeNameToVictims"]["b"]
    assert ["v2", "v1"] == [pod["metadata"]["name"] for pod in victims["Pods"]]
    assert victims["NumPDBViolations"] == 3


def test_objects_are_sent_without_kind() -> None:
    """Upstream sends them so, whether they were listed or watched."""
    bodies = [
        *(encode_args(POD, NODES, names_only=names_only) for names_only in (True, False)),
        *(encode_preemption_args(POD, CANDIDATES, uids_only=only) for only in (True, False)),
    ]
    assert ["Pod", "v1", "Node"] == [POD.kind, POD.api_version, NODES[0].kind]
    assert [] == [body for body in bodies if b'"kind"' in body or b'"apiVersion"' in body]


def test_binding_args_name_pod_and_node() -> None:
    """The pod has namespace, name and uid."""
    expected = {"PodName": "p", "PodNamespace": "default", "PodUID": "u-p", "Node": "n"}
    assert expected == json.loads(encode_binding_args(PodInfo(POD), "n"))


# Answers.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"{}", FilterResult(), id="nothing"),
        pytest.param(b"null", FilterResult(), id="null"),
        pytest.param(
            b' \n{"NodeNames":["a"]} trailing', FilterResult(node_names=("a",)), id="rest"
        ),
        pytest.param(b'{"nodenames":["a"]}', FilterResult(node_names=("a",)), id="lower case"),
        pytest.param(b'{"NODENAMES":["a"]}', FilterResult(node_names=("a",)), id="upper case"),
        pytest.param(b'{"NodeNames":[]}', FilterResult(node_names=()), id="empty is no null"),
        pytest.param(b'{"NodeNames":null}', FilterResult(), id="null names"),
        pytest.param(b'{"NodeNames":[null]}', FilterResult(node_names=("",)), id="null in names"),
        pytest.param(
            b'{"nodenames":["a"],"NodeNames":["b"]}', FilterResult(node_names=("b",)), id="last"
        ),
        pytest.param(
            b'{"Nodes":{"Items":[{"metadata":{"NAME":"a"},"spec":1}]}}',
            FilterResult(nodes=("a",)),
            id="nodes",
        ),
        pytest.param(b'{"Nodes":{}}', FilterResult(nodes=()), id="nodes without items"),
        pytest.param(b'{"Nodes":{"items":[{}]}}', FilterResult(nodes=("",)), id="nameless node"),
        pytest.param(
            b'{"FailedNodes":{"a":"full","b":null},"failedandunresolvablenodes":{"c":"never"}}',
            FilterResult(failed={"a": "full", "b": ""}, failed_and_unresolvable={"c": "never"}),
            id="failed",
        ),
        pytest.param(b'{"Error":"no","Else":1}', FilterResult(error="no"), id="error"),
        pytest.param(b'{"Error":"\xff"}', FilterResult(error="\ufffd"), id="no UTF-8"),
        pytest.param(
            rb'{"Error":"\ud800 \ud83d\ude00"}', FilterResult(error="\ufffd \U0001f600"), id="half"
        ),
    ],
)
def test_filter_results_are_decoded_as_in_go(body: bytes, expected: FilterResult) -> None:
    """Field names match in any case, and null is empty."""
    assert expected == decode_filter_result(body)


@pytest.mark.parametrize(
    ("decode", "body"),
    [
        pytest.param(decode_filter_result, b"", id="nothing at all"),
        pytest.param(decode_filter_result, b"  \n", id="blanks"),
        pytest.param(decode_filter_result, b"<html>", id="no JSON"),
        pytest.param(decode_filter_result, b'{"Error":"no"', id="cut off"),
        pytest.param(decode_filter_result, b"[" * 200_000, id="too deep"),
        pytest.param(decode_filter_result, b'{"Error":NaN}', id="no JSON number"),
        pytest.param(decode_filter_result, b"[]", id="array"),
        pytest.param(decode_filter_result, b'{"NodeNames":"a"}', id="names: string"),
        pytest.param(decode_filter_result, b'{"NodeNames":[1]}', id="names: number"),
        pytest.param(decode_filter_result, b'{"Nodes":[]}', id="nodes: array"),
        pytest.param(decode_filter_result, b'{"FailedNodes":{"a":1}}', id="failed: number"),
        pytest.param(decode_host_priorities, b"{}", id="priorities: object"),
        pytest.param(decode_host_priorities, b'[{"Score":"1"}]', id="score: string"),
        pytest.param(decode_host_priorities, b'[{"Score":1.0}]', id="score: fraction"),
        pytest.param(decode_host_priorities, b'[{"Score":true}]', id="score: bool"),
        pytest.param(decode_host_priorities, f'[{{"Score":{BIG}}}]'.encode(), id="score: too big"),
        pytest.param(
            decode_preemption_result, b'{"NodeNameToMetaVictims":[]}', id="victims: array"
        ),
        pytest.param(decode_binding_error, b'{"Error":1}', id="binding: number"),
    ],
)
def test_invalid_answers_are_errors(decode: Callable[[bytes], object], body: bytes) -> None:
    """The decoder raises a WireError."""
    with pytest.raises(WireError):
        decode(body)


def test_host_priorities() -> None:
    """Priorities keep their order and repetitions; null and absent are empty."""
    body = f'[{{"Host":"a","Score":3}},{{"host":"a","score":{-BIG}}},null,{{"HOST":"b"}}]'
    expected = (("a", 3), ("a", -BIG), ("", 0), ("b", 0))
    assert expected == decode_host_priorities(body.encode())
    assert () == decode_host_priorities(b"null")


def test_victims_are_decoded_as_uids() -> None:
    """Null stands for no victims."""
    body = b"""{"nodeNameToMetaVictims":{
        "a":{"pods":[{"uid":"1"},{"UID":"2"}],"numPDBViolations":1},"b":null,"c":{"Pods":[null]}}}"""
    expected = {"a": MetaVictims(("1", "2"), 1), "b": MetaVictims(), "c": MetaVictims(("",))}
    assert expected == decode_preemption_result(body)
    assert {} == decode_preemption_result(b"{}")
    half = rb'{"nodeNameToMetaVictims":{"\ud800":null}}'
    assert {"\ufffd": MetaVictims()} == decode_preemption_result(half)


def test_only_the_error_of_a_binding_result_counts() -> None:
    """Other fields are ignored."""
    assert "" == decode_binding_error(b"{}")
    assert "no" == decode_binding_error(b'{"error":"no"}')


@given(
    st.binary(max_size=60) | st.text(alphabet='{}[]":,nul0 NodesErr', max_size=60).map(str.encode)
)
def test_any_bytes_are_decoded_or_raise_a_wire_error(body: bytes) -> None:
    """No other exception is raised."""
    for decode in (decode_filter_result, decode_host_priorities, decode_preemption_result):
        try:
            decode(body)
        except WireError:
            continue


@pytest.mark.parametrize(
    ("decode", "body", "expected"),
    [
        pytest.param(decode_filter_result, b"", "EOF", id="nothing"),
        pytest.param(
            decode_filter_result,
            b"no",
            "invalid character 'o' in literal null (expecting 'u')",
            id="text",
        ),
        pytest.param(
            decode_filter_result,
            b"[]",
            "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult",
            id="array",
        ),
        pytest.param(
            decode_filter_result,
            b'{"nodeNames":"a"}',
            "json: cannot unmarshal string into Go struct field "
            "ExtenderFilterResult.NodeNames of type []string",
            id="names",
        ),
        pytest.param(
            decode_filter_result,
            b'{"FailedNodes":{"a":1.5}}',
            "json: cannot unmarshal number into Go struct field "
            "ExtenderFilterResult.FailedNodes of type string",
            id="reason",
        ),
        pytest.param(
            decode_filter_result,
            b'{"Nodes":{"items":[{"metadata":{"name":true}}]}}',
            "json: cannot unmarshal bool into Go struct field "
            "ObjectMeta.Nodes.items.metadata.name of type string",
            id="node",
        ),
        pytest.param(
            decode_host_priorities,
            b'[{"Score":1e1}]',
            "json: cannot unmarshal number 1e1 into Go struct field "
            "HostPriority.Score of type int64",
            id="score",
        ),
        pytest.param(
            decode_preemption_result,
            b'{"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":{}}]}}}',
            "json: cannot unmarshal object into Go struct field "
            "MetaPod.NodeNameToMetaVictims.Pods.UID of type string",
            id="victim",
        ),
    ],
)
def test_decoding_errors_have_gos_words(
    decode: Callable[[bytes], object], body: bytes, expected: str
) -> None:
    """The message is that of encoding/json."""
    with pytest.raises(WireError) as caught:
        decode(body)
    assert expected == str(caught.value)
