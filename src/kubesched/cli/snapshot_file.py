"""The text of a snapshot: a List of objects, one per line, then an empty list of each known kind.

An empty list, such as a PodList, declares that there are no other objects of its kind.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from kubesched.api.codec import encode_json
from kubesched.api.core import Node, Pod
from kubesched.cli.cluster_input import ClusterInput
from kubesched.cli.live_cluster import READ_KINDS
from kubesched.cli.snapshot_fields import AnonymousNames, FieldRules
from kubesched.explain.sentences import count
from kubesched.snapshot.objects import KubernetesObject

_HEAD: Final = b'{"apiVersion":"v1","kind":"List","metadata":{},"items":[\n'
_TAIL: Final = b"\n]}\n"
_TYPES: Final = tuple(kind.type for kind in READ_KINDS)
_LEVEL: Final = 6
_GZIP: Final = zlib.MAX_WBITS | 16


def snapshot_parts(
    cluster: ClusterInput, *, anonymous: bool = False, compressed: bool = False
) -> Iterator[bytes]:
    """Yield the content of a snapshot's file in parts.

    Args:
        cluster: The cluster.
        anonymous: Whether to rename everything that has a name.
        compressed: Whether to compress with gzip.
    """
    objects = [item for item in cluster.objects if isinstance(item, _TYPES)]
    rules = FieldRules(AnonymousNames(objects) if anonymous else None)
    text = _text(objects, cluster.complete, rules)
    return _compressed(text) if compressed else text


def _text(
    objects: Iterable[KubernetesObject], complete: Collection[type], rules: FieldRules
) -> Iterator[bytes]:
    before = _HEAD
    for item in objects:
        yield before + encode_json(rules.apply(item))  # type: ignore[arg-type]  # it has a kind
        before = b",\n"
    for kind in READ_KINDS:
        if kind.type not in complete:
            continue
        empty = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "items": []}
        yield before + msgspec.json.encode(empty)
        before = b",\n"
    yield _TAIL if before != _HEAD else _HEAD + _TAIL


def _compressed(parts: Iterator[bytes]) -> Iterator[bytes]:
    packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for part in parts:
        yield packing.compress(part)
    yield packing.flush()


def summary(cluster: ClusterInput) -> str:
    """Return what a cluster consists of."""
    numbers = Counter(type(item) for item in cluster.objects)
    nodes, pods = numbers.pop(Node, 0), numbers.pop(Pod, 0)
    others = f"{numbers.total()} objects of {count(len(numbers), 'other kind')}"
    return f"{cluster.source}: {count(nodes, 'node')}, {count(pods, 'pod')}, {others}"
