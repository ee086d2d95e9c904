"""FieldErrors collects the field errors of an object; several make a refusal.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/errors (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubesched.api.field_errors import (
    FieldError,
    aggregate,
    duplicate,
    forbidden,
    internal_error,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, cause, details_of


class FieldErrors(list[FieldError]):
    """The errors of an object, in the order in which they were found."""

    def invalid(self, field: str, value: Any, detail: str) -> None:
        """Add that a value breaks a rule."""
        self.append(invalid(field, value, detail))

    def each(self, field: str, value: Any, details: Iterable[str]) -> None:
        """Add every rule that a value breaks."""
        self.extend(invalid(field, value, detail) for detail in details)

    def required(self, field: str, detail: str = "") -> None:
        """Add that a value is missing."""
        self.append(required(field, detail))

    def forbidden(self, field: str, detail: str) -> None:
        """Add that a value may not be given here."""
        self.append(forbidden(field, detail))

    def failed(self, field: str, detail: str) -> None:
        """Add that a value could not be looked at."""
        self.append(internal_error(field, detail))

    def duplicate(self, field: str, value: Any, detail: str = "") -> None:
        """Add that a value stands there twice."""
        self.append(duplicate(field, value, detail))

    def not_found(self, field: str, value: Any, detail: str = "") -> None:
        """Add that a value names something that is not there."""
        self.append(not_found(field, value, detail))

    def not_supported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        """Add that a value is none of a few words."""
        self.append(not_supported(field, value, supported))

    def too_long(self, field: str, length_max: int) -> None:
        """Add that a text is too long."""
        self.append(too_long(field, length_max))

    def drop_below(self, path: str) -> None:
        """Forget what was found below a path, where something above it makes it pointless."""
        below = (f"{path}.", f"{path}[")
        self[:] = [error for error in self if not error.path.startswith(below)]

    def changed(self, field: str, new: Any, old: Any) -> None:
        """Add that a value has changed and may not, if it has."""
        is_nothing = not new and not old and not isinstance(new, bool | int)
        if new != old and not is_nothing:
            self.invalid(field, new, "field is immutable")


def invalid_status(resource: Resource, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the refusal of an object with these errors."""
    return invalid_kind(resource.group, resource.kind, name, errors)


def invalid_kind(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the refusal of an object of a kind with these errors."""
    causes = [cause(error.reason, error.path, error.message) for error in errors]
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {aggregate(map(str, errors))}'
    return StatusError(422, "Invalid", message, details_of(group, kind, name, causes))
