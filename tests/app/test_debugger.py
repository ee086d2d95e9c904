"""What the debugger says of cache and queue."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest

from kubesched.app.debugger import log_cache
from kubesched.cache.cache import Cache
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.structured_log import FIELDS, V3
from kubesched.queue.gates import ProfileRules
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.testing.builders import make_node, make_pod, make_pod_info

PENDING = {"phase": "Pending"}


def order(queued: QueuedPodInfo) -> tuple[float, ...]:
    """A QueueSort plugin's order by arrival."""
    return (queued.timestamp,)


def logged(node_names: Iterable[str] = (), pod_uids: Iterable[str] = ()) -> None:
    """Log a cache with two pods on n1, one on a removed node, and two pending."""
    cache = Cache()
    cache.add_node(
        make_node(
            "n1",
            allocatable={
                "cpu": "4",
                "memory": "8Gi",
                "example.com/gpu": "2",
                "ephemeral-storage": "1",
                "pods": 110,
            },
        )
    )
    cache.add_pod(
        make_pod(
            "a",
            uid="ua",
            status=PENDING,
            node_name="n1",
            requests={"cpu": "1", "example.com/gpu": "1"},
        )
    )
    cache.add_pod(make_pod("b", uid="ub", status=PENDING, node_name="n1", requests={"cpu": "500m"}))
    cache.add_pod(
        make_pod("lost", uid="ul", status=PENDING, node_name="gone", requests={"cpu": "1"})
    )
    queue = SchedulingQueue(order, {"default-scheduler": ProfileRules(registrations=[])})
    queue.add(make_pod_info("w", uid="uw", status=PENDING), 0.0)
    queue.add(make_pod_info("x", uid="ux", status=PENDING), 1.0)
    promised = {**PENDING, "nominatedNodeName": "n1"}
    queue.nominator.add(make_pod_info("x", uid="ux", status=promised))
    log_cache(node_names, pod_uids, cache, queue)


def said(caplog: pytest.LogCaptureFixture, about: str) -> list[dict[str, object]]:
    """Return the fields of the lines whose message begins so."""
    return [
        getattr(record, FIELDS)
        for record in caplog.records
        if record.getMessage().startswith(about)
    ]


def test_equal_sides_have_no_mismatch(caplog: pytest.LogCaptureFixture) -> None:
    """Bound and pending pods are both compared."""
    with caplog.at_level(V3):
        logged(("gone", "n1"), ("ua", "ub", "ul", "uw", "ux"))
    messages = [record.getMessage() for record in caplog.records]
    assert ["Cache comparer started", "Cache comparer finished"] == messages[:2]
    assert [] == said(caplog, "Cache mismatch")


def test_mismatches_are_listed_by_side(caplog: pytest.LogCaptureFixture) -> None:
    """Nodes are listed by name, pods by uid."""
    with caplog.at_level(logging.INFO):
        logged(("n1", "n2"), ("ua", "ub", "new"))
    assert [
        {"missedNodes": ("n2",), "redundantNodes": ("gone",)},
        {"missedPods": ("new",), "redundantPods": ("ul", "uw", "ux")},
    ] == said(caplog, "Cache mismatch")


def test_the_dump_is_upstreams(caplog: pytest.LogCaptureFixture) -> None:
    """Each node with its sums and pods, and the queue in short and in full."""
    with caplog.at_level(logging.INFO):
        logged()
    nodes, queue = said(caplog, "Dump")
    assert {
        "nodes": (
            "Node name: n1\nDeleted: false\n"
            "Requested Resources: &{MilliCPU:1500 Memory:0 EphemeralStorage:0 AllowedPodNumber:0"
            " ScalarResources:map[example.com/gpu:1]}\n"
            "Allocatable Resources:&{MilliCPU:4000 Memory:8589934592 EphemeralStorage:1"
            " AllowedPodNumber:110 ScalarResources:map[example.com/gpu:2]}\n"
            "Scheduled Pods(number: 2):\n"
            "name: a, namespace: default, uid: ua, phase: Pending, nominated node: \n"
            "name: b, namespace: default, uid: ub, phase: Pending, nominated node: \n"
            "Nominated Pods(number: 1):\n"
            "name: x, namespace: default, uid: ux, phase: Pending, nominated node: n1\n"
            "\n\n"
            "Node name: gone\nDeleted: true\n"
            "Requested Resources: &{MilliCPU:1000 Memory:0 EphemeralStorage:0 AllowedPodNumber:0"
            " ScalarResources:map[]}\n"
            "Allocatable Resources:&{MilliCPU:0 Memory:0 EphemeralStorage:0 AllowedPodNumber:0"
            " ScalarResources:map[]}\n"
            "Scheduled Pods(number: 1):\n"
            "name: lost, namespace: default, uid: ul, phase: Pending, nominated node: \n"
        )
    } == nodes
    assert {
        "summary": "activeQ:2; backoffQ:0; unschedulablePods:0",
        "pods": (
            "name: w, namespace: default, uid: uw, phase: Pending, nominated node: \n"
            "name: x, namespace: default, uid: ux, phase: Pending, nominated node: \n"
        ),
    } == queue


def test_names_count(caplog: pytest.LogCaptureFixture) -> None:
    """A name that is more frequent on one side is listed that many times."""
    with caplog.at_level(logging.INFO):
        logged(("n1", "n1", "n1", "gone"), ("ua", "ub", "ul", "uw", "ux"))
    assert [{"missedNodes": ("n1", "n1"), "redundantNodes": ()}] == said(caplog, "Cache mismatch")
