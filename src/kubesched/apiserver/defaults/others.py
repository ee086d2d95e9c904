"""Defaults of the remaining groups that depend on other fields.

Upstream: pkg/apis/{networking,rbac,resource}/v1/defaults.go,
          staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.apiserver.plain import Plain

_RBAC: Final = "rbac.authorization.k8s.io"


def _network_policy_spec(spec: Plain) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _subject(subject: Plain) -> None:
    if not subject.get("apiGroup") and subject["kind"] in ("Group", "User"):
        subject["apiGroup"] = _RBAC


def _device_request(request: Plain) -> None:
    if (request.get("allocationMode") or "ExactCount") == "ExactCount":
        request["count"] = request.get("count") or 1


def _custom_resource(definition: Plain) -> None:
    spec, status = definition["spec"], definition["status"]
    names = spec["names"]
    if not names.get("singular"):
        names["singular"] = names["kind"].lower()
    if not names.get("listKind") and names["kind"]:
        names["listKind"] = f"{names['kind']}List"
    spec.setdefault("conversion", {"strategy": "None"})
    if not status.get("storedVersions"):
        stored = (one["name"] for one in spec["versions"] or () if one["storage"])
        status["storedVersions"] = list(stored)[:1] or None


DEFAULTS: Final[Mapping[str, Callable[[Plain], None]]] = {
    "apiextensions_v1/CustomResourceDefinition": _custom_resource,
    "networking_v1/NetworkPolicySpec": _network_policy_spec,
    "rbac_v1/Subject": _subject,
    "resource_v1/DeviceSubRequest": _device_request,
    "resource_v1/ExactDeviceRequest": _device_request,
}
