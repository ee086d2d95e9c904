"""Exposure selects the metrics and label values that pages show.

Upstream: staging/src/k8s.io/component-base/metrics/options.go,
          staging/src/k8s.io/component-base/metrics/api/v1/config.go (v1.36)
Rejects:  names and keys that cannot be metrics or labels, a manifest that cannot be read, and
          allow-lists from both flags.
Differs:  allow-lists are applied when a page is read: merged series of a gauge show their sum,
          where upstream shows the last value that was set.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kubesched.api.field_errors import ConfigError, FieldError, invalid
from kubesched.api.go_text import go_quote
from kubesched.api.yaml_syntax import YamlError, load_documents
from kubesched.app.metrics.family import FAMILIES

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
_METRIC: Final = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_KEY: Final = re.compile(f"{_METRIC},{_LABEL}")

_UNEXPECTED: Final = "unexpected"

AllowedValues = Mapping[str, Mapping[str, frozenset[str]]]
"""Metric name -> label name -> the values that are shown."""


class Exposure(msgspec.Struct, frozen=True):
    """What the pages show.

    Attributes:
        disabled: Names of hidden metrics, with `_total` for counters.
        allowed: The label values to show; others become "unexpected".
    """

    disabled: frozenset[str] = frozenset()
    allowed: AllowedValues = msgspec.field(default_factory=dict)

    def shown(self, metrics: Iterable[Metric]) -> list[Metric]:
        """Return the shown metrics, with renamed label values."""
        kept = (metric for metric in metrics if _full_name(metric) not in self.disabled)
        if not self.allowed:
            return list(kept)
        return [self._constrained(metric) for metric in kept]

    def metrics(self, counted: Iterable[Metric]) -> Iterator[Metric]:
        """Yield what is known of the exposure itself, given the metrics that are counted."""
        unexpected = sum(
            sample.value
            for metric in counted
            if _full_name(metric) in self.allowed
            for sample in metric.samples
            if sample.name == _counting_name(metric)
            and self._renamed(_full_name(metric), sample.labels) != sample.labels
        )
        for name, value in (
            ("cardinality_enforcement_unexpected_categorizations_total", unexpected),
            ("disabled_metrics_total", len(self.disabled)),
            ("hidden_metrics_total", 0),
        ):
            yield FAMILIES[name].metric([((), value)])

    def _constrained(self, metric: Metric) -> Metric:
        name = _full_name(metric)
        if name not in self.allowed:
            return metric
        values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for sample in metric.samples:
            key = (sample.name, tuple(self._renamed(name, sample.labels).items()))
            values[key] = values.get(key, 0) + sample.value
        found = copy(metric)
        found.samples = []
        for (sample_name, labels), value in values.items():
            found.add_sample(sample_name, dict(labels), value)
        return found

    def _renamed(self, metric: str, labels: Mapping[str, str]) -> dict[str, str]:
        allowed = self.allowed[metric]
        return {
            name: _UNEXPECTED if name in allowed and value not in allowed[name] else value
            for name, value in labels.items()
        }


EVERYTHING: Final = Exposure()


def _full_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def _counting_name(metric: Metric) -> str:
    return f"{metric.name}_count" if metric.type == "histogram" else _full_name(metric)


def exposure_of(disabled: Sequence[str], allow_lists: Sequence[str], manifest: str) -> Exposure:
    """Return the exposure of flags; raises ConfigError with every field error.

    `disabled` are the names of `--disabled-metrics`. `allow_lists` are the texts of
    `--allow-metric-labels`, each with one pair or several; `manifest` is its file, "" for none.
    """
    errors: list[FieldError] = []
    wrong = next((name for name in disabled if not re.fullmatch(_METRIC, name)), None)
    if wrong is not None:
        words = f"must be fully qualified metric names matching {go_quote(f'^{_METRIC}$')}"
        errors.append(
            invalid("metrics.disabledMetrics", disabled, f"{words}, got {go_quote(wrong)}")
        )
    mapping: dict[str, str] = {}
    for text in allow_lists:
        mapping |= _pairs(text)
    errors += _key_errors(mapping, "metrics.allowListMapping")
    if manifest and mapping:
        words = "--allow-metric-labels and --allow-metric-labels-manifest exclude each other"
        errors.append(FieldError("metrics", words))
    elif manifest:
        mapping = _read_manifest(manifest, errors)
    if errors:
        raise ConfigError(errors)
    return Exposure(frozenset(disabled), _allowed(mapping))


def _pairs(text: str) -> dict[str, str]:
    """Split at commas as pflag does: a single pair as it is, several as a line of CSV."""
    single = text.count("=") == 1
    pairs = [text.strip('"')] if single else next(csv.reader([text], strict=True), [])
    found = {}
    for pair in pairs:
        key, equals, values = pair.partition("=")
        if not equals:
            words = f"{pair} must be formatted as key=value"
            raise ConfigError([FieldError("--allow-metric-labels", words)])
        found[key] = values
    return found


def _key_errors(mapping: Mapping[str, str], path: str) -> list[FieldError]:
    if all(map(_KEY.fullmatch, mapping)):
        return []
    words = (
        "must have keys with format `metricName,labelName` where metricName matches "
        f"{go_quote(_METRIC)} and labelName matches {go_quote(_LABEL)}"
    )
    return [invalid(path, dict(mapping), words)]


def _read_manifest(file: str, errors: list[FieldError]) -> dict[str, str]:
    path = "metrics.allowListMappingManifest"
    try:
        found = [value for _, value in load_documents(Path(file).read_text(encoding="utf-8"))]
    except (OSError, UnicodeDecodeError) as error:
        errors.append(invalid(path, file, f"failed to read allow list manifest: {error}"))
        return {}
    except YamlError as error:
        errors.append(invalid(path, file, f"failed to parse allow list manifest: {error}"))
        return {}
    mapping = found[0] if found else {}
    if not isinstance(mapping, dict) or not all(isinstance(v, str) for v in mapping.values()):
        words = "failed to parse allow list manifest: it must map metricName,labelName to values"
        errors.append(invalid(path, file, words))
        return {}
    errors += (
        invalid(path, file, f"invalid allow list mapping in manifest: [{field_error}]")
        for field_error in _key_errors(mapping, path)
    )
    return mapping


def _allowed(mapping: Mapping[str, str]) -> AllowedValues:
    allowed: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in mapping.items():
        metric, _, label = key.partition(",")
        allowed.setdefault(metric, {})[label] = frozenset(values.split(","))
    return allowed
