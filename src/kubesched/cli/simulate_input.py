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
from typing import Final, NamedTuple

import msgspec

from kubesched.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from kubesched.api.core import Node, Pod, ReplicationController
from kubesched.api.decode import STANDARD_INPUT, Loaded, load, load_bytes
from kubesched.api.scheduling import PriorityClass
from kubesched.cli.errors import UserError
from kubesched.cli.loading import distinct_objects, with_scheduler_name
from kubesched.explain.words import count, names
from kubesched.simulator.defaults import PriorityClasses, node_with_defaults, pod_with_defaults
from kubesched.simulator.openb import is_openb, read_openb
from kubesched.snapshot.objects import KubernetesObject

_HEAD_BYTES: Final = 256
_GZIP_MAGIC: Final = b"\x1f\x8b"
_WORKLOADS: Final = (Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController)
_FINISHED: Final = ("Succeeded", "Failed")
# Kinds that make pods and that scheduling never reads.
_UNREAD_WORKLOADS: Final = ("batch/v1/Job", "batch/v1/CronJob")


class SimulationInput(NamedTuple):
    """The objects of a simulation, and what the user should know about them."""

    objects: list[KubernetesObject]
    warnings: list[str]


def read_input(
    files: Sequence[Path], pod_files: Sequence[Path], scheduler_name: str | None
) -> SimulationInput:
    """Read a dump and further pods, which are to be placed whatever their nodeName says.

    Args:
        files: The cluster.
        pod_files: Further pods, and what they need.
        scheduler_name: Whom all pods that are to be placed belong to; None leaves each its own.

    Raises:
        DecodeError: A file or an object cannot be read.
        UserError: Two objects are the same.
    """
    if [*files, *pod_files].count(Path(STANDARD_INPUT)) > 1:
        raise UserError("`-` stands twice, but standard input can be read only once")
    skipped: Counter[str] = Counter()
    unread: Counter[str] = Counter()
    further = (
        Loaded(_pending_again(found.object), found.source)
        if isinstance(found.object, Pod)
        else found
        for found in _load(pod_files, unread)
    )
    objects = distinct_objects(_chained(_load(files, skipped), further))
    classes = PriorityClasses(item for item in objects if isinstance(item, PriorityClass))
    objects = [_completed(item, classes, scheduler_name) for item in objects]
    warnings = [
        *_nothing_read(objects, skipped + unread),
        *_not_expanded(objects, unread),
        *_on_unknown_nodes(objects),
        *_unknown_classes(classes),
    ]
    return SimulationInput(objects, warnings)


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


def _pending_again(pod: Pod) -> Pod:
    """Return the pod as it was before it was bound or finished; a pending one as it is."""
    if not pod.spec.node_name and pod.status.phase not in _FINISHED:
        return pod
    status = msgspec.structs.replace(
        pod.status, phase="Pending", nominated_node_name="", start_time=None
    )
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, spec=spec, status=status)


def _completed(
    item: KubernetesObject, classes: PriorityClasses, scheduler_name: str | None
) -> KubernetesObject:
    if isinstance(item, Node):
        return node_with_defaults(item)
    if not isinstance(item, Pod):
        return item
    completed = pod_with_defaults(item, classes)
    return completed if item.spec.node_name else with_scheduler_name(completed, scheduler_name)


# Warnings.


def _nothing_read(objects: Sequence[KubernetesObject], skipped: Counter[str]) -> Iterator[str]:
    if skipped and not objects:
        yield f"nothing to schedule was found, only objects of kind {', '.join(sorted(skipped))}"


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


def _on_unknown_nodes(objects: Sequence[KubernetesObject]) -> Iterator[str]:
    known = frozenset(item.metadata.name for item in objects if isinstance(item, Node))
    missing: Counter[str] = Counter(
        item.spec.node_name
        for item in objects
        if isinstance(item, Pod)
        and item.spec.node_name
        and item.spec.node_name not in known
        and item.status.phase not in _FINISHED
    )
    if missing:
        pods = count(missing.total(), "pod")
        nodes = names(sorted(missing))
        yield f"not counted, because their nodes are not in the files: {pods} on {nodes}"


def _unknown_classes(classes: PriorityClasses) -> Iterator[str]:
    if classes.unknown:
        listed = names(sorted(classes.unknown))
        yield f"priority 0 is used for pods of PriorityClasses not in the files: {listed}"
