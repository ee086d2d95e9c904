"""What `kubesched simulate` reads: a dump, further pods, lists of the openb trace.

Rejects:  what cannot be read, and two objects of one kind and name, naming both places.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from kubesched.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from kubesched.api.core import Pod, ReplicationController
from kubesched.api.decode import STANDARD_INPUT, Loaded, load, load_bytes
from kubesched.cli.completed_input import CompletedInput, completed
from kubesched.cli.errors import UserError
from kubesched.cli.loading import distinct_objects, pending_again, with_scheduler_name
from kubesched.cli.unknown_fields import unknown_fields
from kubesched.config.feature_gates import FeatureGates
from kubesched.simulator.openb import is_openb, read_openb
from kubesched.snapshot.objects import KubernetesObject

_HEAD_BYTES: Final = 256
_GZIP_MAGIC: Final = b"\x1f\x8b"
_WORKLOADS: Final = (Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController)
_FINISHED: Final = ("Succeeded", "Failed")
# Kinds that make pods and that scheduling never reads.
_UNREAD_WORKLOADS: Final = ("batch/v1/Job", "batch/v1/CronJob")


def read_input(
    files: Sequence[Path],
    pod_files: Sequence[Path],
    scheduler_name: str | None,
    gates: FeatureGates,
) -> CompletedInput:
    """Read a dump and further pods, which are to be placed whatever their nodeName says.

    Args:
        files: The cluster.
        pod_files: Further pods, and what they need.
        scheduler_name: Whom all pods that are to be placed belong to; None leaves each its own.
        gates: The features that are on.

    Raises:
        DecodeError: A file or an object cannot be read.
        UserError: Two objects are the same.
    """
    if [*files, *pod_files].count(Path(STANDARD_INPUT)) > 1:
        raise UserError("`-` stands twice, but standard input can be read only once")
    skipped: Counter[str] = Counter()
    unread: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    further = _further(pod_files, unread, placed)
    given = distinct_objects(_chained(_load(files, skipped), further))
    objects, warnings = completed(given, skipped + unread, gates)
    warnings += _not_expanded(objects, unread)
    warnings += [f"--pods {file}: it holds no Pods" for file in pod_files if not placed[str(file)]]
    warnings = [*unknown_fields([*files, *pod_files]), *warnings]
    return CompletedInput([_owned(item, scheduler_name) for item in objects], warnings)


def _further(files: Sequence[Path], unread: Counter[str], placed: Counter[str]) -> Iterator[Loaded]:
    """Yield the objects of `--pods`, and count the pods of each file."""
    for file in files:
        for found in _load([file], unread):
            if isinstance(found.object, Pod):
                placed[str(file)] += 1
                yield Loaded(pending_again(found.object), found.source)
            else:
                yield found


def _owned(item: KubernetesObject, scheduler_name: str | None) -> KubernetesObject:
    if not isinstance(item, Pod) or item.spec.node_name:
        return item
    return with_scheduler_name(item, scheduler_name)


def _chained(*parts: Iterable[Loaded]) -> Iterator[Loaded]:
    for part in parts:
        yield from part


def _load(files: Sequence[Path], skipped: Counter[str]) -> Iterator[Loaded]:
    for file in files:
        if str(file) == STANDARD_INPUT:
            yield from _standard_input(skipped)
        elif file.is_file() and is_openb(head_of(file)):
            yield from read_openb(file.read_bytes(), str(file))
        elif file.name.removesuffix(".gz").endswith(".csv") and file.is_file():
            # Not one that is known; reading it as such says what it would have to be.
            yield from read_openb(file.read_bytes(), str(file))
        else:
            yield from load([file], skipped)


def _standard_input(skipped: Counter[str]) -> Iterator[Loaded]:
    data = sys.stdin.buffer.read()
    if is_openb(data[:_HEAD_BYTES]):
        yield from read_openb(data, STANDARD_INPUT)
    else:
        yield from load_bytes(data, STANDARD_INPUT, skipped)


def head_of(file: Path) -> bytes:
    """Return a file's beginning, decompressed; empty if it cannot be, which reading it will say."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if head.startswith(_GZIP_MAGIC):
            with gzip.open(file) as unpacked:
                head = unpacked.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""
    return head


# Warnings.


def _not_expanded(objects: Sequence[KubernetesObject], unread: Counter[str]) -> Iterator[str]:
    """Say which workloads have no pods, because only Pods are placed."""
    owners = _owners(objects)
    found: Counter[str] = Counter()
    for item in objects:
        if isinstance(item, _WORKLOADS) and getattr(item.spec, "replicas", 1) != 0:
            metadata = item.metadata
            kind = type(item).__name__
            if (metadata.namespace, kind, metadata.name) not in owners:
                found[kind] += 1
    for name in _UNREAD_WORKLOADS:
        if unread[name]:
            found[name.rpartition("/")[2]] = unread[name]
    if found:
        listed = ", ".join(f"{number} {kind}" for kind, number in sorted(found.items()))
        yield f"not expanded, because only Pods are placed: {listed}"


def _owners(objects: Sequence[KubernetesObject]) -> frozenset[tuple[str, str, str]]:
    """Return namespace, kind and name of what owns a pod, or a ReplicaSet that does."""
    found: dict[tuple[str, str, str], None] = {}

    def add(item: KubernetesObject) -> None:
        metadata = item.metadata
        for owner in metadata.owner_references:
            found[metadata.namespace, owner.kind, owner.name] = None

    for item in objects:
        if isinstance(item, Pod):
            add(item)
    for item in objects:
        if isinstance(item, ReplicaSet):
            metadata = item.metadata
            if (metadata.namespace, "ReplicaSet", metadata.name) in found:
                add(item)
    return frozenset(found)
