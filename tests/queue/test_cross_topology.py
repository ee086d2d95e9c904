from __future__ import annotations

import pytest

from kubesched.framework.cluster_event import ASSIGNED_POD, Action, ClusterEvent
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.cross_topology import pre_check_of_assigned_pod
from kubesched.testing.builders import make_pod_info

WEB_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}},
        {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "db"}},
            "namespaceSelector": {"matchLabels": {"team": "data"}},
        },
    ]
}
WEB = make_pod_info("w", labels={"app": "web"}, node_name="n")
DB = make_pod_info("d", labels={"app": "db"}, node_name="n", namespace="data")
LABEL = ClusterEvent(ASSIGNED_POD, Action.UPDATE_POD_LABEL)


def check(waiting: QueuedPodInfo, assigned: object, team: str = "") -> bool:
    """Whether the assigned pod's event concerns the waiting one."""
    pod = DB if assigned == "db" else WEB
    found = pre_check_of_assigned_pod(LABEL, pod, {"team": team})
    assert found is not None
    return found(waiting)


@pytest.mark.parametrize(
    ("waiting", "assigned", "team", "expected"),
    [
        pytest.param(QueuedPodInfo(make_pod_info()), "web", "", False, id="no-terms"),
        pytest.param(
            QueuedPodInfo(make_pod_info(pod_affinity=WEB_AFFINITY)), "web", "", True, id="affinity"
        ),
        pytest.param(
            QueuedPodInfo(make_pod_info(pod_anti_affinity=WEB_AFFINITY)),
            "web",
            "",
            False,
            id="anti-affinity",
        ),
        pytest.param(
            QueuedPodInfo(make_pod_info(pod_affinity=WEB_AFFINITY, namespace="other")),
            "web",
            "",
            False,
            id="other-namespace",
        ),
        pytest.param(
            QueuedPodInfo(make_pod_info(pod_affinity=WEB_AFFINITY)),
            "db",
            "data",
            True,
            id="selected-namespace",
        ),
        pytest.param(
            QueuedPodInfo(make_pod_info(pod_affinity=WEB_AFFINITY)),
            "db",
            "shop",
            False,
            id="not-selected-namespace",
        ),
        pytest.param(
            QueuedPodInfo(
                make_pod_info(), unschedulable_plugins=frozenset({"PodTopologySpread", "Fit"})
            ),
            "web",
            "",
            True,
            id="spread",
        ),
        pytest.param(
            QueuedPodInfo(make_pod_info(), unschedulable_plugins=frozenset({"PodTopologySpread"})),
            "db",
            "",
            False,
            id="spread-elsewhere",
        ),
    ],
)
def test_who_is_concerned(waiting: QueuedPodInfo, assigned: str, team: str, expected: bool) -> None:
    """Pods attracted by the assigned one, and those of its namespace that did not spread."""
    assert expected == check(waiting, assigned, team)


def test_scaling_down_concerns_everybody() -> None:
    """Freed resources may help any pod."""
    event = ClusterEvent(ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
    assert pre_check_of_assigned_pod(event, WEB, {}) is None
