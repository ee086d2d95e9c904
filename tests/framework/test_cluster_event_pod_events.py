from __future__ import annotations

import pytest

from kubesched.framework.cluster_event import pod_events
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import PodFields, make_pod

TOLERATION = {"key": "k", "operator": "Exists"}
RESIZED = {
    "containerStatuses": [
        {
            "name": "container",
            "resources": {"requests": {"cpu": "500m"}},
            "allocatedResources": {"cpu": "500m"},
        }
    ]
}
BIG = {
    "containerStatuses": [{"name": "container", "resources": {"requests": {"cpu": "4"}}}],
}
CLAIM = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-1"}]}
CLAIM_2 = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-2"}]}
EXTENDED = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}


def events(old: PodFields, new: PodFields) -> str:
    """Return the labels of an update's events without their resource."""
    found = pod_events(PodInfo(make_pod("p", **old)), PodInfo(make_pod("p", **new)))
    return " ".join(event.label.removeprefix("UnschedulablePod") for event in found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {}, "Update", id="nothing"),
        pytest.param({}, {"priority": 5}, "Update", id="something-else"),
        pytest.param({}, {"status": {"phase": "Pending"}}, "Update", id="status"),
        pytest.param({}, {"labels": {"a": "b"}}, "UpdatePodLabel", id="label-added"),
        pytest.param({"labels": {"a": "b"}}, {}, "UpdatePodLabel", id="label-removed"),
        pytest.param(
            {"labels": {"a": "b"}}, {"labels": {"a": "c"}}, "UpdatePodLabel", id="label-changed"
        ),
        pytest.param(
            {"requests": {"cpu": 2}}, {"requests": {"cpu": 1}}, "UpdatePodScaleDown", id="less-cpu"
        ),
        pytest.param({"requests": {"cpu": 1}}, {"requests": {"cpu": 2}}, "Update", id="more-cpu"),
        pytest.param({"requests": {"cpu": 1}}, {}, "UpdatePodScaleDown", id="request-removed"),
        pytest.param({}, {"requests": {"cpu": 1}}, "Update", id="request-added"),
        pytest.param({"requests": {"cpu": 0}}, {}, "UpdatePodScaleDown", id="zero-removed"),
        pytest.param(
            {"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}, "Update", id="same-amount"
        ),
        pytest.param(
            {"requests": {"cpu": "1500u"}},
            {"requests": {"cpu": "1200u"}},
            "Update",
            id="less-than-a-thousandth",
        ),
        pytest.param(
            {"requests": {"cpu": 2, "memory": "1Gi"}},
            {"requests": {"cpu": 3, "memory": "1Mi"}},
            "UpdatePodScaleDown",
            id="any-resource",
        ),
        pytest.param(
            {"requests": {"cpu": 2}, "status": BIG},
            {"requests": {"cpu": 1}, "status": BIG},
            "Update",
            id="resize-not-in-force",
        ),
        pytest.param(
            {"requests": {"cpu": 1}, "status": BIG},
            {"requests": {"cpu": 1}, "status": RESIZED},
            "UpdatePodScaleDown",
            id="resize-in-force",
        ),
        pytest.param(
            {"scheduling_gates": ["a"]},
            {},
            "UpdatePodSchedulingGatesEliminated",
            id="last-gate-gone",
        ),
        pytest.param(
            {"scheduling_gates": ["a", "b"]}, {"scheduling_gates": ["a"]}, "Update", id="one-left"
        ),
        pytest.param({}, {"scheduling_gates": ["a"]}, "Update", id="gate-added"),
        pytest.param(
            {}, {"tolerations": [TOLERATION]}, "UpdatePodToleration", id="toleration-added"
        ),
        pytest.param(
            {"tolerations": [TOLERATION]},
            {"tolerations": [{"key": "other", "operator": "Exists"}]},
            "Update",
            id="as-many-tolerations",
        ),
        pytest.param(
            {}, {"status": CLAIM}, "UpdatePodGeneratedResourceClaim", id="claim-generated"
        ),
        pytest.param(
            {"status": CLAIM},
            {"status": CLAIM_2},
            "UpdatePodGeneratedResourceClaim",
            id="claim-changed",
        ),
        pytest.param({"status": CLAIM}, {"status": CLAIM}, "Update", id="same-claim"),
        pytest.param(
            {}, {"status": EXTENDED}, "UpdatePodGeneratedResourceClaim", id="extended-claim"
        ),
        pytest.param(
            {
                "labels": {"a": "b"},
                "requests": {"cpu": 1},
                "scheduling_gates": ["a"],
                "tolerations": [TOLERATION],
                "status": CLAIM,
            },
            {},
            "UpdatePodLabel UpdatePodScaleDown UpdatePodSchedulingGatesEliminated"
            " UpdatePodToleration UpdatePodGeneratedResourceClaim",
            id="all-in-order",
        ),
    ],
)
def test_one_event_per_changed_property(old: PodFields, new: PodFields, expected: str) -> None:
    """In upstream's order; Update if there is none."""
    assert expected == events(old, new)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("", "", "UnschedulablePodUpdate", id="waits"),
        pytest.param("n", "n", "AssignedPodUpdate", id="assigned"),
        pytest.param("", "n", "AssignedPodUpdate", id="being-bound"),
    ],
)
def test_the_events_resource_depends_on_the_node(old: str, new: str, expected: str) -> None:
    """The new version's node counts."""
    found = pod_events(PodInfo(make_pod("p", node_name=old)), PodInfo(make_pod("p", node_name=new)))
    assert [expected] == [event.label for event in found]
