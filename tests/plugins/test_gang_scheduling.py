"""GangScheduling: gates, permits, hints, and a gang in the whole scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.cache.pod_groups import PodGroupStore
from kubesched.framework.cluster_event import POD, POD_GROUP, Action
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SUCCESS, Code, Status, failure, unresolvable
from kubesched.framework.waiting_pods import WaitingPod
from kubesched.plugins.gang_scheduling import GangScheduling
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.scheduler.running import GANGS, Running, make_group, make_member, with_scheduler

TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
NO_GROUP = unresolvable('waiting for pods\'s pod group "gang" to appear in scheduling queue')
WAIT = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))
NO_STATE = failure("pod group state not found for pod group default/gang")


class Gang:
    """The plugin with the groups and pods of a test."""

    def __init__(
        self, *groups: PodGroup, members: int = 0, assumed: int = 0, bound: int = 0
    ) -> None:
        self.handle = FakeHandle()
        self.store = ObjectStore()
        for group in groups:
            self.store.put(group)
        self.handle.objects = self.store
        states = self.handle.pod_group_states = PodGroupStore()
        infos = [PodInfo(make_member(f"p{i}")) for i in range(members)]
        for at, info in enumerate(infos):
            if at < bound:
                states.add(PodInfo(make_member(info.name, node_name="node")))
                continue
            states.add(info)
            if at < bound + assumed:
                states.assume(info.on_node("node"))
                self._let_wait(info)
        self.plugin = GangScheduling(None, self.handle)

    def _let_wait(self, info: PodInfo) -> None:
        waiting = WaitingPod(info, "node", {"GangScheduling": 1.0}, lambda _s, _a: lambda: None)
        self.handle.waiting_pods.add(waiting)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Ask the plugin."""
        nodes = make_snapshot().nodes
        return self.plugin.pre_enqueue(PodInfo(pod), Snapshot(nodes, self.store))

    def permit(self, pod: Pod) -> tuple[Status, float]:
        """Ask the plugin."""
        return self.plugin.permit(CycleState(), PodInfo(pod), "node")

    @property
    def waiting(self) -> list[str]:
        """Names of pods that are not approved."""
        return [w.pod.name for w in self.handle.waiting_pods if w.verdict is None]


GANG_OF_3 = make_group(min_count=3)
BASIC = make_group()
MEMBER = make_member("p0")
SINGLE = make_pod("single")

PRE_ENQUEUE = [
    pytest.param(Gang(), SINGLE, SUCCESS, id="no-member"),
    pytest.param(Gang(), MEMBER, NO_GROUP, id="no-group"),
    pytest.param(Gang(make_group("other")), MEMBER, NO_GROUP, id="another-group"),
    pytest.param(Gang(BASIC), MEMBER, SUCCESS, id="no-gang"),
    pytest.param(Gang(GANG_OF_3, members=2), MEMBER, TOO_FEW, id="too-few"),
    pytest.param(Gang(GANG_OF_3, members=3), MEMBER, SUCCESS, id="enough"),
    pytest.param(Gang(GANG_OF_3, members=4), MEMBER, SUCCESS, id="more"),
    pytest.param(
        Gang(GANG_OF_3, members=3, bound=2, assumed=1), MEMBER, SUCCESS, id="in-any-state"
    ),
    pytest.param(Gang(GANG_OF_3), MEMBER, NO_STATE, id="no-state"),
    pytest.param(
        Gang(GANG_OF_3, members=3),
        make_member("p0", namespace="elsewhere"),
        NO_GROUP,
        id="another-namespace",
    ),
]


@pytest.mark.parametrize(("gang", "pod", "expected"), PRE_ENQUEUE)
def test_pre_enqueue(gang: Gang, pod: Pod, expected: Status) -> None:
    """A member needs its group, and a gang needs enough known pods."""
    assert expected == gang.pre_enqueue(pod)


MISSING = failure(
    'failed to get podGroup default/gang: podgroup.scheduling.k8s.io "gang" not found'
)
FIVE_MINUTES = 300.0
PERMIT = [
    pytest.param(Gang(), SINGLE, (SUCCESS, 0.0), id="no-member"),
    pytest.param(Gang(), MEMBER, (MISSING, 0.0), id="no-group"),
    pytest.param(Gang(BASIC), MEMBER, (SUCCESS, 0.0), id="no-gang"),
    pytest.param(Gang(GANG_OF_3), MEMBER, (NO_STATE, 0.0), id="no-state"),
    pytest.param(Gang(GANG_OF_3, members=3, assumed=2), MEMBER, (WAIT, FIVE_MINUTES), id="too-few"),
    pytest.param(Gang(GANG_OF_3, members=3, assumed=3), MEMBER, (SUCCESS, 0.0), id="all-assumed"),
    pytest.param(
        Gang(GANG_OF_3, members=3, bound=2, assumed=1), MEMBER, (SUCCESS, 0.0), id="some-bound"
    ),
    pytest.param(
        Gang(GANG_OF_3, members=9, bound=2), MEMBER, (WAIT, FIVE_MINUTES), id="known-is-not-placed"
    ),
]


@pytest.mark.parametrize(("gang", "pod", "expected"), PERMIT)
def test_permit(gang: Gang, pod: Pod, expected: tuple[Status, float]) -> None:
    """A gang needs enough pods with a node, assumed or bound."""
    assert expected == gang.permit(pod)


def test_a_pod_that_waits_activates_those_without_a_place() -> None:
    """They may be in backoff while others wait for them."""
    gang = Gang(GANG_OF_3, members=4, bound=1, assumed=1)
    gang.permit(make_member("p1"))
    assert ["p2", "p3"] == [pod.name for pod in gang.handle.activated]
    assert ["p1"] == gang.waiting


def test_the_last_pod_lets_all_go_on() -> None:
    """Every waiting pod of the gang is approved, and no other."""
    gang = Gang(GANG_OF_3, members=3, assumed=3)
    gang._let_wait(PodInfo(make_member("stranger", "other")))
    gang.permit(make_member("p2"))
    assert ["stranger"] == gang.waiting
    assert [] == gang.handle.activated


def _hint(resource: str) -> Any:
    registered = {
        (each.event.resource, each.event.action): each.hint
        for each in GangScheduling(None, FakeHandle()).events_to_register()
    }
    assert {(POD, Action.ADD), (POD_GROUP, Action.ADD)} == registered.keys()
    return registered[resource, Action.ADD]


@pytest.mark.parametrize(
    ("target", "new", "expected"),
    [
        pytest.param(MEMBER, make_member("new"), True, id="same-group"),
        pytest.param(MEMBER, make_member("new", "other"), False, id="another-group"),
        pytest.param(MEMBER, SINGLE, False, id="no-group"),
        pytest.param(SINGLE, make_pod("new"), False, id="neither-has-a-group"),
        pytest.param(
            MEMBER, make_member("new", namespace="elsewhere"), False, id="another-namespace"
        ),
        pytest.param(MEMBER, make_node(), True, id="no-pod"),
    ],
)
def test_hint_for_pods(target: Pod, new: object, expected: bool) -> None:
    """A pod of the same group may complete the gang."""
    assert expected is _hint(POD)(target, None, new)


@pytest.mark.parametrize(
    ("target", "new", "expected"),
    [
        pytest.param(MEMBER, BASIC, True, id="its-group"),
        pytest.param(MEMBER, make_group("other"), False, id="another-group"),
        pytest.param(SINGLE, BASIC, False, id="no-member"),
        pytest.param(
            make_member("p0", namespace="elsewhere"), BASIC, False, id="another-namespace"
        ),
        pytest.param(MEMBER, make_node(), True, id="no-pod-group"),
    ],
)
def test_hint_for_groups(target: Pod, new: object, expected: bool) -> None:
    """The pod's group may be created after the pod."""
    assert expected is _hint(POD_GROUP)(target, None, new)


def test_events_concern_the_pods_of_their_group() -> None:
    """The hints of other groups' waiting pods are not called."""
    for each in GangScheduling(None, FakeHandle()).events_to_register():
        assert each.filing is not None
        names = {*each.filing.of_pod(MEMBER)}
        for new in (BASIC, make_member("new")):
            assert names == {*(each.filing.of_change(None, new) or ())}
        for other in (SINGLE, make_member("q", "other"), make_member("q", namespace="elsewhere")):
            assert names.isdisjoint(each.filing.of_pod(other))


@pytest.mark.parametrize(("members", "moves"), [(2, False), (3, True)])
def test_a_pod_that_does_not_complete_its_gang_moves_no_others(members: int, moves: bool) -> None:
    """With the new pod, the gang has that many of its three."""
    gang = Gang(GANG_OF_3, members=members)
    on_pod = gang.plugin.events_to_register()[0].filing
    assert on_pod is not None
    assert moves is bool(on_pod.of_change(None, make_member("new")))


@with_scheduler(gates=GANGS)
async def test_a_gang_waits_for_its_group_and_its_pods(cluster: Running) -> None:
    """The gang is bound when its group and all its pods exist."""
    cluster.api.create(make_node("node"), make_member("p1"), make_member("p2"))
    await cluster.settle()
    gated = cluster.scheduler.queue.statistics().gated
    cluster.api.create(make_group(min_count=3))
    await cluster.settle()
    assert (2, 2, {}) == (gated, cluster.scheduler.queue.statistics().gated, cluster.nodes)
    cluster.api.create(make_member("p3"))
    await cluster.settle()
    assert {"p1", "p2", "p3"} == set(cluster.nodes)
    cluster.api.create(make_member("p4"))
    await cluster.settle()
    assert "node" == cluster.nodes["p4"]


@with_scheduler(gates=GANGS)
async def test_a_deleted_pod_counts_no_more(cluster: Running) -> None:
    """With two of three pods gone, the last one and a new one stay behind the gate."""
    cluster.api.create(make_node("node"), make_member("p1"), make_member("p2"))
    cluster.api.delete("p1")
    cluster.api.create(make_group(min_count=2), make_member("p3", "other"))
    await cluster.settle()
    assert {} == cluster.nodes
    assert 2 == cluster.scheduler.queue.statistics().gated


@with_scheduler(gates=GANGS)
async def test_a_gang_whose_pod_is_not_bound_keeps_the_others(cluster: Running) -> None:
    """When the gang is approved, a failed binding does not undo the others."""
    cluster.api.refused.add("p2")
    cluster.api.create(make_node("node"), make_group(min_count=2))
    cluster.api.create(make_member("p1"), make_member("p2"))
    await cluster.settle()
    assert {"p1": "node"} == cluster.nodes
    cluster.api.refused.clear()
    await cluster.settle(3)
    assert {"p1": "node", "p2": "node"} == cluster.nodes
