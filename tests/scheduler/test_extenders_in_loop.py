"""Extenders in the running scheduler: filtering, binding, and events during their requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod
from kubesched.api.field_errors import ConfigError
from kubesched.api.scheduling import PodGroup
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import API_VERSION, KIND, Configuration
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.loop import Scheduler
from kubesched.testing.builders import make_node, make_pod
from tests.scheduler.fake_extender import FakeExtender

GATES = FeatureGates.parse("")
URL = "http://extender"
GPU = "example.com/gpu"


class Api:
    """Records the scheduler's writes."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.conditions: list[tuple[str, str]] = []
        self.events: list[str] = []

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Keep it."""
        self.bound[pod.metadata.name] = node_name

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Record the condition."""
        if condition is not None:
            self.conditions.append((condition.reason, condition.message))

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Not used: there are no groups."""

    async def delete_pod(self, pod: Pod) -> None:
        """Not used: there is no preemption."""

    def record_event(self, event: EventRecord) -> None:
        """Record the note."""
        self.events.append(f"{event.reason}: {event.note}")


def configured(*verbs: str, **fields: object) -> Configuration:
    """Load a configuration with one extender."""
    extender = {
        "urlPrefix": URL,
        "nodeCacheCapable": True,
        "weight": 1,
        **{f"{verb}Verb": verb for verb in verbs},
        **fields,
    }
    raw = {"apiVersion": API_VERSION, "kind": KIND, "extenders": [extender]}
    return load_configuration(raw, GATES)


Story = Callable[[Scheduler, EventHandlers, Api], Coroutine[Any, Any, None]]


def run(fake: FakeExtender, story: Story, **fields: object) -> Api:
    """Run a scheduler with an extender and a script; check it at the end."""

    async def main() -> Api:
        api = Api()
        scheduler, handlers = assemble(
            in_tree_setup(GATES, configured(*fake.answers, **fields)),
            api,
            random=Random(0),
            connect=lambda _: fake,
        )
        running = asyncio.ensure_future(scheduler.run())
        try:
            await story(scheduler, handlers, api)
            await scheduler.drain()
            scheduler.cache.check()
            scheduler.queue.check()
        finally:
            scheduler.stop()
            await running
        return api

    return asyncio.run(asyncio.wait_for(main(), 20))


async def until(holds: Callable[[], object]) -> None:
    """Yield to the event loop until a condition holds."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to pass")


def pending(name: str = "p", **fields: Any) -> Pod:
    """Build a pending pod."""
    return make_pod(name, uid=f"u-{name}", **fields)


def keep(*names: str, **failed: str) -> dict[str, object]:
    """Answer a filter request with the nodes to keep and the reasons of others."""
    return {"NodeNames": list(names), "FailedNodes": failed}


def test_an_extender_filters_and_binds() -> None:
    """DefaultBinder does not run."""
    fake = FakeExtender({"filter": keep("b"), "prioritize": [], "bind": {}})

    async def story(_: Scheduler, handlers: EventHandlers, api: Api) -> None:
        for name in "abc":
            handlers.added(make_node(name))
        handlers.added(pending())
        await until(lambda: api.events)

    api = run(fake, story)
    assert ["filter", "bind"] == fake.verbs
    expected = {"PodName": "p", "PodNamespace": "default", "PodUID": "u-p", "Node": "b"}
    assert expected == fake.asked[-1].question
    assert ["Scheduled: Successfully assigned default/p to b"] == api.events
    assert {} == api.bound


def test_an_extender_does_not_bind_in_a_dry_run() -> None:
    """It filters."""
    fake = FakeExtender({"filter": keep("a"), "bind": {}})

    async def story(scheduler: Scheduler, handlers: EventHandlers, api: Api) -> None:
        scheduler.bind_through_api_only()
        handlers.added(make_node("a"))
        handlers.added(pending())
        await until(lambda: api.events)

    api = run(fake, story)
    assert ["filter"] == fake.verbs
    assert {"p": "a"} == api.bound


def test_an_extender_that_is_not_interested_does_not_bind() -> None:
    """Bind plugins do."""
    fake = FakeExtender({"filter": keep(), "bind": {}})

    async def story(_: Scheduler, handlers: EventHandlers, api: Api) -> None:
        handlers.added(make_node("a"))
        handlers.added(pending())
        await until(lambda: api.events)

    api = run(fake, story, managedResources=[{"name": GPU}])
    assert {"p": "a"} == api.bound
    assert [] == fake.asked


def test_a_bind_error_of_an_extender() -> None:
    """It is in the pod's condition; the pod is forgotten."""
    fake = FakeExtender({"bind": {"Error": "taken"}})

    async def story(scheduler: Scheduler, handlers: EventHandlers, api: Api) -> None:
        handlers.added(make_node("a"))
        handlers.added(pending())
        await until(lambda: api.conditions)
        assert not scheduler.cache.is_assumed("u-p")
        assert scheduler.queue.get_pod("default/p") is not None

    api = run(fake, story)
    assert [("SchedulerError", "taken")] == api.conditions


def test_a_bind_error_of_an_ignorable_extender() -> None:
    """Bind plugins bind the pod."""
    fake = FakeExtender({"bind": 500})

    async def story(_: Scheduler, handlers: EventHandlers, api: Api) -> None:
        handlers.added(make_node("a"))
        handlers.added(pending())
        await until(lambda: api.events)

    assert {"p": "a"} == run(fake, story, ignorable=True).bound


def test_a_pod_rejected_by_an_extender_is_requeued_by_default_events() -> None:
    """No hint is known for extenders."""
    fake = FakeExtender({"filter": keep(a="hot")})

    async def story(scheduler: Scheduler, handlers: EventHandlers, api: Api) -> None:
        node = make_node("a")
        handlers.added(node)
        handlers.added(pending())
        await until(lambda: api.conditions)
        queued = scheduler.queue.get_pod("default/p")
        assert queued is not None
        assert {"Extender"} == queued.unschedulable_plugins
        assert 1 == scheduler.queue.statistics().unschedulable
        handlers.updated(node, make_node("a", labels={"temperature": "low"}))
        assert 0 == scheduler.queue.statistics().unschedulable

    api = run(fake, story)
    reason, message = api.conditions[0]
    assert "Unschedulable" == reason
    assert message.startswith("0/1 nodes are available: 1 hot. ")
    assert "1 No preemption victims found for incoming pod." in message


def test_a_failing_extender_is_an_error_of_the_attempt() -> None:
    """The pod is not unschedulable."""

    async def story(_: Scheduler, handlers: EventHandlers, api: Api) -> None:
        handlers.added(make_node("a"))
        handlers.added(pending())
        await until(lambda: api.conditions)

    api = run(FakeExtender({"filter": {"Error": "out of order"}}), story)
    assert [("SchedulerError", "out of order")] == api.conditions


def test_events_during_a_request_are_handled_after_the_cycle() -> None:
    """In the order in which they were observed."""
    thinking, answered = asyncio.Event(), asyncio.Event()

    async def answer(_: dict[str, Any]) -> object:
        thinking.set()
        await answered.wait()
        return keep("b")

    async def story(scheduler: Scheduler, handlers: EventHandlers, api: Api) -> None:
        nodes = [make_node(name) for name in "ab"]
        for node in nodes:
            handlers.added(node)
        handlers.added(pending())
        await thinking.wait()
        handlers.deleted(nodes[0])
        handlers.added(make_node("c"))
        handlers.added(make_pod("other", uid="u-other", node_name="c"))
        assert ["a", "b"] == scheduler.cache.nodes.names
        answered.set()
        await until(lambda: api.events)
        assert {"b", "c"} == set(scheduler.cache.nodes.names)
        row = scheduler.cache.nodes.row_of["c"]
        assert ["u-other"] == list(scheduler.cache.nodes.pods[row])

    assert {"p": "b"} == run(FakeExtender({"filter": answer}), story).bound


def test_a_pod_deleted_during_a_request_is_not_requeued() -> None:
    """It was rejected."""
    thinking, answered = asyncio.Event(), asyncio.Event()

    async def answer(_: dict[str, Any]) -> object:
        thinking.set()
        await answered.wait()
        return keep()

    async def story(scheduler: Scheduler, handlers: EventHandlers, api: Api) -> None:
        handlers.added(make_node("a"))
        pod = pending()
        handlers.added(pod)
        await thinking.wait()
        handlers.deleted(pod)
        answered.set()
        await until(lambda: api.events)
        assert scheduler.queue.get_pod("default/p") is None
        assert 0 == scheduler.queue.statistics().in_flight

    run(FakeExtender({"filter": answer}), story)


def test_a_binding_that_fails_during_a_request() -> None:
    """It is undone after the cycle."""
    thinking, answered, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def filter_(asked: dict[str, Any]) -> object:
        if asked["Pod"]["metadata"]["name"] == "second":
            thinking.set()
            await answered.wait()
        return keep("a")

    async def bind(asked: dict[str, Any]) -> object:
        if asked["PodName"] == "second":
            return {}
        await thinking.wait()
        refused.set()
        return {"Error": "taken"}

    async def story(scheduler: Scheduler, handlers: EventHandlers, api: Api) -> None:
        handlers.added(make_node("a"))
        handlers.added(pending("first"))
        handlers.added(pending("second"))
        await refused.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert scheduler.cache.is_assumed("u-first")
        answered.set()
        await until(lambda: api.events)
        assert not scheduler.cache.is_assumed("u-first")

    run(FakeExtender({"filter": filter_, "bind": bind}), story)


def test_resources_ignored_by_the_scheduler() -> None:
    """A resource that the extender manages and the scheduler ignores need not be on the node."""
    fake = FakeExtender({"filter": keep("a")})
    pod = pending(requests={GPU: 1}, limits={GPU: 1})

    async def story(_: Scheduler, handlers: EventHandlers, api: Api) -> None:
        handlers.added(make_node("a"))
        handlers.added(pod)
        await until(lambda: api.events)

    managed = {"name": GPU, "ignoredByScheduler": True}
    assert {"p": "a"} == run(fake, story, managedResources=[managed]).bound
    fake.asked.clear()
    del managed["ignoredByScheduler"]
    assert {} == run(fake, story, managedResources=[managed]).bound
    assert [] == fake.asked


def test_extenders_need_a_transport() -> None:
    """Without one a configuration with extenders is a field error."""
    configuration = configured("filter")

    def build(configuration: Configuration) -> None:
        assemble(in_tree_setup(GATES, configuration), Api(), random=Random(0))

    with pytest.raises(ConfigError, match="extenders: there is nothing to reach them with"):
        build(configuration)

    async def without() -> None:
        build(replace(configuration, extenders=()))

    asyncio.run(without())
