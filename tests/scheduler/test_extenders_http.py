"""One extender: its requests, and how its answers are read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kubesched.api.core import Pod
from kubesched.config.types import ExtenderConfiguration, ExtenderManagedResource
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.scheduler.extenders import ExtenderError, HttpExtender, Passed
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_table
from tests.scheduler.fake_extender import FakeExtender

URL = "http://host:80/path"
POD = PodInfo(make_pod("p", uid="u-p"))
TABLE = make_table(
    [make_node(name) for name in "abcd"],
    [make_pod(f"on-{name}", uid=f"u-{name}", node_name=name) for name in "ab"],
)
ALL = np.arange(4)


def extender_of(
    fake: FakeExtender, *, url: str = URL, caches: bool = True, **fields: Any
) -> HttpExtender:
    """Make an extender with all verbs."""
    configuration = ExtenderConfiguration(
        url_prefix=url,
        filter_verb="filter",
        prioritize_verb="prioritize",
        preempt_verb="preempt",
        bind_verb="bind",
        node_cache_capable=caches,
        **{"weight": 1, **fields},
    )
    return HttpExtender(configuration, fake)


def filtered(answer: object, *, caches: bool = True) -> tuple[Passed, dict[int, Status]]:
    """Filter three rows; return the remaining ones, and the statuses of others."""
    extender = extender_of(FakeExtender({"filter": answer}), caches=caches)
    failures: dict[int, Status] = {}
    return asyncio.run(extender.filter(POD, TABLE, np.arange(3), failures)), failures


# Interest.

GPU, NIC = "example.com/gpu", "example.com/nic"


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(requests={GPU: 1}, limits={GPU: 1}), True, id="requests"),
        pytest.param(make_pod(limits={GPU: 1}), True, id="limits"),
        pytest.param(make_pod(requests={GPU: 0}), True, id="zero"),
        pytest.param(
            make_pod(init_containers=[{"name": "i", "resources": {"limits": {GPU: 1}}}]),
            True,
            id="init container",
        ),
        pytest.param(make_pod(requests={NIC: 1, "cpu": 1}), False, id="others"),
        pytest.param(make_pod(), False, id="nothing"),
        pytest.param(
            make_pod(spec={"overhead": {GPU: "1"}, "resources": {"requests": {GPU: "1"}}}),
            False,
            id="the pod as a whole",
        ),
    ],
)
def test_managed_resources_make_an_extender_interested(pod: Pod, expected: bool) -> None:
    """In requests or limits of any container."""
    managed = (ExtenderManagedResource(GPU), ExtenderManagedResource("example.com/other"))
    extender = extender_of(FakeExtender({}), managed_resources=managed)
    assert expected == extender.is_interested(PodInfo(pod))


def test_an_extender_without_managed_resources_is_interested_in_all_pods() -> None:
    """Whatever they request."""
    assert extender_of(FakeExtender({})).is_interested(POD)


# Requests.


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        pytest.param("http://h/x", "http://h/x/filter", id="plain"),
        pytest.param("http://h/x//", "http://h/x/filter", id="slashes"),
    ],
)
@pytest.mark.parametrize(
    ("timeout_seconds", "seconds"), [pytest.param(0.0, 5.0, id="default"), pytest.param(2.5, 2.5)]
)
def test_url_and_timeout_of_a_request(
    prefix: str, expected: str, timeout_seconds: float, seconds: float
) -> None:
    """The verb follows the prefix after one slash; a timeout of 0 means five seconds."""
    fake = FakeExtender({"filter": {"NodeNames": []}})
    extender = extender_of(fake, url=prefix, http_timeout_seconds=timeout_seconds)
    asyncio.run(extender.filter(POD, TABLE, ALL, {}))
    (asked,) = fake.asked
    assert (expected, seconds) == (asked.url, asked.timeout_seconds)


@pytest.mark.parametrize("caches", [True, False])
def test_requests_have_names_or_nodes(caches: bool) -> None:
    """Of the given rows only."""
    fake = FakeExtender({"filter": {}})
    asyncio.run(extender_of(fake, caches=caches).filter(POD, TABLE, np.array([1, 3]), {}))
    question = fake.asked[0].question
    if caches:
        assert (None, ["b", "d"]) == (question["Nodes"], question["NodeNames"])
    else:
        names = [node["metadata"]["name"] for node in question["Nodes"]["items"]]
        assert (["b", "d"], None) == (names, question["NodeNames"])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(500, f"failed filter with extender at URL {URL}/filter, code 500", id="500"),
        pytest.param(201, f"failed filter with extender at URL {URL}/filter, code 201", id="201"),
        pytest.param(
            ConnectionRefusedError("refused"), f'Post "{URL}/filter": refused', id="refused"
        ),
        pytest.param(TimeoutError(), f'Post "{URL}/filter": TimeoutError', id="timeout"),
        pytest.param({"Error": "out of order"}, "out of order", id="its own words"),
        pytest.param(b"", "EOF", id="empty"),
    ],
)
def test_transport_errors_are_extender_errors(answer: object, expected: str) -> None:
    """In upstream's words."""
    with pytest.raises(ExtenderError) as caught:
        filtered(answer)
    assert expected == str(caught.value)


# Filter.


def nodes(*names: str) -> Mapping[str, object]:
    """Return nodes as an extender without a cache returns them."""
    return {"Nodes": {"items": [{"metadata": {"name": name}} for name in names]}}


@pytest.mark.parametrize(
    ("caches", "answer", "rows", "are_bare"),
    [
        pytest.param(True, {"NodeNames": ["c", "a"]}, [0, 2], False, id="names"),
        pytest.param(True, {"NodeNames": ["a", "a"]}, [0], False, id="twice"),
        pytest.param(True, {"NodeNames": ["a"], **nodes("b")}, [0], False, id="names win"),
        pytest.param(True, {"NodeNames": [], **nodes("b")}, [], False, id="no name wins"),
        pytest.param(True, nodes("b"), [1], True, id="nodes all the same"),
        pytest.param(True, {}, [], False, id="neither"),
        pytest.param(False, nodes("c", "b"), [1, 2], True, id="nodes"),
        pytest.param(False, {"NodeNames": ["a"]}, [], False, id="names without a cache"),
        pytest.param(False, {"NodeNames": ["a"], **nodes("b")}, [1], True, id="nodes win"),
        pytest.param(False, nodes("d"), [3], True, id="a node that was not sent"),
    ],
)
def test_answers_have_names_or_nodes(
    caches: bool, answer: object, rows: list[int], are_bare: bool
) -> None:
    """Names if the extender has a cache, else nodes; neither means no node."""
    left, _ = filtered(answer, caches=caches)
    assert (rows, are_bare) == (left.rows.tolist(), left.are_bare)


@pytest.mark.parametrize(
    ("caches", "answer", "name"),
    [
        pytest.param(True, {"NodeNames": ["a", "d"]}, "d", id="not asked about"),
        pytest.param(True, {"NodeNames": ["x"]}, "x", id="unknown name"),
        pytest.param(False, nodes("x"), "x", id="unknown node"),
    ],
)
def test_nodes_that_were_not_sent_are_errors(caches: bool, answer: object, name: str) -> None:
    """With upstream's message, if the answer has names or the node is unknown."""
    with pytest.raises(ExtenderError) as caught:
        filtered(answer, caches=caches)
    expected = (
        f'extender "{URL}" claims a filtered node "{name}" which is not found '
        "in the input node list"
    )
    assert expected == str(caught.value)


def test_unresolvable_wins_over_unschedulable() -> None:
    """Unknown nodes are left out."""
    answer = {
        "NodeNames": ["a"],
        "FailedNodes": {"b": "full", "c": "soon", "a": "odd", "x": "who"},
        "FailedAndUnresolvableNodes": {"c": "never", "y": "who"},
    }
    expected: dict[int, Status] = {
        0: unschedulable("odd"),
        1: unschedulable("full"),
        2: unresolvable("never"),
    }
    _, failures = filtered(answer)
    assert expected == failures


# Prioritize.


def test_scores_of_one_extender() -> None:
    """Ten times the weight; repeated nodes add up; unknown nodes are kept."""
    answer = [{"Host": "a", "Score": 3}, {"Host": "x", "Score": 1}, {"Host": "a", "Score": -1}]
    extender = extender_of(FakeExtender({"prioritize": answer}), weight=7)
    assert {"a": 140, "x": 70} == asyncio.run(extender.prioritize(POD, TABLE, ALL))


def test_without_a_prioritize_verb_scores_are_zero() -> None:
    """No request is sent."""
    fake = FakeExtender({})
    extender = HttpExtender(ExtenderConfiguration(url_prefix=URL, weight=3), fake)
    assert {"b": 0, "c": 0} == asyncio.run(extender.prioritize(POD, TABLE, np.array([1, 2])))
    assert [] == fake.asked


def test_an_invalid_prioritize_answer() -> None:
    """It is an error."""
    with pytest.raises(ExtenderError):
        asyncio.run(extender_of(FakeExtender({"prioritize": {}})).prioritize(POD, TABLE, ALL))


# Preempt.


def kept(answer: object) -> tuple[Candidate, ...]:
    """Return the candidates that are left of two."""
    extender = extender_of(FakeExtender({"preempt": {"NodeNameToMetaVictims": answer}}))
    candidates = [Candidate(name, tuple(TABLE.pods[row].values())) for row, name in enumerate("ab")]
    return asyncio.run(extender.process_preemption(POD, candidates, TABLE))


def test_uids_become_victims() -> None:
    """They are pods of that node, in the given order."""
    answer = {"b": {"Pods": [{"UID": "u-b"}], "NumPDBViolations": 2}, "c": {}}
    expected = (Candidate("b", (TABLE.pods[1]["u-b"],), 2), Candidate("c", ()))
    assert expected == kept(answer)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            {"a": {"Pods": [{"UID": "u-b"}]}},
            f"extender: {URL} claims to preempt pod (UID: &{{u-b}}) on node: a, "
            "but the pod is not found on that node",
            id="pod elsewhere",
        ),
        pytest.param({"x": {}}, 'nodeinfo not found for node name "x"', id="unknown node"),
    ],
)
def test_unknown_nodes_and_pods_in_a_preempt_answer(answer: object, expected: str) -> None:
    """They are errors in upstream's words."""
    with pytest.raises(ExtenderError) as caught:
        kept(answer)
    assert expected == str(caught.value)


# Bind.


@pytest.mark.parametrize("answer", [{}, None, {"Error": ""}])
def test_bind_without_an_error(answer: object) -> None:
    """The pod is bound."""
    asyncio.run(extender_of(FakeExtender({"bind": answer})).bind(POD, "a"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"Error": "taken"}, "taken", id="refused"),
        pytest.param(409, f"failed bind with extender at URL {URL}/bind, code 409", id="409"),
        pytest.param(
            [],
            "json: cannot unmarshal array into Go value of type v1.ExtenderBindingResult",
            id="no answer",
        ),
    ],
)
def test_bind_errors(answer: object, expected: str) -> None:
    """Anything but an answer without an error is an error."""
    with pytest.raises(ExtenderError) as caught:
        asyncio.run(extender_of(FakeExtender({"bind": answer})).bind(POD, "a"))
    assert expected == str(caught.value)
