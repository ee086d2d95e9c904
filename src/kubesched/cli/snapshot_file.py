"""The files that commands save: snapshots, and recordings, without credentials.

A snapshot is a List of objects, one per line, then an empty list of each known kind. An empty list,
such as a PodList, declares that there are no other objects of its kind.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kubesched.api.codec import encode_json
from kubesched.api.core import Node, Pod
from kubesched.cli.errors import naming
from kubesched.cli.files import replacing
from kubesched.cli.snapshot_fields import AnonymousNames, FieldRules
from kubesched.explain.sentences import count
from kubesched.inputs.cluster_input import ClusterInput
from kubesched.inputs.live_cluster import READ_KINDS
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedBy
from kubesched.snapshot.objects import KubernetesObject

STDOUT: Final = "-"
_HEAD: Final = b'{"apiVersion":"v1","kind":"List","metadata":{},"items":[\n'
_TAIL: Final = b"\n]}\n"
_TYPES: Final = tuple(kind.type for kind in READ_KINDS)
GZIP_LEVEL: Final = 6
GZIP: Final = zlib.MAX_WBITS | 16


def write_snapshot(cluster: ClusterInput, output: Path, *, anonymous: bool = False) -> str:
    """Write a snapshot, and return a line about it.

    Args:
        cluster: The cluster.
        output: The file, compressed with gzip if its name ends in .gz; `-` is stdout.
        anonymous: Whether to rename everything that has a name.

    Raises:
        OSError: It cannot be written; an old file stays as it was.
    """
    objects = [item for item in cluster.objects if isinstance(item, _TYPES)]
    rules = FieldRules(AnonymousNames(objects) if anonymous else None)
    parts = _text(objects, cluster.complete, rules)
    if str(output) == STDOUT:
        with naming("stdout"):
            sys.stdout.buffer.writelines(parts)
            sys.stdout.buffer.flush()
    else:
        with replacing(output, keeps_part=False) as write:
            for part in _compressed(parts) if output.suffix == ".gz" else parts:
                write(part)
    return f"{output}: {_summary(cluster.source, objects)}"


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
    packing = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP)
    for part in parts:
        yield packing.compress(part)
    yield packing.flush()


def _summary(source: str, objects: Iterable[KubernetesObject]) -> str:
    numbers = Counter(map(type, objects))
    nodes, pods = numbers.pop(Node, 0), numbers.pop(Pod, 0)
    others = count(numbers.total(), "other object")
    return f"{source}: {count(nodes, 'node')}, {count(pods, 'pod')}, {others}"


# Recordings.


@contextmanager
def recording_to(file: Path | None, recorded_by: RecordedBy) -> Iterator[DecisionRecorder | None]:
    """Yield a recorder, None without a file.

    What was recorded until an error or Ctrl-C stays in FILE.partial, and can be replayed.

    Args:
        file: Compressed with gzip if its name ends in .gz; FILE.partial until the end.
        recorded_by: The command.

    Raises:
        OSError: It cannot be written.
    """
    if file is None:
        yield None
        return
    rules = FieldRules()

    def keep(item: KubernetesObject) -> KubernetesObject:
        return rules.apply(item)

    with replacing(file, keeps_part=True) as write:
        packing = (
            zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP) if file.suffix == ".gz" else None
        )
        put = write if packing is None else lambda line: write(packing.compress(line))
        recorder = DecisionRecorder(recorded_by, put, keep)
        try:
            yield recorder
        finally:
            if recorder.has_begun:
                recorder.end()
                write(b"" if packing is None else packing.flush())
