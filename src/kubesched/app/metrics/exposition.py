"""Exposition writes metrics as Go programs do: classic text, numbers in Go's shortest form.

The strings of bucket bounds are label values, so `le="1"` and `le="1.0"` would be two series to
Prometheus: whoever exchanges one scheduler for the other keeps the series.

Upstream: github.com/prometheus/common/expfmt (as in v1.36); OpenMetrics is not served there
Differs:  protobuf is not offered.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isnan
from typing import Final

from prometheus_client.metrics_core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

_EXPONENT_MIN: Final = -4
_EXPONENT_MAX: Final = 5
_BOUND: Final = "le"


def write_page(metrics: Iterable[Metric]) -> bytes:
    """Return the page: families by name, those without a series left out."""
    lines: list[str] = []
    for metric in sorted(metrics, key=lambda each: each.name):
        if metric.samples:
            lines += _family(metric)
    return ("\n".join(lines) + "\n" if lines else "").encode()


def _family(metric: Metric) -> list[str]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    kind = "untyped" if metric.type == "unknown" else metric.type
    lines = [f"# HELP {name} {_escaped(metric.documentation)}", f"# TYPE {name} {kind}"]
    for sample in metric.samples:
        if sample.name.endswith("_created") and sample.name != name:
            continue
        value = go_float(float(sample.value))
        lines.append(f"{sample.name}{_labels(sample.labels)} {value}")
    return lines


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    # The bound stands last, whatever its name sorts as.
    names = sorted(labels, key=lambda name: (name == _BOUND, name))
    written = ",".join(f'{name}="{_escaped(labels[name], quoted=True)}"' for name in names)
    return f"{{{written}}}"


def _escaped(text: str, *, quoted: bool = False) -> str:
    if "\\" in text or "\n" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace("\n", "\\n")
        if quoted:
            text = text.replace('"', '\\"')
    return text


def go_float(value: float) -> str:
    """Write a number with the fewest digits that mean it, as Go's `%g` does."""
    if value in {inf, -inf}:
        return "+Inf" if value > 0 else "-Inf"
    if isnan(value):
        return "NaN"
    digits, exponent = _digits(abs(value))
    sign = "-" if value < 0 else ""
    if _EXPONENT_MIN <= exponent <= _EXPONENT_MAX:
        return sign + _plain(digits, exponent)
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _digits(value: float) -> tuple[str, int]:
    """Return the significant digits, without trailing zeros, and the power of the first one."""
    mantissa, _, power = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = len(whole) - 1 + int(power or 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    if not stripped:
        return "0", 0
    return stripped.rstrip("0"), exponent - (len(digits) - len(stripped))


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
