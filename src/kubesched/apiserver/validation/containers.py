"""Containers of pods: what the tables' rules cannot say of them, one by one and together.

Upstream: pkg/apis/core/validation/validation.go (validateContainers and around, v1.36)
Differs:  containers may be privileged whatever the server's flags say. Of what only a kubelet reads
          (security contexts, hooks, options of mounts, the downward API, when to restart), only the
          rules of the tables are checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubesched.apiserver.field_errors import FieldErrors
from kubesched.apiserver.formats import no_backsteps
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.amounts import check_resources

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_GRACE: Final = "terminationGracePeriodSeconds"
_ONLY_OF_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NO_POLICY: Final = "must specify restartPolicy when restart rules are used"
_ENVIRONMENT: Final = ("configMapRef", "secretRef")
_REFERENCES: Final = (
    *("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"),
    "fileKeyRef",
)
_NOT_IN_EPHEMERAL: Final = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *(*_PROBES, "lifecycle"),
)


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
    names: list[str] = []
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            at = f"{path}.{kind}[{index}]"
            _check_container(container, volumes, claims, at, errors)
            if kind == "ephemeralContainers":
                _check_ephemeral_container(container, names, at, errors)
            elif kind == "containers" or container.get("restartPolicy") == "Always":
                _check_probes(container, at, errors)
            else:
                _check_ends(container, at, errors)
            if container["name"] and container["name"] in names:
                errors.duplicate(f"{at}.name", container["name"])
            names.append(container["name"])
    _check_host_ports(spec.get("containers") or (), f"{path}.containers", errors)
    for container in spec.get("initContainers") or ():
        # Upstream counts from 0 here, whichever container it is.
        _check_host_ports([container], f"{path}.initContainers", errors)


def _check_container(
    container: Plain,
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
    _check_environment(container, path, errors)
    _check_volumes(container, volumes, path, errors)
    check_resources(container, path, claims, errors)
    if container.get("restartPolicyRules") and container.get("restartPolicy") is None:
        errors.required(f"{path}.restartPolicy", _NO_POLICY)
    for policy in container.get("resizePolicy") or ():
        for value, supported in (
            (policy["resourceName"], ("cpu", "memory")),
            (policy["restartPolicy"], ("NotRequired", "RestartContainer")),
        ):
            if not value:
                errors.required(f"{path}.resizePolicy")
            elif value not in supported:
                errors.not_supported(f"{path}.resizePolicy", value, supported)


def _check_environment(container: Plain, path: str, errors: FieldErrors) -> None:
    for index, variable in enumerate(container.get("env") or ()):
        source, at = variable.get("valueFrom"), f"{path}.env[{index}].valueFrom"
        if source is not None and any(source.values()) and variable.get("value"):
            errors.invalid(at, "", "may not be specified when `value` is not empty")
        elif source is not None:
            _check_source(source, _REFERENCES, at, errors)
    for source in container.get("envFrom") or ():
        _check_source(source, _ENVIRONMENT, f"{path}.envFrom", errors)


def _check_source(source: Plain, kinds: Sequence[str], path: str, errors: FieldErrors) -> None:
    """Add that the value of a variable comes from nowhere, or from several places."""
    given = [name for name in kinds if source.get(name) is not None]
    if not given:
        *others, last = [f"`{name}`" for name in kinds]
        errors.invalid(path, "", f"must specify one of: {', '.join(others)} or {last}")
    elif len(given) > 1:
        errors.invalid(path, "", "may not have more than one field specified at a time")


def _check_volumes(
    container: Plain, volumes: Mapping[str, Plain], path: str, errors: FieldErrors
) -> None:
    for kind, where in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        seen: list[str] = []
        for index, one in enumerate(container.get(kind) or ()):
            at = f"{path}.{kind}[{index}]"
            if one["name"] not in volumes:
                errors.not_found(f"{at}.name", one["name"])
            if one[where] in seen:
                errors.invalid(f"{at}.{where}", one[where], "must be unique")
            if kind == "volumeDevices" and no_backsteps(one[where]):
                errors.invalid(f"{at}.{where}", one[where], "can not contain backsteps ('..')")
            seen.append(one[where])


def _check_probes(container: Plain, path: str, errors: FieldErrors) -> None:
    for name in _PROBES:
        probe = container.get(name) or {}
        seconds, successes = probe.get(_GRACE), probe.get("successThreshold", 0)
        if name == "readinessProbe":
            if seconds is not None:
                detail = "must not be set for readinessProbes"
                errors.invalid(f"{path}.{name}.{_GRACE}", seconds, detail)
        elif probe and successes != 1:
            errors.invalid(f"{path}.{name}.successThreshold", successes, "must be 1")


def _check_ends(container: Plain, path: str, errors: FieldErrors) -> None:
    """Add what a container has that runs to its end before others start."""
    for name in ("lifecycle", *_PROBES):
        if container.get(name) is not None:
            errors.forbidden(f"{path}.{name}", _ONLY_OF_SIDECARS)
    if container.get("restartPolicy") is None:
        errors.drop_below(f"{path}.restartPolicyRules")


def _check_ephemeral_container(
    container: Plain, others: Collection[str], path: str, errors: FieldErrors
) -> None:
    target = container.get("targetContainerName", "")
    if target and target not in others:
        errors.not_found(f"{path}.targetContainerName", target)
    for name in _NOT_IN_EPHEMERAL:
        if container.get(name):
            errors.forbidden(f"{path}.{name}", "cannot be set for an Ephemeral Container")


def _check_host_ports(containers: Sequence[Plain], path: str, errors: FieldErrors) -> None:
    taken: list[str] = []
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                what = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if what in taken:
                    errors.duplicate(f"{path}[{index}].ports[{number}].hostPort", what)
                taken.append(what)
