"""Log lines of the running scheduler, by verbosity."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from kubesched.config.types import ExtenderConfiguration
from kubesched.framework.structured_log import FIELDS, V2, V3, V5, V10, ObjectRef
from kubesched.queue.moves import QueueMove, QueuePlace
from kubesched.scheduler.extenders import HttpExtender
from kubesched.scheduler.scheduling_log import log_move
from kubesched.simulator.virtual_loop import run
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from tests.loops import on_virtual_time
from tests.scheduler.fake_extender import FakeExtender

from .running import GANGS, make_group, make_member, running

Line = tuple[str, dict[str, Any]]
URL = "http://host:80/path"


async def _three_pods() -> dict[str, str]:
    """Schedule a pod without a node, then two with one, of which one is too large."""
    async with running() as cluster:
        cluster.scheduler.queue.observers.append(log_move)
        cluster.api.create(make_pod("early", requests={"cpu": "1"}))
        await cluster.settle()
        cluster.api.create(make_node("n1", allocatable={"cpu": "4", "pods": 9}))
        await cluster.settle(3)
        cluster.api.create(make_pod("large", requests={"cpu": "9"}))
        await cluster.settle()
        return cluster.nodes


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[Line]:
    """Return message and fields of the log at a verbosity."""
    with caplog.at_level(level, "kubesched.scheduler.scheduling_log"):
        assert {"early": "n1"} == run(_three_pods())
    return logged(caplog)


def logged(caplog: pytest.LogCaptureFixture) -> list[Line]:
    """Return message and fields of the structured lines."""
    return [
        (record.getMessage(), getattr(record, FIELDS))
        for record in caplog.records
        if hasattr(record, FIELDS)
    ]


EARLY, LARGE = ObjectRef("early", "default"), ObjectRef("large", "default")
NO_NODES: Line = (
    "Unable to schedule pod; no nodes are registered to the cluster; waiting",
    {"pod": EARLY},
)
BOUND: Line = (
    "Successfully bound pod to node",
    {"pod": EARLY, "node": "n1", "evaluatedNodes": 1, "feasibleNodes": 1},
)
MOVED = "Pod moved to an internal scheduling queue"


def test_outcomes_at_two(caplog: pytest.LogCaptureFixture) -> None:
    """Each pod's outcome is logged."""
    *_, last = found = lines(caplog, V2)
    assert [NO_NODES, BOUND] == found[:-1]
    assert "Unable to schedule pod; no fit; waiting" == last[0]
    assert LARGE == last[1]["pod"]
    assert str(last[1]["err"]).startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_attempts_at_three(caplog: pytest.LogCaptureFixture) -> None:
    """Each attempt is logged before its outcome."""
    attempts = [fields["pod"] for message, fields in lines(caplog, V3) if message.startswith("Att")]
    assert [EARLY, EARLY, LARGE] == attempts


def test_observations_at_three(caplog: pytest.LogCaptureFixture) -> None:
    """Nodes and pods that are added and deleted, in the order of the events."""
    seen = [
        (message, fields.get("node") or str(fields["pod"]))
        for message, fields in lines(caplog, V3)
        if " event for " in message
    ]
    assert [
        ("Add event for unscheduled pod", "default/early"),
        ("Add event for node", "n1"),
        ("Delete event for unscheduled pod", "default/early"),
        ("Add event for unscheduled pod", "default/large"),
    ] == [entry for entry in seen if not entry[0].endswith(" scheduled pod")]
    assert ("Add event for scheduled pod", "default/early") in seen


def test_moves_at_five(caplog: pytest.LogCaptureFixture) -> None:
    """Moves in the queue, with their reason."""
    moves = [
        (fields["pod"], fields["event"], fields["queue"])
        for message, fields in lines(caplog, V5)
        if message == MOVED
    ]
    assert [
        (EARLY, "UnschedulablePodAdd", "Active"),
        (EARLY, "ScheduleAttemptFailure", "Backoff"),
        (EARLY, "BackoffComplete", "Active"),
        (LARGE, "UnschedulablePodAdd", "Active"),
        (LARGE, "ScheduleAttemptFailure", "Unschedulable"),
    ] == moves


def test_a_gated_pod_at_five(caplog: pytest.LogCaptureFixture) -> None:
    """The text says why it waits; those that move with it have a line each."""
    move = QueueMove(
        "default/early",
        QueuePlace.NOWHERE,
        QueuePlace.UNSCHEDULABLE,
        "UnschedulablePodAdd",
        now=0,
        gating_plugin="SchedulingGates",
        followers=["default/late"],
    )
    with caplog.at_level(V5, "kubesched.scheduler.scheduling_log"):
        log_move(move)
    text = f"{MOVED}, because the pod is gated"
    fields = {"event": move.event, "queue": "Unschedulable"}
    pods = [EARLY, ObjectRef("late", "default")]
    assert [(text, {"pod": pod, **fields}) for pod in pods] == logged(caplog)


@on_virtual_time
async def test_scores_at_ten(caplog: pytest.LogCaptureFixture) -> None:
    """Each plugin's score and the sums, which agree."""
    with caplog.at_level(V10, "kubesched.scheduler.scheduling_log"):
        async with running() as cluster:
            cluster.api.create(make_node("n1"), make_node("n2"), make_pod("p"))
            await cluster.settle()
    fields = [fields for _, fields in logged(caplog)]
    for node in ("n1", "n2"):
        here = [entry for entry in fields if entry.get("node") == node and "score" in entry]
        parts = {entry["plugin"]: entry["score"] for entry in here if "plugin" in entry}
        (total,) = [entry["score"] for entry in here if "plugin" not in entry]
        assert 300 == parts["TaintToleration"]
        assert sum(parts.values()) == total


def test_scores_of_extenders_at_ten(caplog: pytest.LogCaptureFixture) -> None:
    """The log has what extenders gave, also to unknown nodes; 0 is for those that give none."""
    answer = [{"Host": "a", "Score": 3}, {"Host": "x", "Score": -1}]
    pod, nodes = PodInfo(make_pod("early")), make_snapshot([make_node("a")]).nodes
    rows = np.array([0])
    with caplog.at_level(V10, "kubesched.scheduler.scheduling_log"):
        for verb in ("prioritize", ""):
            configuration = ExtenderConfiguration(url_prefix=URL, weight=7, prioritize_verb=verb)
            extender = HttpExtender(configuration, FakeExtender({"prioritize": answer}))
            run(extender.prioritize(pod, nodes, rows))
    scored = {"pod": EARLY, "extender": URL}
    assert [
        ("Extender scored node for pod", {**scored, "node": node, "score": score})
        for node, score in (("a", 3), ("x", -1), ("a", 0))
    ] == logged(caplog)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(
            "",
            {
                "p0": "Unable to schedule pod belonging to a pod group; waiting",
                "p1": "Unable to schedule pod; no fit; waiting",
            },
            id="part of it fits",
        ),
        pytest.param(
            "zone",
            dict.fromkeys(("p0", "p1"), "Error scheduling pod; retrying"),
            id="no placement",
        ),
    ],
)
@on_virtual_time
async def test_members_of_a_rejected_group(
    caplog: pytest.LogCaptureFixture, key: str, expected: dict[str, str]
) -> None:
    """Those that found a node are told from those that did not; no placement is an error."""
    gates = {**GANGS, "TopologyAwareWorkloadScheduling": bool(key)}
    with caplog.at_level(V2, "kubesched.scheduler.scheduling_log"):
        async with running(gates=gates) as cluster:
            node = make_node("n1", allocatable={"cpu": "1"})
            cluster.api.create(node, make_group(min_count=2, key=key))
            cluster.api.create(make_member("p0", priority=1), make_member("p1"))
            await cluster.settle(0.1)
    assert expected == {str(fields["pod"])[8:]: text for text, fields in logged(caplog)}


@on_virtual_time
async def test_errors_are_logged_at_any_verbosity(caplog: pytest.LogCaptureFixture) -> None:
    """A refused binding is an error, with upstream's mark."""
    async with running() as cluster:
        cluster.api.refused.add("p")
        cluster.api.create(make_node("n1"), make_pod("p"))
        await cluster.settle()
    (line,) = [record for record in caplog.records if hasattr(record, FIELDS)]
    assert ("Error scheduling pod; retrying", logging.ERROR) == (line.getMessage(), line.levelno)
    fields = getattr(line, FIELDS)
    assert ["err", "logger", "pod"] == list(fields)
    assert ("UnhandledError", ObjectRef("p", "default")) == (fields["logger"], fields["pod"])
    assert "refused" in str(fields["err"])
