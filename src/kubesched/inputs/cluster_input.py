"""The input of every command that reads a cluster: files, lists of the openb trace, live clusters.

Only pods are placed, and nothing creates those of workloads among the files. A dump has workloads
beside their pods, for topology spreading.

Rejects:  unreadable files, duplicate objects, and workloads without pods.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from kubesched.api.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.api.codec import Loaded, Skipped, Source
from kubesched.api.core import Pod, ReplicationController
from kubesched.api.decode import STANDARD_INPUT, load, load_bytes, unpacked
from kubesched.api.meta import KubeObject
from kubesched.api.selectors import matches_label_selector, matches_set
from kubesched.explain.sentences import count, names
from kubesched.inputs.completed_input import (
    ClusterInput,
    all_kinds,
    completed,
    listed_kinds,
    unknown_fields,
)
from kubesched.inputs.errors import UserError, first_of
from kubesched.inputs.loading import distinct_objects, pending_again
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import StatusLine
from kubesched.simulator.traces import is_openb, read_openb

_HEAD_BYTES: Final = 256
_SHOWN_EVERY: Final = 1_000
_LARGE_MB: Final = 10


def read_cluster(
    source: ClusterSource,
    pod_files: Sequence[Path] = (),
    *,
    expects_pods: bool = False,
) -> ClusterInput:
    """Read a cluster, and further pods that are placed regardless of their nodeName.

    `pod_files` hold these pods, and other objects that they need; `expects_pods` says whether
    stored workloads should have pods, as manifests have to. Raises DecodeError, SetupError, and
    UserError for what is invalid, there twice, or cannot be read.
    """
    files = [*source.files, *pod_files]
    skipped = Skipped()
    if source.files:
        known = ClusterInput([], [], (), _name(source.files))
        cluster = list(_counted(source.files, _load(source.files, skipped)))
    else:
        # Imported late: files need no HTTP client.
        from kubesched.inputs.live_cluster import read_live

        known = read_live(source)
        place = Source(known.source, 0)
        cluster = [Loaded(item, place) for item in known.objects]
    further = [list(_load([file], skipped)) for file in pod_files]
    to_place = list(chain(*further))
    # A server stores nothing twice and nothing invalid.
    given = distinct_objects([*cluster, *map(_waiting, to_place)]) if files else known.objects
    objects, warnings = completed(given, skipped)
    complete = known.complete or listed_kinds(skipped)
    if source.files and (source.complete or any(is_openb(head_of(file)) for file in files)):
        # A trace is a complete cluster.
        complete = all_kinds()
    if Pod in complete or not expects_pods:
        # Stored workloads may have no pods at the moment.
        cluster = [found for found in cluster if not found.object.metadata.uid]
    warnings += check_workloads(given, cluster, to_place)
    warnings += [
        f"--pods {file}: it holds no Pods"
        for file, loaded in zip(pod_files, further, strict=True)
        if not any(isinstance(found.object, Pod) for found in loaded)
    ]
    return known._replace(
        objects=objects,
        warnings=[*unknown_fields(files), *known.warnings, *warnings],
        complete=complete,
    )


def live_input(live: ClusterInput) -> ClusterInput:
    """Return a live cluster with defaults."""
    objects, warnings = completed(live.objects, Skipped())
    return live._replace(objects=objects, warnings=[*live.warnings, *warnings])


def _name(files: Sequence[Path]) -> str:
    if len(files) > 1:
        return f"{len(files)} files"
    return "stdin" if str(files[0]) == STANDARD_INPUT else files[0].name


def _waiting(found: Loaded) -> Loaded:
    """Return an object; a pod is pending."""
    item = found.object
    return Loaded(pending_again(item), found.source) if isinstance(item, Pod) else found


def _load(files: Sequence[Path], skipped: Skipped) -> Iterator[Loaded]:
    for file in files:
        if str(file) == STANDARD_INPUT:
            data = sys.stdin.buffer.read()
            if is_openb(data[:_HEAD_BYTES]):
                yield from read_openb(data, STANDARD_INPUT)
            else:
                yield from load_bytes(data, STANDARD_INPUT, skipped)
        elif file.is_file() and (_is_table(file) or is_openb(head_of(file))):
            yield from read_openb(file.read_bytes(), str(file))
        else:
            yield from load([file], skipped)


def _is_table(file: Path) -> bool:
    """Whether a file is CSV; one of another kind than openb's gets an error with its columns."""
    return file.name.removesuffix(".gz").endswith(".csv")


def _counted(files: Iterable[Path], found: Iterable[Loaded]) -> Iterator[Loaded]:
    """Show how many objects were read so far."""
    with StatusLine() as status:
        sizes = {file.name: file.stat().st_size >> 20 for file in files if file.is_file()}
        large = [f"{name} ({size} MB)" for name, size in sizes.items() if size >= _LARGE_MB]
        if large:
            # A document is parsed as a whole, before its first object is there.
            status.show_before(f"Reading {names(large)}")
        for number, one in enumerate(found):
            if not number % _SHOWN_EVERY:
                status.show(partial(_reading, number + 1))
            yield one


def _reading(number: int) -> str:
    return f"Reading: {count(number, 'object')}"


def head_of(file: Path) -> bytes:
    """Return a file's first bytes, decompressed.

    They are b"" of a pipe, which can be read only once, and of an unreadable file, which is
    reported later.
    """
    if not file.is_file():
        return b""
    try:
        with file.open("rb") as stream:
            return unpacked(stream).read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


# Workloads among the files.

_WORKLOADS: Final = (
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    ReplicationController,
    Job,
    CronJob,
)
_REMEDY: Final = (
    "only Pods are placed here; ask `kubesched fit`, or write each of its pods as a Pod with the "
    "spec of its template"
)

_Key = tuple[str, str, str]
"""Namespace, kind and name."""


def check_workloads(
    objects: Sequence[KubeObject], cluster: Iterable[Loaded], to_place: Iterable[Loaded] = ()
) -> list[str]:
    """Return a warning if workloads of a dump have no pods; raises UserError for manifests.

    A workload without a uid is a manifest, whose pods do not exist. If the files have no pods at
    all, every workload counts as a manifest. `cluster` are the cluster's objects that may be such
    workloads; `to_place` are the objects in the files of --pods.
    """
    of_cluster = [found for found in cluster if isinstance(found.object, _WORKLOADS)]
    new = [found for found in to_place if isinstance(found.object, _WORKLOADS)]
    if not of_cluster and not new:
        return []
    pods = [item for item in objects if isinstance(item, Pod)]
    owners = _owners(pods, objects)
    missing = [
        found
        for found in of_cluster
        if _makes_pods(found)
        and _key(found.object) not in owners
        and not _selects_any(found.object, pods)
    ]
    placed = [found.object for found in to_place if isinstance(found.object, Pod)]
    own_pods = _owners(placed, objects)
    refused = [found for found in new if _makes_pods(found) and _key(found.object) not in own_pods]
    refused += [found for found in missing if not pods or not found.object.metadata.uid]
    if refused:
        raise UserError(*first_of([_refusal(found) for found in refused], "workloads"))
    if not missing:
        return []
    kinds = Counter(type(found.object).__name__ for found in missing)
    listed = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    return [f"workloads without pods in the files are not expanded: {listed}"]


def _refusal(found: Loaded) -> str:
    namespace, kind, name = _key(found.object)
    return f"{found.source}: {kind} {namespace}/{name}: {_REMEDY}"


def _makes_pods(found: Loaded) -> bool:
    return getattr(getattr(found.object, "spec", None), "replicas", None) != 0


def _key(item: KubeObject) -> _Key:
    return item.metadata.namespace, type(item).__name__, item.metadata.name


def _selects_any(item: KubeObject, pods: Iterable[Pod]) -> bool:
    """Whether the workload's selector matches one of the pods."""
    selector = getattr(getattr(item, "spec", None), "selector", None)
    if not selector:
        return False
    matches = matches_set if isinstance(item, ReplicationController) else matches_label_selector
    namespace = item.metadata.namespace
    return any(
        matches(selector, pod.metadata.labels)
        for pod in pods
        if pod.metadata.namespace == namespace
    )


def _owners(pods: Iterable[Pod], objects: Iterable[KubeObject]) -> set[_Key]:
    """Return what owns one of the pods, directly or through a ReplicaSet or a Job."""
    found = {key for pod in pods for key in _owners_of(pod)}
    between = [
        item for item in objects if isinstance(item, ReplicaSet | Job) and _key(item) in found
    ]
    return found.union(*map(_owners_of, between))


def _owners_of(item: KubeObject) -> list[_Key]:
    metadata = item.metadata
    return [(metadata.namespace, owner.kind, owner.name) for owner in metadata.owner_references]
