"""Containers of pods: what the tables' rules cannot say of them, one by one and together.

Upstream: pkg/apis/core/validation/validation.go (validateContainers and around, v1.36)
Differs:  containers may be privileged whatever the server's flags say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubesched.api.label_format import label_key_errors
from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.field_errors import FieldErrors
from kubesched.apiserver.formats import (
    dns_subdomain,
    no_backsteps,
    relative_path,
)
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.validation.amounts import check_resources

CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_GRACE: Final = "terminationGracePeriodSeconds"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_NO_POLICY: Final = "must specify restartPolicy when restart rules are used"
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_ONE_SOURCE: Final = "may not have more than one field specified at a time"


def claims_of(spec: Plain) -> list[str]:
    """Return the names of a pod's claims on devices."""
    return [claim["name"] for claim in spec.get("resourceClaims") or () if claim["name"]]


def check_containers(spec: Plain, path: str, errors: FieldErrors) -> None:
    """Add what is wrong with the containers of a pod or a template.

    Args:
        spec: Of the pod.
        path: Of the specification.
        errors: With what is wrong with volumes already; more is added.
    """
    claims = claims_of(spec)
    # Volumes with errors cannot be mounted.
    broken = {error.path.partition("]")[0] for error in errors}
    volumes = {
        volume["name"]: volume
        for index, volume in enumerate(spec.get("volumes") or ())
        if f"{path}.volumes[{index}" not in broken
    }
    for kind in CONTAINERS:
        for index, container in enumerate(spec.get(kind) or ()):
            at = f"{path}.{kind}[{index}]"
            _check_container(container, spec, volumes, claims, at, errors)
    _check_running(spec, path, errors)
    _check_init_containers(spec, path, errors)
    _check_ephemeral_containers(spec, path, errors)
    for index, container in enumerate(spec.get("containers") or ()):
        if container["name"] in [one["name"] for one in spec["containers"][:index]]:
            errors.duplicate(f"{path}.containers[{index}].name", container["name"])
    _check_host_ports(spec.get("containers") or (), f"{path}.containers", errors)
    for container in spec.get("initContainers") or ():
        # Upstream counts from 0 here, whichever container it is.
        _check_host_ports([container], f"{path}.initContainers", errors)


# One container.


def _check_container(
    container: Plain,
    spec: Plain,
    volumes: Mapping[str, Plain],
    claims: Collection[str],
    path: str,
    errors: FieldErrors,
) -> None:
    names: list[str] = []
    for index, port in enumerate(container.get("ports") or ()):
        if port.get("name") and port["name"] in names:
            errors.duplicate(f"{path}.ports[{index}].name", port["name"])
        names.append(port.get("name", ""))
    for index, variable in enumerate(container.get("env") or ()):
        if variable.get("valueFrom") is not None:
            _check_source(variable, volumes, f"{path}.env[{index}].valueFrom", errors)
    for source in container.get("envFrom") or ():
        _check_whole_source(source, f"{path}.envFrom", errors)
    _check_mounts(container, volumes, path, errors)
    _check_devices(container, volumes, path, errors)
    check_resources(container, path, claims, errors)
    _check_resizing(container, spec.get("restartPolicy", ""), f"{path}.resizePolicy", errors)
    if container.get("securityContext") is not None:
        _check_security_context(container, spec, f"{path}.securityContext", errors)
    if spec.get("hostUsers") is False and container.get("volumeDevices"):
        errors.forbidden(f"{path}.volumeDevices", "when `hostUsers` is false")


def _check_security_context(container: Plain, spec: Plain, path: str, errors: FieldErrors) -> None:
    context = container["securityContext"]
    if context.get("procMount") == "Unmasked" and spec.get("hostUsers") is not False:
        detail = "`hostUsers` must be false to use `Unmasked`"
        errors.invalid(f"{path}.procMount", "Unmasked", detail)
    if context.get("allowPrivilegeEscalation") is not False:
        return
    begin = "cannot set `allowPrivilegeEscalation` to false and "
    if context.get("privileged"):
        errors.invalid(path, context, f"{begin}`privileged` to true")
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        errors.invalid(path, context, f"{begin}`capabilities.Add` CAP_SYS_ADMIN")


def _check_whole_source(source: Plain, path: str, errors: FieldErrors) -> None:
    given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
    if not given:
        errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(given) > 1:
        errors.invalid(path, "", _ONE_SOURCE)


_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` "
    "or `fileKeyRef`"
)


def _check_source(
    variable: Plain, volumes: Mapping[str, Plain], path: str, errors: FieldErrors
) -> None:
    source = variable["valueFrom"]
    given = [name for name in _SOURCES if source.get(name) is not None]
    if not given:
        errors.invalid(path, "", _NO_SOURCE)
    elif variable.get("value"):
        errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        errors.invalid(path, "", _ONE_SOURCE)
    for name in given:
        at, reference = f"{path}.{name}", source[name]
        if name == "fieldRef":
            check_field_reference(reference, _VARIABLE_FIELDS, at, errors)
        elif name == "resourceFieldRef":
            check_resource_reference(reference, at, errors)
        elif name == "fileKeyRef":
            volume = volumes.get(reference["volumeName"])
            if volume is None:
                errors.not_found(f"{at}.volumeName", reference["volumeName"])
            elif volume.get("emptyDir") is None:
                detail = "referenced volume must be of type emptyDir"
                errors.invalid(f"{at}.volumeName", reference["volumeName"], detail)
        else:
            errors.each(
                f"{at}.name", reference.get("name", ""), dns_subdomain(reference.get("name", ""))
            )


_VARIABLE_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
FILE_FIELDS: Final = (
    *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace"),
    "metadata.uid",
)
_KNOWN_FIELDS: Final = {*_VARIABLE_FIELDS, *FILE_FIELDS, "spec.restartPolicy"}
_SUBSCRIPT: Final = re.compile(r"(?P<path>.+)\['(?P<key>.*)'\]", re.DOTALL)
_RESOURCES: Final = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")


def check_field_reference(
    reference: Plain, fields: Collection[str], path: str, errors: FieldErrors
) -> None:
    """Add what is wrong with a reference to a field of the pod, one of some."""
    version, field = reference.get("apiVersion", ""), reference["fieldPath"]
    for name, value in (("apiVersion", version), ("fieldPath", field)):
        if not value:
            errors.required(f"{path}.{name}")
            return
    match = _SUBSCRIPT.fullmatch(field)
    bare, key = (match["path"], match["key"]) if match else (field, None)
    why = ""
    if version != "v1":
        why = f"unsupported pod version: {version}"
    elif key is not None and bare not in ("metadata.annotations", "metadata.labels"):
        why = f"field label does not support subscript: {field}"
    elif key is None and bare not in _KNOWN_FIELDS:
        why = f"field label not supported: {field}"
    if why:
        errors.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")
    elif key is not None:
        name = key.lower() if bare == "metadata.annotations" else key
        errors.each(path, name, label_key_errors(name))
    elif field not in fields:
        errors.not_supported(f"{path}.fieldPath", field, sorted(fields))


def check_resource_reference(reference: Plain, path: str, errors: FieldErrors) -> None:
    """Add what is wrong with a reference to what a container asks for or may use."""
    resource = reference["resource"]
    if not resource:
        errors.required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.not_supported(f"{path}.resource", resource, _RESOURCES)
    divisor = reference.get("divisor", "0")
    is_cpu = resource in ("limits.cpu", "requests.cpu")
    if is_cpu and parse_quantity(divisor).sign and divisor not in ("1", "1m"):
        detail = "only divisor's values 1m and 1 are supported with the cpu resource"
        errors.invalid(f"{path}.divisor", resource, detail)


_ONLY_CLAIMS: Final = (
    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
)


def _check_mounts(
    container: Plain, volumes: Mapping[str, Plain], path: str, errors: FieldErrors
) -> None:
    mounts = container.get("volumeMounts") or ()
    seen: list[str] = []
    for index, mount in enumerate(mounts):
        at = f"{path}.volumeMounts[{index}]"
        if mount["name"] not in volumes:
            errors.not_found(f"{at}.name", mount["name"])
        if mount["mountPath"] in seen:
            errors.invalid(f"{at}.mountPath", mount["mountPath"], "must be unique")
        seen.append(mount["mountPath"])
        _check_mount(mount, container, at, f"{path}.volumeMounts", errors)
    others = (container.get("volumeDevices") or (), "volumeDevices", "devicePath")
    _check_clashes(mounts, others, f"{path}.volumeMounts", "mountPath", errors)


def _check_devices(
    container: Plain, volumes: Mapping[str, Plain], path: str, errors: FieldErrors
) -> None:
    devices = container.get("volumeDevices") or ()
    others = (container.get("volumeMounts") or (), "volumeMounts", "mountPath")
    _check_clashes(devices, others, f"{path}.volumeDevices", "devicePath", errors)
    for index, device in enumerate(devices):
        at, name = f"{path}.volumeDevices[{index}]", device["name"]
        for field in ("name", "devicePath"):
            if device[field] in [one[field] for one in devices[:index]]:
                errors.invalid(f"{at}.{field}", device[field], "must be unique")
        volume = volumes.get(name)
        if volume is None:
            errors.not_found(f"{at}.name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            errors.invalid(f"{at}.name", name, _ONLY_CLAIMS)
        if no_backsteps(device["devicePath"]):
            detail = "can not contain backsteps ('..')"
            errors.invalid(f"{at}.devicePath", device["devicePath"], detail)


def _check_clashes(
    own: Sequence[Plain],
    others: tuple[Sequence[Plain], str, str],
    path: str,
    where: str,
    errors: FieldErrors,
) -> None:
    """Add mounts and devices that have a name or a path in common."""
    taken, kind, other_where = others
    for index, one in enumerate(own):
        if one["name"] in [other["name"] for other in taken]:
            errors.invalid(
                f"{path}[{index}].name", one["name"], f"must not already exist in {kind}"
            )
        if one[where] in [other[other_where] for other in taken]:
            detail = f"must not already exist as a path in {kind}"
            errors.invalid(f"{path}[{index}].{where}", one[where], detail)


def _check_mount(
    mount: Plain, container: Plain, path: str, list_path: str, errors: FieldErrors
) -> None:
    # Upstream names the list, not the entry, for most options.
    part, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    errors.each(f"{list_path}.subPath", part, relative_path(part))
    errors.each(f"{list_path}.subPathExpr", expression, relative_path(expression))
    if part and expression:
        detail = "subPathExpr and subPath are mutually exclusive"
        errors.invalid(f"{path}.subPathExpr", expression, detail)
    propagation, field = mount.get("mountPropagation"), f"{list_path}.mountPropagation"
    modes = ("Bidirectional", "HostToContainer", "None")
    if propagation is not None and propagation not in modes:
        errors.not_supported(field, propagation, modes)
    if propagation == "Bidirectional" and not get(container, "securityContext", "privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.forbidden(field, detail)
    mode, field = mount.get("recursiveReadOnly"), f"{list_path}.recursiveReadOnly"
    modes = ("Disabled", "Enabled", "IfPossible")
    if mode is not None and mode not in modes:
        errors.not_supported(field, mode, modes)
    elif mode not in (None, "Disabled"):
        if not mount.get("readOnly"):
            errors.forbidden(field, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.forbidden(field, detail)


def _check_resizing(container: Plain, policy: str, path: str, errors: FieldErrors) -> None:
    names: list[str] = []
    for index, one in enumerate(container.get("resizePolicy") or ()):
        name, restart = one["resourceName"], one["restartPolicy"]
        if name in names:
            errors.duplicate(f"{path}[{index}]", name)
        names.append(name)
        for value, supported in (
            (name, ("cpu", "memory")),
            (restart, ("NotRequired", "RestartContainer")),
        ):
            if not value:
                errors.required(path)
            elif value not in supported:
                errors.not_supported(path, value, supported)
        if policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.invalid(path, restart, detail)


def _check_running(spec: Plain, path: str, errors: FieldErrors) -> None:
    """Add what is wrong with what containers do while they run: probes, hooks, restarts."""
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            at = f"{path}.{kind}[{index}]"
            rules = container.get("restartPolicyRules")
            if rules and container.get("restartPolicy") is None:
                errors.required(f"{at}.restartPolicy", _NO_POLICY)
            if kind == "containers" or container.get("restartPolicy") is not None:
                _check_restarts(rules or (), at, errors)
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            for name in _PROBES:
                if container.get(name) is not None:
                    _check_probe(name, container[name], f"{at}.{name}", errors)
            _check_hooks(container.get("lifecycle") or {}, spec, f"{at}.lifecycle", errors)


def _check_restarts(rules: Sequence[Plain], path: str, errors: FieldErrors) -> None:
    if len(rules) > 20:
        errors.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        at, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        actions = ("Restart", "RestartAllContainers")
        if rule.get("action", "") not in actions:
            errors.not_supported(f"{at}.action", rule.get("action", ""), actions)
        if codes is None:
            errors.required(f"{at}.exitCodes", "must be specified")
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            field = f"{at}.exitCodes.operator"
            errors.not_supported(field, codes.get("operator", ""), ("In", "NotIn"))
        if len(codes.get("values") or ()) > 255:
            errors.too_many(f"{at}.exitCodes.values", len(codes["values"]), 255)


def _check_probe(name: str, probe: Plain, path: str, errors: FieldErrors) -> None:
    seconds, successes = probe.get(_GRACE), probe.get("successThreshold", 0)
    if name == "readinessProbe":
        if seconds is not None:
            errors.invalid(f"{path}.{_GRACE}", seconds, "must not be set for readinessProbes")
    elif successes != 1:
        errors.invalid(f"{path}.successThreshold", successes, "must be 1")


_STOP_SIGNALS: Final = {
    "linux": re.compile(
        r"SIG(ABRT|ALRM|BUS|CHLD|CLD|CONT|FPE|HUP|ILL|INT|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT|SEGV"
        r"|STKFLT|STOP|SYS|TERM|TRAP|TSTP|TTIN|TTOU|URG|USR1|USR2|VTALRM|WINCH|XCPU|XFSZ"
        r"|RTMAX(-([1-9]|1[0-4]))?|RTMIN(\+([1-9]|1[0-5]))?)"
    ),
    "windows": re.compile("SIG(KILL|TERM)"),
}


def _check_hooks(lifecycle: Plain, spec: Plain, path: str, errors: FieldErrors) -> None:
    grace = spec.get(_GRACE)
    for name in ("postStart", "preStop"):
        hook = lifecycle.get(name)
        if hook is None:
            continue
        seconds = (hook.get("sleep") or {}).get("seconds", 0)
        if grace is not None and not 0 <= seconds <= grace:
            detail = f"must be non-negative and less than {_GRACE} ({grace})"
            errors.invalid(f"{path}.{name}.sleep", seconds, detail)
    signal, os = lifecycle.get("stopSignal"), get(spec, "os", "name")
    if signal is not None and os is None:
        detail = "may not be set for containers with empty `spec.os.name`"
        errors.forbidden(f"{path}.stopSignal", detail)
    elif signal is not None and os in _STOP_SIGNALS and not _STOP_SIGNALS[os].fullmatch(signal):
        errors.not_supported(f"{path}.stopSignal", signal, ())


def _check_init_containers(spec: Plain, path: str, errors: FieldErrors) -> None:
    names = [container["name"] for container in spec.get("containers") or ()]
    for index, container in enumerate(spec.get("initContainers") or ()):
        at = f"{path}.initContainers[{index}]"
        if container["name"] and container["name"] in names:
            errors.duplicate(f"{at}.name", container["name"])
        names.append(container["name"])
        if container.get("restartPolicy") == "Always":
            continue
        for name in ("lifecycle", *_PROBES):
            if container.get(name) is not None:
                detail = "may not be set for init containers without restartPolicy=Always"
                errors.forbidden(f"{at}.{name}", detail)
        for number, policy in enumerate(container.get("resizePolicy") or ()):
            if policy["restartPolicy"] == "RestartContainer":
                field = f"{at}.resizePolicy[{number}].restartPolicy"
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.invalid(field, "RestartContainer", detail)


_NOT_IN_EPHEMERAL: Final = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *(*_PROBES, "lifecycle"),
)


def _check_ephemeral_containers(spec: Plain, path: str, errors: FieldErrors) -> None:
    kinds = ("containers", "initContainers")
    others = [container["name"] for kind in kinds for container in spec.get(kind) or ()]
    names = list(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}.ephemeralContainers[{index}]"
        if container["name"] in names:
            errors.duplicate(f"{at}.name", container["name"])
        names.append(container["name"])
        target = container.get("targetContainerName", "")
        if target and target not in others:
            errors.not_found(f"{at}.targetContainerName", target)
        for name in _NOT_IN_EPHEMERAL:
            if container.get(name):
                errors.forbidden(f"{at}.{name}", _NOT_EPHEMERAL)
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    errors.forbidden(f"{at}.volumeMounts[{number}].{name}", _NOT_EPHEMERAL)


def _check_host_ports(containers: Sequence[Plain], path: str, errors: FieldErrors) -> None:
    taken: list[str] = []
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                what = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if what in taken:
                    errors.duplicate(f"{path}[{index}].ports[{number}].hostPort", what)
                taken.append(what)
