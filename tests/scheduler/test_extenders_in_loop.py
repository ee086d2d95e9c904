"""Extenders in the running scheduler: filtering, binding, and events during their requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.framework.structured_log import FIELDS, V10
from kubesched.queue.moves import QueuePlace
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.fake_extender import FakeExtender, keep, rate
from tests.scheduler.running import running

GPU = "example.com/gpu"


def extended(fake: FakeExtender, **fields: object) -> dict[str, Any]:
    """Return the options of `running` for an extender with the verbs of its script."""
    verbs = {f"{verb}Verb": verb for verb in fake.answers}
    head = {"urlPrefix": "http://extender", "nodeCacheCapable": True, "weight": 1}
    return {"extenders": [{**head, **verbs, **fields}], "connect": lambda _: fake}


class Thinking:
    """Answers a request when it is told to.

    Attributes:
        asked: Set by the request.
        answers: Set by the test to let it answer.
    """

    def __init__(self, answer: object) -> None:
        self.answer, self.asked, self.answers = answer, asyncio.Event(), asyncio.Event()

    async def __call__(self, _: dict[str, Any]) -> object:
        """Wait for the test, then answer."""
        self.asked.set()
        await self.answers.wait()
        return self.answer


@on_virtual_time
async def test_an_extender_filters_and_binds() -> None:
    """DefaultBinder does not run."""
    fake = FakeExtender({"filter": keep("b"), "prioritize": [], "bind": {}})
    async with running(**extended(fake)) as cluster:
        cluster.api.create(*map(make_node, "abc"), make_pod("p"))
        await cluster.settle()
    assert ["filter", "bind"] == fake.verbs
    expected = {"PodName": "p", "PodNamespace": "default", "PodUID": "default/p", "Node": "b"}
    assert expected == fake.asked[-1].question
    assert ["Scheduled p: Successfully assigned default/p to b"] == cluster.api.events
    assert {} == cluster.nodes


@on_virtual_time
async def test_an_extender_does_not_bind_in_a_dry_run() -> None:
    """It only filters."""
    fake = FakeExtender({"filter": keep("a"), "bind": {}})
    async with running(**extended(fake)) as cluster:
        cluster.scheduler.bind_through_api_only()
        cluster.api.create(make_node("a"), make_pod("p"))
        await cluster.settle()
    assert (["filter"], {"p": "a"}) == (fake.verbs, cluster.nodes)


@pytest.mark.parametrize(
    ("answers", "fields", "verbs"),
    [
        pytest.param(
            {"filter": keep(), "bind": {}},
            {"managedResources": [{"name": GPU}]},
            [],
            id="no-interest",
        ),
        pytest.param({"bind": 500}, {"ignorable": True}, ["bind"], id="an-ignorable-one-fails"),
    ],
)
@on_virtual_time
async def test_plugins_bind_if_no_extender_does(
    answers: dict[str, object], fields: dict[str, object], verbs: list[str]
) -> None:
    """An extender without interest in the pod is not called; some may fail."""
    fake = FakeExtender(answers)
    async with running(**extended(fake, **fields)) as cluster:
        cluster.api.create(make_node("a"), make_pod("p"))
        await cluster.settle()
    assert (verbs, {"p": "a"}) == (fake.verbs, cluster.nodes)


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        pytest.param({"bind": {"Error": "taken"}}, "taken", id="bind"),
        pytest.param({"filter": {"Error": "out of order"}}, "out of order", id="filter"),
    ],
)
@on_virtual_time
async def test_an_error_of_an_extender_is_an_error_of_the_attempt(
    answers: dict[str, object], text: str
) -> None:
    """It is in the pod's condition; the pod is forgotten, and queued again."""
    async with running(**extended(FakeExtender(answers))) as cluster:
        cluster.api.create(make_node("a"), make_pod("p"))
        await cluster.settle()
        assert ("SchedulerError", text) == cluster.condition("p")
        assert not cluster.scheduler.cache.is_assumed("default/p")
        assert cluster.scheduler.queue.get_pod("default/p") is not None


@on_virtual_time
async def test_a_pod_rejected_by_an_extender_is_requeued_by_default_events() -> None:
    """No hint is known for extenders."""
    async with running(**extended(FakeExtender({"filter": keep(a="hot")}))) as cluster:
        node, queue = make_node("a"), cluster.scheduler.queue
        cluster.api.create(node, make_pod("p"))
        await cluster.settle()
        queued = queue.get_pod("default/p")
        assert queued is not None
        assert {"Extender"} == queued.unschedulable_plugins
        assert 1 == queue.statistics().unschedulable
        cluster.api.handlers.updated(node, make_node("a", labels={"temperature": "low"}))
        assert 0 == queue.statistics().unschedulable
        reason, message = cluster.condition("p")
    assert "Unschedulable" == reason
    assert message.startswith("0/1 nodes are available: 1 hot. ")
    assert "1 No preemption victims found for incoming pod." in message


@on_virtual_time
async def test_events_during_a_request_are_handled_after_the_cycle() -> None:
    """They are handled in the order in which they were observed."""
    thinking = Thinking(keep("b"))
    async with running(**extended(FakeExtender({"filter": thinking}))) as cluster:
        nodes, table = [make_node(name) for name in "ab"], cluster.scheduler.cache.nodes
        cluster.api.create(*nodes, make_pod("p"))
        await thinking.asked.wait()
        cluster.api.handlers.deleted(nodes[0])
        cluster.api.create(make_node("c"), make_pod("other", node_name="c"))
        assert ["a", "b"] == table.names
        thinking.answers.set()
        await cluster.settle()
        assert {"b", "c"} == set(table.names)
        assert ["default/other"] == list(table.pods[table.row_of["c"]])
        assert "b" == cluster.nodes["p"]


@on_virtual_time
async def test_scores_of_nodes_that_go_during_a_request_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Their rows are those of the cycle."""
    thinking = Thinking(rate(a=1))
    with caplog.at_level(V10, "kubesched.scheduler.scheduling_log"):
        async with running(**extended(FakeExtender({"prioritize": thinking}))) as cluster:
            nodes = [make_node(name) for name in "ab"]
            cluster.api.create(*nodes, make_pod("p"))
            await thinking.asked.wait()
            for node in nodes:
                cluster.api.handlers.deleted(node)
            thinking.answers.set()
            await cluster.settle()
    totals = [
        getattr(record, FIELDS)["node"]
        for record in caplog.records
        if record.getMessage().startswith("Calculated")
    ]
    assert ["a", "b"] == totals


@on_virtual_time
async def test_a_pod_deleted_during_a_request_is_not_requeued() -> None:
    """It was rejected."""
    thinking = Thinking(keep())
    async with running(**extended(FakeExtender({"filter": thinking}))) as cluster:
        cluster.api.create(make_node("a"), make_pod("p"))
        await thinking.asked.wait()
        cluster.api.delete("p")
        thinking.answers.set()
        await cluster.settle()
        assert cluster.scheduler.queue.get_pod("default/p") is None
        assert [] == cluster.scheduler.queue.pods(QueuePlace.IN_FLIGHT)


@on_virtual_time
async def test_a_binding_that_fails_during_a_request() -> None:
    """It is undone after the cycle."""
    thinking, refused = Thinking(keep("a")), asyncio.Event()

    async def filter_(asked: dict[str, Any]) -> object:
        is_second = asked["Pod"]["metadata"]["name"] == "second"
        return await thinking(asked) if is_second else keep("a")

    async def bind(asked: dict[str, Any]) -> object:
        if asked["PodName"] == "second":
            return {}
        await thinking.asked.wait()
        refused.set()
        return {"Error": "taken"}

    fake = FakeExtender({"filter": filter_, "bind": bind})
    async with running(**extended(fake)) as cluster:
        cluster.api.create(make_node("a"), make_pod("first"), make_pod("second"))
        await refused.wait()
        await cluster.settle()
        assert cluster.scheduler.cache.is_assumed("default/first")
        thinking.answers.set()
        await cluster.settle()
        assert not cluster.scheduler.cache.is_assumed("default/first")


@pytest.mark.parametrize("is_ignored", [True, False])
@on_virtual_time
async def test_resources_ignored_by_the_scheduler(is_ignored: bool) -> None:
    """A resource that the extender manages and the scheduler ignores need not be on the node."""
    fake = FakeExtender({"filter": keep("a")})
    managed = {"name": GPU, "ignoredByScheduler": is_ignored}
    async with running(**extended(fake, managedResources=[managed])) as cluster:
        cluster.api.create(make_node("a"), make_pod("p", requests={GPU: 1}, limits={GPU: 1}))
        await cluster.settle()
    expected = (["filter"], {"p": "a"}) if is_ignored else ([], {})
    assert expected == (fake.verbs, cluster.nodes)


@on_virtual_time
async def test_extenders_need_a_transport() -> None:
    """Without one a configuration with extenders is a field error."""
    options = extended(FakeExtender({"filter": {}}))
    with pytest.raises(ConfigError, match="extenders: there is nothing to reach them with"):
        async with running(extenders=options["extenders"]):
            pass
