"""Defaults of the remaining groups that depend on other fields.

Upstream: pkg/apis/{networking,rbac,resource}/v1/defaults.go (v1.36)
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


DEFAULTS: Final[Mapping[str, Callable[[Plain], None]]] = {
    "networking_v1/NetworkPolicySpec": _network_policy_spec,
    "rbac_v1/Subject": _subject,
    "resource_v1/DeviceSubRequest": _device_request,
    "resource_v1/ExactDeviceRequest": _device_request,
}
