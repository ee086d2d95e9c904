"""What pods get from the cluster: tolerations of failing nodes, labels of the node's place.

Upstream: plugin/pkg/admission/{defaulttolerationseconds,podtopologylabels}/admission.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest, Lookup
from kubesched.apiserver.plain import Plain

_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS: Final = 300
_TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_NO_EXECUTE: Final = "NoExecute"


def add_default_tolerations(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod with tolerations of nodes that fail, unless it has its own."""
    if not request.is_for("Pod", CREATE, UPDATE):
        return pod
    tolerations = pod["spec"].get("tolerations") or []
    missing = [
        {
            "key": key,
            "operator": "Exists",
            "effect": _NO_EXECUTE,
            "tolerationSeconds": _TOLERATED_SECONDS,
        }
        for key in _TOLERATED
        if not any(_is_about(toleration, key) for toleration in tolerations)
    ]
    if not missing:
        return pod
    return {**pod, "spec": {**pod["spec"], "tolerations": [*tolerations, *missing]}}


def _is_about(toleration: Plain, key: str) -> bool:
    # Operator and value do not count, as upstream has it.
    return (toleration.get("key") or key) == key and (
        toleration.get("effect") or _NO_EXECUTE
    ) == _NO_EXECUTE


def add_topology_labels(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return a pod that has a node with the labels of the node's place."""
    if not request.is_for("Pod", CREATE, UPDATE) or not pod["spec"].get("nodeName"):
        return pod
    labels = topology_labels(pod["spec"]["nodeName"], request.lookup)
    if not labels:
        return pod
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


def topology_labels(node_name: str, lookup: Lookup) -> dict[str, str]:
    """Return the labels that pods take over from a node; none if there is no such node."""
    node = lookup.get("nodes", "", node_name)
    labels = {} if node is None else node["metadata"].get("labels", {})
    return {name: labels[name] for name in _TOPOLOGY_LABELS if name in labels}
