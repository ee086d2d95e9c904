"""Metrics that flags leave out, and label values that they do not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.app.metrics.exposure import Exposure, exposure_of
from kubesched.app.metrics.pages import Pages
from kubesched.config.feature_gates import FeatureGates

_SECONDS = "rest_client_request_duration_seconds"
_REQUESTS = "rest_client_requests_total"


def _page(exposure: Exposure) -> str:
    pages = Pages(FeatureGates(), lambda: 0.0, lambda: 0.5, exposure)
    for verb, code in (("GET", "200"), ("POST", "201"), ("PUT", "409"), ("PUT", "200")):
        pages.requests.attempted(code, verb, "host", is_retry=False)
        pages.requests.finished(verb, "host", 0.01, 1, 1)
    return pages.metrics.page().decode()


def _lines(page: str, name: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(name)]


def test_a_disabled_metric_is_left_out_and_counted() -> None:
    """Metrics are disabled by their full name."""
    page = _page(exposure_of([_REQUESTS, "kubernetes_build_info"], [], ""))
    assert _REQUESTS not in page
    assert "kubernetes_build_info" not in page
    assert f"{_SECONDS}_count" in page
    assert "\ndisabled_metrics_total 2\n" in page
    assert "\nhidden_metrics_total 0\n" in page


def test_values_that_are_not_allowed_fall_together() -> None:
    """Counters and buckets are sums, and the number of what fell together is counted."""
    page = _page(exposure_of([], [f"{_REQUESTS},code=200", f"{_SECONDS},verb=GET"], ""))
    assert [
        f'{_REQUESTS}{{code="200",host="host",method="GET"}} 1',
        f'{_REQUESTS}{{code="200",host="host",method="PUT"}} 1',
        f'{_REQUESTS}{{code="unexpected",host="host",method="POST"}} 1',
        f'{_REQUESTS}{{code="unexpected",host="host",method="PUT"}} 1',
    ] == sorted(_lines(page, _REQUESTS))
    assert [
        f'{_SECONDS}_count{{host="host",verb="GET"}} 1',
        f'{_SECONDS}_count{{host="host",verb="unexpected"}} 3',
    ] == _lines(page, f"{_SECONDS}_count")
    assert f'{_SECONDS}_bucket{{host="host",verb="unexpected",le="+Inf"}} 3' in page
    assert "\ncardinality_enforcement_unexpected_categorizations_total 5\n" in page


def test_manifest_and_flags_are_equivalent(tmp_path: Path) -> None:
    """A flag with one pair, a flag with several, and a file have the same result."""
    file = tmp_path / "labels.yaml"
    file.write_text('m,a: "1,2"\nm,b: ""\n')
    expected = {"m": {"a": frozenset({"1", "2"}), "b": frozenset({""})}}
    assert expected == exposure_of([], [], str(file)).allowed
    assert expected == exposure_of([], ["m,a=1,2", "m,b="], "").allowed
    assert expected == exposure_of([], ['"m,a=1,2","m,b="'], "").allowed


@pytest.mark.parametrize(
    ("allow_lists", "manifest", "expected"),
    [
        (["m=1"], "", "metrics.allowListMapping: Invalid value: "),
        ([], "m: x", "invalid allow list mapping in manifest: [metrics.allowListMappingManifest"),
        ([], "[1]", "must map metricName,labelName to values"),
        ([], "a: [", "failed to parse allow list manifest"),
        (["m,a=1"], "m,a: x", "exclude each other"),
    ],
)
def test_invalid_allow_lists(
    allow_lists: list[str], manifest: str, expected: str, tmp_path: Path
) -> None:
    """The error names the field as kube-scheduler does."""
    file = tmp_path / "labels.yaml"
    file.write_text(manifest)
    with pytest.raises(ConfigError) as caught:
        exposure_of([], allow_lists, str(file) if manifest else "")
    assert expected in str(caught.value)
