"""Finalizers are changed in protobuf bodies, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.protobuf_wire import ProtobufError
from kubesched.apiserver.decoding import decode_protobuf
from kubesched.client.claim_client import with_finalizers


def _message(*fields: tuple[int, bytes]) -> bytes:
    """Return a message of short fields."""
    parts = []
    for number, payload in fields:
        size = len(payload)
        length = [size] if size < 0x80 else [size & 0x7F | 0x80, size >> 7]
        parts.append(bytes([number << 3 | 2, *length]) + payload)
    return b"".join(parts)


def _claim(*metadata: tuple[int, bytes], parameters: bytes = b'{"b": 2}') -> bytes:
    opaque = _message((1, b"d.example"), (2, _message((1, parameters))))
    spec = _message((1, _message((3, _message((2, _message((1, opaque))))))))
    raw = _message((1, _message(*metadata)), (2, spec))
    kind = _message((1, b"resource.k8s.io/v1"), (2, b"ResourceClaim"))
    return b"k8s\0" + _message((1, kind), (2, raw), (3, b""), (4, b""))


NAMED = ((1, b"c"), (3, b"ns"))


@pytest.mark.parametrize(
    ("before", "finalizers", "after"),
    [
        pytest.param((), ["a/b"], ((6, b"7"), (14, b"a/b")), id="none before"),
        pytest.param(((14, b"x"), (14, b"y")), ["y"], ((6, b"7"), (14, b"y")), id="one less"),
        pytest.param(((6, b"5"), (14, b"x")), [], ((6, b"7"),), id="none after"),
    ],
)
def test_finalizers_and_version_are_replaced(
    before: tuple[tuple[int, bytes], ...],
    finalizers: list[str],
    after: tuple[tuple[int, bytes], ...],
) -> None:
    """The request has the version that the caller read."""
    expected = _claim(*NAMED, *[one for one in after if one[0] == 14])
    found = with_finalizers(_claim(*NAMED, *before), finalizers, "")
    if not any(number == 6 for number, _ in before):
        assert expected == found
    told = decode_protobuf(with_finalizers(_claim(*NAMED, *before), finalizers, "7"))
    assert "7" == told["metadata"]["resourceVersion"]
    assert finalizers == told["metadata"].get("finalizers", [])
    assert {"name": "c", "namespace": "ns"}.items() <= told["metadata"].items()


@settings(max_examples=50)
@given(st.binary(max_size=300), st.lists(st.text("abc/", min_size=1, max_size=9), max_size=3))
def test_other_bytes_do_not_change(parameters: bytes, finalizers: list[str]) -> None:
    """Unknown fields are kept; undoing the change gives an equal body."""
    body = _claim(*NAMED, parameters=parameters)
    changed = with_finalizers(body, finalizers, "")
    assert parameters in changed
    assert body == with_finalizers(changed, [], "")


def test_numbers_of_all_sorts_are_passed_over() -> None:
    """Generations, times and whatever else metadata has."""
    varint, fixed = b"\x38\x96\x01", b"\x41" + bytes(8) + b"\x4d" + bytes(4)
    metadata = _message(*NAMED) + varint + fixed
    body = b"k8s\0" + _message((2, _message((1, metadata))))
    expected = b"k8s\0" + _message((2, _message((1, metadata + _message((14, b"f"))))))
    assert expected == with_finalizers(body, ["f"], "")


@pytest.mark.parametrize(
    "body", [b"{}", b"k8s\0\x12\x05a", b"k8s\0\x12\x02\x0b\x00", b"k8s\0" + b"\xff" * 11]
)
def test_other_bodies_are_refused(body: bytes) -> None:
    """JSON, and what ends in the middle or is of no known form."""
    with pytest.raises(ProtobufError):
        with_finalizers(body, ["f"], "")
