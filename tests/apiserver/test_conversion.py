from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.conversion import first_fault
from kubesched.apiserver.go_values import go_text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"spec": {"priority": "x"}}, "unrecognized type: int32", id="text"),
        pytest.param({"spec": {"priority": 1.5}}, "cannot convert float64 to int32", id="float"),
        pytest.param({"spec": {"nodeName": 1}}, "cannot convert int64 to string", id="int"),
        pytest.param(
            {"spec": {"dnsPolicy": 1}}, "cannot convert int64 to v1.DNSPolicy", id="int for a word"
        ),
        pytest.param({"spec": {"dnsPolicy": True}}, "unrecognized type: string", id="a word"),
        pytest.param({"spec": {"nodeName": True}}, "unrecognized type: string", id="bool"),
        pytest.param({"spec": {"hostNetwork": 1}}, "unrecognized type: bool", id="for a bool"),
        pytest.param({"spec": []}, "cannot restore struct from: slice", id="list"),
        pytest.param({"spec": {"nodeSelector": 1}}, "cannot restore map from int64", id="map"),
        pytest.param({"spec": {"containers": "x"}}, "cannot restore slice from string", id="slice"),
        pytest.param({"spec": {"priority": 3}}, None, id="none"),
        pytest.param({"spec": {"priority": 5.0}}, None, id="whole float"),
        pytest.param({"spec": {"unknown": 1}}, None, id="unknown field"),
        pytest.param({"spec": None}, None, id="null"),
        pytest.param(
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "1mm"}}}]}},
            "unable to parse quantity's suffix",
            id="quantity",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "today"}},
            'parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse',
            id="time",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": 5}},
            "json: cannot unmarshal number into Go value of type string",
            id="number for a time",
        ),
    ],
)
def test_faults(value: Any, expected: str | None) -> None:
    """The first value that does not fit is told in the words of Go's converter."""
    assert expected == first_fault("v1", "Pod", value)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        pytest.param(
            ("v1", "Secret"),
            {"data": {"a": "%"}},
            "error decoding from json: illegal base64 data",
            id="bytes",
        ),
        pytest.param(
            ("policy/v1", "PodDisruptionBudget"),
            {"spec": {"minAvailable": 1.5}},
            "json: cannot unmarshal number into Go value of type intstr.IntOrString",
            id="int or string",
        ),
        pytest.param(("v1", "Cat"), {"a": 1}, None, id="unknown kind"),
    ],
)
def test_faults_of_other_kinds(kind: tuple[str, str], value: Any, expected: str | None) -> None:
    """Bytes are base64, and numbers of pods whole; kinds that are not known have no faults."""
    assert expected == first_fault(*kind, value)


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
