"""Waiting pods are woken by what may help them, and by nothing else."""

from __future__ import annotations

import pytest

from kubesched.framework.cluster_event import NODE, Action, ClusterEvent
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.simulator.waiting_pods import HINTS_MAX, POD_ADDED, POD_DELETED, WaitingPods
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_pod_info

from .clusters import make_cluster

NAME = "default-scheduler"


def waiting_pods(hints_max: int = HINTS_MAX) -> WaitingPods:
    """Return nobody waiting, with the default profile."""
    return WaitingPods(make_cluster([]).profiles, hints_max)


def rejected(*plugins: str, app: str = "a", name: str = "waits") -> QueuedPodInfo:
    """Return a pod that these plugins rejected; it wants to be with pods of `app`."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    info = PodInfo(make_pod(name, pod_affinity=affinity))
    return QueuedPodInfo(info, unschedulable_plugins=frozenset(plugins))


def bound(app: str, name: str = "came") -> PodInfo:
    """Return a pod on a node."""
    return make_pod_info(name, labels={"app": app}, node_name="n")


def test_only_registered_events_wake() -> None:
    """A pod that lacks resources is woken by a pod that left, not by one that came."""
    waiting, queued = waiting_pods(), rejected("NodeResourcesFit")
    waiting.add(queued, NAME)
    waiting.happened(POD_ADDED, bound("a"))
    assert [] == waiting.woken()
    waiting.happened(POD_DELETED, bound("a"))
    assert [queued] == waiting.woken()
    assert [] == waiting.woken()


def test_hints_decide() -> None:
    """A pod that wants to be with others is woken by one of those."""
    waiting, queued = waiting_pods(), rejected("InterPodAffinity", app="b")
    waiting.add(queued, NAME)
    waiting.happened(POD_ADDED, bound("a"))
    assert [] == waiting.woken()
    waiting.happened(POD_ADDED, bound("b"))
    assert [queued] == waiting.woken()


def test_what_happened_before_does_not_count() -> None:
    """Of two equal pods only the one is woken that was tried before something happened."""
    waiting = waiting_pods()
    early, late = rejected("NodeResourcesFit", name="e"), rejected("NodeResourcesFit", name="l")
    waiting.add(early, NAME)
    waiting.happened(POD_DELETED, bound("a"))
    waiting.add(late, NAME)
    assert [early] == waiting.woken()


def test_errors_wait_for_anything() -> None:
    """A pod that no plugin rejected is worth a try after any event, and only then."""
    waiting, queued = waiting_pods(), rejected()
    waiting.add(queued, NAME)
    assert [] == waiting.woken()
    waiting.happened(POD_ADDED, bound("a"))
    assert [queued] == waiting.woken()


def test_hints_are_asked_once_per_template() -> None:
    """However many equal pods wait and come, a hint is asked once."""
    waiting = waiting_pods()
    for at in range(50):
        waiting.add(rejected("InterPodAffinity", app="b", name=f"w{at}"), NAME)
    for at in range(50):
        waiting.happened(POD_ADDED, bound("a", f"c{at}"))
    assert [] == waiting.woken()
    assert 1 == waiting.hints_asked


def test_beyond_the_limit_pods_are_tried() -> None:
    """When hints have become too many, a pod is tried again instead."""
    waiting, queued = waiting_pods(hints_max=1), rejected("InterPodAffinity", app="b")
    waiting.add(queued, NAME)
    waiting.happened(POD_ADDED, bound("a"))
    waiting.happened(POD_ADDED, bound("c"))
    assert [queued] == waiting.woken()
    assert 1 == waiting.hints_asked


@pytest.mark.parametrize(
    ("event", "old", "new"),
    [
        pytest.param(
            ClusterEvent(NODE, Action.ADD),
            None,
            make_node("n", allocatable={"cpu": "4"}),
            id="node",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            make_node("n"),
            make_node("n", labels={"zone": "a"}),
            id="label",
        ),
        pytest.param(POD_ADDED, None, make_pod("x", node_name="n"), id="pod"),
        pytest.param(POD_DELETED, make_pod("x", node_name="n"), None, id="no pod"),
    ],
)
def test_in_tree_hints_per_template_do_not_look_further(
    event: ClusterEvent, old: object, new: object
) -> None:
    """Name, uid, annotations and status of the waiting pod change no answer."""
    cluster = make_cluster([])
    profile = cluster.profiles[NAME]
    profile.objects = cluster.cache.objects
    one = make_pod("a", requests={"cpu": "1"})
    other = make_pod(
        "b",
        requests={"cpu": "1"},
        metadata={"annotations": {"a": "b"}},
        status={"nominatedNodeName": "n"},
    )
    assert PodInfo(one).template is PodInfo(other).template
    hints = [
        each.hint
        for plugin in profile.plugins.values()
        for each in plugin.events_to_register() or ()
        if each.per_template and each.event.matches(event) and each.hint is not None
    ]
    assert hints
    assert [hint(one, old, new) for hint in hints] == [hint(other, old, new) for hint in hints]
