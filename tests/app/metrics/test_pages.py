from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from kubesched.app.endpoints import Endpoints
from kubesched.app.http_exchange import HttpRequest, HttpResponse
from kubesched.app.metrics.pages import CONTENT_TYPE, Pages, write_page
from kubesched.client.leader_election import ElectionStatistics
from kubesched.config.feature_gates import FeatureGates
from tests.app.port_records import exchanges

from .scripted import families_of, recorded_families


def _pages() -> Pages:
    return Pages(FeatureGates(), lambda: 0.0, lambda: 0.5)


def test_content_type_as_recorded() -> None:
    """The content type is kube-scheduler's."""
    (recorded,) = {each["headers"]["content-type"] for each in exchanges() if "families" in each}
    assert recorded == CONTENT_TYPE
    endpoints = Endpoints()
    endpoints.add_metrics("/metrics", _pages().metrics)
    answer = endpoints.answer(HttpRequest(path="/metrics"))
    assert isinstance(answer, HttpResponse)
    assert recorded == answer.content_type


def test_component_families_as_recorded() -> None:
    """Build, features and process have the recorded types, help texts and labels."""
    families = families_of(_pages().metrics.page().decode())
    for name, family in families.items():
        if name.startswith("scheduler_"):
            continue
        record = recorded_families()[name]
        assert record["type"] == family["type"]
        assert record["help"].partition("] ")[2] in family["help"]
        assert {tuple(record["labels"])} == {
            tuple(label for label, _ in series) for series in family["series"]
        }
    assert {"kubernetes_build_info", "kubernetes_feature_enabled"} <= set(families)
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes"} <= set(families)


def test_features() -> None:
    """Each gate is listed with its stage and whether it is on."""
    page = _pages().metrics.page().decode()
    assert 'kubernetes_feature_enabled{name="GangScheduling",stage="ALPHA"} 0\n' in page
    assert 'kubernetes_feature_enabled{name="SchedulerQueueingHints",stage=""} 1\n' in page


def test_election() -> None:
    """The elector's state is there once there is an elector."""
    pages = _pages()
    assert b"leader_election" not in pages.metrics.page()
    pages.election = ElectionStatistics("lock", 1, 0)
    page = pages.metrics.page().decode()
    assert 'leader_election_master_status{name="lock"} 1\n' in page
    assert "slowpath" not in page
    pages.election = ElectionStatistics("lock", 0, 2)
    assert 'leader_election_slowpath_total{name="lock"} 2\n' in pages.metrics.page().decode()


def test_health_has_a_page_of_its_own() -> None:
    """Results of health checks are counted, and the last one is kept."""
    pages = _pages()
    pages.health.observe("ping", "healthz", True)
    pages.health.observe("ping", "healthz", False)
    page = pages.slis.page().decode()
    assert 'kubernetes_healthcheck{name="ping",type="healthz"} 0\n' in page
    for status in ("error", "success"):
        labels = f'name="ping",status="{status}",type="healthz"'
        assert f"kubernetes_healthchecks_total{{{labels}}} 1\n" in page
    assert "process_start_time_seconds " in page
    pages.slis.reset()
    assert "kubernetes_healthcheck" not in pages.slis.page().decode()


def test_plugins_bring_their_own_metrics() -> None:
    """Metrics in the registry are on the page."""
    pages = _pages()
    Counter("placed_by_moon_phase_total", "Of my plugin.", registry=pages.registry).inc(3)
    assert b"\nplaced_by_moon_phase_total 3\n" in pages.metrics.page()


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
    """Metrics of prometheus_client are shown without their creation time."""
    registry = CollectorRegistry()
    Counter("mine_total", "Mine.", registry=registry).inc()
    Gauge("yours", "Yours.", registry=registry).set(2)
    page = write_page(registry.collect()).decode()
    assert "mine_total 1\n" in page
    assert "_created" not in page
    assert ["mine", "yours"] == [each.name for each in text_string_to_metric_families(page)]


def test_no_metrics() -> None:
    """Without metrics the page is empty."""
    assert b"" == write_page([])
