"""Completes new objects as the API server does, where the `ObjectServer` does not.

The scheduler's own decisions do not depend on any of it; the objects that it hands on do.

Upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/helper/qos,
          plugin/pkg/admission/storage/storageobjectinuseprotection (v1.36)
"""

from __future__ import annotations

from typing import Final

from .requests_on_objects import Plain

_QUALITY: Final = ("cpu", "memory")


def completed(kind: str, item: Plain) -> Plain:
    """Return a new object with what the API server adds."""
    match kind:
        case "Pod":
            return _pod(item)
        case "PersistentVolume":
            spec: Plain = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}
            if "hostPath" in item["spec"]:
                spec["hostPath"] = {"type": "", **item["spec"]["hostPath"]}
            return _storage(item, spec, "kubernetes.io/pv-protection")
        case "PersistentVolumeClaim":
            return _storage(item, {"volumeMode": "Filesystem"}, "kubernetes.io/pvc-protection")
    return item


def _storage(item: Plain, spec: Plain, finalizer: str) -> Plain:
    """None of the recorded objects says of itself what is added here."""
    return {
        **item,
        "metadata": {**item["metadata"], "finalizers": [finalizer]},
        "spec": {**item["spec"], **spec},
        "status": {"phase": "Pending"},
    }


def _pod(item: Plain) -> Plain:
    spec = item["spec"]
    containers = [_container(each) for each in spec["containers"]]
    return {
        **item,
        "spec": {**spec, "containers": containers},
        "status": {"qosClass": _quality(containers)},
    }


def _container(item: Plain) -> Plain:
    completed = {"imagePullPolicy": "IfNotPresent", **item}
    if "ports" in item:
        completed["ports"] = [{"protocol": "TCP", **port} for port in item["ports"]]
    return completed


def _quality(containers: list[Plain]) -> str:
    amounts = [each.get("resources", {}) for each in containers]
    named = [set(each.get("requests", {})) | set(each.get("limits", {})) for each in amounts]
    if not any(names.intersection(_QUALITY) for names in named):
        return "BestEffort"
    limits = [{name: each.get("limits", {}).get(name) for name in _QUALITY} for each in amounts]
    requests = [
        {**limit, **each.get("requests", {})} for each, limit in zip(amounts, limits, strict=True)
    ]
    same = all(
        limit[name] is not None and limit[name] == request[name]
        for limit, request in zip(limits, requests, strict=True)
        for name in _QUALITY
    )
    return "Guaranteed" if same else "Burstable"
