"""Several extenders: their order, ignorable ones, and how answers combine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kubesched.config.types import ExtenderConfiguration, ExtenderManagedResource
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable, unschedulable
from kubesched.scheduler.extenders import ExtenderError, Extenders
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_table
from tests.scheduler.fake_extender import FakeExtender

POD = PodInfo(make_pod("p", uid="u-p"))
TABLE = make_table(
    [make_node(name) for name in "abc"],
    [make_pod(f"on-{name}", uid=f"u-{name}", node_name=name) for name in "ab"],
)
ALL = np.arange(3)
CANDIDATES = [Candidate(name, tuple(TABLE.pods[row].values())) for row, name in enumerate("ab")]
OTHER = (ExtenderManagedResource("example.com/other"),)


def extenders_of(*scripts: tuple[FakeExtender, Mapping[str, Any]]) -> Extenders:
    """Make extenders with the verbs of their scripts and further fields."""
    by_url = {f"http://{at}": fake for at, (fake, _) in enumerate(scripts)}
    configurations = [
        ExtenderConfiguration(
            **{
                "url_prefix": f"http://{at}",
                "node_cache_capable": True,
                "weight": 1,
                **{f"{verb}_verb": verb for verb in fake.answers},
                **fields,
            }
        )
        for at, (fake, fields) in enumerate(scripts)
    ]
    return Extenders.of(configurations, lambda configuration: by_url[configuration.url_prefix])


def keep(*names: str, **failed: str) -> dict[str, object]:
    """Answer a filter request with the nodes to keep and the reasons of others."""
    return {"NodeNames": list(names), "FailedNodes": failed}


# Filter.


def passed(
    *scripts: tuple[FakeExtender, Mapping[str, Any]],
) -> tuple[str, dict[int, Status]]:
    """Return the names of the nodes that all accept, and the failures."""
    failures: dict[int, Status] = {}
    found = asyncio.run(extenders_of(*scripts).filter(POD, TABLE, ALL, failures))
    return "".join(TABLE.names[row] for row in found.rows.tolist()), failures


def test_each_extender_filters_what_the_previous_one_left() -> None:
    """In the order of the configuration."""
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

    lax = {"ignorable": True}
    passed((script("lax 1"), lax), (script("1"), {}), (script("lax 2"), lax), (script("2"), {}))
    assert ["1", "2", "lax 1", "lax 2"] == order


@pytest.mark.parametrize(
    "answer", [500, {"Error": "broken"}, keep("x"), TimeoutError(), b"", ConnectionError("gone")]
)
def test_a_failing_ignorable_extender_does_not_filter(answer: object) -> None:
    """Any other failure is raised."""
    good = FakeExtender({"filter": keep("a", "b", c="full")})
    bad = FakeExtender({"filter": answer})
    expected = {2: unschedulable("full")}
    assert ("ab", expected) == passed((bad, {"ignorable": True}), (good, {}))
    failures: dict[int, Status] = {}
    with pytest.raises(ExtenderError):
        asyncio.run(extenders_of((good, {}), (bad, {})).filter(POD, TABLE, ALL, failures))
    assert expected == failures


def test_later_failures_replace_earlier_ones() -> None:
    """The last status of a node counts."""
    first = FakeExtender({"filter": keep("b", "c", a="full")})
    second = FakeExtender(
        {"filter": {"NodeNames": ["c"], "FailedAndUnresolvableNodes": {"a": "never"}}}
    )
    assert ("c", {0: unresolvable("never")}) == passed((first, {}), (second, {}))


# Prioritize.


def scores(*scripts: tuple[FakeExtender, Mapping[str, Any]]) -> tuple[list[int], list[bool]]:
    """Return the sum per node, and whether any extender scored it."""
    found = asyncio.run(extenders_of(*scripts).prioritize(POD, TABLE, ALL))
    return found.added.tolist(), found.are_given.tolist()


def rate(**amounts: int) -> list[dict[str, object]]:
    """Answer a prioritize request."""
    return [{"Host": name, "Score": score} for name, score in amounts.items()]


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

    scripts = [(FakeExtender({"prioritize": answer}), {"ignorable": True}) for _ in range(2)]
    assert ([20, 0, 0], [True, False, False]) == scores(*scripts)


# Preempt.


def narrowed(*scripts: tuple[object, Mapping[str, Any]]) -> list[str] | None:
    """Return the names of the remaining candidates."""
    fakes = [
        (FakeExtender({"preempt": {"NodeNameToMetaVictims": answer}}), fields)
        if not isinstance(answer, int)
        else (FakeExtender({"preempt": answer}), fields)
        for answer, fields in scripts
    ]
    found = asyncio.run(extenders_of(*fakes).narrow(POD, CANDIDATES, TABLE))
    return None if found is None else [candidate.node_name for candidate in found]


def victims(name: str) -> dict[str, object]:
    """Keep a node with its pod as victim."""
    return {name: {"Pods": [{"UID": f"u-{name}"}]}}


LAX: Mapping[str, Any] = {"ignorable": True}


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
    """In the order of the configuration."""
    assert expected == narrowed(*scripts)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"b": None}, 'expected at least one victim pod on node "b"', id="no victims"),
        pytest.param(503, "failed preempt with extender at URL http://0/preempt, code 503"),
    ],
)
def test_a_failing_extender_fails_the_preemption(answer: object, expected: str) -> None:
    """Unless it is ignorable."""
    with pytest.raises(ExtenderError) as caught:
        narrowed((answer, {}))
    assert expected == str(caught.value)


# Bind.


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
