"""Objects are equal if they mean the same."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.equality import is_equal
from kubesched.apiserver.object_types import type_of


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({"nodeName": "a"}, {"nodeName": "a"}, True, id="the same"),
        pytest.param({"nodeName": "a"}, {}, False, id="something and nothing"),
        pytest.param({"overhead": {"cpu": "1"}}, {"overhead": {"cpu": "1000m"}}, True, id="amount"),
        pytest.param({"overhead": {}}, {}, True, id="an empty map and none"),
        pytest.param({"volumes": []}, {}, True, id="an empty list and none"),
        pytest.param({"hostUsers": False}, {}, False, id="false and nothing"),
        pytest.param({"priority": 0}, {}, False, id="0 and nothing"),
        pytest.param({"runtimeClassName": ""}, {}, False, id="an empty text and nothing"),
        pytest.param({"securityContext": {}}, {}, False, id="an empty object and nothing"),
        pytest.param(
            {"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, False, id="in a list"
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "a"}, {"key": "a"}]},
            False,
            id="longer",
        ),
    ],
)
def test_equality(one: dict[str, Any], other: dict[str, Any], expected: bool) -> None:
    """Amounts are compared by value, and empty lists and maps are nothing."""
    pod_spec = type_of("", "v1", "PodSpec")
    assert pod_spec is not None
    assert expected is is_equal(pod_spec, one, other)
    assert expected is is_equal(pod_spec, other, one)
