"""Changes the metadata of an object in protobuf form, and leaves every other byte as it is.

Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/generated.proto, Unknown;
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto, ObjectMeta (v1.36)
Rejects:  what is no such body.
Differs:  nothing else is read or written in this form: JSON is, wherever it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.api.protobuf_wire import MAGIC, Field, ProtobufError, field, fields_of

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

# Numbers of fields: the object in its envelope, metadata in the object, and of metadata.
_RAW: Final = 2
_METADATA: Final = 1
_RESOURCE_VERSION: Final = 6
_FINALIZERS: Final = 14


def with_finalizers(body: bytes, finalizers: Iterable[str], resource_version: str) -> bytes:
    """Return a body whose object has these finalizers.

    Args:
        body: As an API server sent it.
        finalizers: All that the object is to have.
        resource_version: The version that the caller knows; "" leaves the object's.

    Raises:
        ProtobufError: It is no such body.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("it is no object in protobuf form")

    def changed_metadata(metadata: bytes) -> bytes:
        replaced = {_FINALIZERS: [name.encode() for name in finalizers]}
        if resource_version:
            replaced[_RESOURCE_VERSION] = [resource_version.encode()]
        kept = b"".join(one.whole for one in fields_of(metadata) if one.number not in replaced)
        added = (field(number, text) for number, texts in replaced.items() for text in texts)
        return kept + b"".join(added)

    def changed_object(raw: bytes) -> bytes:
        return b"".join(
            field(_METADATA, changed_metadata(_content(one)))
            if one.number == _METADATA
            else one.whole
            for one in fields_of(raw)
        )

    envelope = fields_of(body[len(MAGIC) :])
    return MAGIC + b"".join(
        field(_RAW, changed_object(_content(one))) if one.number == _RAW else one.whole
        for one in envelope
    )


def _content(one: Field) -> bytes:
    if isinstance(one.value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return one.value
