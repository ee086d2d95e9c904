from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubesched.apiserver.listing import ObjectList
from kubesched.apiserver.plain import Plain, decode
from kubesched.apiserver.presentation import MediaType, Presentation, columns_of
from kubesched.apiserver.presentation.cells import CELLS, human_duration
from kubesched.apiserver.resources import Resource, Resources
from kubesched.apiserver.stored_object import StoredObject, from_core

from .recorded import read
from .verdicts import served

NOW = datetime(2024, 5, 2, 0, 0, 7, tzinfo=UTC)
RECORDS = read("tables")
AGES = frozenset(("Age", "Last Seen", "First Seen"))


def _without_ages(table: Plain) -> Plain:
    names = [column["name"] for column in table["columnDefinitions"]]
    rows = [
        row
        | {
            "cells": [
                "<age>" if name in AGES else cell
                for name, cell in zip(names, row["cells"], strict=True)
            ]
        }
        for row in table["rows"]
    ]
    return table | {"rows": rows}


@pytest.mark.parametrize("record", [pytest.param(one, id=one["name"]) for one in RECORDS])
def test_recorded_tables(record: dict[str, Any]) -> None:
    """Columns, cells and objects are kube-apiserver's, except for ages."""
    resource = served(record["plural"], record["group"])
    objects = ObjectList(tuple(map(StoredObject, record["objects"])), 1)
    actual = decode(_tables(resource, record["include"], record["v"]).many(objects))
    # The version of the list is that of the real server.
    actual["metadata"] = record["table"]["metadata"]
    assert record["table"] == _without_ages(actual)


def _tables(resource: Resource, include: str = "", version: str = "v1") -> Presentation:
    form = MediaType("application/json", "Table", "meta.k8s.io", version)
    return Presentation(resource, form, include, lambda: NOW)


def _cells(plural: str, value: Plain, group: str = "") -> list[Any]:
    table = _tables(served(plural, group)).transformed({"metadata": {}, **value})
    found: list[Any] = table["rows"][0]["cells"]
    return found


def _pod(status: Plain, **spec: Any) -> Plain:
    spec.setdefault("containers", [{"name": "a"}])
    return {"metadata": {"name": "p"}, "spec": spec, "status": status}


def _terminated(code: int, **more: Any) -> Plain:
    return {"terminated": {"exitCode": code, **more}}


RUNNING: Plain = {"name": "a", "ready": True, "state": {"running": {}}}
COMPLETED: Plain = {"name": "b", "state": _terminated(0, reason="Completed")}
READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("pod", "ready", "status", "restarts"),
    [
        pytest.param({"metadata": {}}, "0/0", "", "0", id="nothing"),
        pytest.param(
            _pod(
                {"phase": "Running", "containerStatuses": [RUNNING, COMPLETED], "conditions": READY}
            ),
            "1/1",
            "Running",
            "0",
            id="one completed, ready",
        ),
        pytest.param(
            _pod({"phase": "Running", "containerStatuses": [COMPLETED, RUNNING]}),
            "1/1",
            "NotReady",
            "0",
            id="one completed, not ready",
        ),
        pytest.param(
            _pod(
                {"phase": "Running", "containerStatuses": [COMPLETED, RUNNING | {"ready": False}]}
            ),
            "0/1",
            "Completed",
            "0",
            id="completed, the other not ready",
        ),
        pytest.param(
            _pod(
                {
                    "phase": "Failed",
                    "containerStatuses": [COMPLETED, {"state": _terminated(1, reason="Error")}],
                }
            ),
            "0/1",
            "Error",
            "0",
            id="one failed",
        ),
        pytest.param(
            _pod({"containerStatuses": [{"state": _terminated(137, signal=9)}]}),
            "0/1",
            "Signal:9",
            "0",
            id="signal",
        ),
        pytest.param(
            _pod(
                {
                    "initContainerStatuses": [
                        {"name": "i", "state": {"waiting": {"reason": "Pull"}}}
                    ]
                },
                initContainers=[{"name": "i"}],
            ),
            "0/1",
            "Init:Pull",
            "0",
            id="init waits",
        ),
        pytest.param(
            _pod(
                {
                    "initContainerStatuses": [
                        {"name": "i", "state": _terminated(0)},
                        {"name": "j", "restartCount": 2, "state": {"running": {}}},
                    ]
                },
                initContainers=[{"name": "i"}, {"name": "j"}],
            ),
            "0/1",
            "Init:1/2",
            "2",
            id="the second init container runs",
        ),
        pytest.param(
            _pod(
                {
                    "phase": "Running",
                    "initContainerStatuses": [
                        {
                            "name": "s",
                            "started": True,
                            "ready": True,
                            "restartCount": 3,
                            "state": {"running": {}},
                            "lastState": _terminated(1, finishedAt="2024-05-02T00:00:02Z"),
                        }
                    ],
                    "containerStatuses": [RUNNING],
                },
                initContainers=[{"name": "s", "restartPolicy": "Always"}],
            ),
            "2/2",
            "Running",
            "3 (5s ago)",
            id="sidecar",
        ),
        pytest.param(
            _pod(
                {"initContainerStatuses": [{"state": _terminated(2)}]},
                initContainers=[{"name": "i"}],
            ),
            "0/1",
            "Init:ExitCode:2",
            "0",
            id="init failed",
        ),
        pytest.param(
            _pod({"phase": "Running", "reason": "NodeLost"})
            | {"metadata": {"deletionTimestamp": "2024-05-02T00:00:00Z"}},
            "0/1",
            "Unknown",
            "0",
            id="node lost",
        ),
        pytest.param(
            _pod({"phase": "Succeeded"})
            | {"metadata": {"deletionTimestamp": "2024-05-02T00:00:00Z"}},
            "0/1",
            "Succeeded",
            "0",
            id="over before it is deleted",
        ),
    ],
)
def test_pods(pod: Plain, ready: str, status: str, restarts: str) -> None:
    """A pod's status adds up its phase, conditions and containers."""
    assert [ready, status, restarts] == _cells("pods", pod)[1:4]


def test_readiness_gates_and_address() -> None:
    """Gates are counted by their conditions; the first address is shown."""
    pod = _pod(
        {"conditions": [{"type": "x", "status": "True"}], "podIPs": [{"ip": "10.0.0.1"}]},
        readinessGates=[{"conditionType": "x"}, {"conditionType": "y"}],
    )
    assert ["10.0.0.1", "<none>", "<none>", "1/2"] == _cells("pods", pod)[5:]


@pytest.mark.parametrize(
    ("group", "plural", "value", "expected"),
    [
        pytest.param(
            "",
            "services",
            {
                "spec": {
                    "type": "LoadBalancer",
                    "clusterIP": "10.0.0.1",
                    "externalIPs": ["192.0.2.9"],
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                    "selector": {"b": "2", "a": "1"},
                },
                "status": {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "192.0.2.1"}]}},
            },
            [
                "",
                "LoadBalancer",
                "10.0.0.1",
                "192.0.2.1,h,192.0.2.9",
                "80:30080/TCP",
                "<unknown>",
                "a=1,b=2",
            ],
            id="service",
        ),
        pytest.param(
            "apps",
            "deployments",
            {
                "spec": {
                    "replicas": 3,
                    "selector": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]
                    },
                    "template": {
                        "spec": {
                            "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]
                        }
                    },
                },
                "status": {"readyReplicas": 1},
            },
            ["", "1/3", 0, 0, "<unknown>", "c,d", "i,j", "a in (x,y)"],
            id="deployment",
        ),
        pytest.param(
            "apps",
            "replicasets",
            {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}},
            ["", 0, 0, 0, "<unknown>", "", "", "<error>"],
            id="faulty selector",
        ),
        pytest.param(
            "batch",
            "jobs",
            {
                "spec": {"parallelism": 2},
                "status": {
                    "startTime": "2024-05-02T00:00:00Z",
                    "conditions": [{"type": "Suspended", "status": "True"}],
                },
            },
            ["", "Suspended", "0/1 of 2", "7s", "<unknown>", "", "", "<none>"],
            id="job",
        ),
        pytest.param(
            "batch",
            "cronjobs",
            {"spec": {"schedule": "* * * * *", "suspend": False}, "status": {"active": [{}]}},
            ["", "* * * * *", "<none>", "False", 1, "<none>", "<unknown>", "", "", "<none>"],
            id="cron job",
        ),
        pytest.param(
            "storage.k8s.io",
            "storageclasses",
            {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
            [" (default)", "", "Delete", "Immediate", False, "<unknown>"],
            id="default class",
        ),
        pytest.param(
            "",
            "persistentvolumeclaims",
            {
                "spec": {"volumeName": "v", "accessModes": ["ReadWriteMany"]},
                "status": {
                    "phase": "Bound",
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                },
            },
            ["", "Bound", "v", "1Gi", "RWO,RWX", "", "<unset>", "<unknown>", "<unset>"],
            id="bound claim",
        ),
        pytest.param(
            "resource.k8s.io",
            "resourceclaims",
            {"status": {"allocation": {}, "reservedFor": [{}]}},
            ["", "allocated,reserved", "<unknown>"],
            id="claim of devices",
        ),
        pytest.param(
            "storage.k8s.io",
            "csidrivers",
            {
                "spec": {
                    "attachRequired": True,
                    "tokenRequests": [{"audience": "a"}],
                    "volumeLifecycleModes": ["Persistent"],
                }
            },
            ["", True, False, False, False, "Persistent", "<unknown>"],
            id="driver",
        ),
        pytest.param(
            "rbac.authorization.k8s.io",
            "rolebindings",
            {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"}},
            ["b", "ClusterRole/view", "<unknown>"],
            id="binding of a role",
        ),
        pytest.param(
            "certificates.k8s.io",
            "certificatesigningrequests",
            {
                "metadata": {"name": "c"},
                "spec": {"signerName": "example.com/s"},
                "status": {"conditions": [{"type": "Approved"}], "certificate": "YQ=="},
            },
            ["c", "<unknown>", "example.com/s", "Approved,Issued"],
            id="signed certificate",
        ),
        pytest.param(
            "autoscaling",
            "horizontalpodautoscalers",
            {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "w"}, "maxReplicas": 5}},
            ["", "Deployment/w", "<unset>", 5, 0, "<unknown>"],
            id="autoscaler",
        ),
        pytest.param(
            "rbac.authorization.k8s.io",
            "clusterroles",
            {"metadata": {"name": "c", "creationTimestamp": "2024-05-02T00:00:00Z"}},
            ["c", "2024-05-02T00:00:00Z"],
            id="no columns of its own",
        ),
    ],
)
def test_cells(group: str, plural: str, value: Plain, expected: list[Any]) -> None:
    """Missing values are shown as upstream shows them."""
    assert expected == _cells(plural, value, group)


def test_events_of_both_groups_look_alike() -> None:
    """An event shows the same cells whichever group it is read through."""
    event: Plain = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "eventTime": "2024-05-02T00:00:00.000000Z",
        "series": {"count": 3, "lastObservedTime": "2024-05-02T00:00:05.000000Z"},
        "reportingComponent": "s",
        "reportingInstance": "s-1",
        "message": " m ",
    }
    expected = ["2s", "", "", "pod/p", "", "s, s-1", "m", "7s", 3, "e"]
    assert expected == _cells("events", event)
    assert expected == _cells("events", from_core(event), "events.k8s.io")


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        pytest.param(timedelta(seconds=-2), "<invalid>", id="future"),
        pytest.param(timedelta(seconds=-1.5), "0s", id="nearly now"),
        pytest.param(timedelta(seconds=119), "119s", id="seconds"),
        pytest.param(timedelta(seconds=120), "2m", id="minutes"),
        pytest.param(timedelta(seconds=599), "9m59s", id="minutes and seconds"),
        pytest.param(timedelta(minutes=179, seconds=59), "179m", id="many minutes"),
        pytest.param(timedelta(hours=3), "3h", id="hours"),
        pytest.param(timedelta(hours=7, minutes=59), "7h59m", id="hours and minutes"),
        pytest.param(timedelta(hours=47), "47h", id="many hours"),
        pytest.param(timedelta(hours=48), "2d", id="days"),
        pytest.param(timedelta(days=7, hours=23), "7d23h", id="days and hours"),
        pytest.param(timedelta(days=729), "729d", id="many days"),
        pytest.param(timedelta(days=731), "2y1d", id="years and days"),
        pytest.param(timedelta(days=365 * 8 + 100), "8y", id="years"),
    ],
)
def test_durations(duration: timedelta, expected: str) -> None:
    """Two or three digits are enough."""
    assert expected == human_duration(duration.total_seconds())


def test_objects_that_say_nothing_have_all_cells() -> None:
    """Bookmarks are shown as rows too, and every cell by name belongs to a column."""
    bookmark = {"metadata": {"resourceVersion": "5"}}
    used: set[object] = set()
    for version in Resources(has_alpha=True).group_versions:
        for resource in version.resources:
            columns = columns_of(resource)
            cells = [column.cell(bookmark, NOW) for column in columns]
            assert len(columns) == len(cells)
            used |= {column.cell for column in columns}
    assert set(CELLS.values()) <= used
