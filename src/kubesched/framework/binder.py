"""Binder is how a bind plugin reaches the API; a handle with an API behind it offers one.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, Handle.ClientSet (v1.36)
Differs:  the plugin sees only the one call it makes.
"""

from __future__ import annotations

from typing import Protocol

from kubesched.api.core import Pod
from kubesched.framework.status import Status, failure


class Binder(Protocol):
    """Writes bindings."""

    async def bind(self, pod: Pod, node_name: str) -> Status:
        """Create the pod's Binding to the node; a failure carries the API server's words."""
        ...


class NoBinder:
    """Binds nothing: there is no API."""

    async def bind(self, pod: Pod, node_name: str) -> Status:
        """Fail."""
        return failure("there is no API to bind through")


def binder_of(handle: object) -> Binder | None:
    """Return what a handle binds through; None if it has no `binder`."""
    # Asked for every pod, where an isinstance with a protocol costs more than the binding.
    found: Binder | None = getattr(handle, "binder", None)
    return found
