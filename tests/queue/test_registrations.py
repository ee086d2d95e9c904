from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEvent, ClusterEventWithHint
from kubesched.framework.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import SUCCESS, Status
from kubesched.queue.registrations import EXTENDER, Registration, registrations_of
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.handle import FakeHandle

USUAL = (
    "Pod",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "storage.k8s.io/CSINode",
    "storage.k8s.io/CSIDriver",
    "storage.k8s.io/CSIStorageCapacity",
    "storage.k8s.io/StorageClass",
    "resource.k8s.io/ResourceClaim",
    "resource.k8s.io/DeviceClass",
)
NODE_ADD = ClusterEvent(NODE, Action.ADD)
TAINT = ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)


class Gate(PreEnqueuePlugin):
    """A plugin that can reject pods, with the given registrations."""

    name: ClassVar[str] = "Gate"

    def __init__(self, events: Sequence[ClusterEventWithHint] | None) -> None:
        super().__init__(None, FakeHandle())
        self.events = events

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Admit every pod."""
        return SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint] | None:
        """Return the test's registrations."""
        return self.events


class Sort(QueueSortPlugin):
    """A plugin that cannot reject."""

    name: ClassVar[str] = "Sort"

    def sort_key(self, queued: QueuedPodInfo) -> tuple[int]:
        """Everything is equal."""
        return (0,)


def never(pod: object, old: object, new: object) -> bool:
    """Return Skip."""
    return False


@pytest.mark.parametrize(
    ("events", "gets_taints"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param([NODE_ADD], True, id="node-add"),
        pytest.param([ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)], True, id="label"),
        pytest.param([NODE_ADD, TAINT], False, id="taints-apart"),
        pytest.param([ClusterEvent(NODE, Action.ADD | Action.UPDATE)], False, id="among-others"),
        pytest.param([ClusterEvent(NODE, Action.DELETE)], False, id="no-add"),
        pytest.param([ClusterEvent(POD, Action.ADD)], False, id="pods"),
        pytest.param([ClusterEvent("*", Action.ALL)], False, id="wildcard"),
    ],
)
def test_node_add_includes_taint_updates(events: list[ClusterEvent], gets_taints: bool) -> None:
    """A registration of Node/Add without them gets them without a hint."""
    plugin = Gate([ClusterEventWithHint(event, never) for event in events])
    expected = [Registration("Gate", event, never) for event in events]
    if gets_taints:
        expected.append(Registration("Gate", TAINT))
    assert expected == list(registrations_of([plugin]))


def test_a_plugin_without_registrations_gets_the_default_events() -> None:
    """They are upstream's."""
    expected = [Registration("Gate", ClusterEvent(kind, Action.ALL)) for kind in USUAL]
    assert expected == list(registrations_of([Gate(None)]))
    group = Registration("Gate", ClusterEvent("scheduling.k8s.io/PodGroup", Action.ALL))
    assert [*expected, group] == list(registrations_of([Gate(None)], has_pod_groups=True))


def test_a_plugin_that_cannot_reject_has_no_events() -> None:
    """Only plugins that may reject a pod need them."""
    plugins: list[Plugin] = [Sort(None, FakeHandle())]
    assert () == registrations_of(plugins)


def test_extenders_get_the_default_events() -> None:
    """All extenders share one registration per kind."""
    expected = [Registration(EXTENDER, ClusterEvent(kind, Action.ALL)) for kind in USUAL]
    assert expected == list(registrations_of([], has_extenders=True))
