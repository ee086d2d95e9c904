"""Claims to devices, templates of them, and classes of devices.

Upstream: pkg/apis/resource/validation/validation.go (v1.36)
Differs:  expressions, capacities, parameters and allocations are not checked; administrators'
          access is not refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubesched.api.label_format import label_value_errors
from kubesched.api.resource_names import is_extended_resource_name
from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from kubesched.apiserver.names import c_identifier, dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.labels import label_name_faults
from kubesched.apiserver.validation.metadata import (
    IMMUTABLE,
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.volume_sources import driver_name_faults

_MODES: Final = ("All", "ExactCount")
_OPERATORS: Final = ("Equal", "Exists")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_REQUESTS_MAX: Final = 32
_SELECTORS_MAX: Final = 32
_CHOICES_MAX: Final = 8
_IDENTIFIER_LENGTH_MAX: Final = 32
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_SEVERAL: Final = "but multiple fields are set"
_NO_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def device_class_faults(device_class: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a class of devices."""
    yield from metadata_faults(device_class["metadata"], False, dns_subdomain, checks_prefix=False)
    spec = device_class["spec"]
    yield from _selector_faults(spec.get("selectors") or (), "spec.selectors")
    yield from _configuration_faults(spec.get("config") or (), None, "spec.config")
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource_name(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def device_class_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a class of devices."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from device_class_faults(new)


def _selector_faults(selectors: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    if len(selectors) > _SELECTORS_MAX:
        yield too_many(path, len(selectors), _SELECTORS_MAX)
    for index, selector in enumerate(selectors):
        if selector.get("cel") is None:
            yield required(f"{path}[{index}].cel")


def claim_faults(claim: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a claim to devices."""
    yield from metadata_faults(claim["metadata"], True, dns_subdomain)
    yield from _claim_spec_faults(claim["spec"]["devices"], "spec.devices")


def claim_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a claim to devices."""
    yield from metadata_faults(new["metadata"], True, dns_subdomain)
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    if new["spec"] != old["spec"]:
        yield invalid("spec", internal_form("resource/ResourceClaimSpec", new["spec"]), IMMUTABLE)


def claim_template_faults(template: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a template of claims to devices."""
    yield from metadata_faults(template["metadata"], True, dns_subdomain)
    yield from _claim_spec_faults(template["spec"]["spec"]["devices"], "spec.spec.devices")


def claim_template_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a template of claims to devices."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from immutable_faults(new["spec"], old["spec"], "spec")


def _claim_spec_faults(devices: Plain, path: str) -> Iterator[FieldFault]:
    requests = devices.get("requests") or ()
    names: dict[str, set[str]] = {}
    if len(requests) > _REQUESTS_MAX:
        yield too_many(f"{path}.requests", len(requests), _REQUESTS_MAX)
    for index, request in enumerate(requests):
        own_path = f"{path}.requests[{index}]"
        if request["name"] in names:
            yield duplicate(own_path, request["name"])
        names[request["name"]] = {one["name"] for one in request.get("firstAvailable") or ()}
        yield from _request_faults(request, own_path)
    for index, constraint in enumerate(devices.get("constraints") or ()):
        own_path = f"{path}.constraints[{index}]"
        yield from _reference_faults(constraint.get("requests") or (), names, own_path)
        names_given = ("matchAttribute", "distinctAttribute")
        given = next((one for one in names_given if constraint.get(one) is not None), None)
        if given is None:
            yield required(own_path, f"{_NO_ATTRIBUTE}, {_SEVERAL}")
        else:
            yield from _attribute_name_faults(constraint[given], f"{own_path}.{given}")
    yield from _configuration_faults(devices.get("config") or (), names, f"{path}.config")


def _attribute_name_faults(name: str, path: str) -> Iterator[FieldFault]:
    domain, slash, rest = name.partition("/")
    if not slash:
        yield from _identifier_faults(name, path)
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(path, name, detail)
    elif "/" not in rest:
        if domain:
            yield from driver_name_faults(domain, path)
        else:
            yield invalid(path, "", "the domain must not be empty")
        if rest:
            yield from _identifier_faults(rest, path)
        else:
            yield invalid(path, "", "the name must not be empty")


def _identifier_faults(name: str, path: str) -> Iterator[FieldFault]:
    if len(name.encode()) > _IDENTIFIER_LENGTH_MAX:
        yield too_long(path, _IDENTIFIER_LENGTH_MAX)
    yield from each(path, name, c_identifier(name))


def _configuration_faults(
    configurations: Sequence[Plain], names: Mapping[str, set[str]] | None, path: str
) -> Iterator[FieldFault]:
    for index, configuration in enumerate(configurations):
        own_path = f"{path}[{index}]"
        if names is not None:
            yield from _reference_faults(configuration.get("requests") or (), names, own_path)
        opaque = configuration.get("opaque")
        if opaque is None:
            yield required(f"{own_path}.opaque")
        else:
            yield from driver_name_faults(opaque["driver"], f"{own_path}.opaque.driver")
            if opaque.get("parameters") is None:
                yield required(f"{own_path}.opaque.parameters")


def _reference_faults(
    references: Sequence[str], names: Mapping[str, set[str]], path: str
) -> Iterator[FieldFault]:
    for index, reference in enumerate(references):
        own_path, parts = f"{path}.requests[{index}]", reference.split("/")
        if reference in references[:index]:
            yield duplicate(own_path, reference)
        if len(parts) <= 2:
            for part in parts:
                yield from each(own_path, part, dns_label(part))
        known = names.get(parts[0])
        is_known = known is not None and parts[1:] in ([], *([one] for one in sorted(known)))
        if not is_known:
            yield invalid(own_path, reference, _NO_REQUEST)


def _request_faults(request: Plain, path: str) -> Iterator[FieldFault]:
    yield from each(f"{path}.name", request["name"], dns_label(request["name"]))
    exactly, choices = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is None and not choices:
        yield required(path, _ONE_REQUEST)
    elif exactly is not None and choices:
        yield invalid(path, None, f"{_ONE_REQUEST}, {_SEVERAL}")
    elif exactly is not None:
        yield from _device_faults(exactly, f"{path}.exactly")
    if exactly is not None:
        return
    if len(choices) > _CHOICES_MAX:
        yield too_many(f"{path}.firstAvailable", len(choices), _CHOICES_MAX)
    names: set[str] = set()
    for index, choice in enumerate(choices):
        own_path = f"{path}.firstAvailable[{index}]"
        if choice["name"] in names:
            yield duplicate(own_path, choice["name"])
        names.add(choice["name"])
        yield from each(f"{own_path}.name", choice["name"], dns_label(choice["name"]))
        yield from _device_faults(choice, own_path)


def _device_faults(request: Plain, path: str) -> Iterator[FieldFault]:
    name = request["deviceClassName"]
    if name:
        yield from each(f"{path}.deviceClassName", name, dns_subdomain(name))
    else:
        yield required(f"{path}.deviceClassName")
    yield from _selector_faults(request.get("selectors") or (), f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode not in _MODES:
        yield not_supported(f"{path}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        yield invalid(f"{path}.count", count, detail)
    elif mode == "ExactCount" and count <= 0:
        yield invalid(f"{path}.count", count, "must be greater than zero")
    for index, toleration in enumerate(request.get("tolerations") or ()):
        yield from _toleration_faults(toleration, f"{path}.tolerations[{index}]")


def _toleration_faults(toleration: Plain, path: str) -> Iterator[FieldFault]:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if key:
        yield from label_name_faults(key, f"{path}.key")
    if operator == "Exists" and value:
        yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from each(f"{path}.value", value, label_value_errors(value))
    elif operator not in _OPERATORS:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)
