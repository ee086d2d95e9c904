"""Refusals: errors to raise, the field errors of an object, and the Status objects that are sent.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/errors, apis/meta/v1, Status (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Final, ParamSpec

from kubesched.api import field_errors
from kubesched.api.errors import ApiError
from kubesched.api.field_errors import FieldError, aggregate
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource

_CONFLICT: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_CONTENT_TYPES: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class StatusError(ApiError):
    """A request is refused, with the fields of a Status; `details` of None are left out."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Plain | None = None,
        metadata: Plain | None = None,
    ) -> None:
        retry = None if details is None else details.get("retryAfterSeconds")
        super().__init__(code, reason, message, retry)
        self.details = details
        self.metadata = metadata or {}


def failure(error: ApiError) -> Plain:
    """Return the Status object of an error."""
    details = error.details if isinstance(error, StatusError) else None
    metadata = error.metadata if isinstance(error, StatusError) else {}
    answer: Plain = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata,
        "status": "Failure",
        "message": error.message,
    }
    if error.reason:
        answer["reason"] = error.reason
    if details is not None:
        answer["details"] = details
    answer["code"] = error.code
    return answer


def success(code: int | None = None, details: Plain | None = None) -> Plain:
    """Return the Status object of a success."""
    answer: Plain = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        answer["details"] = details
    if code is not None:
        answer["code"] = code
    return answer


def details_of(group: str, kind: str, name: str, causes: Sequence[Plain] = ()) -> Plain:
    """Return details in the order and with the omissions of upstream."""
    details = {"name": name, "group": group, "kind": kind, "causes": list(causes)}
    return {field: value for field, value in details.items() if value}


def not_found(resource: Resource, name: str) -> StatusError:
    """There is no object of that name."""
    message = f'{resource.group_resource} "{name}" not found'
    return StatusError(404, "NotFound", message, details_of(resource.group, resource.plural, name))


def already_exists(resource: Resource, name: str, *, is_ending: bool) -> StatusError:
    """There is an object of that name, which may be about to be deleted."""
    message = f'{resource.group_resource} "{name}" already exists'
    if is_ending:
        message = f"object is being deleted: {message}"
    details = details_of(resource.group, resource.plural, name)
    return StatusError(409, "AlreadyExists", message, details)


def conflict(group: str, kind: str, name: str, why: str = _CONFLICT) -> StatusError:
    """The object has another version or identity than the request expects.

    `kind` is in most cases the plural of a resource.
    """
    qualified = f"{kind}.{group}" if group else kind
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details_of(group, kind, name))


def bad_request(message: str) -> StatusError:
    """The request is malformed."""
    return StatusError(400, "BadRequest", message)


def internal(message: str) -> StatusError:
    """An error for which upstream has no reason: code 500 and a message."""
    return StatusError(500, "", message)


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Plain] = ()) -> StatusError:
    """The request is understood and refused."""
    qualified = f'{resource.group_resource} "{name}"' if name else resource.group_resource
    details = details_of(resource.group, resource.plural, name, causes)
    return StatusError(403, "Forbidden", f"{qualified} is forbidden: {why}", details)


def cause(reason: str, field: str, message: str) -> Plain:
    """Return one of the causes of a refusal."""
    return {"reason": reason, "message": message, "field": field}


def not_served() -> StatusError:
    """The path names no resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    """The resource exists, but not this verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def expired(message: str, metadata: Plain | None = None) -> StatusError:
    """The requested version is no longer stored."""
    return StatusError(410, "Expired", message, None, metadata)


def not_acceptable() -> StatusError:
    """The server offers none of the forms that the client accepts."""
    message = f"only the following media types are accepted: {_CONTENT_TYPES}"
    return StatusError(406, "NotAcceptable", message)


def no_representation() -> StatusError:
    """The server offers none of the media types that the client accepts."""
    message = (
        f"406: Not Acceptable\n\nAvailable representations: {_CONTENT_TYPES}, "
        "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    )
    return StatusError(406, "NotAcceptable", message, {})


def unsupported_media_type(*accepted: str) -> StatusError:
    """The body has an unsupported media type; without arguments, the message lists all others."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted) or _CONTENT_TYPES}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def rejected_patch() -> StatusError:
    """The patch does not apply to the object; the message gives no reason, as upstream's."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {})


def unfit_patch(why: str) -> StatusError:
    """The outcome of a patch is not a valid object of its kind."""
    message = f"Invalid value: {why}"
    details = {"causes": [cause("FieldValueInvalid", "patch", message)]}
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', details)


# Field errors.


P = ParamSpec("P")


def _adding(error: Callable[P, FieldError]) -> Callable[Concatenate[list[FieldError], P], None]:

    def add(errors: list[FieldError], /, *arguments: P.args, **named: P.kwargs) -> None:
        errors.append(error(*arguments, **named))

    return add


class FieldErrors(list[FieldError]):
    """The errors of an object, in the order in which they were found."""

    duplicate = _adding(field_errors.duplicate)
    failed = _adding(field_errors.internal_error)
    forbidden = _adding(field_errors.forbidden)
    invalid = _adding(field_errors.invalid)
    not_found = _adding(field_errors.not_found)
    not_supported = _adding(field_errors.not_supported)
    required = _adding(field_errors.required)
    too_long = _adding(field_errors.too_long)

    def each(self, field: str, value: Any, details: Iterable[str]) -> None:
        """Add an error for each rule that a value breaks."""
        for detail in details:
            self.invalid(field, value, detail)

    def repeated(self, found: Iterable[tuple[str, Any]]) -> None:
        """Add an error for each of some values, given with their paths, that was there before."""
        seen: list[Any] = []
        for path, value in found:
            if value in seen:
                self.duplicate(path, value)
            seen.append(value)

    def drop(self, path: str) -> None:
        """Drop the errors at a path and below it, which another error makes redundant."""
        self[:] = [one for one in self if not field_errors.is_below(one.path, (path,))]

    def changed(self, field: str, new: Any, old: Any) -> None:
        """Add that a value has changed and may not, if it has."""
        is_nothing = not new and not old and not isinstance(new, bool | int)
        if new != old and not is_nothing:
            self.invalid(field, new, "field is immutable")


def invalid_kind(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the refusal of an object of a kind with these errors."""
    causes = [cause(error.reason, error.path, error.message) for error in errors]
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {aggregate(map(str, errors))}'
    return StatusError(422, "Invalid", message, details_of(group, kind, name, causes))
