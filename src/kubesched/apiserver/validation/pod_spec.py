"""Specifications of pods, as pods and their templates have them.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodSpec, v1.36)
Differs:  annotations that security profiles were in are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.api.label_format import label_key_errors
from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from kubesched.apiserver.ip_addresses import address_faults
from kubesched.apiserver.names import NameRule, between, dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.affinity import affinity_faults
from kubesched.apiserver.validation.containers import (
    Surroundings,
    container_faults,
    ephemeral_container_faults,
    init_container_faults,
)
from kubesched.apiserver.validation.dns_config import dns_config_faults
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.labels import label_faults
from kubesched.apiserver.validation.pod_resources import pod_level_resource_faults
from kubesched.apiserver.validation.resources import overhead_faults
from kubesched.apiserver.validation.security_contexts import pod_security_context_faults
from kubesched.apiserver.validation.spread_constraints import spread_constraint_faults
from kubesched.apiserver.validation.tolerations import toleration_faults
from kubesched.apiserver.validation.volumes import checked_volumes
from kubesched.apiserver.validation.windows import host_process_faults, system_faults

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_SYSTEMS: Final = ("linux", "windows")
_SECONDS_MAX: Final = 2**31 - 1
_HOST_NAME_MAX: Final = 64
_MIRROR: Final = "kubernetes.io/config.mirror"
_CLAIM_NAMES: Final = ("resourceClaimName", "resourceClaimTemplateName")


def pod_spec_faults(
    spec: Plain, metadata: Plain | None, path: str, *, is_pod: bool
) -> Iterator[FieldFault]:
    """Yield what is wrong with the specification of a pod.

    Args:
        spec: The specification.
        metadata: Of the pod; None for a template.
        path: Of the specification.
        is_pod: Whether it belongs to a pod and not to a template.
    """
    pod_name = (metadata or {}).get("name", "")
    volumes = checked_volumes(spec.get("volumes") or (), pod_name, f"{path}.volumes")
    claims = spec.get("resourceClaims") or ()
    names = {claim["name"] for claim in claims if claim["name"]}
    around = Surroundings(
        volumes.sound,
        names,
        spec.get("terminationGracePeriodSeconds"),
        spec.get("restartPolicy", ""),
        None if spec.get("os") is None else spec["os"]["name"],
        spec.get("hostUsers") is not False,
    )
    yield from volumes.faults
    if claims:
        yield from _claim_faults(claims, metadata, f"{path}.resourceClaims")
    yield from _container_faults(spec, around, path)
    yield from pod_level_resource_faults(spec, names, path)
    if spec.get("hostNetwork"):
        yield from _host_network_faults(spec, path, is_pod=is_pod)
    yield from _word_faults(
        spec.get("restartPolicy", ""), _RESTART_POLICIES, f"{path}.restartPolicy"
    )
    yield from _word_faults(spec.get("dnsPolicy", ""), _DNS_POLICIES, f"{path}.dnsPolicy")
    yield from label_faults(spec.get("nodeSelector"), f"{path}.nodeSelector")
    if spec.get("securityContext") is not None:
        yield from pod_security_context_faults(
            spec["securityContext"], spec, f"{path}.securityContext"
        )
    yield from _placement_faults(spec, path)
    yield from host_process_faults(spec, path)
    if spec.get("hostUsers") is False:
        yield from _own_user_faults(spec, path)
    yield from _host_name_faults(spec, path)
    yield from _name_faults(spec, path)
    yield from _option_faults(spec, path)


def _container_faults(spec: Plain, around: Surroundings, path: str) -> Iterator[FieldFault]:
    containers = spec.get("containers") or ()
    yield from container_faults(containers, around, f"{path}.containers")
    init = spec.get("initContainers") or ()
    if init:
        yield from init_container_faults(init, containers, around, f"{path}.initContainers")
    ephemeral = spec.get("ephemeralContainers") or ()
    if ephemeral:
        others = (*containers, *init)
        own_path = f"{path}.ephemeralContainers"
        yield from ephemeral_container_faults(ephemeral, others, around, own_path)


def _claim_faults(
    claims: Sequence[Plain], metadata: Plain | None, path: str
) -> Iterator[FieldFault]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        if _MIRROR in (metadata or {}).get("annotations", {}):
            yield forbidden("", "static pods do not support resource claims")
            continue
        own_path, name = f"{path}[{index}]", claim["name"]
        if not name:
            yield required(f"{own_path}.name")
        elif name in seen:
            yield duplicate(f"{own_path}.name", name)
        else:
            yield from each(f"{own_path}.name", name, dns_label(name))
            seen.add(name)
        given = [field for field in _CLAIM_NAMES if claim.get(field) is not None]
        if len(given) != 1:
            shown = internal_form("core/PodResourceClaim", claim)
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
                if given
                else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            )
            yield invalid(own_path, shown, detail)
        for field in given:
            yield from each(f"{own_path}.{field}", claim[field], dns_subdomain(claim[field]))


def _host_network_faults(spec: Plain, path: str, *, is_pod: bool) -> Iterator[FieldFault]:
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            if (is_pod or host_port) and host_port != port["containerPort"]:
                field = f"{path}.containers[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(field, host_port, detail)


def _word_faults(word: str, words: Sequence[str], path: str) -> Iterator[FieldFault]:
    if not word:
        yield required(path)
    elif word not in words:
        yield not_supported(path, word, words)


def _placement_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with where the pod may go, and when."""
    if spec.get("affinity") is not None:
        yield from affinity_faults(spec["affinity"], f"{path}.affinity")
    yield from dns_config_faults(
        spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{path}.dnsConfig"
    )
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        name = gate["conditionType"]
        field = f"{path}.readinessGates[{index}].conditionType"
        yield from each(field, name, label_key_errors(name))
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        field, name = f"{path}.schedulingGates[{index}]", gate["name"]
        yield from each(field, name, label_key_errors(name))
        if name in seen:
            yield duplicate(field, name)
        seen.add(name)
    yield from spread_constraint_faults(
        spec.get("topologySpreadConstraints") or (), f"{path}.topologySpreadConstraints"
    )


def _own_user_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    detail = "when `hostUsers` is false"
    for name, shown in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(name):
            yield forbidden(f"{path}.{shown}", detail)
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            if container.get("volumeDevices"):
                yield forbidden(f"{path}.{kind}[{index}].volumeDevices", detail)


def _host_name_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    field = f"{path}.hostnameOverride"
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other):
            yield forbidden(field, f"may not be specified when {other} is true")
    if len(name.encode()) > _HOST_NAME_MAX:
        yield too_long(field, _HOST_NAME_MAX)
    yield from each(field, name, dns_subdomain(name))


def _name_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    yield from _named(spec, "serviceAccountName", dns_subdomain, path)
    yield from _named(spec, "nodeName", dns_subdomain, path)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _SECONDS_MAX:
        yield invalid(f"{path}.activeDeadlineSeconds", seconds, between(1, _SECONDS_MAX))
    yield from _named(spec, "hostname", dns_label, path)
    yield from _named(spec, "subdomain", dns_label, path)


def _named(spec: Plain, name: str, rule: NameRule, path: str) -> Iterator[FieldFault]:
    value = spec.get(name)
    if value:
        yield from each(f"{path}.{name}", value, rule(value))


def _option_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    if spec.get("tolerations"):
        yield from toleration_faults(spec["tolerations"], f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        own_path = f"{path}.hostAliases[{index}]"
        yield from address_faults(alias["ip"], f"{own_path}.ip")
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from each(f"{own_path}.hostnames[{number}]", name, dns_subdomain(name))
    yield from _named(spec, "priorityClassName", dns_subdomain, path)
    if spec.get("runtimeClassName") is not None:
        name = spec["runtimeClassName"]
        yield from each(f"{path}.runtimeClassName", name, dns_subdomain(name))
    if spec.get("preemptionPolicy") is not None:
        field = f"{path}.preemptionPolicy"
        yield from _word_faults(spec["preemptionPolicy"], PREEMPTION_POLICIES, field)
    if spec.get("overhead"):
        yield from overhead_faults(spec["overhead"], f"{path}.overhead")
    if spec.get("os") is not None:
        name = spec["os"]["name"]
        if not name:
            yield required(f"{path}.os.name")
        elif name not in _SYSTEMS:
            yield not_supported(f"{path}.os", name, _SYSTEMS)
        else:
            yield from system_faults(spec, name, path)
    yield from _file_key_faults(spec, path)


def _file_key_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            for number, variable in enumerate(container.get("env") or ()):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is None:
                    continue
                name = reference["volumeName"]
                field = f"{path}.{kind}[{index}].env[{number}].valueFrom.fileKeyRef.volumeName"
                if name not in volumes:
                    yield FieldFault("NotFound", field, name)
                elif volumes[name].get("emptyDir") is None:
                    yield invalid(field, name, "referenced volume must be of type emptyDir")
