"""Fields with two names, kept in step: clients of both times read what is meant.

Upstream: pkg/apis/{core,apps}/v1/conversion.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final

from kubesched.apiserver.plain import Plain

_OLD_ANNOTATIONS: Final = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{ending}"
    for stage in ("alpha", "beta")
    for ending in ("s", "-statuses")
)


def drop_old_annotations(pod: Plain) -> None:
    """Drop the annotations that init containers once were, in place."""
    metadata: Plain = pod["metadata"]
    annotations = metadata.get("annotations", {})
    if annotations.keys() & _OLD_ANNOTATIONS:
        kept = {name: one for name, one in annotations.items() if name not in _OLD_ANNOTATIONS}
        metadata.pop("annotations")
        if kept:
            metadata["annotations"] = kept


def _pod_spec(spec: Plain) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _pod_status(status: Plain) -> None:
    one, several = status.get("podIP"), status.get("podIPs")
    if one and (not several or several[0].get("ip") != one):
        status["podIPs"] = [{"ip": one}]
    elif several and several[0].get("ip"):
        status["podIP"] = several[0]["ip"]


def _node_spec(spec: Plain) -> None:
    one, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not several or several[0] != one):
        spec["podCIDRs"] = [one]
    elif several and several[0]:
        spec["podCIDR"] = several[0]


def _secret(secret: Plain) -> None:
    texts: Mapping[str, str] = secret.pop("stringData", {})
    if texts:
        added = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        secret["data"] = {**secret.get("data", {}), **added}


def _stateful_set_spec(spec: Plain) -> None:
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}


DEFAULTS: Final[Mapping[str, Callable[[Plain], None]]] = {
    "apps_v1/StatefulSetSpec": _stateful_set_spec,
    "core_v1/NodeSpec": _node_spec,
    "core_v1/PodSpec": _pod_spec,
    "core_v1/PodStatus": _pod_status,
    "core_v1/Secret": _secret,
}
