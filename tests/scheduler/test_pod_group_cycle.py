"""The cycle of a pod group, in the running scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import pytest
from msgspec.structs import replace

from kubesched.api.meta import Condition
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    FilterPlugin,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    ReservePlugin,
)
from kubesched.framework.registry import Registry
from kubesched.framework.status import (
    SUCCESS,
    Code,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.loop import Observer
from kubesched.simulator.virtual_loop import run
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod

from .running import GANGS, Running, make_group, make_member, running

GENERIC = {"GenericWorkload": True}
NO = unschedulable("no")
WAIT = Status(Code.WAIT, ("wait a little",))
NOT_YET = "wait a little, one or more plugins asked to wait and no plugin rejected pod"
UNFIT = "0/1 nodes are available: 1 no."
GROUP = "pod group is unschedulable"
WAITS = "pod group is unschedulable, pod group is waiting for preemption to complete"
BROKEN = 'running "Script" filter plugin: broken'
OTHER_BROKEN = f"failed to schedule other pod from a pod group: {BROKEN}"
PERMIT_BROKEN = 'running Permit plugin "Script": broken'


class Script(FilterPlugin[None], PostFilterPlugin, ReservePlugin, PermitPlugin):
    """Answers by the pod's name; what is not said is success.

    Attributes:
        says: Extension point -> pod -> answer.
        asked: Every reservation, and its end.
    """

    name: ClassVar = "Script"
    says: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    asked: ClassVar[list[str]] = []

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Answer the same for all nodes."""
        status = self.says.get("filter", {}).get(pod.name, SUCCESS)
        if status.is_success:
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus.everywhere(len(nodes), status)

    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Nominate, or clear the nomination."""
        node_name = self.says.get("nominate", {}).get(pod.name)
        if node_name is None:
            return PostFilterResult(unschedulable(), "")
        return PostFilterResult(SUCCESS, node_name)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write it down."""
        self.asked.append(f"+{pod.name}")
        answer: Status = self.says.get("reserve", {}).get(pod.name, SUCCESS)
        return answer

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Write it down."""
        self.asked.append(f"-{pod.name}")

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let wait for a second."""
        return self.says.get("permit", {}).get(pod.name, SUCCESS), 1.0


def _script(**says: Mapping[str, object]) -> tuple[type[Script], dict[str, Any]]:
    script = type("Script", (Script,), {"name": "Script", "says": says, "asked": []})
    registry = in_tree_registry()
    registry.merge(Registry(script))
    names = ("PrioritySort", "Script", "DefaultBinder")
    enabled = [{"name": name} for name in names]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}},
    }
    return script, {"registry": registry, "profile": profile, "gates": GENERIC}


class Outcome(msgspec.Struct, kw_only=True):
    """What is to be seen after one cycle of p1, p2 and p3."""

    bound: str = ""
    waiting: str = ""
    group: tuple[str, str, str]
    messages: Mapping[str, str] = {}
    nominated: str = ""


ALL_NO = {"p1": NO, "p2": NO, "p3": NO}
ALL_WAIT = {"p1": WAIT, "p2": WAIT, "p3": WAIT}
ALL_ON_NODE = {"p1": "node", "p2": "node", "p3": "node"}
SCHEDULED = ("True", "Scheduled", "")
REJECTED = ("False", "Unschedulable", GROUP)
WAITING = ("False", "Unschedulable", WAITS)

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
        Outcome(
            bound="p1",
            waiting="p3",
            group=SCHEDULED,
            messages={"p2": f"{GROUP}, {NOT_YET}"},
        ),
        id="enough-before-the-one-that-would-preempt",
    ),
    pytest.param(
        {"filter": {"p1": unresolvable("no"), "p2": NO, "p3": NO}},
        Outcome(group=REJECTED, messages=dict.fromkeys(ALL_NO, UNFIT)),
        id="nobody-fits",
    ),
    pytest.param(
        {"filter": {"p2": failure("broken")}},
        Outcome(
            group=("False", "SchedulerError", OTHER_BROKEN),
            messages={"p1": OTHER_BROKEN, "p2": BROKEN, "p3": OTHER_BROKEN},
        ),
        id="filter-fails",
    ),
    pytest.param(
        {"filter": {"p1": NO, "p2": failure("broken")}, "nominate": {"p1": "node"}},
        Outcome(
            group=("False", "SchedulerError", OTHER_BROKEN),
            messages={"p1": OTHER_BROKEN, "p2": BROKEN, "p3": OTHER_BROKEN},
        ),
        id="filter-fails-after-a-preemption",
    ),
    pytest.param(
        {"permit": {"p3": failure("broken")}},
        Outcome(
            group=(
                "False",
                "SchedulerError",
                f"failed to schedule other pod from a pod group: {PERMIT_BROKEN}",
            ),
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


async def _arrive(cluster: Running) -> None:
    cluster.api.create(make_node("node"), make_group())
    cluster.api.create(*(make_member(name) for name in ("p1", "p2", "p3")))
    await cluster.settle()


@pytest.mark.parametrize(("says", "expected"), CASES)
def test_what_becomes_of_the_group(
    says: dict[str, Mapping[str, object]], expected: Outcome
) -> None:
    """Bound, waiting and rejected pods, nominations, and the group's condition."""

    async def main() -> Outcome:
        _, options = _script(**says)
        async with running(**options) as cluster:
            await _arrive(cluster)
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
            return found

    assert expected == run(main())


def test_tentative_placements_are_taken_back_the_last_first() -> None:
    """Each pod is reserved on top of the others, and all are given back before the real ones."""
    script, options = _script()

    async def main() -> None:
        async with running(**options) as cluster:
            await _arrive(cluster)

    run(main())
    tried = ["+p1", "+p2", "+p3", "-p3", "-p2", "-p1"]
    assert [*tried, "+p1", "+p2", "+p3"] == script.asked


def test_a_refused_reservation_is_undone_at_once() -> None:
    """It is not reverted a second time at the end."""
    script, options = _script(reserve={"p2": NO}, permit=ALL_WAIT)

    async def main() -> None:
        async with running(**options) as cluster:
            await _arrive(cluster)

    run(main())
    assert ["+p1", "+p2", "-p2", "+p3", "-p3", "-p1"] == script.asked[:6]


def test_pods_are_tried_by_priority_then_age() -> None:
    """The popped pod's siblings come with it, whatever their place in the queue."""
    script, options = _script()

    async def main() -> None:
        async with running(**options) as cluster:
            cluster.api.create(make_group())
            cluster.api.create(make_member("old"), make_member("high", priority=5))
            cluster.api.create(make_member("young"))
            cluster.api.create(make_node("node"))
            await cluster.settle()

    run(main())
    assert ["+high", "+old", "+young"] == script.asked[:3]


def test_the_gang_has_to_fit_as_a_whole() -> None:
    """Two of three pods would fit: none is bound, and no room is held for them."""

    async def main() -> None:
        async with running(gates=GANGS) as cluster:
            cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=3))
            cluster.api.create(*(make_member(f"p{i}") for i in range(3)))
            await cluster.settle()
            waits = "waiting for minCount pods from a gang to be scheduled"
            assert ("Unschedulable", f"{GROUP}, {waits}") == (
                cluster.condition("p0")[0],
                cluster.condition("p0")[1].rpartition(", ")[0],
            )
            assert REJECTED == cluster.group("gang")
            cluster.api.create(make_pod("single", requests={"cpu": "2"}))
            await cluster.settle()
            assert {"single": "node"} == cluster.nodes
            cluster.api.delete("single")
            cluster.api.create(make_node("other", allocatable={"cpu": "1"}))
            await cluster.settle(5)
            assert {"p0", "p1", "p2"} == set(cluster.nodes)
            assert SCHEDULED == cluster.group("gang")

    run(main())


def test_a_rejected_member_is_tried_by_backoff_alone() -> None:
    """While nothing else waits it is tried a few times, with growing pauses."""
    _, options = _script(filter={"p1": NO})

    async def main() -> int:
        async with running(**options) as cluster:
            cluster.api.create(make_node("node"), make_group(), make_member("p1"))
            await cluster.settle(30)
            queued = cluster.scheduler.queue.get_pod("default/p1")
            assert queued is not None
            return queued.attempts

    assert 4 <= run(main()) <= 6


def test_preemption_makes_room_for_the_gang() -> None:
    """Victims are evicted, the pods come back nominated, and are bound in the next cycle."""

    async def main() -> None:
        async with running(gates=GANGS) as cluster:
            cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=2))
            cluster.api.create(
                make_pod("victim", requests={"cpu": "1"}, node_name="node", priority=1)
            )
            cluster.api.create(*(make_member(f"p{i}", priority=9) for i in range(2)))
            await cluster.settle(0.1)
            assert WAITING == cluster.group("gang")
            assert "victim" not in cluster.api.pods
            nominated = {pod.status.nominated_node_name for pod in cluster.api.pods.values()}
            assert {"node"} == nominated
            await cluster.settle(5)
            assert {"p0": "node", "p1": "node"} == cluster.nodes
            assert SCHEDULED == cluster.group("gang")

    run(main())


def test_a_nomination_survives_the_trial() -> None:
    """Placing a nominated pod tentatively does not cost it its nomination."""
    _, options = _script(permit=ALL_WAIT)

    async def main() -> list[str]:
        async with running(**options) as cluster:
            seen: list[str] = []
            nominator = cluster.scheduler.queue.nominator
            revert = cluster.scheduler.fail

            def watched(*args: Any, **kw: Any) -> None:
                seen.append(nominator.node_of("default/p1"))
                revert(*args, **kw)

            cluster.scheduler.fail = watched  # type: ignore[method-assign]  # to look at that moment
            cluster.api.create(make_node("node"), make_group())
            cluster.api.create(make_member("p1", nominated_node_name="node"))
            await cluster.settle(0.1)
            return seen

    assert ["node"] == run(main())


def test_all_members_need_the_same_scheduler() -> None:
    """Otherwise each goes back with the same error."""

    async def main() -> None:
        names = ("one", "two")
        async with running(
            gates=GENERIC, profiles=[{"schedulerName": name} for name in names]
        ) as cluster:
            cluster.api.create(make_node("node"), make_group())
            for name in names:
                cluster.api.create(make_member(name, spec={"schedulerName": name}))
            await cluster.settle()
            text = (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                'got: "two" and "one"'
            )
            assert [("SchedulerError", text)] * 2 == [cluster.condition(n) for n in names]

    run(main())


def test_terminating_members_are_left_out() -> None:
    """A pod that goes away is dropped with an event; the others are scheduled."""

    async def main() -> None:
        async with running(gates=GENERIC) as cluster:
            going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            cluster.api.create(make_group(), make_member("p1", metadata=going))
            cluster.api.create(make_member("p2"), make_node("node"))
            await cluster.settle()
            assert {"p2": "node"} == cluster.nodes
            skipped = "FailedScheduling p1: skip schedule deleting pod: default/p1"
            assert skipped in cluster.api.events

    run(main())


def test_a_scheduled_group_stays_scheduled() -> None:
    """A later pod that fits nowhere does not take the condition back."""

    async def main() -> None:
        async with running(gates=GANGS) as cluster:
            cluster.api.create(make_node("node", allocatable={"cpu": "2"}), make_group(min_count=2))
            cluster.api.create(make_member("p0"), make_member("p1"))
            await cluster.settle(2)
            assert SCHEDULED == cluster.group("gang")
            cluster.api.create(make_member("p2"))
            await cluster.settle(2)
            assert "Unschedulable" == cluster.condition("p2")[0]
            assert SCHEDULED == cluster.group("gang")

    run(main())


def test_the_same_condition_is_written_once() -> None:
    """A group that is rejected again in the same words is not written again."""
    _, options = _script(filter=ALL_NO)

    async def main() -> int:
        async with running(**options) as cluster:
            writes: list[object] = []
            write = cluster.api.patch_pod_group_status

            async def counted(*args: Any) -> None:
                writes.append(args)
                await write(*args)

            cluster.api.patch_pod_group_status = counted  # type: ignore[method-assign]  # counts
            await _arrive(cluster)
            await cluster.settle(10)
            return len(writes)

    assert 1 == run(main())


def test_the_condition_carries_the_generation() -> None:
    """A condition of an older generation is renewed."""
    _, options = _script()

    async def main() -> int:
        async with running(**options) as cluster:
            stale = Condition(type="PodGroupScheduled", status="True", reason="Scheduled")
            group = make_group()
            status = replace(group.status, conditions=(stale,))
            cluster.api.create(replace(group, status=status), make_node("node"))
            cluster.api.create(make_member("p1"))
            await cluster.settle()
            return cluster.api.groups["gang"].status.conditions[0].observed_generation

    assert 1 == run(main())


def test_observers_hear_what_was_carried_out() -> None:
    """A pod that would fit, but whose group does not, is not told of as placed."""

    class Listener(Observer):
        def __init__(self) -> None:
            self.heard: list[tuple[str, str]] = []

        def decided(self, decision: Decision, now: float) -> None:
            self.heard.append((decision.pod.name, type(decision).__name__))

    async def main(says: dict[str, Mapping[str, object]]) -> list[tuple[str, str]]:
        listener = Listener()
        _, options = _script(**says)
        async with running(**options, observers=[listener]) as cluster:
            await _arrive(cluster)
        return listener.heard[:3]

    assert [("p1", "Placed"), ("p2", "Rejected"), ("p3", "Placed")] == run(
        main({"filter": {"p2": NO}})
    )
    assert [("p1", "Failed"), ("p2", "Rejected"), ("p3", "Failed")] == run(
        main({"filter": {"p2": NO}, "permit": ALL_WAIT})
    )


def test_without_the_gate_members_are_pods_like_others() -> None:
    """No group is looked up, none is waited for."""

    async def main() -> None:
        async with running() as cluster:
            cluster.api.create(make_node("node"), make_member("p1"))
            await cluster.settle()
            assert {"p1": "node"} == cluster.nodes

    run(main())


def test_a_pod_without_any_node_blames_nobody() -> None:
    """In an empty cluster pods are told so in these words, members of groups and others."""

    async def main() -> None:
        async with running(gates=GENERIC) as cluster:
            cluster.api.create(make_group(), make_member("p1"), make_pod("single"))
            await cluster.settle()
            text = ("Unschedulable", "no nodes available to schedule pods")
            assert [text, text] == [cluster.condition(name) for name in ("p1", "single")]

    run(main())
