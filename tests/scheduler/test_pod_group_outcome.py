"""Outcomes of a pod group, by the answers of Filter, PostFilter and Permit for its pods."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from kubesched.framework.status import failure, unresolvable
from tests.loops import on_virtual_time
from tests.scheduler.running import running
from tests.scheduler.scripted import (
    ALL_NO,
    ALL_WAIT,
    GROUP,
    NO,
    REJECTED,
    SCHEDULED,
    WAIT,
    WAITING,
    WAITS,
    arrive,
    scripted,
)

NOT_YET = "wait a little, one or more plugins asked to wait and no plugin rejected pod"
UNFIT = "0/1 nodes are available: 1 no."
BROKEN = 'running "Script" filter plugin: broken'
OTHER = "failed to schedule other pod from a pod group: "
OTHER_BROKEN = OTHER + BROKEN
PERMIT_BROKEN = 'running Permit plugin "Script": broken'
FAILED = ("False", "SchedulerError", OTHER_BROKEN)
FAILED_MESSAGES = {"p1": OTHER_BROKEN, "p2": BROKEN, "p3": OTHER_BROKEN}


class Outcome(msgspec.Struct, kw_only=True):
    """The visible result of one cycle of p1, p2 and p3."""

    bound: str = ""
    waiting: str = ""
    group: tuple[str, str, str]
    messages: Mapping[str, str] = {}
    nominated: str = ""


ALL_ON_NODE = {"p1": "node", "p2": "node", "p3": "node"}

CASES = [
    pytest.param({}, Outcome(bound="p1 p2 p3", group=SCHEDULED), id="all-feasible"),
    pytest.param(
        {"permit": {"p1": WAIT, "p2": WAIT}},
        Outcome(bound="p3", waiting="p1 p2", group=SCHEDULED),
        id="two-wait",
    ),
    pytest.param(
        {"permit": {"p3": WAIT}},
        Outcome(bound="p1 p2", waiting="p3", group=SCHEDULED),
        id="the-last-waits",
    ),
    pytest.param(
        {"permit": ALL_WAIT},
        Outcome(group=REJECTED, messages=dict.fromkeys(ALL_WAIT, f"{GROUP}, {NOT_YET}")),
        id="all-wait",
    ),
    pytest.param(
        {"permit": {"p1": WAIT, "p2": NO}},
        Outcome(bound="p3", waiting="p1", group=SCHEDULED, messages={"p2": UNFIT}),
        id="one-waits-one-is-not-permitted",
    ),
    pytest.param(
        {"filter": ALL_NO, "nominate": ALL_ON_NODE},
        Outcome(group=WAITING, messages=dict.fromkeys(ALL_NO, UNFIT), nominated="p1 p2 p3"),
        id="all-preempt",
    ),
    pytest.param(
        {"filter": ALL_NO, "nominate": ALL_ON_NODE, "permit": ALL_WAIT},
        Outcome(group=REJECTED, messages=dict.fromkeys(ALL_NO, f"{GROUP}, {NOT_YET}")),
        id="all-preempt-in-vain",
    ),
    pytest.param(
        {"filter": {"p1": NO}, "nominate": {"p1": "node"}, "permit": {"p1": WAIT, "p2": WAIT}},
        Outcome(
            group=WAITING,
            messages={"p1": UNFIT, "p2": WAITS, "p3": WAITS},
            nominated="p1 p2 p3",
        ),
        id="one-preempts-for-all",
    ),
    pytest.param(
        {"filter": {"p1": NO, "p2": NO}, "nominate": {"p1": "node"}},
        Outcome(group=WAITING, messages={"p1": UNFIT, "p2": UNFIT, "p3": WAITS}, nominated="p1 p3"),
        id="one-preempts-one-cannot",
    ),
    pytest.param(
        {"filter": {"p2": NO}, "nominate": {"p2": "node"}, "permit": {"p2": WAIT, "p3": WAIT}},
        Outcome(bound="p1", waiting="p3", group=SCHEDULED, messages={"p2": f"{GROUP}, {NOT_YET}"}),
        id="enough-before-the-one-that-would-preempt",
    ),
    pytest.param(
        {"filter": {"p1": unresolvable("no"), "p2": NO, "p3": NO}},
        Outcome(group=REJECTED, messages=dict.fromkeys(ALL_NO, UNFIT)),
        id="nobody-fits",
    ),
    pytest.param(
        {"filter": {"p2": failure("broken")}},
        Outcome(group=FAILED, messages=FAILED_MESSAGES),
        id="filter-fails",
    ),
    pytest.param(
        {"filter": {"p1": NO, "p2": failure("broken")}, "nominate": {"p1": "node"}},
        Outcome(group=FAILED, messages=FAILED_MESSAGES),
        id="filter-fails-after-a-preemption",
    ),
    pytest.param(
        {"permit": {"p3": failure("broken")}},
        Outcome(
            group=("False", "SchedulerError", OTHER + PERMIT_BROKEN),
            messages={"p3": PERMIT_BROKEN},
        ),
        id="permit-fails",
    ),
    pytest.param(
        {"reserve": {"p2": NO}},
        Outcome(bound="p1 p3", group=SCHEDULED, messages={"p2": UNFIT}),
        id="one-is-not-reserved",
    ),
]


@pytest.mark.parametrize(("says", "expected"), CASES)
@on_virtual_time
async def test_outcome_of_a_group(says: dict[str, Mapping[str, object]], expected: Outcome) -> None:
    """Bound, waiting and rejected pods, nominations, and the group's condition."""
    _, options = scripted(**says)
    async with running(**options) as cluster:
        await arrive(cluster)
        nominator = cluster.scheduler.queue.nominator
        found = Outcome(
            bound=" ".join(cluster.nodes),
            waiting=" ".join(cluster.waiting),
            group=cluster.group("gang"),
            messages={name: cluster.condition(name)[1] for name in expected.messages},
            nominated=" ".join(sorted(pod.name for pod in nominator.on_node("node"))),
        )
        kept = {*cluster.nodes, *cluster.waiting}
        on_table = cluster.scheduler.cache.nodes.pods[0].values()
        assert kept == {pod.name for pod in on_table}
        assert expected == found
