"""NodeLife adds, removes, drains, breaks and relabels nodes.

Upstream: pkg/registry/core/pod/storage/eviction.go, pkg/controller/nodelifecycle, kubectl drain
          (v1.36)
Rejects:  evictions that a budget does not allow (429), and pods with several budgets (500).
Differs:  there are no causes beside the message, no dry runs and no preconditions. Draining stops
          when the node is uncordoned; pods on a failed node are deleted when their toleration ends,
          however many nodes fail at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final

from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch, conditions_with, find_condition
from kubesched.api.core import FINISHED, Node, NodeCondition, Pod
from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.eviction import grant, stays_in_drain
from kubesched.cluster.kubelets import Kubelets
from kubesched.cluster.nodes import with_state_taints
from kubesched.simulator.object_server import ObjectServer, with_condition

_EVICTED: Final = ConditionPatch(
    "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting"
)


def evict(server: ObjectServer, pod: Pod) -> None:
    """Delete a pod, gracefully, if its disruption budget allows.

    Raises:
        NotFoundError: The pod is gone.
        ConflictError: There is another pod of that name.
        TooManyRequestsError: The budget does not allow it now.
        ApiError: There is more than one budget, or its status cannot be used.
    """
    metadata = pod.metadata
    found = server.pod(metadata.namespace, metadata.name, metadata.uid)
    if found is not None:
        charged = grant(found, server.all(PodDisruptionBudget), server.timestamp())
        if charged is not None:
            server.update(charged)
        if not found.metadata.deletion_timestamp:
            server.update(with_condition(found, _EVICTED, server.now()))
    server.delete_pod(metadata.namespace, metadata.name, metadata.uid)


# Nodes and their pods.

log = logging.getLogger(__name__)

_EVICTION_RETRY_SECONDS: Final = 5.0
"""How long a drain waits after a disruption budget refused an eviction."""


class Disruption(Enum):
    """Why a pod was stopped before its end."""

    PREEMPTED = "preempted"
    DRAINED = "drained"  # its node was drained
    EVICTED = "evicted"  # its node failed, and its toleration ended
    REMOVED = "removed"  # its node was removed
    RESTARTED = "restarted"  # its node failed and came back: it starts over there


class NodeLife:
    """Adds, removes, drains, fails and relabels nodes.

    Attributes:
        refused_evictions: Number of evictions that a disruption budget refused during drains.
        on_disrupted: Called with each pod that is stopped because of its node, and the reason.
    """

    def __init__(self, server: ObjectServer, kubelets: Kubelets, detection_seconds: float) -> None:
        """Set up; a failed node gets its taints after `detection_seconds`."""
        self._server = server
        self._kubelets = kubelets
        self._detection_seconds = detection_seconds
        self._detections: dict[str, asyncio.TimerHandle] = {}
        self._recoveries: dict[str, asyncio.TimerHandle] = {}
        self._drains: dict[str, asyncio.TimerHandle] = {}
        self.refused_evictions = 0
        self.on_disrupted: Callable[[Pod, Disruption], None] = lambda _pod, _disruption: None

    # Changes of nodes; for a node that does not exist, nothing happens.

    def add(self, node: Node) -> None:
        """Add a node, ready; raises AlreadyExistsError if there is one of that name."""
        self._server.create(_with_ready(node, "True", self._server.timestamp()))
        self._kubelets.node_up(node.metadata.name)

    def remove(self, name: str) -> None:
        """Remove a node; its pods are garbage collected later."""
        node = self._server.node(name)
        if node is None:
            return
        self._forget_failure(name)
        self._server.delete(node)
        self._kubelets.node_down(name)

    def cordon(self, name: str, *, on: bool = True) -> None:
        """Mark a node unschedulable, or schedulable again."""
        node = self._server.node(name)
        if node is not None and node.spec.unschedulable != on:
            spec = replace(node.spec, unschedulable=on)
            self._server.update(with_state_taints(replace(node, spec=spec)))

    def drain(self, name: str, *, evicts: bool = True) -> None:
        """Cordon a node and remove its pods, except those that belong to it.

        With `evicts`, pods are evicted as disruption budgets allow, with retries until all are gone
        or the node is uncordoned; otherwise they are deleted.
        """
        self.cordon(name)
        for pod in self._kubelets.pods_on(name):
            if stays_in_drain(pod):
                continue
            if not evicts:
                self._delete(pod)
            elif pod.metadata.uid not in self._drains:
                self._drain_pod(pod)

    def _drain_pod(self, pod: Pod) -> None:
        self._drains.pop(pod.metadata.uid, None)
        node = self._server.node(pod.spec.node_name)
        if node is None or not node.spec.unschedulable:
            return
        going_on = self._going_on(pod)
        if going_on is None:
            return
        try:
            evict(self._server, pod)
        except TooManyRequestsError:
            self.refused_evictions += 1
            loop = asyncio.get_running_loop()
            retry = loop.call_later(_EVICTION_RETRY_SECONDS, self._drain_pod, pod)
            self._drains[pod.metadata.uid] = retry
        except ApiError as error:
            log.info("Pod %s was not evicted: %s", pod.metadata.name, error)
        else:
            self.on_disrupted(going_on, Disruption.DRAINED)

    def fail(self, name: str, recovery_seconds: float | None = None) -> None:
        """Make a node fail, and recover after a time if one is given.

        A second call replaces the time of recovery.
        """
        node = self._server.node(name)
        if node is None:
            return
        _cancel(self._recoveries, name)
        self._kubelets.node_down(name)
        loop = asyncio.get_running_loop()
        if name not in self._detections and not is_unreachable(node):
            seconds = self._detection_seconds
            self._detections[name] = loop.call_later(seconds, self._detect, name)
        if recovery_seconds is not None:
            self._recoveries[name] = loop.call_later(recovery_seconds, self.recover, name)

    def recover(self, name: str) -> None:
        """Make a failed node recover."""
        node = self._server.node(name)
        self._forget_failure(name)
        if node is None or self._kubelets.is_up(name):
            return
        if is_unreachable(node):
            self._report(node, "True")
        for pod in self._kubelets.pods_on(name):
            if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp:
                self.on_disrupted(pod, Disruption.RESTARTED)
        self._kubelets.node_up(name)

    def relabel(self, name: str, changed: Mapping[str, str], removed: Iterable[str] = ()) -> None:
        """Set and remove labels of a node."""
        node = self._server.node(name)
        if node is None:
            return
        labels = {**node.metadata.labels, **changed}
        for key in removed:
            labels.pop(key, None)
        if labels != node.metadata.labels:
            self._server.update(replace(node, metadata=replace(node.metadata, labels=labels)))

    # Consequences of a failure.

    def _detect(self, name: str) -> None:
        del self._detections[name]
        node = self._server.node(name)
        if node is not None:
            self._report(node, "Unknown")

    def _report(self, node: Node, ready: str) -> None:
        """Set a node's Ready condition, and the taints that follow from it."""
        reported = _with_ready(node, ready, self._server.timestamp())
        self._server.update(with_state_taints(reported))

    def _forget_failure(self, name: str) -> None:
        _cancel(self._recoveries, name)
        _cancel(self._detections, name)

    def _delete(self, pod: Pod) -> None:
        there = self._going_on(pod)
        if there is not None:
            self.on_disrupted(there, Disruption.DRAINED)
            metadata = there.metadata
            self._server.delete_pod(metadata.namespace, metadata.name, metadata.uid)

    def _going_on(self, pod: Pod) -> Pod | None:
        """Return a pod as it is now; None if it is gone, has ended or is being deleted."""
        metadata = pod.metadata
        there = self._server.pod(metadata.namespace, metadata.name, metadata.uid)
        if there is None or there.status.phase in FINISHED or there.metadata.deletion_timestamp:
            return None
        return there


def _cancel(timers: dict[str, asyncio.TimerHandle], key: str) -> None:
    timer = timers.pop(key, None)
    if timer is not None:
        timer.cancel()


def is_unreachable(node: Node) -> bool:
    """Whether the failure of a node has been detected."""
    ready = find_condition(node.status.conditions, "Ready")
    return ready is not None and ready.status == "Unknown"


def _with_ready(node: Node, status: str, now: str) -> Node:
    ready = NodeCondition(type="Ready", status=status, last_transition_time=now)
    return replace(
        node, status=replace(node.status, conditions=conditions_with(node.status.conditions, ready))
    )
