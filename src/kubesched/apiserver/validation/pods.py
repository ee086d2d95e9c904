"""Pods and their templates: what the tables' rules cannot say of them.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodSpec and around, v1.36)
Differs:  of Windows' options, security annotations and volumes that clusters no longer have, only
          the rules of the tables are checked. Containers may be privileged whatever the server's
          flags say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubesched.api.label_format import label_key_errors, label_value_errors
from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.field_errors import FieldErrors, go_quoted
from kubesched.apiserver.formats import (
    dns_label,
    dns_subdomain,
    form_error,
    http_header_name,
    no_backsteps,
    relative_path,
    too_long,
)
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.validation.amounts import check_overhead, check_resources
from kubesched.apiserver.validation.metadata import (
    check_annotations,
    check_labels,
    check_requirement,
    check_selector,
)
from kubesched.apiserver.validation.rules import Check, Union

MIRROR: Final = "kubernetes.io/config.mirror"
CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
VOLUME_SOURCES: Final = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image", "local"),
)
"""In the order in which upstream looks for them."""
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_GRACE: Final = "terminationGracePeriodSeconds"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_NO_POLICY: Final = "must specify restartPolicy when restart rules are used"
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_PADDED: Final = "must not have leading or trailing whitespace"
_ONE_SOURCE: Final = "may not have more than one field specified at a time"


def check_pod_spec(spec: Plain, path: str, errors: FieldErrors) -> None:
    """Add what is wrong with the specification of a pod or a template."""
    claims = [claim["name"] for claim in spec.get("resourceClaims") or () if claim["name"]]
    # Volumes with errors cannot be mounted.
    broken = {error.field.partition("]")[0] for error in errors}
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
    if spec.get("resources") is not None:
        check_resources(spec, path, claims, errors)
    if spec.get("overhead"):
        check_overhead(spec["overhead"], f"{path}.overhead", errors)
    _check_host(spec, path, errors)
    _check_dns(spec, path, errors)
    _check_gates(spec.get("schedulingGates") or (), f"{path}.schedulingGates", errors)
    _check_spreading(spec, f"{path}.topologySpreadConstraints", errors)
    os = spec.get("os")
    if os is not None and not os["name"]:
        errors.required(f"{path}.os.name")
    elif os is not None and os["name"] not in ("linux", "windows"):
        errors.not_supported(f"{path}.os", os["name"], ("linux", "windows"))


# Containers.


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
            _check_resource_reference(reference, at, errors)
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
_FILE_FIELDS: Final = (
    *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace"),
    "metadata.uid",
)
_KNOWN_FIELDS: Final = {*_VARIABLE_FIELDS, *_FILE_FIELDS, "spec.restartPolicy"}
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


def _check_resource_reference(reference: Plain, path: str, errors: FieldErrors) -> None:
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


# What belongs to the pod as a whole.


def _check_host(spec: Plain, path: str, errors: FieldErrors) -> None:
    """Add what does not go with the node's network, users and names."""
    if spec.get("hostNetwork"):
        _check_host_network(spec, path, errors)
    if spec.get("hostUsers") is False:
        for name, shown in (("hostNetwork",) * 2, ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(name):
                errors.forbidden(f"{path}.{shown}", "when `hostUsers` is false")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        field = f"{path}.securityContext.shareProcessNamespace"
        errors.invalid(field, True, "ShareProcessNamespace and HostPID cannot both be enabled")
    _check_sysctls(spec, f"{path}.securityContext.sysctls", errors)
    override, field = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if override is not None:
        for other in ("setHostnameAsFQDN", "hostNetwork"):
            if spec.get(other):
                errors.forbidden(field, f"may not be specified when {other} is true")
        if len(override.encode()) > 64:
            errors.too_long(field, 64)
        errors.each(field, override, dns_subdomain(override))


def _check_host_network(spec: Plain, path: str, errors: FieldErrors) -> None:
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            # Templates need not give it.
            if (path == "spec" or host_port) and host_port != port["containerPort"]:
                field = f"{path}.containers[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.invalid(field, host_port, detail)


_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_FORM: Final = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_SYSCTL: Final = re.compile(_SYSCTL_FORM)
_IPC_SYSCTLS: Final = ("fs.mqueue.", "kernel.msg", "kernel.sem", "kernel.shm")


def _check_sysctls(spec: Plain, path: str, errors: FieldErrors) -> None:
    names: list[str] = []
    for index, sysctl in enumerate((spec.get("securityContext") or {}).get("sysctls") or ()):
        field, name = f"{path}[{index}].name", sysctl["name"]
        if not name:
            errors.required(field)
        elif len(name) > 253 or _SYSCTL.fullmatch(name) is None:
            detail = f"must have at most 253 characters and match regex ^{_SYSCTL_FORM}$"
            errors.invalid(field, name, detail)
        elif name in names:
            errors.duplicate(field, name)
        names.append(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.invalid(field, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            errors.invalid(field, name, "may not be specified when 'hostIPC' is true")


_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_FORM: Final = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_SEARCH: Final = re.compile(_SEARCH_FORM)
_SEARCH_RULE: Final = form_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
    "'-' or '.', and must start and end with an alphanumeric character",
    _SEARCH_FORM,
    "example.com",
)


def _check_dns(spec: Plain, path: str, errors: FieldErrors) -> None:
    config, path = spec.get("dnsConfig"), f"{path}.dnsConfig"
    if spec.get("dnsPolicy") == "None" and config is None:
        errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
    if config is not None:
        if spec.get("dnsPolicy") == "None" and not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.required(f"{path}.nameservers", detail)
        _check_dns_config(config, path, errors)


def _check_dns_config(config: Plain, path: str, errors: FieldErrors) -> None:
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    for name, values, most, words in (
        ("nameservers", servers, 3, "nameservers"),
        ("searches", searches, 32, "search paths"),
    ):
        if len(values) > most:
            errors.invalid(f"{path}.{name}", values, f"must not have more than {most} {words}")
    if len(" ".join(searches).encode()) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        errors.invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        name = str(search).removesuffix(".")
        if search != ".":
            errors.each(f"{path}.searches[{index}]", name, _search_domain(name))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.required(f"{path}.options[{index}]", "must not be empty")


def _search_domain(name: str) -> list[str]:
    rules = [too_long(253)] if len(name.encode()) > 253 else []
    return rules if _SEARCH.fullmatch(name) else [*rules, _SEARCH_RULE]


def _check_gates(gates: Sequence[Plain], path: str, errors: FieldErrors) -> None:
    names: list[str] = []
    for index, gate in enumerate(gates):
        errors.each(f"{path}[{index}]", gate["name"], label_key_errors(gate["name"]))
        if gate["name"] in names:
            errors.duplicate(f"{path}[{index}]", gate["name"])
        names.append(gate["name"])


def _check_spreading(spec: Plain, path: str, errors: FieldErrors) -> None:
    constraints = spec.get("topologySpreadConstraints") or ()
    for index, constraint in enumerate(constraints):
        pair = (constraint["topologyKey"], constraint["whenUnsatisfiable"])
        later = [(one["topologyKey"], one["whenUnsatisfiable"]) for one in constraints[index + 1 :]]
        if pair in later:
            field = f"{path}[{index}].{{topologyKey, whenUnsatisfiable}}"
            errors.duplicate(field, f"{{{pair[0]}, {pair[1]}}}")


# Objects that stand in several places.


def check_toleration(toleration: Plain, path: str, errors: FieldErrors) -> None:
    """Add what is wrong with a toleration."""
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    if key:
        errors.each(f"{path}.key", key, label_key_errors(key))
    elif operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        errors.invalid(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.invalid(f"{path}.effect", effect, detail)
    if operator in ("", "Equal"):
        if wrong := label_value_errors(value):
            errors.invalid(f"{path}.operator", value, ";".join(wrong))
    elif operator != "Exists":
        is_comparison = operator in ("Gt", "Lt")
        words = ("Equal", "Exists", "Lt", "Gt") if is_comparison else ("Equal", "Exists")
        errors.not_supported(f"{path}.operator", operator, words)
    elif value:
        detail = "value must be empty when `operator` is 'Exists'"
        errors.invalid(f"{path}.operator", value, detail)
    if effect and effect not in _EFFECTS:
        errors.not_supported(f"{path}.effect", effect, _EFFECTS)


def check_taints(taints: Sequence[Plain], path: str, errors: FieldErrors) -> None:
    """Add what is wrong with the taints of a node."""
    seen: list[tuple[str, str]] = []
    for index, taint in enumerate(taints):
        at, key, effect = f"{path}[{index}]", taint["key"], taint["effect"]
        errors.each(f"{at}.key", key, label_key_errors(key))
        if wrong := label_value_errors(taint.get("value", "")):
            errors.invalid(f"{at}.value", taint["value"], ";".join(wrong))
        if not effect:
            errors.required(f"{at}.effect")
        elif effect not in _EFFECTS:
            errors.not_supported(f"{at}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            errors.duplicate(at, taint, "taints must be unique by key and effect pair")
        seen.append((key, effect))


def check_node_selector(selector: Plain, path: str, errors: FieldErrors) -> None:
    """Add what is wrong with a selector of nodes."""
    terms: Sequence[Plain] = selector.get("nodeSelectorTerms") or ()
    if not terms:
        detail = "must have at least one node selector term"
        errors.required(f"{path}.nodeSelectorTerms", detail)
    for index, term in enumerate(terms):
        _check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", errors)


def _check_node_term(
    term: Plain, path: str, errors: FieldErrors, *, checks_values: bool = True
) -> None:
    for index, one in enumerate(term.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        check_requirement(one, at, errors, is_of_nodes=True, checks_values=checks_values)
    for index, one in enumerate(term.get("matchFields") or ()):
        at, values = f"{path}.matchFields[{index}]", one.get("values") or ()
        if one["operator"] not in ("In", "NotIn"):
            errors.invalid(f"{at}.operator", one["operator"], "not a valid selector operator")
        elif len(values) != 1:
            detail = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            errors.required(f"{at}.values", detail)
        if one["key"] != "metadata.name":
            errors.invalid(f"{at}.key", one["key"], "not a valid field selector key")
            continue
        for number, value in enumerate(values):
            errors.each(f"{at}.values[{number}]", value, dns_subdomain(value))


def _check_preferred_term(term: Plain, path: str, errors: FieldErrors) -> None:
    _check_weight(term, path, errors)
    # Values that no label can have are allowed in preferences.
    _check_node_term(term["preference"], f"{path}.preference", errors, checks_values=False)


def _check_weight(term: Plain, path: str, errors: FieldErrors) -> None:
    if not 1 <= term["weight"] <= 100:
        errors.invalid(f"{path}.weight", term["weight"], "must be in the range 1-100")


def _check_affinity_term(term: Plain, path: str, errors: FieldErrors) -> None:
    for namespace in term.get("namespaces") or ():
        errors.each(f"{path}.namespace", namespace, dns_label(namespace))
    _check_label_keys(term, path, errors)
    if not term["topologyKey"]:
        errors.required(f"{path}.topologyKey", "can not be empty")
    errors.each(f"{path}.topologyKey", term["topologyKey"], label_key_errors(term["topologyKey"]))


def _check_constraint(constraint: Plain, path: str, errors: FieldErrors) -> None:
    action = constraint["whenUnsatisfiable"]
    if not constraint["topologyKey"]:
        errors.required(f"{path}.topologyKey", "can not be empty")
    domains = constraint.get("minDomains")
    if domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.invalid(f"{path}.minDomains", domains, detail)
    _check_label_keys(constraint, path, errors)


def _check_label_keys(owner: Plain, path: str, errors: FieldErrors) -> None:
    """Add what is wrong with the labels whose values are taken from the pod itself."""
    selector = owner.get("labelSelector")
    matched, mismatched = (owner.get(f"{word}LabelKeys") or () for word in ("match", "mismatch"))
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            errors.forbidden(f"{path}.{name}", _NO_SELECTOR)
            continue
        for index, key in enumerate(keys):
            errors.each(f"{path}.{name}[{index}]", key, label_key_errors(key))
    seen = set((selector or {}).get("matchLabels") or ())
    for expression in (selector or {}).get("matchExpressions") or ():
        # One expression is what the server itself adds for a key.
        key = expression["key"]
        if key in matched and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.invalid(f"{path}[{matched.index(key)}]", key, detail)
        seen.add(key)
    for index, key in enumerate(matched):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def _check_volume(volume: Plain, path: str, errors: FieldErrors) -> None:
    limit = (volume.get("emptyDir") or {}).get("sizeLimit")
    if limit is not None and parse_quantity(limit).sign < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        errors.forbidden(f"{path}.emptyDir.sizeLimit", detail)


def _check_file(file: Plain, path: str, errors: FieldErrors) -> None:
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        check_field_reference(field, _FILE_FIELDS, f"{path}.fieldRef", errors)
    elif resource is None:
        errors.required(path, "one of fieldRef and resourceFieldRef is required")
    elif not resource.get("containerName"):
        errors.required(f"{path}.resourceFieldRef.containerName")
    else:
        _check_resource_reference(resource, f"{path}.resourceFieldRef", errors)


def _check_token(token: Plain, path: str, errors: FieldErrors) -> None:
    seconds = token.get("expirationSeconds", 0)
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        errors.invalid(f"{path}.expirationSeconds", seconds, detail)


def _check_claim(claim: Plain, path: str, errors: FieldErrors) -> None:
    names = ("resourceClaimName", "resourceClaimTemplateName")
    given = [name for name in names if claim.get(name) is not None]
    if not given:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.invalid(path, claim, detail)
    elif len(given) > 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        errors.invalid(path, claim, detail)


def _check_headers(request: Plain, path: str, errors: FieldErrors) -> None:
    for header in request.get("httpHeaders") or ():
        errors.each(f"{path}.httpHeaders", header["name"], http_header_name(header["name"]))


def _check_seccomp(profile: Plain, path: str, errors: FieldErrors) -> None:
    _check_profile(profile, "seccomp", "seccompProfile", path, errors)


def _check_app_armor(profile: Plain, path: str, errors: FieldErrors) -> None:
    _check_profile(profile, "AppArmor", "appArmorProfile", path, errors)


def _check_profile(profile: Plain, what: str, field: str, path: str, errors: FieldErrors) -> None:
    kind, name = profile["type"], profile.get("localhostProfile")
    kinds = ("Localhost", "RuntimeDefault", "Unconfined")
    if not kind:
        errors.required(f"{path}.type", f"type is required when {field} is set")
    elif kind not in kinds:
        errors.not_supported(f"{path}.type", kind, kinds)
    at = f"{path}.localhostProfile"
    if kind == "Localhost":
        if not name:
            errors.required(at, f"must be set when {what} type is Localhost")
        elif what == "seccomp":
            errors.each(at, name, relative_path(name))
    elif name is not None and (kind in kinds or what == "seccomp"):
        shown = profile if what == "seccomp" else name
        errors.invalid(at, shown, f"can only be set when {what} type is Localhost")


def _check_template(template: Plain, path: str, errors: FieldErrors) -> None:
    metadata = template.get("metadata") or {}
    check_labels(metadata.get("labels"), f"{path}.labels", errors)
    check_annotations(metadata.get("annotations"), f"{path}.annotations", errors)
    if (template.get("spec") or {}).get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.forbidden(f"{path}.spec.ephemeralContainers", detail)


def check_new_pod(pod: Plain, errors: FieldErrors) -> None:
    """Add what is wrong with a pod besides its specification."""
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    if MIRROR in annotations and not spec.get("nodeName"):
        field = f"metadata.annotations[{MIRROR}]"
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.invalid(field, annotations[MIRROR], detail)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            image = container.get("image", "")
            if image != image.strip():
                errors.invalid(f"spec.{kind}[{index}].image", image, _PADDED)
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("ephemeral") is not None and volume["name"]:
            claim = f"{pod['metadata'].get('name', '')}-{volume['name']}"
            for wrong in dns_subdomain(claim):
                detail = f"PVC name {go_quoted(claim)}: {wrong}"
                errors.invalid(f"spec.volumes[{index}].name", volume["name"], detail)


CHECKS: Final[Mapping[str, Check]] = {
    "core_v1/AppArmorProfile": _check_app_armor,
    "core_v1/DownwardAPIVolumeFile": _check_file,
    "core_v1/HTTPGetAction": _check_headers,
    "core_v1/NodeSelector": check_node_selector,
    "core_v1/PodAffinityTerm": _check_affinity_term,
    "core_v1/PodResourceClaim": _check_claim,
    "core_v1/PodTemplateSpec": _check_template,
    "core_v1/PreferredSchedulingTerm": _check_preferred_term,
    "core_v1/SeccompProfile": _check_seccomp,
    "core_v1/ServiceAccountTokenProjection": _check_token,
    "core_v1/Toleration": check_toleration,
    "core_v1/TopologySpreadConstraint": _check_constraint,
    "core_v1/Volume": _check_volume,
    "core_v1/WeightedPodAffinityTerm": _check_weight,
    "meta_v1/LabelSelector": check_selector,
}
LATE_CHECKS: Final[Mapping[str, Check]] = {"core_v1/PodSpec": check_pod_spec}
UNIONS: Final[Mapping[str, Union]] = {
    "core_v1/LifecycleHandler": Union("handler type", ("exec", "httpGet", "tcpSocket", "sleep")),
    "core_v1/PersistentVolumeSpec": Union("volume type", VOLUME_SOURCES),
    "core_v1/Probe": Union("handler type", ("exec", "httpGet", "tcpSocket", "grpc")),
    "core_v1/Volume": Union(
        "volume type", VOLUME_SOURCES, {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
    ),
}
