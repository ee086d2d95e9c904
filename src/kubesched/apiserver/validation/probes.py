"""Probes of containers, and what they do when they start and end.

Upstream: pkg/apis/core/validation/validation.go (validateProbe, validateLifecycle, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import http_header_name, port_name, valid_port
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.metadata import NOT_NEGATIVE

_SCHEMES: Final = ("HTTP", "HTTPS")
_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def _names(text: str) -> list[str]:
    return text.split()


_GRACE: Final = "terminationGracePeriodSeconds"
_SIGNALS: Final = (
    *_names("ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT"),
    "RTMAX",
    *(f"RTMAX-{number}" for number in (1, 10, 11, 12, 13, 14, 2, 3, 4, 5, 6, 7, 8, 9)),
    "RTMIN",
    *(f"RTMIN+{number}" for number in (1, 10, 11, 12, 13, 14, 15, 2, 3, 4, 5, 6, 7, 8, 9)),
    *_names("SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ"),
)
_STOP_SIGNALS: Final[Mapping[str, Sequence[str]]] = {
    "linux": tuple(f"SIG{name}" for name in _SIGNALS),
    "windows": ("SIGKILL", "SIGTERM"),
}


def probe_faults(
    name: str, probe: Plain, grace_seconds: int | None, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with a probe.

    Args:
        name: The field it stands in.
        probe: The probe.
        grace_seconds: How long the pod may take to end.
        path: Of the probe.
    """
    yield from _handler_faults(probe, ("exec", "httpGet", "tcpSocket", "grpc"), grace_seconds, path)
    for field in _NUMBERS:
        if probe.get(field, 0) < 0:
            yield invalid(f"{path}.{field}", probe[field], NOT_NEGATIVE)
    seconds = probe.get(_GRACE)
    if seconds is not None and seconds <= 0:
        yield invalid(f"{path}.{_GRACE}", seconds, "must be greater than 0")
    if name == "readinessProbe":
        if seconds is not None:
            yield invalid(f"{path}.{_GRACE}", seconds, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 0) != 1:
        yield invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1")


def lifecycle_faults(
    lifecycle: Plain, grace_seconds: int | None, os: str | None, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with what a container does when it starts and ends."""
    for name in ("postStart", "preStop"):
        handler = lifecycle.get(name)
        if handler is not None:
            kinds = ("exec", "httpGet", "tcpSocket", "sleep")
            yield from _handler_faults(handler, kinds, grace_seconds, f"{path}.{name}")
    signal = lifecycle.get("stopSignal")
    if signal is None:
        return
    if os is None:
        detail = "may not be set for containers with empty `spec.os.name`"
        yield forbidden(f"{path}.stopSignal", detail)
    elif os in _STOP_SIGNALS and signal not in _STOP_SIGNALS[os]:
        yield not_supported(f"{path}.stopSignal", signal, _STOP_SIGNALS[os])


def _handler_faults(
    handler: Plain, kinds: Sequence[str], grace_seconds: int | None, path: str
) -> Iterator[FieldFault]:
    given = [kind for kind in kinds if handler.get(kind) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    first = handler[given[0]]
    if given[0] == "sleep":
        yield from _sleep_faults(first, grace_seconds, f"{path}.sleep")
    else:
        yield from _HANDLERS[given[0]](first, f"{path}.{given[0]}")
    for kind in given[1:]:
        yield forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")


def _exec_faults(handler: Plain, path: str) -> Iterator[FieldFault]:
    if not handler.get("command"):
        yield required(f"{path}.command")


def _http_faults(handler: Plain, path: str) -> Iterator[FieldFault]:
    if not handler.get("path"):
        yield required(f"{path}.path")
    yield from port_faults(handler["port"], f"{path}.port")
    scheme = handler.get("scheme", "")
    if scheme not in _SCHEMES:
        yield not_supported(f"{path}.scheme", scheme, _SCHEMES)
    for header in handler.get("httpHeaders") or ():
        yield from each(f"{path}.httpHeaders", header["name"], http_header_name(header["name"]))


def _port_handler_faults(handler: Plain, path: str) -> Iterator[FieldFault]:
    yield from port_faults(handler["port"], f"{path}.port")


def port_faults(port: int | str, path: str) -> list[FieldFault]:
    """Return what is wrong with a port that is told by number or by name."""
    return each(path, port, port_name(port) if isinstance(port, str) else valid_port(port))


def _sleep_faults(sleep: Plain, grace_seconds: int | None, path: str) -> Iterator[FieldFault]:
    seconds = sleep["seconds"]
    if grace_seconds is not None and not 0 <= seconds <= grace_seconds:
        detail = f"must be non-negative and less than {_GRACE} ({grace_seconds})"
        yield invalid(path, seconds, detail)


_HANDLERS: Final[Mapping[str, Callable[[Plain, str], Iterator[FieldFault]]]] = {
    "exec": _exec_faults,
    "grpc": _port_handler_faults,
    "httpGet": _http_faults,
    "tcpSocket": _port_handler_faults,
}
