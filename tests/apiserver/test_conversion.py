from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.conversion import first_json_fault, first_memory_fault
from kubesched.apiserver.go_values import go_text


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        pytest.param(("v1", "Cat"), {"a": 1}, None, id="unknown kind"),
        pytest.param(("v1", "Pod"), {"spec": {"unknown": 1}}, None, id="unknown field"),
        pytest.param(("v1", "Pod"), {"spec": None}, None, id="null"),
        pytest.param(("v1", "Pod"), {"spec": {"priority": 5.0}}, None, id="whole float"),
        pytest.param(
            ("v1", "ConfigMap"),
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            id="map of text",
        ),
        pytest.param(
            ("v1", "Pod"),
            {"spec": {"nodeSelector": []}},
            "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector "
            "of type map[string]string",
            id="list for a map",
        ),
        pytest.param(
            ("v1", "Pod"),
            {"spec": {"containers": [{"ports": [{"containerPort": "x"}]}]}},
            "json: cannot unmarshal string into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
            id="in lists",
        ),
        pytest.param(
            ("scheduling.k8s.io/v1", "PriorityClass"),
            {"value": 2147483648},
            "json: cannot unmarshal number 2147483648 into Go struct field "
            "PriorityClass.value of type int32",
            id="too large",
        ),
        pytest.param(
            ("v1", "Node"),
            {"status": {"capacity": {"cpu": "1mm"}}},
            "unable to parse quantity's suffix",
            id="quantity",
        ),
        pytest.param(
            ("v1", "Secret"),
            {"data": {"a": "%"}},
            "error decoding from json: illegal base64 data",
            id="bytes",
        ),
        pytest.param(
            ("v1", "Pod"),
            {"metadata": {"deletionTimestamp": "today"}},
            'parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse',
            id="time",
        ),
        pytest.param(
            ("policy/v1", "PodDisruptionBudget"),
            {"spec": {"minAvailable": 1.5}},
            "json: cannot unmarshal number into Go value of type intstr.IntOrString",
            id="int or string",
        ),
    ],
)
def test_json_faults(kind: tuple[str, str], value: Any, expected: str | None) -> None:
    """The first value that does not fit is told in the words of Go's JSON decoder."""
    assert expected == first_json_fault(*kind, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"spec": {"priority": "x"}}, "unrecognized type: int32", id="text"),
        pytest.param({"spec": {"priority": 1.5}}, "cannot convert float64 to int32", id="float"),
        pytest.param({"spec": {"nodeName": 1}}, "cannot convert int64 to string", id="int"),
        pytest.param({"spec": {"nodeName": True}}, "unrecognized type: string", id="bool"),
        pytest.param({"spec": {"hostNetwork": 1}}, "unrecognized type: bool", id="for a bool"),
        pytest.param({"spec": []}, "cannot restore struct from: slice", id="list"),
        pytest.param({"spec": {"nodeSelector": 1}}, "cannot restore map from int64", id="map"),
        pytest.param({"spec": {"containers": "x"}}, "cannot restore slice from string", id="slice"),
        pytest.param({"spec": {"priority": 3}}, None, id="none"),
    ],
)
def test_faults_in_memory(value: Any, expected: str | None) -> None:
    """The same for the converter that strategic merge patches go through."""
    assert expected == first_memory_fault("v1", "Pod", value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"b": [1, "x"], "a": None}, "map[a:<nil> b:[1 x]]", id="nested"),
        pytest.param(
            [True, 1.5, 1e21, 1e-5, 0.0, 12345678.0],
            "[true 1.5 1e+21 1e-05 0 1.2345678e+07]",
            id="scalars",
        ),
    ],
)
def test_values_as_go_prints_them(value: Any, expected: str) -> None:
    """Names are sorted, numbers are the shortest."""
    assert expected == go_text(value)
