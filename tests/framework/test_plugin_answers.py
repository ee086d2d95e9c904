"""Tests of the checks of what plugins return."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import Action, ClusterEvent, ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PostFilterResult, PreFilterResult, PreScoreResult
from kubesched.framework.plugin_answers import (
    AnswerChecks,
    WrongAnswerError,
    check_answer,
    check_events,
    check_kinds,
    check_score,
    check_sort_key,
)
from kubesched.framework.pod_groups import GeneratedPlacements, Placement
from kubesched.framework.status import SKIP, SUCCESS, Code, NodeToStatus, Status, unschedulable
from kubesched.framework.structured_log import FIELDS
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing import make_node, make_pod_info, make_table
from tests.loops import on_virtual_time

POD = make_pod_info("web", labels={"app": "web"})
TABLE = make_table([make_node("a"), make_node("b")])
TEXT: Any = "no"
NUMBER: Any = 3
PODS: Any = ("web",)
VICTIMS: Any = (pod for pod in (POD,))
WAIT = Status(Code.WAIT, ("for a licence",))


RIGHT = [
    ("pre_enqueue", unschedulable("no")),
    ("pre_filter", PreFilterResult(status=SKIP)),
    ("pre_filter", PreFilterResult(node_names=frozenset({"a"}))),
    ("filter", NodeToStatus.passing(2)),
    ("filter", NodeToStatus.everywhere(2, unschedulable("no"))),
    ("filter", NodeToStatus(np.array([0, 1], np.uint8), (SUCCESS, WAIT))),
    ("post_filter", PostFilterResult(SUCCESS, "a", (POD,))),
    ("pre_score", PreScoreResult(status=SKIP)),
    ("score", np.array([1, 2], np.int32)),
    ("score_row", 3.0),
    ("permit", (WAIT, 5)),
    ("bind", SKIP),
    ("describe", "cpu: 3 of 4"),
    ("describe_wait", ()),
    ("generate_placements", GeneratedPlacements((Placement("a", (0,)),))),
    ("score_placement", (7, SUCCESS)),
    ("a_method_without_a_check", "anything"),
]


@pytest.mark.parametrize(("method", "answer"), RIGHT)
def test_right_answers(method: str, answer: object) -> None:
    """What an extension point takes passes."""
    check_answer(method, answer, (None, POD, TABLE))


WRONG: list[tuple[str, object, str]] = [
    ("reserve", None, "must return a Status such as SUCCESS, not None; is a `return` missing?"),
    ("reserve", True, "must return a Status such as SUCCESS, not True"),
    ("filter_row", unschedulable(NUMBER), "must give reasons as texts, not (3,)"),
    ("pre_filter", SUCCESS, "must return a PreFilterResult, such as"),
    ("pre_filter", PreFilterResult(node_names=TEXT), "names as node_names, not 'no'"),
    ("filter", [SUCCESS, SUCCESS], "must return a NodeToStatus, such as"),
    ("filter", NodeToStatus.everywhere(2, TEXT), "must return a Status such as SUCCESS, not 'no'"),
    ("filter", NodeToStatus.passing(3), "answered for 3 rows, not for all 2"),
    ("filter", NodeToStatus(np.array([0, 2]), [SUCCESS]), "must index its 1 statuses by whole"),
    ("filter", NodeToStatus(np.array([0, -2]), [SUCCESS]), "by whole numbers from 0"),
    ("filter", NodeToStatus(np.ones(2), [SUCCESS, WAIT]), "by whole numbers from 0"),  # type: ignore[arg-type]
    ("filter", NodeToStatus(np.zeros(2, int), [WAIT]), "must have SUCCESS as its first status"),
    ("post_filter", SUCCESS, "must return a PostFilterResult, such as"),
    ("post_filter", PostFilterResult(SUCCESS, NUMBER), "as nominated_node_name, not 3"),
    ("post_filter", PostFilterResult(SUCCESS, "a", PODS), "PodInfo values of the snapshot"),
    ("post_filter", PostFilterResult(SUCCESS, "a", VICTIMS), "a tuple as victims, not generator"),
    ("post_filter", PostFilterResult(SUCCESS, None, (POD,)), "must name the victims' node as nom"),
    ("pre_score", None, "must return a PreScoreResult, such as"),
    ("score", [1, 2], "must return an array of int64, one for each of 2 rows, not list"),
    ("score", np.array([1.5, 2]), "not of float64; round it and use .astype(np.int64)"),
    ("score", np.array([True, False]), "not of bool"),
    ("score", np.array([1, 100], np.int8), "not of int8; use .astype(np.int64)"),
    ("score", np.array([1, 2], np.uint64), "not of uint64; use .astype(np.int64)"),
    ("score", np.zeros((2, 2), np.int64), "not the shape (2, 2)"),
    ("score_row", 0.5, "must return a whole number, not 0.5"),
    ("score_row", 1 << 63, "must return a number of 64 bits, not 9223372036854775808"),
    ("generate_placements", None, "must return a GeneratedPlacements, such as"),
    ("generate_placements", GeneratedPlacements(PODS), "Placement values as placements, not 'web'"),
    ("score_placement", 7, "must return a score and a status, such as (100, SUCCESS), not 7"),
    ("score_placement", (0.5, SUCCESS), "must return a whole number, not 0.5"),
    ("score_placement", (7, None), "must return a Status such as SUCCESS, not None"),
    ("describe", None, "must return a text, not None; is a `return` missing?"),
    ("describe_rejection", 5, "must return a text, not 5"),
    ("describe_wait", "the moon", "must return a list of texts, not 'the moon'"),
    ("describe_wait", [5], "must return a text, not 5"),
    ("permit", SUCCESS, "must return a status and a timeout in seconds, such as (SUCCESS, 0.0)"),
    ("permit", (WAIT, "5s"), "not '5s'"),
    ("permit", (SUCCESS, -1.0), "not -1.0"),
]


@pytest.mark.parametrize(("method", "answer", "message"), WRONG)
def test_wrong_answers(method: str, answer: object, message: str) -> None:
    """The message has the method, what it should return, and what it returned."""
    with pytest.raises(WrongAnswerError, match=re.escape(message)) as raised:
        check_answer(method, answer, (None, POD, TABLE))
    assert str(raised.value).startswith(f"{method} ")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1, 2], "must return scores and a status, such as (scores, SUCCESS), not list"),
        (([1], SUCCESS), "returned 1 scores, not 2"),
        (([1, 0.5], SUCCESS), "must return a whole number, not 0.5"),
    ],
)
def test_wrong_scores_of_placements(answer: object, message: str) -> None:
    """Each placement keeps a score."""
    with pytest.raises(WrongAnswerError, match=re.escape(message)):
        check_answer("normalize_placement_scores", answer, ([5, 10],))
    check_answer("normalize_placement_scores", ([50, 100], SUCCESS), ([5, 10],))


@pytest.mark.parametrize(
    ("check", "answer", "message"),
    [
        (check_sort_key, ("web",), "sort_key must return a tuple of numbers, not ('web',)"),
        (check_events, ["Node"], "must return None or a list of ClusterEventWithHint, not 'Node'"),
        (check_kinds, [Pod], "kinds_needed must return NeededKind values, not StructMeta"),
        (check_events, [ClusterEventWithHint(TEXT)], 'events such as ClusterEvent("Node", Act'),
        (
            check_events,
            [ClusterEventWithHint(ClusterEvent("Node", TEXT))],
            "events with actions such as Action.ADD, not 'no'",
        ),
        (check_events, 3, "must return None or a list of ClusterEventWithHint, not 3"),
        (
            check_events,
            [ClusterEventWithHint(ClusterEvent("example.com/Quota", Action.ADD))],
            "*, or of a declared custom_resource, not 'example.com/Quota'",
        ),
        (lambda answer: check_score("score_node", answer), float("nan"), "a whole number, not nan"),
    ],
)
def test_other_wrong_answers(check: Callable[[Any], None], answer: object, message: str) -> None:
    """Keys of pods, events and scores of one node are checked where they are read."""
    with pytest.raises(WrongAnswerError, match=re.escape(message)):
        check(answer)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (POD.pod.metadata.labels, "filter changed pod default/web, which the scheduler shares"),
        (TABLE.nodes[0].metadata.labels, "filter changed a Node object, which the scheduler"),
    ],
    ids=["pod", "node"],
)
def test_changed_objects(labels: dict[str, str], message: str) -> None:
    """The change shows in the call that makes it."""

    def change(_state: object, _pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        labels["mine"] = "yes"
        return NodeToStatus.passing(len(nodes))

    with pytest.raises(WrongAnswerError, match=re.escape(message)):
        AnswerChecks("P", float).ask("filter", change, None, POD, TABLE)
    del labels["mine"]


def test_a_state_that_extensions_change_needs_a_clone() -> None:
    """Without it, preemption would take the state as one that no pod changes."""
    checks = AnswerChecks("P", float, needs_clone=True)
    answers: list[PreFilterResult[Any]]
    answers = [PreFilterResult(CycleState()), PreFilterResult({}, SKIP), PreFilterResult()]
    for right in answers:
        assert right is checks.ask("pre_filter", lambda answer: answer, right)
    with pytest.raises(WrongAnswerError, match=r"a state with `clone\(\)`, .*, not dict"):
        checks.ask("pre_filter", lambda: PreFilterResult({}))


def test_slow_methods_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """The log names plugin, method and mean time; later calls are not timed."""
    clock = [0.0]

    def permit(seconds: float) -> tuple[Status, float]:
        clock[0] += seconds
        return SUCCESS, 0.0

    quick, slow = (AnswerChecks(name, lambda: clock[0]) for name in ("Quick", "Slow"))
    for _ in range(60):
        quick.ask("permit", permit, 0.019)
        slow.ask("permit", permit, 0.3)
    quick.ask("permit", permit, 30.0)
    [record] = caplog.records
    wanted = {"plugin": "Slow", "method": "permit", "calls": 4, "mean": "0.3s"}
    assert wanted == getattr(record, FIELDS)


@pytest.mark.parametrize("blocks", [True, False])
def test_awaiting_is_not_slow_but_blocking_is(
    blocks: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Only what keeps the event loop busy counts."""
    clock = [0.0]

    def work() -> None:
        clock[0] += 2.0

    async def pre_bind(pod: PodInfo) -> Status:
        loop = asyncio.get_running_loop()
        if blocks:
            work()
        else:
            loop.call_soon(work)
        await asyncio.sleep(0.001)
        return SUCCESS

    checks = AnswerChecks("P", lambda: clock[0])
    assert SUCCESS is asyncio.run(checks.ask_async(pre_bind, (POD,)))
    wanted = {"plugin": "P", "method": "pre_bind", "calls": 1, "mean": "2s"}
    assert [wanted] * blocks == [getattr(record, FIELDS) for record in caplog.records]


@on_virtual_time
async def test_an_awaiting_method_can_be_cancelled() -> None:
    """It gets the error where it awaits, and may go on."""

    async def pre_bind() -> Status:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            raise
        return SUCCESS

    task = asyncio.create_task(AnswerChecks("P", float).ask_async(pre_bind, ()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
