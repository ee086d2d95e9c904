"""The input of `kubesched simulate`: a dump, further pods, lists of the openb trace.

Rejects:  unreadable files, duplicate objects, and workloads without pods.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.decode import STANDARD_INPUT, Loaded, load, load_bytes
from kubesched.cli.completed_input import ALL_KINDS, CompletedInput, completed
from kubesched.cli.errors import UserError
from kubesched.cli.loading import distinct_objects, pending_again, with_scheduler_name
from kubesched.cli.unknown_fields import unknown_fields
from kubesched.cli.workloads import check_workloads, collecting
from kubesched.config.feature_gates import FeatureGates
from kubesched.simulator.openb import is_openb, read_openb
from kubesched.snapshot.objects import KubernetesObject

_HEAD_BYTES: Final = 256
_GZIP_MAGIC: Final = b"\x1f\x8b"


def read_input(
    files: Sequence[Path],
    pod_files: Sequence[Path],
    scheduler_name: str | None,
    gates: FeatureGates,
) -> CompletedInput:
    """Read a dump, and further pods that are placed regardless of their nodeName.

    Args:
        files: The cluster.
        pod_files: Further pods, and other objects that they need.
        scheduler_name: For all pods to place; None for each pod's own.
        gates: The feature gates.

    Raises:
        DecodeError: A file or an object cannot be decoded.
        UserError: An object is there twice or invalid, or a workload has no pods.
    """
    if [*files, *pod_files].count(Path(STANDARD_INPUT)) > 1:
        raise UserError("`-` stands twice, but standard input can be read only once")
    skipped: Counter[str] = Counter()
    of_cluster: list[Loaded] = []
    to_place: list[Loaded] = []
    placed: list[tuple[Path, list[Pod]]] = [(file, []) for file in pod_files]
    cluster = collecting(_load(files, skipped), of_cluster)
    further = collecting(_further(skipped, placed), to_place)
    given = distinct_objects(_chained(cluster, further))
    pods = [pod for _, found in placed for pod in found]
    expected = check_workloads(given, of_cluster, to_place, pods)
    objects, warnings, listed = completed(given, skipped, gates)
    warnings += expected
    warnings += [f"--pods {file}: it holds no Pods" for file, found in placed if not found]
    warnings = [*unknown_fields([*files, *pod_files]), *warnings]
    if any(is_openb(head_of(file)) for file in (*files, *pod_files)):
        # A trace is a complete cluster.
        listed = ALL_KINDS
    return CompletedInput([_owned(item, scheduler_name) for item in objects], warnings, listed)


def _further(skipped: Counter[str], placed: Sequence[tuple[Path, list[Pod]]]) -> Iterator[Loaded]:
    """Yield the objects of the files in `placed`, and add the pods of each file to its list."""
    for file, pods in placed:
        for found in _load([file], skipped):
            if isinstance(found.object, Pod):
                pods.append(found.object)
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
            # An unknown CSV file; the error names the expected columns.
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
    """Return a file's first bytes, decompressed; b"" if unreadable, which is reported later."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if head.startswith(_GZIP_MAGIC):
            with gzip.open(file) as unpacked:
                head = unpacked.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""
    return head
