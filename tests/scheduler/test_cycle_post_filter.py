"""PostFilter plugins: their order, and how their results combine."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kubesched.framework.handle import Handle
from kubesched.framework.plugin import PostFilterResult, PreFilterResult, Scope
from kubesched.framework.status import SUCCESS, Code, Status, failure, unresolvable, unschedulable
from kubesched.scheduler.trace import Trace
from kubesched.testing.builders import make_pod_info
from tests.scheduler.toys import (
    Toy,
    alike,
    cluster,
    cycle_of,
    decide,
    failed,
    placed,
    rejected,
    toy,
)

POD = make_pod_info("pod")
VICTIM = make_pod_info("victim")
FULL = toy("Full", filter={"a": unschedulable("full"), "b": unresolvable("gone")})
STORY = "0/2 nodes are available: 1 full, 1 gone."


def _no(text: str, node: str | None = None) -> PostFilterResult:
    return PostFilterResult(unschedulable(text), node)


def _helps(node: str = "a") -> PostFilterResult:
    return PostFilterResult(SUCCESS, node, (VICTIM,))


def test_without_post_filter_plugins() -> None:
    """The nomination is cleared, and the message has the nodes' reasons only."""
    decision = rejected(decide([FULL], POD, cluster("a", "b")))
    assert (STORY, "", (), None) == (
        decision.message,
        decision.nominated_node_name,
        decision.victims,
        decision.post_filter,
    )


def test_post_filter_does_not_run_for_a_pod_that_fits() -> None:
    """It is for rejected pods."""
    plugin = toy("P", post_filter=RuntimeError("never asked"))
    placed(decide([plugin], POD, cluster("a", "b")))
    assert [] == plugin.asked


def test_the_first_success_ends_post_filter() -> None:
    """The other plugins are not called; its result is used."""
    first, second = toy("First", post_filter=_no("one", "b")), toy("Second", post_filter=_helps())
    third = toy("Third", post_filter=_no("three"))
    decision = rejected(decide([FULL, first, second, third], POD, cluster("a", "b")))
    assert ("a", (VICTIM,)) == (decision.nominated_node_name, decision.victims)
    assert STORY == decision.message
    assert [] == third.asked


def test_unresolvable_ends_post_filter() -> None:
    """Only its message is in the result."""
    first = toy("First", post_filter=_no("one", "b"))
    second = toy("Second", post_filter=PostFilterResult(unresolvable("never"), ""))
    third = toy("Third", post_filter=_helps())
    decision = rejected(decide([FULL, first, second, third], POD, cluster("a", "b")))
    assert f"{STORY} never" == decision.message
    assert "" == decision.nominated_node_name
    assert [] == third.asked


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(PostFilterResult(failure("broken"), "a"), "broken", id="error"),
        pytest.param(PostFilterResult(Status(Code.SKIP, ("skip",))), "skip", id="skip"),
        pytest.param(ValueError("bad"), "ValueError: bad", id="exception"),
    ],
)
def test_a_post_filter_failure_keeps_the_nomination(answer: object, text: str) -> None:
    """It ends the phase; the pod stays rejected."""
    second = toy("Second", post_filter=answer)
    third = toy("Third", post_filter=_helps())
    plugins = [FULL, toy("First", post_filter=_no("one", "b")), second, third]
    decision = rejected(decide(plugins, POD, cluster("a", "b")))
    assert (f"{STORY} {text}", None) == (decision.message, decision.nominated_node_name)
    assert decision.post_filter is not None
    assert Status(Code.ERROR, plugin="Second", error=text) == decision.post_filter.status
    assert [] == third.asked


def test_rejections_of_post_filter_are_joined() -> None:
    """All reasons, the first plugin's name, and the last nomination."""
    plugins: list[type[Toy]] = [
        toy("First", post_filter=_no("one")),
        toy("Second", post_filter=_no("two", "b")),
        toy("Third", post_filter=PostFilterResult(Status(Code.PENDING, ("three",)), "")),
        toy("Fourth", post_filter=_no("four")),
    ]
    decision = rejected(decide([FULL, *plugins], POD, cluster("a", "b")))
    assert decision.post_filter is not None
    reasons = ("one", "two", "three", "four")
    assert Status(Code.UNSCHEDULABLE, reasons, "First") == decision.post_filter.status
    assert f"{STORY} one, two, three, four" == decision.message
    assert "" == decision.nominated_node_name


def test_post_filter_without_a_nomination_keeps_the_nomination() -> None:
    """No plugin returned one."""
    decision = rejected(decide([FULL, toy("P", post_filter=_no("one"))], POD, cluster("a", "b")))
    assert decision.nominated_node_name is None


def test_post_filter_gets_a_status_for_every_node() -> None:
    """Nodes that were not filtered have the absent one."""
    picky = PreFilterResult[None](node_names=frozenset({"a"}))
    filtering = toy("F", pre_filter=picky, filter={"a": unschedulable("full")})
    post = toy("P", post_filter=_no("one"))
    rejected(cycle_of(filtering, post).schedule_one(POD, cluster("a", "b")))
    expected = ("post_filter", ("Unschedulable", "UnschedulableAndUnresolvable"))
    assert [expected] == post.asked


def test_post_filter_after_a_rejection_by_pre_filter() -> None:
    """Every node has PreFilter's status; PostFilter's message follows it."""
    early = toy("E", pre_filter=PreFilterResult[None](status=unschedulable("no")))
    post = toy("P", post_filter=_no("one"))
    decision = rejected(cycle_of(early, post).schedule_one(POD, cluster("a", "b")))
    assert "0/2 nodes are available: no. one" == decision.message
    assert [("post_filter", ("Unschedulable", "Unschedulable"))] == post.asked


def test_post_filter_does_not_run_after_a_failure() -> None:
    """The cycle ends with the failure."""
    post = toy("P", filter={"a": failure("broken")}, post_filter=_helps())
    failed(cycle_of(post).schedule_one(POD, cluster("a", "b")))
    assert "post_filter" not in {point for point, _ in post.asked}


def test_the_trace_has_the_result_of_each_post_filter_plugin() -> None:
    """The results are in the order of the calls."""
    results = {"First": _no("one"), "Second": _helps()}
    plugins = [toy(name, post_filter=result) for name, result in results.items()]
    trace = Trace()
    rejected(cycle_of(FULL, *plugins).schedule_one(POD, cluster("a", "b"), trace))
    assert list(results.items()) == list(trace.post_filters.items())


class _Drawing(Toy):
    """A toy that may draw from the random source."""

    keeps: ClassVar = False
    draws: ClassVar = True

    def __init__(self, args: object, handle: Handle) -> None:
        """Keep the source, although plugins should not."""
        super().__init__(args, handle)
        self._kept = handle.random if self.keeps else None

    def post_filter(self, *question: Any) -> PostFilterResult:
        """Draw before the answer."""
        if self.draws:
            (self._kept or self.handle.random).random()
        return super().post_filter(*question)


@pytest.mark.parametrize(
    ("draws", "keeps", "times"), [(False, False, 1), (True, False, 3), (True, True, 3)]
)
def test_rejections_that_used_random_numbers_are_not_recalled(
    *, draws: bool, keeps: bool, times: int
) -> None:
    """The next attempt draws again, as it would without memory."""
    node = Scope.NODE
    full = toy("Full", filter=dict.fromkeys("ab", unschedulable("full")), scope=node, sign=alike)
    plain = toy("Drawing", post_filter=_no("no"), scope=node, sign=alike)
    drawing = type("Drawing", (_Drawing,), {**vars(plain), "draws": draws, "keeps": keeps})
    cycle, snapshot = cycle_of(full, drawing, remembers=True), cluster("a", "b")
    for _ in range(3):
        rejected(cycle.schedule_one(POD, snapshot))
    assert times == len(plain.asked)
