"""New nodes are not ready: no pod goes there before somebody says that they are.

Upstream: plugin/pkg/admission/nodetaint/admission.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.admission.request import CREATE, AdmissionRequest
from kubesched.apiserver.plain import Plain

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def admit(request: AdmissionRequest, node: Plain) -> Plain:
    """Return a new node with the taint of one that is not ready."""
    if not request.is_for("Node", CREATE):
        return node
    taints = node["spec"].get("taints") or []
    if any((one.get("key"), one.get("effect")) == tuple(_NOT_READY.values()) for one in taints):
        return node
    return {**node, "spec": {**node["spec"], "taints": [*taints, dict(_NOT_READY)]}}
