"""Texts that cells of many kinds are made of.

Upstream: pkg/printers/internalversion/printers.go,
          staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.api.meta import LabelSelector
from kubesched.api.selectors import SelectorError, compile_label_selector
from kubesched.apiserver.plain import Plain, get

__all__ = [
    "NONE",
    "UNKNOWN",
    "UNSET",
    "age",
    "container_texts",
    "human_duration",
    "label_selector_text",
    "label_text",
    "name_of",
    "since",
    "when",
]

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


class _Step(NamedTuple):
    """How durations below a limit are said: in a unit, and perhaps the rest in a smaller one."""

    limit_seconds: float
    unit_seconds: int
    unit: str
    rest_seconds: int = 1
    rest_unit: str = ""


_STEPS: Final = (
    _Step(2 * _MINUTE, 1, "s"),
    _Step(10 * _MINUTE, _MINUTE, "m", 1, "s"),
    _Step(3 * _HOUR, _MINUTE, "m"),
    _Step(8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    _Step(2 * _DAY, _HOUR, "h"),
    _Step(8 * _DAY, _DAY, "d", _HOUR, "h"),
    _Step(2 * _YEAR, _DAY, "d"),
    _Step(8 * _YEAR, _YEAR, "y", _DAY, "d"),
    _Step(math.inf, _YEAR, "y"),
)


def name_of(value: Plain) -> str:
    """Return the name of an object; "" if it has none."""
    return str(get(value, "metadata", "name") or "")


def when(text: Any) -> datetime | None:
    """Return the time of a text; None if there is none."""
    return datetime.fromisoformat(text) if text else None


def age(value: Plain, now: datetime) -> str:
    """Return how long an object exists."""
    return since(get(value, "metadata", "creationTimestamp"), now)


def since(text: Any, now: datetime) -> str:
    """Return how long a time is ago."""
    start = when(text)
    return UNKNOWN if start is None else human_duration((now - start).total_seconds())


def human_duration(duration_seconds: float) -> str:
    """Return a duration as people say it, with two or three digits."""
    seconds = int(duration_seconds)
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    step = next(step for step in _STEPS if seconds < step.limit_seconds)
    rest = seconds % step.unit_seconds // step.rest_seconds if step.rest_unit else 0
    return f"{seconds // step.unit_seconds}{step.unit}" + (
        f"{rest}{step.rest_unit}" if rest else ""
    )


def label_text(labels: Mapping[str, str] | None) -> str:
    """Return labels as a selector that asks for them."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def label_selector_text(selector: Plain | None, empty: str = NONE, faulty: str = "<error>") -> str:
    """Return a label selector as text.

    Args:
        selector: As objects have it.
        empty: What stands for one that says nothing.
        faulty: What stands for one that is wrong.
    """
    if selector is None:
        return empty
    try:
        compiled = compile_label_selector(msgspec.convert(selector, LabelSelector))
    except SelectorError:
        return faulty
    return str(compiled) or empty


def container_texts(pod_spec: Plain | None) -> list[str]:
    """Return the names and the images of containers, each as one text."""
    containers: Sequence[Plain] = (pod_spec or {}).get("containers") or ()
    return [",".join(one.get(field, "") for one in containers) for field in ("name", "image")]
