from __future__ import annotations

from threading import Thread

from kubesched.app.metrics.pages import RequestMetrics, write_page
from kubesched.client.requests import RequestObserver

from .scripted import families_of, recorded_families


def _one_request() -> RequestMetrics:
    metrics = RequestMetrics()
    observer: RequestObserver = metrics
    observer.rate_limited("GET", "h:1", 0.01)
    observer.attempted("429", "GET", "h:1", is_retry=False)
    observer.attempted("200", "GET", "h:1", is_retry=True)
    observer.finished("GET", "h:1", 0.03, 0, 700)
    return metrics


def test_families_as_recorded() -> None:
    """Types, help and label names are those of the record."""
    families = families_of(write_page(_one_request().collect()).decode())
    for name, family in families.items():
        record = recorded_families().get(name)
        if name == "rest_client_request_retries_total":
            assert record is None
            continue
        assert record is not None
        assert (record["type"], record["help"]) == (family["type"], family["help"])
        labels = {label for series in family["series"] for label, _ in series}
        assert set(record["labels"]) - {"le"} == labels


def test_a_request_with_a_retry() -> None:
    """Attempts are counted one by one, durations and sizes once."""
    page = write_page(_one_request().collect()).decode()
    assert 'rest_client_requests_total{code="429",host="h:1",method="GET"} 1\n' in page
    assert 'rest_client_requests_total{code="200",host="h:1",method="GET"} 1\n' in page
    assert 'rest_client_request_retries_total{code="200",host="h:1",verb="GET"} 1\n' in page
    assert 'duration_seconds_bucket{host="h:1",verb="GET",le="0.025"} 0\n' in page
    assert 'response_size_bytes_bucket{host="h:1",verb="GET",le="1.048576e+06"} 1\n' in page


def test_reset() -> None:
    """Nothing is left after a reset."""
    metrics = _one_request()
    metrics.reset()
    assert b"" == write_page(metrics.collect())


def test_threads_lose_nothing() -> None:
    """The election's thread counts beside the main one."""
    metrics = RequestMetrics()

    def count() -> None:
        for _ in range(2000):
            metrics.attempted("200", "PUT", "h", is_retry=False)

    threads = [Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    page = write_page(metrics.collect()).decode()
    assert 'rest_client_requests_total{code="200",host="h",method="PUT"} 4000\n' in page
