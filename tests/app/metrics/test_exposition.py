from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from kubesched.app.metrics.exposition import go_float, write_page


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0.0, "0", id="zero"),
        pytest.param(1.0, "1", id="one"),
        pytest.param(-2.5, "-2.5", id="negative"),
        pytest.param(0.0001, "0.0001", id="small"),
        pytest.param(0.00001, "1e-05", id="smaller"),
        pytest.param(1.5000000000000002e-05, "1.5000000000000002e-05", id="many-digits"),
        pytest.param(0.02216837820053101, "0.02216837820053101", id="fraction"),
        pytest.param(5242.88, "5242.88", id="mixed"),
        pytest.param(100000.0, "100000", id="last-plain"),
        pytest.param(1048576.0, "1.048576e+06", id="million"),
        pytest.param(16777216.0, "1.6777216e+07", id="sixteen-million"),
        pytest.param(1e100, "1e+100", id="huge"),
        pytest.param(math.inf, "+Inf", id="infinity"),
        pytest.param(-math.inf, "-Inf", id="minus-infinity"),
        pytest.param(math.nan, "NaN", id="nan"),
    ],
)
def test_numbers_as_go_writes_them(value: float, expected: str) -> None:
    """Numbers have Go's shortest form."""
    assert expected == go_float(value)


@given(st.floats(allow_nan=False))
def test_numbers_read_back(value: float) -> None:
    """A number is read back as itself."""
    assert value == float(go_float(value))


def test_page_escapes_and_sorts() -> None:
    """Families and labels are sorted, odd characters escaped, empty families left out."""
    odd = GaugeMetricFamily("b", 'a "help"\nwith \\')
    odd.add_sample("b", {"z": 'q"\\\n', "a": "1"}, 2)
    page = write_page([odd, GaugeMetricFamily("empty", ""), GaugeMetricFamily("a", "x", value=1)])
    expected = (
        "# HELP a x\n# TYPE a gauge\na 1\n"
        '# HELP b a "help"\\nwith \\\\\n# TYPE b gauge\nb{a="1",z="q\\"\\\\\\n"} 2\n'
    )
    assert expected == page.decode()


def test_page_of_a_plugins_metrics() -> None:
    """What prometheus_client counts stands there without the time of its creation."""
    registry = CollectorRegistry()
    Counter("mine_total", "Mine.", registry=registry).inc()
    Gauge("yours", "Yours.", registry=registry).set(2)
    page = write_page(registry.collect()).decode()
    assert "mine_total 1\n" in page
    assert "_created" not in page
    assert ["mine", "yours"] == [each.name for each in text_string_to_metric_families(page)]


def test_no_metrics() -> None:
    """Nothing gives an empty page."""
    assert b"" == write_page([])
