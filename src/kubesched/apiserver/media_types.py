"""Which form an answer takes: JSON, a table, or metadata only, as the client accepts.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation, handlers/response.go
          (v1.36)
Differs:  who accepts only protobuf is refused; whoever accepts it takes JSON too.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.apiserver.status import no_representation, not_acceptable

_META_GROUP: Final = "meta.k8s.io"
_META_VERSIONS: Final = ("v1", "v1beta1")
YAML: Final = "application/yaml"
_ACCEPTED: Final = ("application/json", YAML, "*/*")
_TRANSFORMED: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class MediaType(msgspec.Struct, frozen=True):
    """One form that a client takes.

    Attributes:
        name: Such as `application/json`.
        quality: Between 0 and 1; the best is served.
        kind: What the answer is turned into; "" for nothing.
        group: Of that kind.
        version: Of that kind.
    """

    name: str
    quality: float = 1.0
    kind: str = ""
    group: str = ""
    version: str = ""


PLAIN: Final = MediaType("application/json")


def parse_accept(header: str) -> list[MediaType]:
    """Return what an `Accept` header names, best first."""
    found = []
    for clause in header.split(","):
        name, *parameters = [part.strip() for part in clause.split(";")]
        values = {
            key.strip(): value.strip()
            for key, _, value in (parameter.partition("=") for parameter in parameters)
        }
        found.append(
            MediaType(
                name.lower(),
                _quality(values.get("q", "")),
                values.get("as", ""),
                values.get("g", ""),
                values.get("v", ""),
            )
        )
    # Stable: of equal quality, the first named comes first.
    return sorted(found, key=lambda one: -one.quality)


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def prefers_yaml(header: str) -> bool:
    """Whether a client takes YAML rather than JSON."""
    if YAML not in header:
        return False
    best = next((one for one in parse_accept(header) if one.name in _ACCEPTED), PLAIN)
    return best.name == YAML


def negotiate(header: str) -> MediaType:
    """Return the form of an answer to a question about a resource.

    Raises:
        StatusError: None of what the client takes is offered.
    """
    if header in {"", "application/json", "*/*"}:
        return PLAIN
    accepted = parse_accept(header)
    if not any(one.name in _ACCEPTED for one in accepted):
        raise no_representation()
    for one in accepted:
        if one.name not in _ACCEPTED:
            continue
        if not one.kind:
            return one if one.name == YAML else PLAIN
        is_known = one.kind in _TRANSFORMED and one.group == _META_GROUP
        if is_known and one.version in _META_VERSIONS:
            return one
    raise not_acceptable()
