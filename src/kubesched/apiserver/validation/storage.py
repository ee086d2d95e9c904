"""Storage classes, and what drivers say of themselves and of nodes.

Upstream: pkg/apis/storage/validation/validation.go (v1.36)
Differs:  volumes that attachments hold themselves are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from kubesched.api.label_format import label_key_errors
from kubesched.api.quantity import parse_quantity
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
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.labels import label_name_faults, selector_faults
from kubesched.apiserver.validation.metadata import (
    IMMUTABLE,
    NOT_NEGATIVE,
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.numbers import negative_faults
from kubesched.apiserver.validation.volume_sources import driver_name_faults, token_duration_faults

_RECLAIM_POLICIES: Final = ("Delete", "Retain")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES: Final = ("Persistent", "Ephemeral")
_PARAMETERS_MAX: Final = 512
_PARAMETERS_SIZE_MAX: Final = 256 * 1024
_NODE_ID_MAX: Final = 256
_PERIOD_SECONDS_MIN: Final = 10
_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def storage_class_faults(storage_class: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new storage class."""
    yield from metadata_faults(storage_class["metadata"], False, dns_subdomain)
    yield from _provisioner_faults(storage_class["provisioner"], "provisioner")
    yield from _parameter_faults(storage_class.get("parameters") or {})
    for name, words in (
        ("reclaimPolicy", _RECLAIM_POLICIES),
        ("volumeBindingMode", _BINDING_MODES),
    ):
        word = storage_class.get(name)
        if word is not None and word not in words and (word or name != "reclaimPolicy"):
            yield not_supported(name, word, words)
    yield from _topology_faults(storage_class)


def _provisioner_faults(name: str, path: str) -> Iterator[FieldFault]:
    if name:
        yield from each(path, name.lower(), label_key_errors(name.lower()))
    else:
        yield required(path)


def _parameter_faults(parameters: Plain, *, may_be_empty: bool = True) -> Iterator[FieldFault]:
    path = "parameters"
    if len(parameters) > _PARAMETERS_MAX:
        yield too_long(path, _PARAMETERS_MAX)
        return
    if "" in parameters:
        yield invalid(path, "", "field can not be empty.")
    if (
        sum(len(f"{key}{value}".encode()) for key, value in parameters.items())
        > _PARAMETERS_SIZE_MAX
    ):
        yield too_long(path, _PARAMETERS_SIZE_MAX)
    if not parameters and not may_be_empty:
        yield required(path, "must contain at least one key/value pair")


def _topology_faults(storage_class: Plain) -> Iterator[FieldFault]:
    seen: list[dict[str, list[str]]] = []
    terms = storage_class.get("allowedTopologies") or ()
    for index, term in enumerate(terms):
        path, keys = f"allowedTopologies[{index}].matchLabelExpressions", {}
        for number, one in enumerate(term.get("matchLabelExpressions") or ()):
            own_path, values = f"{path}[{number}]", one.get("values") or []
            if not values:
                yield required(f"{own_path}.values")
            for place, value in enumerate(values):
                if value in values[:place]:
                    yield duplicate(f"{own_path}.values[{place}]", value)
            yield from label_name_faults(one["key"], f"{own_path}.key")
            if one["key"] in keys:
                yield duplicate(f"{own_path}.key", one["key"])
            keys[one["key"]] = sorted(set(values))
        # Upstream begins to compare with as many empty terms as there are terms.
        count = seen.count(keys) if keys else len(terms) + seen.count(keys)
        yield from (duplicate(path, "") for _ in range(count))
        seen.append(keys)


def storage_class_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a storage class."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from immutable_faults(new.get(name), old.get(name), name)


def csi_node_faults(csi_node: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with the drivers of a node."""
    yield from metadata_faults(csi_node["metadata"], False, dns_subdomain)
    names: set[str] = set()
    for index, driver in enumerate(csi_node["spec"].get("drivers") or ()):
        path, name = f"spec.drivers[{index}]", driver["name"]
        yield from driver_name_faults(name, f"{path}.name")
        if not driver["nodeID"]:
            yield required(f"{path}.nodeID")
        if len(driver["nodeID"].encode()) > _NODE_ID_MAX:
            detail = f"must be {_NODE_ID_MAX} characters or less"
            yield invalid(f"{path}.nodeID", driver["nodeID"], detail)
        yield from negative_faults(driver.get("allocatable") or {}, f"{path}.allocatable", "count")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        yield from _topology_key_faults(driver.get("topologyKeys") or (), path)


def _topology_key_faults(keys: list[str] | tuple[()], path: str) -> Iterator[FieldFault]:
    for index, key in enumerate(keys):
        if not key:
            yield required(path)
        if key in keys[:index]:
            yield duplicate(path, key)
        yield from each(path, key, label_key_errors(key))


def csi_node_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of the drivers of a node."""
    yield from csi_node_faults(new)
    drivers, old_drivers = (one["spec"].get("drivers") or () for one in (new, old))
    names = ("nodeID", "topologyKeys")
    for before, driver in product(old_drivers, drivers):
        is_same = driver["name"] == before["name"]
        if is_same and any(driver.get(name) != before.get(name) for name in names):
            shown = {
                "Name": driver["name"],
                "NodeID": driver["nodeID"],
                "TopologyKeys": driver.get("topologyKeys"),
                "Allocatable": None,
            }
            yield invalid("spec.drivers", shown, IMMUTABLE)


def csi_driver_faults(csi_driver: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a driver."""
    yield from metadata_faults(csi_driver["metadata"], False, dns_subdomain)
    yield from _driver_spec_faults(csi_driver["spec"])


def _driver_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _GROUP_POLICIES:
        yield not_supported("spec.fsGroupPolicy", policy, _GROUP_POLICIES)
    requests = spec.get("tokenRequests") or ()
    yield from _token_faults(requests)
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLES:
            yield not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLES)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _PERIOD_SECONDS_MIN:
        field = "spec.nodeAllocatableUpdatePeriodSeconds"
        yield invalid(field, period, "must be greater than or equal to 10 seconds")
    is_in_secrets = spec.get("serviceAccountTokenInSecrets")
    if is_in_secrets is not None and not requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid("spec.serviceAccountTokenInSecrets", is_in_secrets, detail)


def _token_faults(requests: Sequence[Plain]) -> Iterator[FieldFault]:
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", request["audience"]
        if audience in audiences:
            yield duplicate(f"{path}.audience", audience)
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None:
            yield from token_duration_faults(seconds, f"{path}.expirationSeconds")


def csi_driver_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a driver."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    spec, before = new["spec"], old["spec"]
    yield from _driver_spec_faults(spec)
    attach, old_attach = spec.get("attachRequired"), before.get("attachRequired")
    yield from immutable_faults(attach, old_attach, "spec.attachedRequired")
    name = "volumeLifecycleModes"
    yield from immutable_faults(spec.get(name), before.get(name), f"spec.{name}")


def capacity_faults(capacity: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with how much a class can still provide."""
    yield from metadata_faults(capacity["metadata"], True, dns_subdomain)
    yield from selector_faults(capacity.get("nodeTopology"), "nodeTopology")
    name, amount = capacity["storageClassName"], capacity.get("capacity")
    yield from each("storageClassName", name, dns_subdomain(name))
    if amount is not None and parse_quantity(amount).sign < 0:
        yield invalid("capacity", amount, NOT_NEGATIVE)


def capacity_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of how much a class can still provide."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    for name in ("nodeTopology", "storageClassName"):
        yield from immutable_faults(new.get(name), old.get(name), name)


def attachment_faults(attachment: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with an attachment of a volume."""
    yield from metadata_faults(attachment["metadata"], False, dns_subdomain)
    spec = attachment["spec"]
    yield from driver_name_faults(spec["attacher"], "spec.attacher")
    inline, name = (spec["source"].get(one) for one in ("inlineVolumeSpec", "persistentVolumeName"))
    if inline is None and name is None:
        yield required("spec.source", _ONE_SOURCE)
    elif inline is not None and name is not None:
        yield forbidden("spec.source", _ONE_SOURCE)
    elif name == "":
        detail = "must specify non empty persistentVolumeName"
        yield required("spec.source.persistentVolumeName", detail)
    yield from each("spec.nodeName", spec["nodeName"], dns_subdomain(spec["nodeName"]))
    if name is not None:
        yield from each("spec.source.persistentVolumeName", name, dns_subdomain(name))


def attachment_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of an attachment of a volume."""
    yield from attachment_faults(new)
    yield from immutable_faults(new["spec"], old["spec"], "spec")


def attributes_class_faults(attributes_class: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a class of volume attributes."""
    yield from metadata_faults(attributes_class["metadata"], False, dns_subdomain)
    yield from _provisioner_faults(attributes_class["driverName"], "driverName")
    yield from _parameter_faults(attributes_class.get("parameters") or {}, may_be_empty=False)


def attributes_class_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a class of volume attributes."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    for name in ("driverName", "parameters"):
        if new.get(name) != old.get(name):
            yield forbidden(name, f"updates to {name} are forbidden.")
    yield from attributes_class_faults(new)
