"""Pods and the operating systems of nodes: options that only Windows has, and those it lacks.

Upstream: pkg/apis/core/validation/validation.go (validateWindows and around, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, each, forbidden, invalid
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain, get

_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
_FOR_LINUX: Final = "windows options cannot be set for a linux pod"
_FOR_WINDOWS: Final = "cannot be set for a windows pod"
_OF_PODS: Final = (
    ("securityContext", "appArmorProfile"),
    ("securityContext", "seLinuxOptions"),
    ("hostUsers",),
    ("hostPID",),
    ("hostIPC",),
    ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"),
    ("securityContext", "sysctls"),
    ("shareProcessNamespace",),
    ("securityContext", "runAsUser"),
    ("securityContext", "runAsGroup"),
    ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"),
    ("securityContext", "seLinuxChangePolicy"),
)
_OF_CONTAINERS: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_CREDENTIAL_KIBIBYTES_MAX: Final = 64
_DOMAIN_LENGTH_MAX: Final = 256
_USER_LENGTH_MAX: Final = 104
_USER: Final = "runAsUserName's User"
_USER_DOMAIN: Final = "runAsUserName's Domain"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS: Final = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NOT_IN_USERS: Final = '"/\\:;|=,+*?<>@[]'


def windows_option_faults(options: Plain | None, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the Windows options of a security context."""
    if options is None:
        return
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        yield from each(f"{path}.gmsaCredentialSpecName", name, dns_subdomain(name))
    credential, field = options.get("gmsaCredentialSpec"), f"{path}.gmsaCredentialSpec"
    if credential == "":
        yield invalid(field, credential, "gmsaCredentialSpec cannot be an empty string")
    elif len((credential or "").encode()) > _CREDENTIAL_KIBIBYTES_MAX << 10:
        detail = f"gmsaCredentialSpec size must be under {_CREDENTIAL_KIBIBYTES_MAX} KiB"
        yield invalid(field, credential, detail)
    user = options.get("runAsUserName")
    if user is not None:
        yield from each(f"{path}.runAsUserName", user, _user_name_faults(user))


def _user_name_faults(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _CONTROL.search(name):
        return ["runAsUserName cannot contain control characters"]
    parts = name.split("\\")
    if len(parts) > 2:
        return ["runAsUserName cannot contain more than one backslash"]
    faults = _domain_faults(parts[0]) if len(parts) > 1 else []
    user = parts[-1]
    if not user:
        faults.append(f"{_USER} cannot be empty")
    elif len(user.encode()) > _USER_LENGTH_MAX:
        faults.append(f"{_USER} length must not be longer than {_USER_LENGTH_MAX} characters")
    if user and not user.strip(". "):
        faults.append(f"{_USER} cannot contain only periods or spaces")
    if any(character in _NOT_IN_USERS for character in user):
        faults.append(f"{_USER} cannot contain the following characters: {_NOT_IN_USERS}")
    return faults


def _domain_faults(domain: str) -> list[str]:
    faults = []
    if len(domain.encode()) >= _DOMAIN_LENGTH_MAX:
        faults.append(f"{_USER_DOMAIN} length must be under {_DOMAIN_LENGTH_MAX} characters")
    if not _NET_BIOS.fullmatch(domain) and not _DNS.fullmatch(domain):
        faults.append(f"{_USER_DOMAIN} doesn't match the NetBios nor the DNS format")
    return faults


def _containers(spec: Plain, path: str) -> Iterator[tuple[Plain, str]]:
    """Yield the security contexts of all containers, and where they are."""
    for kind in _KINDS:
        for index, container in enumerate(spec.get(kind) or ()):
            own_path = f"{path}.{kind}[{index}].securityContext"
            yield container.get("securityContext") or {}, own_path


def host_process_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with containers that are processes of a Windows node."""
    of_pod = get(spec, "securityContext", "windowsOptions", "hostProcess")
    flags = []
    for context, own_path in _containers(spec, path):
        flag = get(context, "windowsOptions", "hostProcess")
        if None not in (of_pod, flag) and of_pod != flag:
            shown = "true" if of_pod else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            yield invalid(f"{own_path}.windowsOptions.hostProcess", flag, detail)
        flags.append(of_pod if flag is None else flag)
    if not any(flags):
        return
    if not all(flags):
        detail = (
            "If pod contains any hostProcess containers then all containers must be HostProcess "
            "containers"
        )
        yield invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{path}.hostNetwork", False, detail)


def system_faults(spec: Plain, system: str, path: str) -> Iterator[FieldFault]:
    """Yield what a pod has that its operating system has not.

    Args:
        spec: Of the pod.
        system: `linux` or `windows`.
        path: Of the specification.
    """
    if system == "linux":
        yield from _linux_faults(spec, path)
        return
    for names in _OF_PODS:
        if get(spec, *names) is not None:
            yield forbidden(".".join((path, *names)), _FOR_WINDOWS)
    for context, own_path in _containers(spec, path):
        for name in _OF_CONTAINERS:
            if context.get(name) is not None:
                yield forbidden(f"{own_path}.{name}", _FOR_WINDOWS)


def _linux_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    if get(spec, "securityContext", "windowsOptions") is not None:
        yield forbidden(f"{path}.securityContext.windowsOptions", _FOR_LINUX)
    for context, own_path in _containers(spec, path):
        if context.get("windowsOptions") is not None:
            yield forbidden(f"{own_path}.windowsOptions", _FOR_LINUX)
