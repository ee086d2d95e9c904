"""A fault is one thing wrong with a configuration: where it is, and what upstream would say of it.

Upstream: apimachinery/pkg/util/validation/field/errors.go (v1.36)
Differs:  nothing.
"""

import json
from collections.abc import Iterable, Sequence

import msgspec

from kubesched.api.go_text import go_quote


class Fault(msgspec.Struct, frozen=True):
    """One fault: the path of the field (`profiles[0].schedulerName`) and what is wrong with it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(Exception):
    """The configuration is wrong; carries all faults found, in the order they were found."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def invalid(path: str, value: object, detail: str) -> Fault:
    """A malformed value."""
    return Fault(path, _with_detail(f"Invalid value: {render(value)}", detail))


def required(path: str, detail: str = "") -> Fault:
    """A value that must be there and is not."""
    return Fault(path, _with_detail("Required value", detail))


def duplicate(path: str, value: object) -> Fault:
    """A value that must be unique and is not."""
    return Fault(path, f"Duplicate value: {render(value)}")


def not_supported(path: str, value: object, supported: Sequence[str]) -> Fault:
    """A value outside a closed list."""
    listed = ", ".join(go_quote(choice) for choice in supported)
    detail = f"supported values: {listed}" if supported else ""
    return Fault(path, _with_detail(f"Unsupported value: {render(value)}", detail))


def forbidden(path: str, detail: str) -> Fault:
    """A well-formed value that must not be given here."""
    return Fault(path, _with_detail("Forbidden", detail))


def child(path: str, *names: str | int) -> str:
    """The path of a field (a name) or of an element (an index) below `path`."""
    for name in names:
        step = f"[{name}]" if isinstance(name, int) else f".{name}"
        path = path + step if path else step.removeprefix(".")
    return path


def render(value: object) -> str:
    """A value as upstream prints it in a fault: text quoted, structures as compact JSON."""
    if isinstance(value, str):
        return go_quote(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
