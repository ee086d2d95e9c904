"""ConfigError: a configuration is invalid, with all its field errors."""

from collections.abc import Iterable

from kubesched.api.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    render,
    required,
)

__all__ = [
    "ConfigError",
    "FieldError",
    "child",
    "duplicate",
    "forbidden",
    "invalid",
    "not_supported",
    "render",
    "required",
]


class ConfigError(Exception):
    """A configuration is invalid; `errors` has all its field errors, in the order of detection."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: tuple[FieldError, ...] = tuple(errors)
        super().__init__("\n".join(str(field_error) for field_error in self.errors))
