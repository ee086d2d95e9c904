"""Evictions by an API server that is slow and refuses some."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import pytest

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import Pod
from kubesched.api.errors import ApiError, NotFoundError
from kubesched.cache.cache import Cache
from kubesched.framework.waiting_pods import WaitingPods
from kubesched.scheduler.api_client import UnansweredWrites
from kubesched.scheduler.eviction import Evictions, Preemption, Preemptor
from kubesched.scheduler.observer import Observer
from kubesched.scheduler.status_writer import StatusWriter
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import FakeApi

REFUSED: Final = ApiError(403, "Forbidden", "no")
GONE: Final = NotFoundError("gone")
PREEMPTOR: Final = PodInfo(make_pod("boss", priority=9))


class SlowApi(FakeApi):
    """Answers after a delay.

    Attributes:
        asked, answered: `patch pod` and `delete pod`, in order.
    """

    def __init__(
        self, seconds: Mapping[str, float], refusals: Mapping[str, ApiError] | None = None
    ) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.answered: list[str] = []
        self._seconds = seconds
        self._refusals = refusals or {}

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Accept or refuse the condition of a victim."""
        await self._answer("patch", pod)

    async def delete_pod(self, pod: Pod) -> None:
        """Accept or refuse."""
        await self._answer("delete", pod)

    async def _answer(self, verb: str, pod: Pod) -> None:
        request = f"{verb} {pod.metadata.name}"
        self.asked.append(request)
        await asyncio.sleep(self._seconds.get(request, 1.0))
        if request in self._refusals:
            raise self._refusals[request]
        self.answered.append(request)


class Outcomes(Observer):
    """Records how preemptions end."""

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def preempted(self, preemption: Preemption, started: float, *, is_success: bool) -> None:
        """Record the outcome."""
        self.seen.append(is_success)


class Scene:
    """Evictions of some victims on one node."""

    def __init__(self, api: SlowApi, *names: str, in_background: bool = False) -> None:
        cache = Cache()
        cache.add_node(make_node("n"))
        self.nominator = Nominator()
        self.activated: list[str] = []
        self.outcomes = Outcomes()
        self.evictions = Evictions(
            api,
            cache,
            self.nominator,
            WaitingPods(),
            StatusWriter(api, UnansweredWrites()),
            lambda pods: self.activated.extend(pod.name for pod in pods),
            [self.outcomes],
            in_background=in_background,
        )
        victims = tuple(PodInfo(make_pod(name, node_name="n")) for name in names)
        for victim in victims:
            cache.add_pod(victim.pod)
        preemptor = Preemptor.of_pod(PREEMPTOR)
        self.preemption = Preemption(preemptor, "n", victims, "default-scheduler")


@pytest.mark.parametrize("in_background", [True, False], ids=["background", "waiting"])
@on_virtual_time
async def test_the_first_refusal_cancels_the_other_evictions(in_background: bool) -> None:
    """Victims with only a condition stay; those that are being deleted may be gone."""
    seconds = {"patch a": 0.5, "delete a": 0.1, "patch c": 2.0, "patch last": 2.0}
    api = SlowApi(seconds, {"patch b": REFUSED})
    scene = Scene(api, "a", "b", "c", "last", in_background=in_background)
    error = await scene.evictions.carry_out(scene.preemption)
    await scene.evictions.drain()
    assert 1.0 == pytest.approx(asyncio.get_running_loop().time(), abs=0.01)
    if in_background:
        assert ([False], ["boss"]) == (scene.outcomes.seen, scene.activated)
        assert not scene.evictions.is_running(PREEMPTOR.uid)
    assert ("" if in_background else "no") == error
    # In the background the last victim waits for the others, and then is spared.
    others = ["patch a", "patch b", "patch c"]
    assert [*others, *(() if in_background else ("patch last",)), "delete a"] == api.asked
    assert ["patch a", "delete a"] == api.answered
    assert ["a"] == [event.split()[1].rstrip(":") for event in api.events]


@on_virtual_time
async def test_the_first_refusal_is_reported() -> None:
    """First in time, not by the order of victims."""
    late = ApiError(500, "InternalError", "late")
    seconds = {"delete a": 3.0, "delete b": 2.0}
    api = SlowApi(seconds, {"delete a": late, "delete b": REFUSED})
    scene = Scene(api, "a", "b")
    assert "no" == await scene.evictions.carry_out(scene.preemption)


@on_virtual_time
async def test_a_victim_that_is_not_found_counts_as_evicted() -> None:
    """The other evictions continue, the last victim's included."""
    api = SlowApi({}, {"patch a": GONE, "delete b": GONE})
    scene = Scene(api, "a", "b", "c", "last", in_background=True)
    await scene.evictions.carry_out(scene.preemption)
    await scene.evictions.drain()
    assert ([True], []) == (scene.outcomes.seen, scene.activated)
    assert ["patch b", "patch c", "delete c", "patch last", "delete last"] == api.answered


@on_virtual_time
async def test_pods_nominated_after_the_decision_keep_their_nominations() -> None:
    """They left room for the preemptor, and may be decided before its evictions begin.

    So do pods that are nominated to another node by then, or to none.
    """
    api = SlowApi({})
    scene = Scene(api, "last", in_background=True)
    for name in ("before", "moved", "gone"):
        scene.nominator.add(PodInfo(make_pod(name, priority=1, nominated_node_name="n")))
    await scene.evictions.carry_out(scene.preemption)
    scene.nominator.add(PodInfo(make_pod("after", priority=1, nominated_node_name="n")))
    scene.nominator.add(PodInfo(make_pod("moved", priority=1)), "elsewhere")
    scene.nominator.delete(PodInfo(make_pod("gone")).uid)
    await scene.evictions.drain()
    assert ["patch before", "patch last", "delete last"] == api.answered


@on_virtual_time
async def test_cancelling_the_preemption_cancels_its_evictions() -> None:
    """No eviction outlives the task that waits for it."""
    api = SlowApi({})
    scene = Scene(api, "a", "b")
    waiting = asyncio.ensure_future(scene.evictions.carry_out(scene.preemption))
    await asyncio.sleep(0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(5)
    assert (["patch a", "patch b"], []) == (api.asked, api.answered)
