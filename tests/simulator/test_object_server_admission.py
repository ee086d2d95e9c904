"""What admission of the simulated API server sets on a pod."""

from __future__ import annotations

import pytest

from kubesched.api.errors import ApiError
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import PriorityClass
from kubesched.simulator.defaults import PriorityClasses
from kubesched.simulator.object_server import complete_pod
from kubesched.testing.builders import Json, make_pod

CLASSES = [
    PriorityClass(metadata=ObjectMeta(name="high"), value=10, preemption_policy="Never"),
    PriorityClass(metadata=ObjectMeta(name="usual"), value=3, global_default=True),
]


@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        pytest.param({"priorityClassName": "high"}, 10, "Never", id="named"),
        pytest.param({}, 3, "PreemptLowerPriority", id="default"),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            2_000_001_000,
            "PreemptLowerPriority",
            id="system",
        ),
        pytest.param({"priority": 5}, 5, "PreemptLowerPriority", id="given"),
    ],
)
def test_priority_and_policy_come_from_the_class(spec: Json, priority: int, policy: str) -> None:
    """Or from the default class."""
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
