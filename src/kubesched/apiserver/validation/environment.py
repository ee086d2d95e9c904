"""Environment variables of containers, and fields of the pod that they and volumes show.

Upstream: pkg/apis/core/validation/validation.go (ValidateEnv, ValidateEnvFrom, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from kubesched.api.label_format import label_key_errors
from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import (
    config_map_key,
    dns_label,
    dns_subdomain,
    environment_variable_name,
    prefix_of,
)
from kubesched.apiserver.plain import Plain

_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_KNOWN_FIELDS: Final = (*_FIELDS, "metadata.annotations", "metadata.labels", "spec.restartPolicy")
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_SUBSCRIPT: Final = re.compile(r"(?P<path>.+)\['(?P<key>.*)'\]", re.DOTALL)
_SIZES: Final = ("1", *(f"1{s}" for s in "kMGTPE"), *(f"1{s}i" for s in ("K", *"MGTPE")))
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` "
    "or `fileKeyRef`"
)


def environment_faults(container: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the environment of a container."""
    for index, variable in enumerate(container.get("env") or ()):
        own_path, name = f"{path}.env[{index}]", variable["name"]
        if name:
            yield from each(f"{own_path}.name", name, environment_variable_name(name))
        else:
            yield required(f"{own_path}.name")
        yield from _source_faults(variable, f"{own_path}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _whole_source_faults(source, f"{path}.envFrom", index)


def _source_faults(variable: Plain, path: str) -> Iterator[FieldFault]:
    source = variable.get("valueFrom")
    if source is None:
        return
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        yield from _reference_faults(name, source[name], f"{path}.{name}")
    if not given:
        yield invalid(path, "", _NO_SOURCE)
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _reference_faults(kind: str, reference: Plain, path: str) -> Iterator[FieldFault]:
    if kind == "fieldRef":
        yield from field_reference_faults(reference, _FIELDS, path)
    elif kind == "resourceFieldRef":
        yield from resource_reference_faults(reference, path, is_volume=False)
    elif kind == "fileKeyRef":
        yield from _file_key_faults(reference, path)
    else:
        name = reference.get("name", "")
        yield from each(f"{path}.name", name, dns_subdomain(name))
        if reference["key"]:
            yield from each(f"{path}.key", reference["key"], config_map_key(reference["key"]))
        else:
            yield required(f"{path}.key")


def _file_key_faults(reference: Plain, path: str) -> Iterator[FieldFault]:
    for name, rule in (("key", environment_variable_name), ("volumeName", dns_label)):
        value = reference.get(name, "")
        if value:
            yield from each(f"{path}.{name}", value, rule(value))
        else:
            yield required(f"{path}.{name}")
    file = reference.get("path", "")
    if not file:
        yield required(f"{path}.path")
    elif ".." in file.split("/"):
        yield invalid(f"{path}.path", file, "must not contain '..'")


def field_reference_faults(
    reference: Plain, fields: Collection[str], path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with a reference to a field of the pod.

    Args:
        reference: apiVersion and fieldPath.
        fields: Those that may be shown.
        path: Of the reference.
    """
    version, field = reference.get("apiVersion", ""), reference["fieldPath"]
    for name, value in (("apiVersion", version), ("fieldPath", field)):
        if not value:
            yield required(f"{path}.{name}")
            return
    match = _SUBSCRIPT.fullmatch(field)
    bare, key = (match["path"], match["key"]) if match else (field, None)
    if error := _conversion_error(version, field, bare, key):
        yield invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {error}")
    elif key is not None:
        name = key.lower() if bare == "metadata.annotations" else key
        yield from each(path, name, label_key_errors(name))
    elif field not in fields:
        yield not_supported(f"{path}.fieldPath", field, sorted(fields))


def _conversion_error(version: str, field: str, bare: str, key: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if key is not None:
        if bare in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    return "" if bare in _KNOWN_FIELDS else f"field label not supported: {field}"


def resource_reference_faults(
    reference: Plain, path: str, *, is_volume: bool
) -> Iterator[FieldFault]:
    """Yield what is wrong with a reference to what a container asks for."""
    resource = reference["resource"]
    if is_volume and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported(f"{path}.resource", resource, _RESOURCES)
    yield from _divisor_faults(resource, reference.get("divisor", "0"), f"{path}.divisor")


def _divisor_faults(resource: str, divisor: str, path: str) -> Iterator[FieldFault]:
    if not parse_quantity(divisor).sign:
        return
    kind = resource.partition(".")[2]
    if resource in ("limits.cpu", "requests.cpu"):
        if divisor not in ("1", "1m"):
            detail = "only divisor's values 1m and 1 are supported with the cpu resource"
            yield invalid(path, resource, detail)
        return
    what = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind, "")
    if resource.startswith(_HUGE_PAGES):
        what = "hugepages"
    is_known = resource in _RESOURCES or resource.startswith(_HUGE_PAGES)
    if is_known and divisor not in _SIZES:
        sizes = ", ".join(_SIZES)
        detail = f"only divisor's values {sizes} are supported with the {what} resource"
        yield invalid(path, resource, detail)


def _whole_source_faults(source: Plain, path: str, index: int) -> Iterator[FieldFault]:
    own_path, prefix = f"{path}[{index}]", source.get("prefix", "")
    if prefix:
        yield from each(f"{own_path}.prefix", prefix, environment_variable_name(prefix))
    given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
    for kind in given:
        name = source[kind].get("name", "")
        if name:
            yield from each(f"{own_path}.{kind}.name", name, prefix_of(dns_subdomain)(name))
        else:
            yield required(f"{own_path}.{kind}.name")
    if not given:
        yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
