"""Quantities and times are checked at any depth."""

from typing import Any

import msgspec
import pytest

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeStruct
from kubesched.api.object_checks import first_invalid_value
from kubesched.api.storage import CSIStorageCapacity
from kubesched.api.volume import PersistentVolumeClaim


@pytest.mark.parametrize(
    ("type_", "plain", "path"),
    [
        pytest.param(Pod, {}, None, id="empty"),
        pytest.param(
            Pod,
            {
                "spec": {
                    "containers": [{}, {"resources": {"requests": {"cpu": "1", "memory": "x"}}}]
                }
            },
            "$.spec.containers[1].resources.requests.memory",
            id="requests",
        ),
        pytest.param(
            Pod, {"spec": {"overhead": {"cpu": ""}}}, "$.spec.overhead.cpu", id="overhead"
        ),
        pytest.param(
            Pod,
            {"spec": {"volumes": [{"emptyDir": {"sizeLimit": "1K"}}]}},
            "$.spec.volumes[0].emptyDir.sizeLimit",
            id="size limit",
        ),
        pytest.param(
            Pod,
            {"status": {"containerStatuses": [{"allocatedResources": {"cpu": "1i"}}]}},
            "$.status.containerStatuses[0].allocatedResources.cpu",
            id="status",
        ),
        pytest.param(
            Pod,
            {"metadata": {"deletionTimestamp": "soon"}},
            "$.metadata.deletionTimestamp",
            id="time",
        ),
        pytest.param(Node, {"status": {"allocatable": {"cpu": 4, "memory": 1.5}}}, None, id="fine"),
        pytest.param(
            PersistentVolumeClaim,
            {"spec": {"resources": {"requests": {"storage": "1GB"}}}},
            "$.spec.resources.requests.storage",
            id="claim",
        ),
        pytest.param(CSIStorageCapacity, {"capacity": "x"}, "$.capacity", id="one quantity"),
        pytest.param(CSIStorageCapacity, {"capacity": ""}, "$.capacity", id="empty quantity"),
        pytest.param(
            Pod,
            {"metadata": {"creationTimestamp": ""}},
            "$.metadata.creationTimestamp",
            id="empty time",
        ),
    ],
)
def test_the_first_invalid_value_has_its_path(
    type_: type[KubeStruct], plain: dict[str, Any], path: str | None
) -> None:
    """The path has the JSON names."""
    found = first_invalid_value(msgspec.convert(plain, type_))
    assert path == (found.path if found else None)
