"""NodeKeeper makes every node ready, and sets the taints that follow from its state.

Upstream: pkg/controller/nodelifecycle (v1.36)
Differs:  a node without heartbeats stays ready; leases are written only on request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from kubesched.api.errors import ApiError
from kubesched.api.times import micro_time
from kubesched.cluster.node_template import looked_after
from kubesched.cluster.server import AnyKindServer, Plain
from kubesched.cluster.store import Key

_LEASES: Final = "leases.coordination.k8s.io"
_LEASE_NAMESPACE: Final = "kube-node-lease"
_LEASE_SECONDS: Final = 40
_RENEWAL_SECONDS: Final = 10.0


class NodeKeeper:
    """Keeps all nodes, whatever created them."""

    def __init__(
        self, server: AnyKindServer, capacity: Mapping[str, str], *, renews_leases: bool = False
    ) -> None:
        """Set up; nothing happens before `start`.

        Args:
            server: Where nodes are.
            capacity: Of nodes that have none.
            renews_leases: Whether nodes renew leases, as kubelets do.
        """
        self._server = server
        self._capacity = capacity
        self._renews_leases = renews_leases
        self._follower = server.follow("nodes", self._changed)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Take over the existing nodes, and watch nodes from now on."""
        self._follower.start()

    def stop(self) -> None:
        """Stop; stopping twice is fine."""
        self._follower.stop()
        for timer in self._timers.values():
            timer.cancel()

    def _changed(self, key: Key, before: Plain | None, _node: Plain | None) -> None:
        node = self._server.find(*key)
        if node is None:
            self._forget(key.name)
            return
        wanted = looked_after(node, self._capacity, self._server.timestamp())
        if wanted is not node:
            self._server.write(key, wanted)
        if self._renews_leases and key.name not in self._timers:
            self._renew(key.name)

    # Leases.

    def _forget(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _renew(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(_RENEWAL_SECONDS, self._renew, name)
        now = micro_time(datetime.fromtimestamp(self._server.now(), UTC))
        found = self._server.find(_LEASES, _LEASE_NAMESPACE, name)
        if found is not None:
            key = Key(_LEASES, _LEASE_NAMESPACE, name)
            self._server.write(key, {**found, "spec": {**found["spec"], "renewTime": now}})
            return
        node = self._server.find("nodes", "", name)
        if node is not None:
            self._create(node, now)

    def _create(self, node: Plain, now: str) -> None:
        metadata = node["metadata"]
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        lease: Plain = {
            "metadata": {
                "name": metadata["name"],
                "namespace": _LEASE_NAMESPACE,
                "ownerReferences": [owner],
            },
            "spec": {
                "holderIdentity": metadata["name"],
                "leaseDurationSeconds": _LEASE_SECONDS,
                "renewTime": now,
            },
        }
        try:
            self._server.create(_LEASES, lease)
        except ApiError:
            # The namespace may be terminating; the next renewal tries again.
            return
