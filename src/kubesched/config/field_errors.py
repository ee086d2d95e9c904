"""Field errors: a field's path in a configuration, and what is wrong there, as upstream words it.

Upstream: apimachinery/pkg/util/validation/field/errors.go (v1.36)
Differs:  nothing.
"""

import json
from collections.abc import Iterable, Sequence

import msgspec

from kubesched.api.go_text import go_quote


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong at a path such as `profiles[0].schedulerName`; "" is the whole file."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(Exception):
    """A configuration is invalid; `errors` has all its field errors, in the order of detection."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: tuple[FieldError, ...] = tuple(errors)
        super().__init__("\n".join(str(field_error) for field_error in self.errors))


def invalid(path: str, value: object, detail: str) -> FieldError:
    """Return the error of a value that breaks a rule."""
    return FieldError(path, _with_detail(f"Invalid value: {render(value)}", detail))


def required(path: str, detail: str = "") -> FieldError:
    """Return the error of a missing value."""
    return FieldError(path, _with_detail("Required value", detail))


def duplicate(path: str, value: object) -> FieldError:
    """Return the error of a value that must be unique."""
    return FieldError(path, f"Duplicate value: {render(value)}")


def not_supported(path: str, value: object, supported: Sequence[str]) -> FieldError:
    """Return the error of a value that is not in the list of supported ones."""
    listed = ", ".join(go_quote(choice) for choice in supported)
    detail = f"supported values: {listed}" if supported else ""
    return FieldError(path, _with_detail(f"Unsupported value: {render(value)}", detail))


def forbidden(path: str, detail: str) -> FieldError:
    """Return the error of a value that must not be set here."""
    return FieldError(path, _with_detail("Forbidden", detail))


def child(path: str, *names: str | int) -> str:
    """Return the path of a field (a name) or of an element (an index) below `path`."""
    for name in names:
        step = f"[{name}]" if isinstance(name, int) else f".{name}"
        path = path + step if path else step.removeprefix(".")
    return path


def render(value: object) -> str:
    """Return a value as upstream prints it in a field error: quoted text or compact JSON."""
    if isinstance(value, str):
        return go_quote(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
