"""Classes of service follow from requests and limits."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.amounts import qos_class

_BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param([{}], "BestEffort", id="nothing"),
        pytest.param([{"requests": {"example.com/a": "1"}}], "BestEffort", id="others only"),
        pytest.param([{"requests": {"cpu": "0"}}], "BestEffort", id="0"),
        pytest.param([{"requests": {"cpu": "1"}}], "Burstable", id="a request"),
        pytest.param([{"limits": _BOTH}], "Burstable", id="limits only"),
        pytest.param([{"limits": _BOTH, "requests": _BOTH}], "Guaranteed", id="both"),
        pytest.param(
            [{"limits": _BOTH, "requests": {"cpu": "1000m", "memory": "1024Mi"}}],
            "Guaranteed",
            id="the same amounts",
        ),
        pytest.param(
            [{"limits": _BOTH, "requests": _BOTH}, {}], "Burstable", id="one of two containers"
        ),
        pytest.param(
            [{"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}], "Burstable", id="no memory"
        ),
    ],
)
def test_classes(resources: list[dict[str, Any]], expected: str) -> None:
    """All containers have to be limited in both for the best class."""
    containers = [{"name": "c", "resources": one} for one in resources]
    assert expected == qos_class({"containers": containers})
    assert expected == qos_class({"initContainers": containers})


def test_resources_of_the_pod_itself_decide() -> None:
    """Containers are not looked at then."""
    containers = [{"name": "c", "resources": {}}]
    pod = {"containers": containers, "resources": {"limits": _BOTH, "requests": _BOTH}}
    assert "Guaranteed" == qos_class(pod)
