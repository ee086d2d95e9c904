"""Bodies in protobuf form."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.protobuf_wire import ProtobufError
from kubesched.apiserver.decoding import decode_protobuf
from kubesched.apiserver.resources import RESOURCES

Parts = list[tuple[int, Any]]
# A schema as Go writes it, with the zeros of fields that are not pointers.
SCHEMA: Parts = [
    *((1, ""), (2, ""), (5, "object"), (8, [(1, '{"a":[]}')]), (10, 0)),
    (9, struct.pack("<d", 10.0)),
    *((20, [(1, "1")]), (20, [(1, "null")])),
    (24, [(1, [(5, "string")])]),
    (29, [(1, "b"), (2, [(30, [(1, 0)])])]),
    (30, [(1, 1), (2, [(5, "integer"), (11, struct.pack("<d", 0.5))])]),
    *((37, 0), (40, 1)),
    (44, [(1, "self > 0"), (2, "")]),
]


def varint(number: int) -> bytes:
    """Return a number, seven bits a byte, the lowest first."""
    number &= (1 << 64) - 1
    text = b""
    while number > 0x7F:
        text += bytes([number & 0x7F | 0x80])
        number >>= 7
    return text + bytes([number])


def message(parts: Parts) -> bytes:
    """Return a message of numbered fields: numbers, texts, or messages."""
    text = b""
    for number, value in parts:
        if isinstance(value, int):
            text += varint(number << 3) + varint(value)
            continue
        inner = message(value) if isinstance(value, list) else value
        inner = inner.encode() if isinstance(inner, str) else inner
        text += varint(number << 3 | 2) + varint(len(inner)) + inner
    return text


def body(api_version: str, kind: str, parts: Parts) -> bytes:
    """Return a body as clients send it."""
    return b"k8s\0" + message([(1, [(1, api_version), (2, kind)]), (2, message(parts))])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            body("v1", "Namespace", [(1, [(1, "team"), (8, [])]), (2, []), (3, [(1, "")])]),
            {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": "team", "creationTimestamp": None},
                "spec": {},
                "status": {},
            },
            id="namespace",
        ),
        pytest.param(
            body("v1", "ConfigMap", [(2, [(1, "a"), (2, "1")]), (2, [(1, "b"), (2, "2")])]),
            {"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "1", "b": "2"}},
            id="map",
        ),
        pytest.param(
            body("scheduling.k8s.io/v1", "PriorityClass", [(2, -5), (3, 1)]),
            {
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "value": -5,
                "globalDefault": True,
            },
            id="negative-number",
        ),
        pytest.param(
            body(
                "policy/v1",
                "PodDisruptionBudget",
                [(2, [(1, [(1, 0), (2, 3), (3, "")]), (3, [(1, 1), (2, 0), (3, "50%")])])],
            ),
            {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "spec": {"minAvailable": 3, "maxUnavailable": "50%"},
            },
            id="int-or-string",
        ),
        pytest.param(
            body(
                "v1",
                "Pod",
                [
                    (1, [(8, [(1, 1714557600), (2, 0)])]),
                    (
                        2,
                        [
                            (1, [(1, "v"), (2, [(2, [(1, "medium")])])]),
                            (2, [(8, [(2, [(1, "cpu"), (2, [(1, "100m")])])])]),
                        ],
                    ),
                ],
            ),
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {"creationTimestamp": "2024-05-01T10:00:00Z"},
                "spec": {
                    "volumes": [{"name": "v", "emptyDir": {"medium": "medium"}}],
                    "containers": [{"resources": {"requests": {"cpu": "100m"}}}],
                },
            },
            id="inline-list-time-quantity",
        ),
        pytest.param(
            body("coordination.k8s.io/v1", "Lease", [(2, [(4, [(1, 1714557600), (2, 500000)])])]),
            {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "spec": {"renewTime": "2024-05-01T10:00:00.000500Z"},
            },
            id="micro-time",
        ),
        pytest.param(
            body("apps/v1", "ControllerRevision", [(2, [(1, '{"a":[1]}')])]),
            {"kind": "ControllerRevision", "apiVersion": "apps/v1", "data": {"a": [1]}},
            id="raw",
        ),
        pytest.param(
            body("v1", "Secret", [(2, [(1, "k"), (2, b"\xff")]), (99, "unknown")]),
            {"kind": "Secret", "apiVersion": "v1", "data": {"k": "/w=="}},
            id="bytes-and-unknown-fields",
        ),
        pytest.param(
            body(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                [(2, [(3, 5), (4, [(1, "Resource"), (4, [(1, "cpu"), (2, [(4, 50)])])])])],
            ),
            {
                "kind": "HorizontalPodAutoscaler",
                "apiVersion": "autoscaling/v2",
                "spec": {
                    "maxReplicas": 5,
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {"name": "cpu", "target": {"averageUtilization": 50}},
                        }
                    ],
                },
            },
            id="metric",
        ),
        pytest.param(
            body(
                "certificates.k8s.io/v1",
                "CertificateSigningRequest",
                [(2, [(1, b"\xff"), (6, [(1, "k"), (2, [(1, "a"), (1, "b")])])])],
            ),
            {
                "kind": "CertificateSigningRequest",
                "apiVersion": "certificates.k8s.io/v1",
                "spec": {"request": "/w==", "extra": {"k": ["a", "b"]}},
            },
            id="map-of-lists",
        ),
        pytest.param(
            body("meta.k8s.io/v1", "DeleteOptions", [(1, 0), (2, [(1, "u")]), (4, "Background")]),
            {
                "kind": "DeleteOptions",
                "apiVersion": "meta.k8s.io/v1",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u"},
                "propagationPolicy": "Background",
            },
            id="options",
        ),
        pytest.param(
            # The Cluster Autoscaler evicts in this version.
            body("policy/v1beta1", "Eviction", [(1, [(1, "p")]), (2, [(1, 30)])]),
            {
                "kind": "Eviction",
                "apiVersion": "policy/v1beta1",
                "metadata": {"name": "p"},
                "deleteOptions": {"gracePeriodSeconds": 30},
            },
            id="old-version",
        ),
        pytest.param(
            body(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                [(2, [(1, "w"), (2, [(2, b"\xff")]), (3, [(1, "CREATE"), (2, [(3, "pods")])])])],
            ),
            {
                "kind": "ValidatingWebhookConfiguration",
                "apiVersion": "admissionregistration.k8s.io/v1",
                "webhooks": [
                    {
                        "name": "w",
                        "clientConfig": {"caBundle": "/w=="},
                        "rules": [{"operations": ["CREATE"], "resources": ["pods"]}],
                    }
                ],
            },
            id="webhook",
        ),
    ],
)
def test_decode(text: bytes, expected: dict[str, Any]) -> None:
    """A body becomes the object that its JSON would be."""
    assert expected == decode_protobuf(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(b"{}", "does not appear to be a protobuf message", id="json"),
        pytest.param(body("v1", "Nothing", []), 'no kind "Nothing"', id="kind"),
        pytest.param(b"k8s\0\x0a\x7f", "unexpected EOF", id="cut"),
        pytest.param(b"k8s\0" + b"\xff" * 11, "integer overflow", id="overflow"),
        pytest.param(b"k8s\0\x0b", "illegal wireType 3", id="wire-type"),
        pytest.param(body("v1", "Namespace", [(1, 5)]), "wrong wireType", id="number"),
        pytest.param(
            body("v1", "Pod", [(2, [(1, [(1, "v"), (2, [(9, [(1, "endpoints")])])])])]),
            "JSON is malformed",
            id="glusterfs",
        ),
    ],
)
def test_invalid_bodies(text: bytes, why: str) -> None:
    """The message has the reason."""
    with pytest.raises(ProtobufError, match=why):
        decode_protobuf(text)


@given(st.binary())
def test_any_bytes(text: bytes) -> None:
    """Any bytes give an object or the module's own error."""
    try:
        decode_protobuf(b"k8s\0" + message([(1, [(1, "v1"), (2, "Pod")]), (2, text)]))
    except ProtobufError:
        return


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_come_through(number: int) -> None:
    """Every 64-bit number arrives as it was sent."""
    assert decode_protobuf(body("v1", "Pod", [(2, [(4, number)])]))["spec"] == {
        "terminationGracePeriodSeconds": number
    }


def test_kinds_of_scheduling_are_known() -> None:
    """Every kind in the groups that scheduling reads can be sent as protobuf."""
    groups = (
        *("", "apps", "policy", "storage.k8s.io", "resource.k8s.io", "coordination.k8s.io"),
        *("autoscaling", "batch", "certificates.k8s.io", "apiextensions.k8s.io"),
    )
    for served in RESOURCES.group_versions:
        if served.group in groups:
            for resource in served.resources:
                expected = {"kind": resource.kind, "apiVersion": served.name}
                assert expected == decode_protobuf(body(served.name, resource.kind, []))


def test_schemas_of_custom_resources() -> None:
    """Unions have the form that JSON gives them, and empty fields are left out."""
    sent = body(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        [(2, [(7, [(1, "v1"), (2, 1), (4, [(1, SCHEMA)])])])],
    )
    read = decode_protobuf(sent)
    assert "10.0" not in str(read), "whole numbers have no point"
    assert read["spec"]["versions"] == [
        {
            "name": "v1",
            "served": True,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "maximum": 10,
                    "default": {"a": []},
                    "enum": [1, None],
                    "items": {"type": "string"},
                    "properties": {"b": {"additionalProperties": False}},
                    "additionalProperties": {"type": "integer", "minimum": 0.5},
                    "x-kubernetes-int-or-string": True,
                    "x-kubernetes-validations": [{"rule": "self > 0"}],
                }
            },
        }
    ]
