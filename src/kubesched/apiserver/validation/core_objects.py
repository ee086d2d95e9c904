"""The smaller kinds of the core group: namespaces, config maps, secrets, limits, quotas.

Upstream: pkg/apis/core/validation/validation.go (v1.36)
Differs:  contents of secrets, limits and quotas are only checked for their names and sizes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, each, forbidden, invalid, required, too_long
from kubesched.apiserver.names import config_map_key, dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.metadata import (
    IMMUTABLE,
    core_metadata_update_faults,
    finalizer_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.resources import (
    container_resource_name_faults,
    quantity_faults,
    quota_resource_name_faults,
    resource_name_faults,
)

_SIZE_MAX: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_ACCOUNT_ANNOTATION: Final = "kubernetes.io/service-account.name"
_SECRET_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def new_namespace_faults(namespace: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new namespace."""
    yield from metadata_faults(namespace["metadata"], False, dns_label)
    for name in namespace["spec"].get("finalizers") or ():
        yield from finalizer_faults(name, "spec.finalizers")


def namespace_status_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a namespace's status."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    is_going = bool(new["metadata"].get("deletionTimestamp"))
    phase, wanted = new["status"].get("phase", ""), "Terminating" if is_going else "Active"
    if phase != wanted:
        condition = "is not empty" if is_going else "is empty"
        detail = f"may only be '{wanted}' if `deletionTimestamp` {condition}"
        yield invalid("status.Phase", phase, detail)


def namespace_finalize_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with the finalizers of a namespace."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    for index, name in enumerate(new["spec"].get("finalizers") or ()):
        yield from finalizer_faults(name, f"spec.finalizers[{index}]")


def config_map_faults(config_map: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a config map."""
    yield from metadata_faults(config_map["metadata"], True, dns_subdomain)
    texts, binaries = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for key in texts:
        yield from each(f"data[{key}]", key, config_map_key(key))
        if key in binaries:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binaries:
        yield from each(f"binaryData[{key}]", key, config_map_key(key))
    size = sum(len(text.encode()) for text in texts.values()) + _size(binaries)
    if size > _SIZE_MAX:
        yield too_long("", _SIZE_MAX)


def _size(binaries: Plain) -> int:
    return sum(len(base64.b64decode(value)) for value in binaries.values() if value)


def config_map_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a config map."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _frozen_faults(new, old, "data", "binaryData")
    yield from config_map_faults(new)


def _frozen_faults(new: Plain, old: Plain, *names: str) -> Iterator[FieldFault]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for name in names:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield forbidden(name, _FROZEN)


def secret_faults(secret: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a secret."""
    yield from metadata_faults(secret["metadata"], True, dns_subdomain)
    values, kind = secret.get("data") or {}, secret.get("type", "")
    for key in values:
        yield from each(f"data[{key}]", key, config_map_key(key))
    if _size(values) > _SIZE_MAX:
        yield too_long("data", _SIZE_MAX)
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in values or (kind == "kubernetes.io/ssh-auth" and not values[key]):
            yield required(f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & values.keys():
        for key in ("username", "password"):
            yield required(f"data[{key}]")
    if kind == "kubernetes.io/service-account-token":
        annotations = secret["metadata"].get("annotations") or {}
        if not annotations.get(_ACCOUNT_ANNOTATION):
            yield required(f"metadata.annotations[{_ACCOUNT_ANNOTATION}]")


def secret_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a secret."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from immutable_faults(new.get("type", ""), old.get("type", ""), "type")
    yield from _frozen_faults(new, old, "data")
    yield from secret_faults(new)


def limit_range_faults(limit_range: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a limit range."""
    yield from metadata_faults(limit_range["metadata"], True, dns_subdomain)
    for index, limit in enumerate(limit_range["spec"].get("limits") or ()):
        kind = limit["type"]
        check = (
            container_resource_name_faults if kind in ("Container", "Pod") else resource_name_faults
        )
        for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            for resource in limit.get(name) or {}:
                path = f"spec.limits[{index}].{name}[{resource}]"
                yield from check(resource, path)


def limit_range_update_faults(new: Plain, _old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a limit range."""
    yield from limit_range_faults(new)


def quota_faults(quota: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a quota."""
    yield from metadata_faults(quota["metadata"], True, dns_subdomain)
    yield from _quota_spec_faults(quota)


def quota_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a quota."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _quota_spec_faults(new)
    scopes, before = (one["spec"].get("scopes") or [] for one in (new, old))
    if set(scopes) != set(before):
        yield invalid("spec.scopes", scopes or None, IMMUTABLE)


def _quota_spec_faults(quota: Plain) -> Iterator[FieldFault]:
    for name, quantity in (quota["spec"].get("hard") or {}).items():
        path = f"spec.hard[{name}]"
        yield from quota_resource_name_faults(name, path)
        yield from quantity_faults(name, quantity, path)
