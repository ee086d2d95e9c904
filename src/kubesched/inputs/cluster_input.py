"""The input of every command that reads a cluster: files, lists of the openb trace, live clusters.

Rejects:  unreadable files, duplicate objects, and workloads without pods.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kubesched.api.codec import Loaded, Source
from kubesched.api.core import Pod
from kubesched.api.decode import GZIP_MAGIC, STANDARD_INPUT, load, load_bytes
from kubesched.api.meta import KubeObject
from kubesched.explain.sentences import count
from kubesched.inputs.completed_input import ALL_KINDS, completed, unknown_fields
from kubesched.inputs.loading import distinct_objects, pending_again, with_scheduler_name
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import StatusLine
from kubesched.inputs.workloads import check_workloads, collecting
from kubesched.simulator.openb import is_openb, read_openb

if TYPE_CHECKING:
    from kubesched.inputs.live_cluster import LiveCluster

_HEAD_BYTES: Final = 256
_SHOWN_EVERY: Final = 1_000


class ClusterInput(NamedTuple):
    """A cluster as a command reads it.

    Attributes:
        objects: The objects, with the API server's defaults.
        warnings: One line each.
        complete: The kinds of which all objects are known.
        source: Its short name, such as `cluster.json` or `context kind-dev`.
        namespace: The namespace of the live context; "" for files.
    """

    objects: list[KubeObject]
    warnings: list[str]
    complete: tuple[type, ...]
    source: str
    namespace: str = ""


def read_cluster(
    source: ClusterSource,
    pod_files: Sequence[Path] = (),
    *,
    expects_pods: bool = False,
) -> ClusterInput:
    """Read a cluster, and further pods that are placed regardless of their nodeName.

    Args:
        source: Where the cluster is read from.
        pod_files: They hold these pods, and other objects that they need.
        expects_pods: Whether stored workloads should have pods, as manifests have to.

    Raises:
        DecodeError: A file or an object cannot be decoded.
        UserError: An object is there twice or invalid, a workload has no pods, or a live cluster
            cannot be read.
        SetupError: A kubeconfig or certificate cannot be used.
    """
    files = [*source.files, *pod_files]
    skipped: Counter[str] = Counter()
    of_cluster: list[Loaded] = []
    to_place: list[Loaded] = []
    placed: list[tuple[Path, list[Pod]]] = [(file, []) for file in pod_files]
    live = None
    if not source.files:
        # Imported late: files need no HTTP client.
        from kubesched.inputs.live_cluster import read_live

        live = read_live(source)
    if live is None:
        cluster = collecting(_counted(_load(source.files, skipped)), of_cluster)
    else:
        place = Source(live.name, 0)
        cluster = (Loaded(item, place) for item in live.objects)
    further = collecting(_further(skipped, placed), to_place)
    if live is not None and not pod_files:
        # A server stores nothing twice and nothing invalid.
        given: Sequence[KubeObject] = live.objects
    else:
        given = distinct_objects(chain(cluster, further))
    objects, warnings, complete = completed(given, skipped)
    if live is not None:
        complete, warnings = live.complete, [*live.warnings, *warnings]
    elif source.complete or any(is_openb(head_of(file)) for file in files):
        # A trace is a complete cluster.
        complete = ALL_KINDS
    if Pod in complete or not expects_pods:
        # Stored workloads may have no pods at the moment.
        of_cluster = [found for found in of_cluster if not found.object.metadata.uid]
    pods = [pod for _, found in placed for pod in found]
    warnings += check_workloads(given, of_cluster, to_place, pods)
    warnings += [f"--pods {file}: it holds no Pods" for file, found in placed if not found]
    return ClusterInput(
        objects,
        [*unknown_fields(files), *warnings],
        complete,
        _name(source.files) if live is None else live.name,
        "" if live is None else live.namespace,
    )


def live_input(live: LiveCluster, scheduler_name: str | None = None) -> ClusterInput:
    """Return the objects of a live cluster as input.

    All pods to place get `scheduler_name`, unless it is None.
    """
    found = completed(live.objects, Counter())
    return ClusterInput(
        [owned(item, scheduler_name) for item in found.objects],
        [*live.warnings, *found.warnings],
        live.complete,
        live.name,
        live.namespace,
    )


def _name(files: Sequence[Path]) -> str:
    if len(files) > 1:
        return f"{len(files)} files"
    return "stdin" if str(files[0]) == STANDARD_INPUT else files[0].name


def _further(skipped: Counter[str], placed: Sequence[tuple[Path, list[Pod]]]) -> Iterator[Loaded]:
    """Yield the objects of the files in `placed`, and add the pods of each file to its list."""
    for file, pods in placed:
        for found in _load([file], skipped):
            if isinstance(found.object, Pod):
                pods.append(found.object)
                yield Loaded(pending_again(found.object), found.source)
            else:
                yield found


def owned(item: KubeObject, scheduler_name: str | None) -> KubeObject:
    """Return a pod without a node with another scheduler's name; None changes nothing."""
    if not isinstance(item, Pod) or item.spec.node_name:
        return item
    return with_scheduler_name(item, scheduler_name)


def _load(files: Sequence[Path], skipped: Counter[str]) -> Iterator[Loaded]:
    for file in files:
        if str(file) == STANDARD_INPUT:
            yield from _standard_input(skipped)
        elif file.is_file() and is_openb(head_of(file)):
            yield from read_openb(file.read_bytes(), str(file))
        elif file.name.removesuffix(".gz").endswith(".csv") and file.is_file():
            # An unknown CSV file; the error names the expected columns.
            yield from read_openb(file.read_bytes(), str(file))
        else:
            yield from load([file], skipped)


def _counted(found: Iterable[Loaded]) -> Iterator[Loaded]:
    """Show how many objects were read so far."""
    with StatusLine() as status:
        for number, one in enumerate(found):
            if not number % _SHOWN_EVERY:
                status.show(partial(_reading, number + 1))
            yield one


def _reading(number: int) -> str:
    return f"Reading: {count(number, 'object')}"


def _standard_input(skipped: Counter[str]) -> Iterator[Loaded]:
    data = sys.stdin.buffer.read()
    if is_openb(data[:_HEAD_BYTES]):
        yield from read_openb(data, STANDARD_INPUT)
    else:
        yield from load_bytes(data, STANDARD_INPUT, skipped)


def head_of(file: Path) -> bytes:
    """Return a file's first bytes, decompressed; b"" if unreadable, which is reported later."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if head.startswith(GZIP_MAGIC):
            with gzip.open(file) as unpacked:
                head = unpacked.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""
    return head
