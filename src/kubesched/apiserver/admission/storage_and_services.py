"""Admission of claims, volumes and services.

Claims get the default class; claims and volumes in use are protected by a finalizer. Admin access
to devices needs a label of the namespace. Services get an address and node ports that no other
service has.

Upstream: plugin/pkg/admission/storage, pkg/registry/core/service/storage/alloc.go,
          pkg/registry/resource/utils.go (v1.36)
Differs:  claims whose class is named by the old annotation do not grow; no annotation of a beta
          marks a default class; nothing protects a VolumeAttributesClass in use. Addresses of
          services are IPv4 and of one range; the first that is free is taken, not a random one.
          Addresses and ports that a service asks for are not checked. A service whose type has no
          node ports or addresses loses them. Health checks of services are not served.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from itertools import islice
from typing import Final

from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.admission.request import AdmissionRequest
from kubesched.apiserver.plain import Plain, get, without
from kubesched.apiserver.status import FieldErrors, invalid_kind
from kubesched.cluster.controllers.claims import with_default_class

_CLASSES: Final = "storageclasses.storage.k8s.io"
_FINALIZERS: Final[Mapping[str, str]] = {
    "PersistentVolume": "kubernetes.io/pv-protection",
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
}


def protect(request: AdmissionRequest, obj: Plain) -> Plain:
    """Return a new claim or volume with the finalizer that protects it while it is used."""
    finalizer, metadata = _FINALIZERS[request.resource.built_in_kind], obj["metadata"]
    finalizers = metadata.get("finalizers") or []
    if finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**metadata, "finalizers": [*finalizers, finalizer]}}


def add_default_class(request: AdmissionRequest, claim: Plain) -> Plain:
    """Return a claim that names no class with the default one."""
    return with_default_class(claim, request.lookup.items(_CLASSES))


def check_growth(request: AdmissionRequest, claim: Plain) -> None:
    """Raise StatusError if a claim grows that cannot."""
    before = request.old or {}
    new, old = (
        parse_quantity(get(one, "spec", "resources", "requests", "storage") or "0")
        for one in (claim, before)
    )
    if new.compare(old) <= 0:
        return
    if get(before, "status", "phase") != "Bound":
        raise request.refusal(claim, "Only bound persistent volume claims can be expanded")
    name, earlier = (one["spec"].get("storageClassName") or "" for one in (claim, before))
    found = request.lookup.get(_CLASSES, "", name)
    if name != earlier or found is None or not found.get("allowVolumeExpansion"):
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions "
            "the pvc must support resize"
        )
        raise request.refusal(claim, why)


_ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"


def check_admin_access(request: AdmissionRequest, claim: Plain) -> None:
    """Raise StatusError for a ResourceClaim, or its template, whose admin access is not allowed."""
    metadata, kind = claim["metadata"], request.resource.built_in_kind
    namespace = request.lookup.get("namespaces", "", metadata["namespace"]) or {}
    spec = claim["spec"]["spec"] if kind == "ResourceClaimTemplate" else claim["spec"]
    asked = [
        bool(get(one, "exactly", "adminAccess")) for one in get(spec, "devices", "requests") or ()
    ]
    if any(asked) and get(namespace, "metadata", "labels", _ADMIN_LABEL) != "true":
        errors = FieldErrors()
        errors.forbidden(
            f"spec.devices.requests[{asked.index(True)}].adminAccess",
            f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing "
            "namespace",
        )
        raise invalid_kind(request.resource.group, kind, metadata.get("name", ""), errors)


# Services.

# The first address belongs to the API server's own service.
_RANGE: Final = IPv4Network("10.0.0.0/16")
_NODE_PORTS: Final = range(30_000, 32_768)


def add_addresses(request: AdmissionRequest, service: Plain) -> Plain:
    """Return the service with addresses and ports: as given, as before, or the first free ones."""
    before: Plain = (request.old or {}).get("spec", {})
    spec = {**service["spec"]}
    others = [one["spec"] for one in request.lookup.items("services") if one["spec"] != before]
    if spec.get("type") == "ExternalName":
        spec = without(spec, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    else:
        spec |= _addresses(spec, before, others)
    if spec.get("ports"):
        spec["ports"] = _ports(spec, before, others)
    return {**service, "spec": spec}


def _addresses(spec: Plain, before: Plain, others: list[Plain]) -> Plain:
    address = spec.get("clusterIP") or before.get("clusterIP")
    if not address:
        taken = {one.get("clusterIP") for one in others}
        hosts = map(str, islice(_RANGE.hosts(), 1, None))
        address = next(host for host in hosts if host not in taken)
    return {
        "clusterIP": address,
        "clusterIPs": spec.get("clusterIPs") or [address],
        "ipFamilyPolicy": spec.get("ipFamilyPolicy", "SingleStack"),
        "ipFamilies": spec.get("ipFamilies", ["IPv4"]),
    }


def _ports(spec: Plain, before: Plain, others: list[Plain]) -> list[Plain]:
    """Return a service's ports with node ports, if its type has any."""
    ports: list[Plain] = spec["ports"]
    if spec.get("type") not in ("LoadBalancer", "NodePort"):
        return [without(port, "nodePort") for port in ports]
    if spec.get("allocateLoadBalancerNodePorts") is False:
        return ports
    services = (spec, before, *others)
    taken = {port.get("nodePort") for one in services for port in one.get("ports") or ()}
    free = (number for number in _NODE_PORTS if number not in taken)
    asked = {port.get("nodePort") for port in ports}
    kept = {
        (port["port"], port["protocol"]): number
        for port in before.get("ports") or ()
        if (number := port.get("nodePort")) not in asked
    }
    numbered = []
    for port in ports:
        number = port.get("nodePort") or kept.get((port["port"], port["protocol"])) or next(free)
        numbered.append({**port, "nodePort": number})
    return numbered
