"""Extenders: their requests, how answers are read, and how those of several combine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest

from kubesched.api.core import Pod
from kubesched.config.types import ExtenderConfiguration, ExtenderManagedResource
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable, unschedulable
from kubesched.scheduler.extenders import ExtenderError, HttpExtender, Passed
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_table
from tests.scheduler.fake_extender import FakeExtender, extenders_of, keep, nodes, rate

URL = "http://host:80/path"
POD = PodInfo(make_pod("p", uid="u-p"))
TABLE = make_table(
    [make_node(name) for name in "abcd"],
    [make_pod(f"on-{name}", uid=f"u-{name}", node_name=name) for name in "ab"],
)
ROWS = np.arange(3)
CANDIDATES = [Candidate(name, tuple(TABLE.pods[row].values())) for row, name in enumerate("ab")]
OTHER = (ExtenderManagedResource("example.com/other"),)
LAX: Mapping[str, Any] = {"ignorable": True}

Script: TypeAlias = tuple[FakeExtender, Mapping[str, Any]]


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
    return asyncio.run(extender.filter(POD, TABLE, ROWS, failures)), failures


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
    """A request or limit of any container is enough."""
    managed = (ExtenderManagedResource(GPU), *OTHER)
    extender = extender_of(FakeExtender({}), managed_resources=managed)
    assert expected == extender.is_interested(PodInfo(pod))


def test_an_extender_without_managed_resources_is_interested_in_all_pods() -> None:
    """It is asked whatever a pod requests."""
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
    asyncio.run(extender.filter(POD, TABLE, ROWS, {}))
    (asked,) = fake.asked
    assert (expected, seconds) == (asked.url, asked.timeout_seconds)


@pytest.mark.parametrize("caches", [True, False])
def test_requests_have_names_or_nodes(caches: bool) -> None:
    """They name the given rows only."""
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
    """The messages are upstream's."""
    with pytest.raises(ExtenderError) as caught:
        filtered(answer)
    assert expected == str(caught.value)


# Filter.


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
    assert {"a": 140, "x": 70} == asyncio.run(extender.prioritize(POD, TABLE, ROWS))


def test_without_a_prioritize_verb_scores_are_zero() -> None:
    """No request is sent."""
    fake = FakeExtender({})
    extender = HttpExtender(ExtenderConfiguration(url_prefix=URL, weight=3), fake)
    assert {"b": 0, "c": 0} == asyncio.run(extender.prioritize(POD, TABLE, np.array([1, 2])))
    assert [] == fake.asked


def test_an_invalid_prioritize_answer() -> None:
    """It is an error."""
    with pytest.raises(ExtenderError):
        asyncio.run(extender_of(FakeExtender({"prioritize": {}})).prioritize(POD, TABLE, ROWS))


# Preempt.


def kept(answer: object) -> tuple[Candidate, ...]:
    """Return the candidates that are left of two."""
    extender = extender_of(FakeExtender({"preempt": {"NodeNameToMetaVictims": answer}}))
    return asyncio.run(extender.process_preemption(POD, CANDIDATES, TABLE))


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


# Several extenders filter.


def passed(*scripts: Script) -> tuple[str, dict[int, Status]]:
    """Return the names of the nodes that all accept, and the failures."""
    failures: dict[int, Status] = {}
    found = asyncio.run(extenders_of(*scripts).filter(POD, TABLE, ROWS, failures))
    return "".join(TABLE.names[row] for row in found.rows.tolist()), failures


def test_each_extender_filters_what_the_previous_one_left() -> None:
    """They run in the order of the configuration."""
    first = FakeExtender({"filter": keep("b", "c", a="full")})
    second = FakeExtender({"filter": keep("c", b="hot")})
    expected = {0: unschedulable("full"), 1: unschedulable("hot")}
    assert ("c", expected) == passed((first, {}), (second, {}))
    assert ["b", "c"] == second.asked[0].question["NodeNames"]


def test_extenders_are_not_called_when_no_node_is_left() -> None:
    """The first one rejected all."""
    last = FakeExtender({"filter": keep()})
    assert ("", {}) == passed((FakeExtender({"filter": keep()}), {}), (last, {}))
    assert [] == last.asked


def test_only_interested_extenders_filter() -> None:
    """Those for other resources, or without a filter verb, get no request."""
    other, idle = FakeExtender({"filter": keep()}), FakeExtender({"bind": {}})
    assert ("abc", {}) == passed((other, {"managed_resources": OTHER}), (idle, {}))
    assert [] == other.asked + idle.asked


def test_ignorable_extenders_come_last() -> None:
    """Both kinds keep their order; ignorable ones follow the others."""
    order: list[str] = []

    def script(name: str) -> FakeExtender:
        def answer(asked: dict[str, Any]) -> object:
            order.append(name)
            return keep(*asked["NodeNames"])

        return FakeExtender({"filter": answer})

    passed((script("lax 1"), LAX), (script("1"), {}), (script("lax 2"), LAX), (script("2"), {}))
    assert ["1", "2", "lax 1", "lax 2"] == order


@pytest.mark.parametrize(
    "answer", [500, {"Error": "broken"}, keep("x"), TimeoutError(), b"", ConnectionError("gone")]
)
def test_a_failing_ignorable_extender_does_not_filter(answer: object) -> None:
    """Any other failure is raised."""
    good = FakeExtender({"filter": keep("a", "b", c="full")})
    bad = FakeExtender({"filter": answer})
    expected = {2: unschedulable("full")}
    assert ("ab", expected) == passed((bad, LAX), (good, {}))
    failures: dict[int, Status] = {}
    with pytest.raises(ExtenderError):
        asyncio.run(extenders_of((good, {}), (bad, {})).filter(POD, TABLE, ROWS, failures))
    assert expected == failures


def test_later_failures_replace_earlier_ones() -> None:
    """The last status of a node counts."""
    first = FakeExtender({"filter": keep("b", "c", a="full")})
    second = FakeExtender(
        {"filter": {"NodeNames": ["c"], "FailedAndUnresolvableNodes": {"a": "never"}}}
    )
    assert ("c", {0: unresolvable("never")}) == passed((first, {}), (second, {}))


# Several extenders prioritize.


def scores(*scripts: Script) -> tuple[list[int], list[bool]]:
    """Return the sum per node, and whether any extender scored it."""
    found = asyncio.run(extenders_of(*scripts).prioritize(POD, TABLE, ROWS))
    return found.added.tolist(), found.are_given.tolist()


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        pytest.param([], ([0, 0, 0], [False] * 3), id="nobody"),
        pytest.param(
            [(rate(a=10, b=1), {"weight": 2}), (rate(b=5, x=9), {})],
            ([200, 70, 0], [True, True, False]),
            id="weights",
        ),
        pytest.param([(rate(c=0), {})], ([0, 0, 0], [False, False, True]), id="zero is a score"),
        pytest.param(
            [(500, {}), (rate(a=1), {})], ([10, 0, 0], [True, False, False]), id="failures"
        ),
        pytest.param(
            [(rate(a=1), {"managed_resources": OTHER})], ([0, 0, 0], [False] * 3), id="no interest"
        ),
        pytest.param(
            [(rate(a=1), {"prioritize_verb": ""})], ([0, 0, 0], [True] * 3), id="no verb scores all"
        ),
        pytest.param(
            [(rate(a=1), {"weight": 1 << 62}), (rate(b=(1 << 63) - 1), {})],
            ([-(1 << 63), -10, 0], [True, True, False]),
            id="int64 overflows",
        ),
    ],
)
def test_scores_of_interested_extenders_add_up(
    scripts: list[tuple[object, Any]], expected: object
) -> None:
    """Failures add nothing."""
    assert expected == scores(
        *((FakeExtender({"prioritize": answer}), fields) for answer, fields in scripts)
    )


def test_extenders_score_concurrently() -> None:
    """All requests are sent before the first answer."""
    both = asyncio.Barrier(2)

    async def answer(_: dict[str, Any]) -> object:
        await both.wait()
        return rate(a=1)

    scripts = [(FakeExtender({"prioritize": answer}), LAX) for _ in range(2)]
    assert ([20, 0, 0], [True, False, False]) == scores(*scripts)


# Several extenders preempt.


def narrowed(*scripts: tuple[object, Mapping[str, Any]]) -> list[str] | None:
    """Return the names of the remaining candidates."""
    fakes = [
        (
            FakeExtender(
                {"preempt": answer if answer == 500 else {"NodeNameToMetaVictims": answer}}
            ),
            fields,
        )
        for answer, fields in scripts
    ]
    found = asyncio.run(extenders_of(*fakes).narrow(POD, CANDIDATES, TABLE))
    return None if found is None else [candidate.node_name for candidate in found]


def victims(name: str) -> dict[str, object]:
    """Keep a node with its pod as victim."""
    return {name: {"Pods": [{"UID": f"u-{name}"}]}}


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        pytest.param([], None, id="nobody"),
        pytest.param([({}, {"preempt_verb": ""})], None, id="no verb"),
        pytest.param([({}, {"managed_resources": OTHER})], None, id="no interest"),
        pytest.param([(victims("b"), {})], ["b"], id="one"),
        pytest.param([({**victims("b"), **victims("a")}, {}), (victims("a"), {})], ["a"], id="two"),
        pytest.param([({}, {}), (500, {})], [], id="stops when none is left"),
        pytest.param([(500, LAX)], None, id="ignorable"),
        pytest.param([(victims("a"), {}), (500, LAX)], ["a"], id="ignorable after another"),
        pytest.param([({**victims("a"), "b": {}}, LAX)], ["a"], id="ignorable without victims"),
    ],
)
def test_each_extender_narrows_what_the_previous_one_left(
    scripts: list[tuple[object, Any]], expected: list[str] | None
) -> None:
    """They run in the order of the configuration."""
    assert expected == narrowed(*scripts)


# Several extenders bind.


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        pytest.param([], None, id="nobody"),
        pytest.param([({}, {})], SUCCESS, id="bound"),
        pytest.param([({"Error": "no"}, {})], failure("no"), id="refused"),
        pytest.param([({"Error": "no"}, LAX)], None, id="ignorable"),
        pytest.param([({"Error": "no"}, {"bind_verb": ""})], None, id="no verb"),
        pytest.param([({}, {"managed_resources": OTHER})], None, id="no interest"),
    ],
)
def test_the_first_interested_extender_with_a_bind_verb_binds(
    scripts: list[tuple[object, Any]], expected: Status | None
) -> None:
    """None means that the plugins bind."""
    fakes = [(FakeExtender({"bind": answer}), fields) for answer, fields in scripts]
    assert expected == asyncio.run(extenders_of(*fakes).bind(POD, "a"))
