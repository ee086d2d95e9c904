"""The simulated API server: what it sets, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.errors import ApiError, ConflictError, NotFoundError
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import PodGroup, PriorityClass
from kubesched.cluster.server import kind_name
from kubesched.simulator.defaults import PriorityClasses
from kubesched.simulator.object_server import (
    ObjectServer,
    complete_pod,
    key_of,
    with_condition,
    with_group_condition,
)
from kubesched.testing.builders import Json, make_node, make_pod

NO = ConditionPatch("PodScheduled", "False", "Unschedulable", "0/1 nodes are available.")


class Clock:
    """A time that tests set."""

    now = 0.0


@pytest.fixture
def clock() -> Clock:
    """The server's time."""
    return Clock()


@pytest.fixture
def server(clock: Clock) -> ObjectServer:
    """A server with one node."""
    server = ObjectServer(lambda: clock.now)
    server.create(make_node("node-1"))
    return server


def test_created_objects_get_a_uid_and_a_version(server: ObjectServer, clock: Clock) -> None:
    """Uids are unique; the creation time is the server's."""
    clock.now = 61.0
    first = server.create(make_pod("a", uid=""))
    second = server.create(make_pod("b", uid=""))
    assert first.metadata.uid != second.metadata.uid
    assert first.metadata.creation_timestamp == "2026-01-01T00:01:01Z"
    assert int(first.metadata.resource_version) < int(second.metadata.resource_version)


def test_kinds_are_stored_under_plural_and_group() -> None:
    """The core group has no suffix."""
    assert kind_name(PriorityClass) == "priorityclasses.scheduling.k8s.io"
    assert key_of(make_pod("a")) == ("pods", "default", "a")


def test_capacity_is_the_default_allocatable(server: ObjectServer) -> None:
    """This concerns nodes without allocatable amounts."""
    node = server.create(make_node("node-2", status={"capacity": {"cpu": "7"}, "allocatable": {}}))
    assert node.status.allocatable == {"cpu": "7"}


def test_bind_sets_the_node(server: ObjectServer) -> None:
    """It clears the nomination and sets the condition PodScheduled."""
    pod = server.create(make_pod("a", uid="", nominated_node_name="node-2"))
    bound = server.bind("default", "a", pod.metadata.uid, "node-1")
    assert (bound.spec.node_name, bound.status.nominated_node_name) == ("node-1", "")
    (condition,) = bound.status.conditions
    assert (condition.type, condition.status) == ("PodScheduled", "True")


def _deleted(server: ObjectServer, uid: str) -> None:
    server.bind("default", "a", uid, "node-1")
    server.delete_pod("default", "a", uid)


@pytest.mark.parametrize(
    ("before", "uid", "error", "words"),
    [
        pytest.param(None, "other", ConflictError, "Precondition failed: UID", id="another-pod"),
        pytest.param(
            lambda server, uid: server.bind("default", "a", uid, "node-9"),
            None,
            ConflictError,
            'pod a is already assigned to node "node-9"',
            id="assigned",
        ),
        pytest.param(_deleted, None, ConflictError, "pod a is being deleted", id="deleting"),
        pytest.param(
            lambda server, uid: server.delete_pod("default", "a", uid),
            None,
            NotFoundError,
            'pods "a" not found',
            id="gone",
        ),
    ],
)
def test_refused_bindings_change_nothing(
    server: ObjectServer,
    before: Callable[[ObjectServer, str], object] | None,
    uid: str | None,
    error: type[ApiError],
    words: str,
) -> None:
    """The pod is the same afterwards."""
    created = server.create(make_pod("a", uid=""))
    if before is not None:
        before(server, created.metadata.uid)
    was = server.pod("default", "a")
    with pytest.raises(error, match=words):
        server.bind("default", "a", uid or created.metadata.uid, "node-1")
    assert was == server.pod("default", "a")


def test_binding_a_gated_pod_is_a_conflict(server: ObjectServer) -> None:
    """The pod has had the condition since its creation."""
    pod = server.create(make_pod("a", uid="", scheduling_gates=["wait"]))
    assert [c.reason for c in pod.status.conditions] == ["SchedulingGated"]
    with pytest.raises(ConflictError, match=r"non-empty \.spec\.schedulingGates"):
        server.bind("default", "a", pod.metadata.uid, "node-1")


def test_patch_status_without_changes_is_not_written(server: ObjectServer) -> None:
    """An equal condition and nomination make no new version."""
    pod = server.create(make_pod("a", uid=""))
    first = server.patch_status(pod, NO, "node-1")
    assert first.status.nominated_node_name == "node-1"
    version = server.store.version
    assert first is server.patch_status(pod, NO, None)
    assert first is server.patch_status(pod, None, "node-1")
    assert version == server.store.version
    cleared = server.patch_status(pod, None, "")
    assert cleared.status.nominated_node_name == ""
    with pytest.raises(ConflictError):
        server.patch_status(make_pod("a", uid="other"), NO, None)


@pytest.mark.parametrize(
    ("is_bound", "phase", "grace", "remains"),
    [
        pytest.param(False, "Pending", None, False, id="no-kubelet"),
        pytest.param(True, "Running", None, True, id="running"),
        pytest.param(True, "Running", 0, False, id="forced"),
        pytest.param(True, "Succeeded", None, False, id="finished"),
    ],
)
def test_only_pods_on_a_kubelet_are_deleted_gracefully(
    server: ObjectServer, is_bound: bool, phase: str, grace: int | None, remains: bool
) -> None:
    """Others are deleted at once."""
    pod = server.create(make_pod("a", uid=""))
    if is_bound:
        pod = server.set_phase(server.bind("default", "a", pod.metadata.uid, "node-1"), phase)
    server.delete_pod("default", "a", pod.metadata.uid, grace)
    left = server.pod("default", "a")
    assert remains == (left is not None)
    if left is not None:
        assert left.metadata.deletion_timestamp == "2026-01-01T00:00:30Z"
        assert left.metadata.deletion_grace_period_seconds == 30


def test_deleting_again_may_only_shorten_the_grace_period(server: ObjectServer) -> None:
    """Otherwise nothing changes."""
    pod = server.create(make_pod("a", uid=""))
    server.bind("default", "a", pod.metadata.uid, "node-1")
    server.delete_pod("default", "a", grace_seconds=20)
    version = server.store.version
    server.delete_pod("default", "a", grace_seconds=25)
    assert version == server.store.version
    server.delete_pod("default", "a", grace_seconds=5)
    left = server.pod("default", "a")
    assert left is not None
    assert left.metadata.deletion_grace_period_seconds == 5


def test_start_time_is_set_once(server: ObjectServer, clock: Clock) -> None:
    """A pod that starts again keeps it."""
    pod = server.create(make_pod("a", uid=""))
    pod = server.bind("default", "a", pod.metadata.uid, "node-1")
    clock.now = 5.0
    pod = server.set_phase(pod, "Running")
    clock.now = 9.0
    pod = server.set_phase(pod, "Running")
    assert pod.status.start_time == "2026-01-01T00:00:05Z"


def test_priority_classes_count_for_pods_created_after_them(server: ObjectServer) -> None:
    """Once they are deleted, they do not count."""
    named = make_pod("a", uid="", spec={"priorityClassName": "high"})
    with pytest.raises(ApiError, match="no PriorityClass with name high"):
        server.create(named)
    high = server.create(PriorityClass(metadata=ObjectMeta(name="high"), value=7))
    assert server.create(named).spec.priority == 7
    server.delete(high)
    with pytest.raises(ApiError):
        server.create(make_pod("b", uid="", spec={"priorityClassName": "high"}))


def test_an_immediate_deletion_has_two_watch_events(server: ObjectServer) -> None:
    """MODIFIED with a grace period of 0, then DELETED."""
    watch = server.store.watch("pods", server.store.version)
    server.create(make_pod("a", uid=""))
    server.delete_pod("default", "a")
    changes = [
        (str(change.type), item.metadata.deletion_grace_period_seconds, item.metadata.generation)
        for change in watch.read()
        for item in (change.value,)
    ]
    assert changes == [("ADDED", None, 1), ("MODIFIED", 0, 2), ("DELETED", 0, 2)]


def test_bound_pods_have_the_topology_labels_of_their_node(server: ObjectServer) -> None:
    """Binding copies zone and region; conditions have no observed generation."""
    zone = "topology.kubernetes.io/zone"
    server.create(make_node("far", labels={zone: "z", "disk": "ssd"}))
    pod = server.create(make_pod("a", uid="", labels={"app": "web"}))
    bound = server.bind("default", "a", pod.metadata.uid, "far")
    assert bound.metadata.labels == {"app": "web", zone: "z"}
    assert [(c.type, c.observed_generation) for c in bound.status.conditions] == [
        ("PodScheduled", 0)
    ]


# Conditions of pods.


def test_an_equal_condition_of_a_pod_changes_nothing() -> None:
    """The pod is the same object."""
    pod = with_condition(make_pod(), NO, 0.0)
    assert pod is with_condition(pod, NO, 5.0)


def test_the_transition_time_changes_with_the_status_only() -> None:
    """Reason and message do not change it."""
    pod = with_condition(make_pod(), NO, 1.0)
    pod = with_condition(pod, ConditionPatch("PodScheduled", "False", "Other", "x"), 5.0)
    (condition,) = pod.status.conditions
    assert (condition.reason, condition.last_transition_time) == ("Other", "2026-01-01T00:00:01Z")
    pod = with_condition(pod, ConditionPatch("PodScheduled", "True", "", ""), 9.0)
    (condition,) = pod.status.conditions
    assert condition.last_transition_time == "2026-01-01T00:00:09Z"


def test_each_type_has_one_condition() -> None:
    """In the order of their first writes."""
    pod = with_condition(make_pod(), NO, 0.0)
    pod = with_condition(pod, ConditionPatch("Ready", "False", "", ""), 0.0)
    pod = with_condition(pod, ConditionPatch("PodScheduled", "True", "", ""), 0.0)
    assert [(c.type, c.status) for c in pod.status.conditions] == [
        ("PodScheduled", "True"),
        ("Ready", "False"),
    ]


# Conditions of pod groups.

NAME = "PodGroupScheduled"
REJECTED = ConditionPatch(NAME, "False", "Unschedulable", "no")
GROUP = PodGroup(metadata=ObjectMeta(name="gang", namespace="default"))


def test_a_new_condition_has_a_transition_time() -> None:
    """And all fields of the patch."""
    (condition,) = with_group_condition(GROUP, REJECTED, 1, 5.0).status.conditions
    assert (NAME, "False", "Unschedulable", "no", 1) == (
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        condition.observed_generation,
    )
    assert condition.last_transition_time is not None


def test_an_equal_condition_of_a_group_changes_nothing() -> None:
    """The group is the same object."""
    group = with_group_condition(GROUP, REJECTED, 1, 5.0)
    assert group is with_group_condition(group, REJECTED, 1, 9.0)


@pytest.mark.parametrize(
    ("patch", "generation", "moves"),
    [
        pytest.param(ConditionPatch(NAME, "False", "Unschedulable", "still"), 1, False, id="words"),
        pytest.param(REJECTED, 2, False, id="generation"),
        pytest.param(ConditionPatch(NAME, "True", "Scheduled", ""), 1, True, id="status"),
    ],
)
def test_the_transition_time_of_a_group_changes_with_the_status_only(
    patch: ConditionPatch, generation: int, moves: bool
) -> None:
    """Other fields do not change it."""
    before = with_group_condition(GROUP, REJECTED, 1, 5.0)
    after = with_group_condition(before, patch, generation, 9.0)
    (old,), (new,) = before.status.conditions, after.status.conditions
    assert old != new
    assert moves == (old.last_transition_time != new.last_transition_time)


def test_the_server_writes_changes_only() -> None:
    """The first write makes a new version, the second does not."""
    server = ObjectServer(lambda: 0.0)
    group = server.create(GROUP)
    first = server.patch_pod_group_status(group, REJECTED)
    again = server.patch_pod_group_status(group, REJECTED)
    assert first.metadata.resource_version == again.metadata.resource_version
    with pytest.raises(NotFoundError):
        server.patch_pod_group_status(replace(group, metadata=ObjectMeta(name="other")), REJECTED)


# What admission sets.

CLASSES = [
    PriorityClass(metadata=ObjectMeta(name="high"), value=10, preemption_policy="Never"),
    PriorityClass(metadata=ObjectMeta(name="usual"), value=3, global_default=True),
]


@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        pytest.param({"priorityClassName": "high"}, 10, "Never", id="named"),
        pytest.param({}, 3, "PreemptLowerPriority", id="default"),
    ],
)
def test_priority_and_policy_come_from_the_class(spec: Json, priority: int, policy: str) -> None:
    """Without a name, the default class counts."""
    pod = complete_pod(make_pod(spec=spec), PriorityClasses(CLASSES), 0.0)
    assert (priority, policy) == (pod.spec.priority, pod.spec.preemption_policy)


def test_without_classes_the_priority_is_zero() -> None:
    """There is no default class."""
    assert complete_pod(make_pod(), PriorityClasses([]), 0.0).spec.priority == 0


def test_an_unknown_class_is_forbidden() -> None:
    """The next pod is accepted."""
    classes = PriorityClasses(CLASSES)
    with pytest.raises(ApiError, match="no PriorityClass with name none was found") as caught:
        complete_pod(make_pod(spec={"priorityClassName": "none"}), classes, 0.0)
    assert caught.value.code == 403
    complete_pod(make_pod(), classes, 0.0)


def test_defaults_equal_upstreams() -> None:
    """Given fields do not change."""
    pod = complete_pod(make_pod(limits={"cpu": "1"}), PriorityClasses([]), 0.0)
    spec = pod.spec
    assert (spec.scheduler_name, spec.restart_policy) == ("default-scheduler", "Always")
    assert (spec.termination_grace_period_seconds, pod.status.phase) == (30, "Pending")
    assert spec.containers[0].resources.requests == {"cpu": "1"}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], ["not-ready", "unreachable"], id="none"),
        pytest.param([{"operator": "Exists"}], [], id="all"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            ["unreachable"],
            id="one",
        ),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            ["not-ready", "unreachable"],
            id="another-effect",
        ),
    ],
)
def test_default_tolerations_of_failing_nodes(given: list[Json], added: list[str]) -> None:
    """Five minutes, unless the pod tolerates them itself."""
    pod = complete_pod(make_pod(tolerations=given), PriorityClasses([]), 0.0)
    more = pod.spec.tolerations[len(given) :]
    assert added == [toleration.key.removeprefix("node.kubernetes.io/") for toleration in more]
    assert all(toleration.toleration_seconds == 300 for toleration in more)
