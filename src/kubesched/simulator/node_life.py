"""NodeLife adds, removes, drains, breaks and relabels nodes, with what follows for their pods.

Upstream: pkg/controller/{nodelifecycle,tainteviction}, kubectl drain (v1.36)
Differs:  draining gives up when the node is uncordoned; pods on a failed node are deleted when
          their toleration ends, however many nodes fail at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Node, NodeCondition, Pod, Taint
from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.api.meta import controller_of
from kubesched.api.tolerations import tolerates
from kubesched.simulator.admission import UNREACHABLE
from kubesched.simulator.eviction_api import evict
from kubesched.simulator.kubelets import Disruption, Kubelets
from kubesched.simulator.latencies import Latencies
from kubesched.simulator.object_server import FINISHED, ObjectServer
from kubesched.simulator.timestamps import timestamp
from kubesched.snapshot.objects import KubernetesObject

log = logging.getLogger(__name__)

_UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_EVICTION_RETRY_SECONDS: Final = 5.0
"""How long a drain waits after a disruption budget said no."""
_LOST: Final = (
    Taint(key=UNREACHABLE, effect="NoSchedule"),
    Taint(key=UNREACHABLE, effect="NoExecute"),
)


class NodeLife:
    """Does things to nodes; is told of pods.

    Attributes:
        refused_evictions: How often a disruption budget kept a drain waiting.
    """

    def __init__(self, server: ObjectServer, kubelets: Kubelets, latencies: Latencies) -> None:
        self._server = server
        self._kubelets = kubelets
        self._latencies = latencies
        self._detections: dict[str, asyncio.TimerHandle] = {}
        self._recoveries: dict[str, asyncio.TimerHandle] = {}
        self._lost_since: dict[str, float] = {}
        self._evictions: dict[str, asyncio.TimerHandle] = {}
        self._drains: dict[str, asyncio.TimerHandle] = {}
        self.refused_evictions = 0

    # What may be done to nodes. A node that is not there is left alone.

    def add(self, node: Node) -> None:
        """Let a node join, ready.

        Raises:
            AlreadyExistsError: There is one of that name.
        """
        self._server.create(_with_ready(node, "True", self._now()))
        self._kubelets.look_again(node.metadata.name)

    def remove(self, name: str) -> None:
        """Take a node away; its pods are collected some time later."""
        node = self._server.node(name)
        if node is None:
            return
        self._forget_failure(name)
        self._server.delete(node)
        self._kubelets.speak_again(name)
        self._kubelets.look_again(name)

    def cordon(self, name: str) -> None:
        """Let no further pod be placed on a node."""
        node = self._server.node(name)
        if node is not None and not node.spec.unschedulable:
            taints = (*_without(node.spec.taints, _UNSCHEDULABLE), _UNSCHEDULABLE)
            spec = replace(node.spec, unschedulable=True, taints=taints)
            self._server.update(replace(node, spec=spec))

    def uncordon(self, name: str) -> None:
        """Let pods be placed on a node again."""
        node = self._server.node(name)
        if node is not None and node.spec.unschedulable:
            taints = _without(node.spec.taints, _UNSCHEDULABLE)
            spec = replace(node.spec, unschedulable=False, taints=taints)
            self._server.update(replace(node, spec=spec))

    def drain(self, name: str, *, evicts: bool = True) -> None:
        """Cordon a node and make its pods go, except those of daemon sets.

        Args:
            name: The node.
            evicts: Whether disruption budgets are asked, again and again until all pods are gone
                or the node is uncordoned; otherwise pods are deleted.
        """
        self.cordon(name)
        for pod in self._kubelets.pods_on(name):
            owner = controller_of(pod.metadata)
            if owner is not None and owner.kind == "DaemonSet":
                continue
            if not evicts:
                self._delete(pod, Disruption.DRAINED)
            elif pod.metadata.uid not in self._drains:
                self._drain_pod(pod)

    def _drain_pod(self, pod: Pod) -> None:
        self._drains.pop(pod.metadata.uid, None)
        node = self._server.node(pod.spec.node_name)
        if node is None or not node.spec.unschedulable:
            return
        going_on = self._going_on(pod)
        try:
            evict(self._server, pod, self._now())
        except TooManyRequestsError:
            self.refused_evictions += 1
            loop = asyncio.get_running_loop()
            retry = loop.call_later(_EVICTION_RETRY_SECONDS, self._drain_pod, pod)
            self._drains[pod.metadata.uid] = retry
        except ApiError as error:
            log.info("Pod %s was not evicted: %s", pod.metadata.name, error)
        else:
            if going_on is not None:
                self._kubelets.on_disrupted(going_on, Disruption.DRAINED)

    def fail(self, name: str, recovery_seconds: float | None = None) -> None:
        """Let a node fall silent, and come back after some time if that is given.

        A node that has failed already stays silent as the last call says.
        """
        if self._server.node(name) is None:
            return
        _cancel(self._recoveries, name)
        self._kubelets.fall_silent(name)
        loop = asyncio.get_running_loop()
        if name not in self._detections and name not in self._lost_since:
            seconds = self._latencies.node_failure_detection
            self._detections[name] = loop.call_later(seconds, self._detect, name)
        if recovery_seconds is not None:
            self._recoveries[name] = loop.call_later(recovery_seconds, self.recover, name)

    def recover(self, name: str) -> None:
        """Let a node that failed come back."""
        node = self._server.node(name)
        was_lost = self._forget_failure(name)
        if node is not None and was_lost:
            taints = _without(node.spec.taints, *_LOST)
            healthy = replace(node, spec=replace(node.spec, taints=taints))
            self._server.update(_with_ready(healthy, "True", self._now()))
        self._kubelets.speak_again(name)

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

    # What follows from a failure.

    def _detect(self, name: str) -> None:
        del self._detections[name]
        node = self._server.node(name)
        if node is None:
            return
        self._lost_since[name] = self._now()
        taints = (*_without(node.spec.taints, *_LOST), *_LOST)
        lost = replace(node, spec=replace(node.spec, taints=taints))
        self._server.update(_with_ready(lost, "Unknown", self._now()))
        for pod in self._kubelets.pods_on(name):
            self._evict_in_time(pod)

    def _forget_failure(self, name: str) -> bool:
        """Return whether the failure had been detected."""
        _cancel(self._recoveries, name)
        _cancel(self._detections, name)
        for pod in self._kubelets.pods_on(name):
            _cancel(self._evictions, pod.metadata.uid)
        return self._lost_since.pop(name, None) is not None

    def added(self, item: KubernetesObject) -> None:
        """A pod that is bound to a lost node does not stay there either."""
        if isinstance(item, Pod) and item.spec.node_name in self._lost_since:
            self._evict_in_time(item)

    def updated(self, old: KubernetesObject, new: KubernetesObject) -> None:
        """A pod may have been bound to a lost node."""
        self.added(new)

    def deleted(self, item: KubernetesObject, *, is_final_state_known: bool = True) -> None:
        """Forget a pod."""
        _cancel(self._evictions, item.metadata.uid)
        _cancel(self._drains, item.metadata.uid)

    def _evict_in_time(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if uid in self._evictions or pod.metadata.deletion_timestamp:
            return
        tolerated_seconds = _tolerated_seconds(pod)
        if tolerated_seconds is not None:
            at = self._lost_since[pod.spec.node_name] + tolerated_seconds
            loop = asyncio.get_running_loop()
            self._evictions[uid] = loop.call_at(max(at, loop.time()), self._evict, pod)

    def _evict(self, pod: Pod) -> None:
        del self._evictions[pod.metadata.uid]
        self._delete(pod, Disruption.EVICTED)

    def _delete(self, pod: Pod, disruption: Disruption) -> None:
        there = self._going_on(pod)
        if there is not None:
            self._kubelets.on_disrupted(there, disruption)
            metadata = there.metadata
            self._server.delete_pod(metadata.namespace, metadata.name, metadata.uid)

    def _going_on(self, pod: Pod) -> Pod | None:
        """Return a pod as it is now; None if it is gone, has ended or is being deleted."""
        metadata = pod.metadata
        there = self._server.pod(metadata.namespace, metadata.name, metadata.uid)
        if there is None or there.status.phase in FINISHED or there.metadata.deletion_timestamp:
            return None
        return there

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _cancel(timers: dict[str, asyncio.TimerHandle], key: str) -> None:
    timer = timers.pop(key, None)
    if timer is not None:
        timer.cancel()


def _tolerated_seconds(pod: Pod) -> float | None:
    """Return how long a pod bears an unreachable node, None for ever."""
    bearing = [toleration for toleration in pod.spec.tolerations if tolerates(toleration, _LOST[1])]
    if not bearing:
        return 0.0
    limits = [
        toleration.toleration_seconds
        for toleration in bearing
        if toleration.toleration_seconds is not None
    ]
    return max(min(limits), 0.0) if limits else None


def _without(taints: tuple[Taint, ...], *removed: Taint) -> tuple[Taint, ...]:
    gone = {(taint.key, taint.effect) for taint in removed}
    return tuple(taint for taint in taints if (taint.key, taint.effect) not in gone)


def _with_ready(node: Node, status: str, now: float) -> Node:
    others = tuple(known for known in node.status.conditions if known.type != "Ready")
    ready = NodeCondition(type="Ready", status=status, last_transition_time=timestamp(now))
    return replace(node, status=replace(node.status, conditions=(*others, ready)))
