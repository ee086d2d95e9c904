"""From what a client sends to an object of the path's kind, with its defaults.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers (create.go, update.go),
          staging/src/k8s.io/apimachinery/pkg/runtime/serializer (v1.36)
Rejects:  objects of other kinds or versions, fields nobody knows where the client is strict.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver import defaults, field_validation, object_types
from kubesched.apiserver.bodies import PROTOBUF, internal_package, read_object
from kubesched.apiserver.object_types import type_of
from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.reading import DecodeError
from kubesched.apiserver.resource import Resource
from kubesched.apiserver.resources import Resources
from kubesched.apiserver.status import StatusError, bad_request

_SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"


def decoded(operation: Operation, resources: Resources, resource: Resource) -> Plain:
    """Return the object that a request carries, with its defaults.

    Args:
        operation: The request; what is wrong with fields is added to its warnings.
        resources: What is served.
        resource: What the object should be.

    Raises:
        StatusError: It is something else.
    """
    sent = read_object(operation.request, resource.kind)
    value = typed(sent, resources, resource)
    object_type = type_of(resource.group, resource.version, resource.kind)
    if object_type is None:
        return value
    try:
        read, unknown = object_types.decoded(object_type, value)
    except DecodeError:
        # Says what does not fit.
        return defaults.with_defaults(resource, value)
    _check_fields(
        operation, resource, value, may_differ=bool(unknown) or is_longer(operation, sent)
    )
    defaults.fill_in(object_type, read)
    return read


def typed(value: Plain, resources: Resources, resource: Resource) -> Plain:
    """Return an object with kind and version, which may be left out.

    Raises:
        StatusError: They are other ones than the path's.
    """
    kind = value.get("kind") or resource.kind
    version = value.get("apiVersion") or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        _check_kind(kind, version, resources, resource)
    return {**value, "kind": resource.kind, "apiVersion": resource.api_version}


def _check_kind(kind: str, version: str, resources: Resources, resource: Resource) -> None:
    if not isinstance(kind, str) or not isinstance(version, str):
        raise bad_request("couldn't get version/kind; json parse error")
    short = version.rpartition("/")[2]
    begin = f'{kind} in version "{short}" cannot be handled as a {resource.kind}:'
    found = resources.find_kind(version, kind)
    if found is None:
        raise bad_request(
            f'{begin} no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
        )
    if found.kind != resource.kind:
        raise bad_request(
            f"{begin} converting ({short}.{kind}) to "
            f"({internal_package(resource.group)}.{resource.kind}): unknown conversion"
        )
    raise bad_request(
        f"the API version in the data ({version}) does not match the expected API version "
        f"({resource.api_version})"
    )


def is_longer(operation: Operation, sent: object) -> bool:
    """Whether a body says more than what was read of it, as where a field stands twice.

    Bodies with spaces are longer too: a no is certain, a yes is not.
    """
    return len(operation.request.body.rstrip()) != len(encode(sent))


def _check_fields(
    operation: Operation, resource: Resource, value: Plain, *, may_differ: bool
) -> None:
    """Warn of fields that nobody knows or that stand twice, or refuse them."""
    if operation.validation == "Ignore" or not may_differ:
        return
    # What stands twice is seen in texts only.
    is_text = operation.request.content_type != PROTOBUF
    body = operation.request.body if is_text else b"{}"
    problems = field_validation.problems(resource, value, body)
    if not problems:
        return
    if operation.validation == "Strict":
        raise strict_error(resource, problems)
    operation.warnings.extend(field_validation.warnings_of(problems))


def strict_error(resource: Resource, problems: list[str]) -> StatusError:
    """Return the error for fields that a strict client does not want."""
    return bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a '
        f"{resource.kind}: strict decoding error: {', '.join(problems)}"
    )
