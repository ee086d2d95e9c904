"""TaintEviction deletes pods from nodes whose taints they do not bear, or not for longer.

Upstream: pkg/controller/tainteviction (v1.36)
Differs:  pods do not say in a condition why they are deleted.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.api.errors import NotFoundError
from kubesched.api.node import Taint
from kubesched.api.pod import Toleration
from kubesched.api.tolerations import NO_EXECUTE, tolerates
from kubesched.apiserver.controllers.following import Following
from kubesched.apiserver.controllers.work_queue import WorkQueue
from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.plain import Plain
from kubesched.cluster.store import Key

_FINISHED: Final = ("Succeeded", "Failed")


class TaintEviction(Following):
    """Follows nodes and pods."""

    def __init__(self, client: LocalClient) -> None:
        """Prepare; nothing happens before `start`."""
        self._client = client
        self._queue = WorkQueue(self._reconcile)
        self._by_node: dict[str, dict[Key, None]] = {}
        self._tainted: dict[str, tuple[Taint, ...]] = {}
        # Since when a pod is on a node with these taints, in seconds of the clock.
        self._since: dict[Key, tuple[tuple[Taint, ...], float]] = {}
        self._followers = (
            Follower(client.store, "nodes", self._node_changed),
            Follower(client.store, "pods", self._pod_changed),
        )

    def _node_changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        taints = _taints(after)
        if taints == self._tainted.get(key.name, ()):
            return
        if taints:
            self._tainted[key.name] = taints
        else:
            self._tainted.pop(key.name, None)
        for pod in self._by_node.get(key.name, ()):
            self._queue.add(pod)

    def _pod_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        was, name = _node_name(before), _node_name(after)
        if was and was != name:
            keys = self._by_node[was]
            del keys[key]
            if not keys:
                del self._by_node[was]
        if name:
            self._by_node.setdefault(name, {})[key] = None
            if name in self._tainted:
                self._queue.add(key)
        else:
            self._since.pop(key, None)

    def _reconcile(self, key: Key) -> None:
        pod = self._client.find(*key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            self._since.pop(key, None)
            return
        taints = self._tainted.get(_node_name(pod), ())
        seconds = _bearable_seconds(pod, taints)
        if seconds is None or pod.get("status", {}).get("phase") in _FINISHED:
            self._since.pop(key, None)
            return
        now = self._client.clock.now().timestamp()
        known, since = self._since.setdefault(key, (taints, now))
        if known != taints:
            self._since[key] = taints, since
        left = since + seconds - now
        if left > 0:
            self._queue.add_after(key, left)
            return
        self._since.pop(key, None)
        try:
            self._client.delete(key, pod["metadata"]["uid"])
        except NotFoundError:
            return


def _taints(node: Plain | None) -> tuple[Taint, ...]:
    """Return the taints of a node for which pods must go."""
    if node is None:
        return ()
    return tuple(
        Taint(key=one["key"], value=one.get("value", ""), effect=NO_EXECUTE)
        for one in node.get("spec", {}).get("taints", ())
        if one["effect"] == NO_EXECUTE
    )


def _node_name(pod: Plain | None) -> str:
    return "" if pod is None else str(pod["spec"].get("nodeName", ""))


def _bearable_seconds(pod: Plain, taints: tuple[Taint, ...]) -> float | None:
    """Return how long a pod bears taints; None for ever."""
    if not taints:
        return None
    tolerations = msgspec.convert(pod["spec"].get("tolerations", []), tuple[Toleration, ...])
    used: list[Toleration] = []
    for taint in taints:
        bearing = [one for one in tolerations if tolerates(one, taint)]
        if not bearing:
            return 0.0
        used += bearing
    limits = [one.toleration_seconds for one in used if one.toleration_seconds is not None]
    return max(float(min(limits)), 0.0) if limits else None
