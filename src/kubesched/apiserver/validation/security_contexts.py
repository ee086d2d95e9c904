"""Security contexts of pods and containers.

Upstream: pkg/apis/core/validation/validation.go (ValidateSecurityContext and around, v1.36)
Differs:  containers may be privileged whatever the server's flags say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
)
from kubesched.apiserver.names import between
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.paths import descending_path_faults
from kubesched.apiserver.validation.windows import windows_option_faults

_ID_MAX: Final = 2**31 - 1
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_PROFILE_LENGTH_MAX: Final = 4095
_SYSCTL_LENGTH_MAX: Final = 253
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_FORM: Final = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_SYSCTL: Final = re.compile(_SYSCTL_FORM)
_IPC_SYSCTLS: Final = ("fs.mqueue.", "kernel.msg", "kernel.sem", "kernel.shm")
_NO_ESCALATION: Final = "cannot set `allowPrivilegeEscalation` to false and "


def _id_faults(context: Plain, path: str, *names: str) -> Iterator[FieldFault]:
    for name in names:
        number = context.get(name)
        if number is not None and not 0 <= number <= _ID_MAX:
            yield invalid(f"{path}.{name}", number, between(0, _ID_MAX))


def security_context_faults(
    context: Plain, has_host_users: bool, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the security context of a container."""
    yield from _id_faults(context, path, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            yield not_supported(f"{path}.procMount", mount, ("Default", "Unmasked"))
        if has_host_users and mount == "Unmasked":
            yield invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp_faults(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        yield from _escalation_faults(context, path)
    yield from windows_option_faults(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from _app_armor_faults(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _escalation_faults(context: Plain, path: str) -> Iterator[FieldFault]:
    shown = internal_form("core/SecurityContext", context)
    if context.get("privileged"):
        yield invalid(path, shown, f"{_NO_ESCALATION}`privileged` to true")
    for name in (context.get("capabilities") or {}).get("add") or ():
        if name == "CAP_SYS_ADMIN":
            yield invalid(path, shown, f"{_NO_ESCALATION}`capabilities.Add` CAP_SYS_ADMIN")


def _seccomp_faults(profile: Plain | None, path: str) -> Iterator[FieldFault]:
    if profile is None:
        return
    kind, file = profile["type"], profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    field = f"{path}.localhostProfile"
    if kind == "Localhost":
        if file is None:
            yield required(field, "must be set when seccomp type is Localhost")
        else:
            yield from descending_path_faults(file, field)
    elif file is not None:
        shown = {"Type": kind, "LocalhostProfile": file}
        yield invalid(field, shown, "can only be set when seccomp type is Localhost")


def _app_armor_faults(profile: Plain | None, path: str) -> Iterator[FieldFault]:
    if profile is None:
        return
    kind, name = profile["type"], profile.get("localhostProfile")
    field = f"{path}.localhostProfile"
    if not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if name is not None:
            yield invalid(field, name, "can only be set when AppArmor type is Localhost")
    elif not name:
        yield required(field, "must be set when AppArmor type is Localhost")
    else:
        if name != name.strip():
            yield invalid(field, name, "must not be padded with whitespace")
        if len(name.encode()) > _PROFILE_LENGTH_MAX:
            yield too_long(field, _PROFILE_LENGTH_MAX)


def pod_security_context_faults(context: Plain, spec: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the security context of a pod."""
    yield from _id_faults(context, path, "fsGroup", "runAsUser", "runAsGroup")
    for index, number in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= number <= _ID_MAX:
            yield invalid(f"{path}.supplementalGroups[{index}]", number, between(0, _ID_MAX))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", True, detail)
    yield from _sysctl_faults(context.get("sysctls") or (), spec, f"{path}.sysctls")
    yield from _word_faults(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path)
    yield from _seccomp_faults(context.get("seccompProfile"), f"{path}.seccompProfile")
    yield from windows_option_faults(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from _app_armor_faults(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    yield from _word_faults(context, "supplementalGroupsPolicy", ("Merge", "Strict"), path)
    yield from _word_faults(context, "seLinuxChangePolicy", ("Recursive",), path)


def _word_faults(
    context: Plain, name: str, words: Sequence[str], path: str
) -> Iterator[FieldFault]:
    word = context.get(name)
    if word is not None and word not in words:
        yield not_supported(f"{path}.{name}", word, words)


def _sysctl_faults(sysctls: Sequence[Plain], spec: Plain, path: str) -> Iterator[FieldFault]:
    names: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        field, name = f"{path}[{index}].name", sysctl["name"]
        if not name:
            yield required(field)
        elif len(name) > _SYSCTL_LENGTH_MAX or _SYSCTL.fullmatch(name) is None:
            detail = (
                f"must have at most {_SYSCTL_LENGTH_MAX} characters and match regex "
                f"^{_SYSCTL_FORM}$"
            )
            yield invalid(field, name, detail)
        elif name in names:
            yield duplicate(field, name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield invalid(field, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            yield invalid(field, name, "may not be specified when 'hostIPC' is true")
        names.add(name)
