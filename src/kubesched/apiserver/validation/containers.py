"""Containers: names, images, ports, probes, hooks.

Upstream: pkg/apis/core/validation/validation.go (validateContainers and around, v1.36)
Differs:  containers may be privileged whatever the server's flags say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from kubesched.apiserver.names import dns_label, port_name, valid_port
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.environment import environment_faults
from kubesched.apiserver.validation.mounts import mount_faults
from kubesched.apiserver.validation.probes import lifecycle_faults, probe_faults
from kubesched.apiserver.validation.resources import container_resource_faults
from kubesched.apiserver.validation.security_contexts import security_context_faults

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_RESIZED: Final = ("cpu", "memory")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NO_POLICY: Final = "must specify restartPolicy when restart rules are used"
_RULE_ACTIONS: Final = ("Restart", "RestartAllContainers")
_RULES_MAX: Final = 20
_EXIT_CODES_MAX: Final = 255
_NOTHING: Final[Mapping[str, Plain]] = {"resources": {}}
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_FORBIDDEN_IN_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


class Surroundings(NamedTuple):
    """What containers refer to in their pod.

    Attributes:
        volumes: The volumes without faults, by name.
        claims: The names of resource claims.
        grace_seconds: How long the pod may take to end; None if it does not say.
        restart_policy: Of the pod.
        os: The name of its operating system; None if it does not say.
        has_host_users: Whether its users are those of the node.
    """

    volumes: Mapping[str, Plain]
    claims: Collection[str]
    grace_seconds: int | None
    restart_policy: str
    os: str | None
    has_host_users: bool


def container_faults(
    containers: Sequence[Plain], around: Surroundings, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the containers of a pod."""
    if not containers:
        yield required(path)
    names: set[str] = set()
    for index, container in enumerate(containers):
        own_path = f"{path}[{index}]"
        yield from _faults(container, around, own_path)
        if container["name"] in names:
            yield duplicate(f"{own_path}.name", container["name"])
        names.add(container["name"])
        yield from _running_faults(container, around, own_path)
        yield from _restart_faults(container, own_path)
    yield from _host_port_faults(containers, path)


def init_container_faults(
    containers: Sequence[Plain], others: Sequence[Plain], around: Surroundings, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the init containers of a pod."""
    names = {container["name"] for container in others}
    for index, container in enumerate(containers):
        own_path, name = f"{path}[{index}]", container["name"]
        yield from _faults(container, around, own_path)
        is_sidecar = container.get("restartPolicy") == "Always"
        if container.get("restartPolicy") is not None:
            yield from _restart_faults(container, own_path)
        elif container.get("restartPolicyRules"):
            yield required(f"{own_path}.restartPolicy", _NO_POLICY)
        if name in names:
            yield duplicate(f"{own_path}.name", name)
        elif name:
            names.add(name)
        # Upstream counts from 0 here, whichever container it is.
        yield from _host_port_faults([container], path)
        yield from _sidecar_faults(container, around, own_path, is_sidecar)


def _sidecar_faults(
    container: Plain, around: Surroundings, path: str, is_sidecar: bool
) -> Iterator[FieldFault]:
    if is_sidecar:
        yield from _running_faults(container, around, path)
        return
    for name in ("lifecycle", *_PROBES):
        if container.get(name) is not None:
            yield forbidden(f"{path}.{name}", _ONLY_SIDECARS)
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        if policy["restartPolicy"] == "RestartContainer":
            field = f"{path}.resizePolicy[{index}].restartPolicy"
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid(field, "RestartContainer", detail)


def ephemeral_container_faults(
    containers: Sequence[Plain], others: Sequence[Plain], around: Surroundings, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the ephemeral containers of a pod."""
    other_names = {container["name"] for container in others}
    names = set(other_names)
    for index, container in enumerate(containers):
        own_path = f"{path}[{index}]"
        yield from _faults(container, around, own_path)
        yield from image_space_faults(container, own_path)
        if container["name"] in names:
            yield duplicate(f"{own_path}.name", container["name"])
        names.add(container["name"])
        target = container.get("targetContainerName", "")
        if target and target not in other_names:
            yield not_found(f"{own_path}.targetContainerName", target)
        for name in _FORBIDDEN_IN_EPHEMERAL:
            if container.get(name) is not None and container[name] != _NOTHING.get(name):
                yield forbidden(f"{own_path}.{name}", _NOT_EPHEMERAL)
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    yield forbidden(f"{own_path}.volumeMounts[{number}].{name}", _NOT_EPHEMERAL)


def image_space_faults(container: Plain, path: str) -> Iterator[FieldFault]:
    """Yield whether the name of an image begins or ends with a space."""
    image = container.get("image", "")
    if image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _faults(container: Plain, around: Surroundings, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with what all kinds of containers have."""
    name = container["name"]
    if name:
        yield from each(f"{path}.name", name, dns_label(name))
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    policy = container.get("terminationMessagePolicy", "")
    if policy not in _MESSAGE_POLICIES:
        yield not_supported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    if container.get("ports"):
        yield from _port_faults(container["ports"], f"{path}.ports")
    yield from environment_faults(container, path)
    yield from mount_faults(container, around.volumes, path)
    policy = container.get("imagePullPolicy", "")
    if policy not in _PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    yield from container_resource_faults(container["resources"], around.claims, f"{path}.resources")
    if container.get("resizePolicy"):
        yield from _resize_faults(
            container["resizePolicy"], around.restart_policy, f"{path}.resizePolicy"
        )
    if container.get("securityContext") is not None:
        yield from security_context_faults(
            container["securityContext"], around.has_host_users, f"{path}.securityContext"
        )


def _running_faults(container: Plain, around: Surroundings, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with what containers do while they run."""
    if container.get("lifecycle") is not None:
        yield from lifecycle_faults(
            container["lifecycle"], around.grace_seconds, around.os, f"{path}.lifecycle"
        )
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            yield from probe_faults(name, probe, around.grace_seconds, f"{path}.{name}")


def _port_faults(ports: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        own_path, name = f"{path}[{index}]", port.get("name", "")
        if name:
            if errors := port_name(name):
                yield from each(f"{own_path}.name", name, errors)
            elif name in names:
                yield duplicate(f"{own_path}.name", name)
            else:
                names.add(name)
        if port["containerPort"]:
            number = port["containerPort"]
            yield from each(f"{own_path}.containerPort", number, valid_port(number))
        else:
            yield required(f"{own_path}.containerPort")
        if port.get("hostPort"):
            number = port["hostPort"]
            yield from each(f"{own_path}.hostPort", number, valid_port(number))
        protocol = port.get("protocol", "")
        if protocol not in _PROTOCOLS:
            yield not_supported(f"{own_path}.protocol", protocol, _PROTOCOLS)


def _host_port_faults(containers: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            what = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if what in taken:
                yield duplicate(f"{path}[{index}].ports[{number}].hostPort", what)
            taken.add(what)


def _resize_faults(
    policies: Sequence[Plain], restart_policy: str, path: str
) -> Iterator[FieldFault]:
    names: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy["resourceName"], policy["restartPolicy"]
        if name in names:
            yield duplicate(f"{path}[{index}]", name)
        names.add(name)
        for value, supported in ((name, _RESIZED), (restart, _RESIZE_POLICIES)):
            if not value:
                yield required(path)
            elif value not in supported:
                yield not_supported(path, value, supported)
        if restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(path, restart, detail)


def _restart_faults(container: Plain, path: str) -> Iterator[FieldFault]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            yield required(f"{path}.restartPolicy", _NO_POLICY)
    elif policy not in _RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > _RULES_MAX:
        yield too_many(f"{path}.restartPolicyRules", len(rules), _RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _rule_faults(rule, f"{path}.restartPolicyRules[{index}]")


def _rule_faults(rule: Plain, path: str) -> Iterator[FieldFault]:
    action = rule.get("action", "")
    if action not in _RULE_ACTIONS:
        yield not_supported(f"{path}.action", action, _RULE_ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        yield required(f"{path}.exitCodes", "must be specified")
        return
    if codes.get("operator") not in ("In", "NotIn"):
        operator = codes.get("operator", "")
        yield not_supported(f"{path}.exitCodes.operator", operator, ("In", "NotIn"))
    count = len(codes.get("values") or ())
    if count > _EXIT_CODES_MAX:
        yield too_many(f"{path}.exitCodes.values", count, _EXIT_CODES_MAX)
