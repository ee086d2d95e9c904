from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.app.metrics.pages import Pages, pod_resources, write_page
from kubesched.config.feature_gates import FeatureGates
from kubesched.testing.builders import make_pod
from tests.app.port_records import exchanges

from .scripted import families_of


def _page(*pods: Pod) -> str:
    return write_page(pod_resources(pods)).decode()


def _recorded() -> list[dict[str, Any]]:
    page = [each for each in exchanges() if each["path"] == "/metrics/resources"][-1]
    families: list[dict[str, Any]] = page["families"]
    return families


def _pod(name: str, cpu: str, priority: int, node: str = "") -> Pod:
    own = {"schedulerName": "default-scheduler"}
    return make_pod(name, requests={"cpu": cpu}, priority=priority, node_name=node, spec=own)


def test_page_as_recorded() -> None:
    """The pods of the recorded run give the recorded page."""
    page = _page(
        _pod("boss", "1", 50, "full"),
        _pod("m0", "1", 0, "n1"),
        _pod("m1", "2", 0, "n1"),
        _pod("m2", "9", 0),
        make_pod("gated", scheduling_gates=("g",)),
    )
    (record,) = _recorded()
    expected = {
        tuple(sorted(series["labels"].items())): series["value"] for series in record["series"]
    }
    family = families_of(page)[record["name"]]
    assert (record["type"], record["help"]) == (family["type"], family["help"])
    assert expected == family["series"]


def test_the_page_is_written_elsewhere_as_the_pods_are_now() -> None:
    """A thread may write it while pods come and go."""
    pods = [_pod("m0", "1", 0, "n1")]
    page = Pages(FeatureGates(), lambda: 0.0, lambda: 0.5).resources(lambda: iter(pods))
    write = page.writer()
    pods.clear()
    assert page.is_large
    assert b'pod="m0"' in write()


@pytest.mark.parametrize(
    ("resource", "amount", "unit", "value"),
    [
        pytest.param("cpu", "250m", "cores", "0.25", id="cpu"),
        pytest.param("memory", "1Gi", "bytes", "1.073741824e+09", id="memory"),
        pytest.param("ephemeral-storage", "5k", "bytes", "5000", id="ephemeral-storage"),
        pytest.param("hugepages-2Mi", "4Mi", "bytes", "4.194304e+06", id="huge-pages"),
        pytest.param("attachable-volumes-x", "3", "integer", "3", id="volumes"),
        pytest.param("example.com/gpu", "2", "", "2", id="extended"),
    ],
)
def test_units(resource: str, amount: str, unit: str, value: str) -> None:
    """Each resource has its unit, for requests and for limits."""
    page = _page(make_pod("p", requests={resource: amount}, limits={resource: amount}))
    for kind in ("request", "limit"):
        (line,) = (
            each for each in page.splitlines() if each.startswith(f"kube_pod_resource_{kind}{{")
        )
        assert f'resource="{resource}"' in line
        assert line.endswith(f'unit="{unit}"}} {value}')


def test_pods_and_resources_that_are_left_out() -> None:
    """Zero requests and finished pods on nodes are left out; other finished pods are not."""
    page = _page(
        make_pod("zero", requests={"cpu": "0"}),
        make_pod("done", requests={"cpu": "1"}, node_name="a", status={"phase": "Succeeded"}),
        make_pod("never-ran", requests={"cpu": "1"}, status={"phase": "Failed"}),
    )
    assert 'pod="zero"' not in page
    assert 'pod="done"' not in page
    assert 'pod="never-ran",priority="",' in page
