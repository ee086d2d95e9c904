"""Pods of an openb trace with arrival and run times.

Reads:    `creation_time`, `scheduled_time` and `deletion_time`, seconds
Differs:  a pod runs for as long after its binding as in the trace; a pod that was never bound
          there, for as long as it existed.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.decode import DecodeError, Source
from kubesched.simulator.openb import read_openb
from kubesched.simulator.pod_reports import RUN_SECONDS

_GZIP_MAGIC: Final = b"\x1f\x8b"


class TracedPod(NamedTuple):
    """A pod and its arrival, in seconds after the first pod."""

    at: float
    pod: Pod


def trace_nodes(path: str) -> list[Node]:
    """Return the nodes of a trace.

    Raises:
        DecodeError: if the file cannot be read or has other objects.
    """
    found = [item for item, _ in read_openb(_read(path), path)]
    if not all(isinstance(item, Node) for item in found):
        raise DecodeError(Source(path, 0), "this is a list of pods; expected nodes")
    return cast("list[Node]", found)


def trace_pods(path: str, speed: float = 1.0, count: int | None = None) -> list[TracedPod]:
    """Return the pods of a trace in order of arrival.

    Args:
        path: The path of the file.
        speed: Seconds of the trace per simulated second.
        count: The maximum number of pods, earliest first.

    Raises:
        DecodeError: if the file cannot be read or has other objects.
    """
    data = _read(path)
    found = [item for item, _ in read_openb(data, path)]
    if not all(isinstance(item, Pod) for item in found):
        raise DecodeError(Source(path, 0), "this is a list of nodes; expected pods")
    times = dict(_times(data))
    pods = cast("list[Pod]", found)[:count]
    begin = min((times[pod.metadata.name].created for pod in pods), default=0.0)
    traced = []
    for pod in pods:
        lived = times[pod.metadata.name]
        traced.append(TracedPod((lived.created - begin) / speed, _running(pod, lived, speed)))
    traced.sort(key=lambda each: each.at)
    return traced


class _Lived(NamedTuple):
    created: float
    run_seconds: float | None


def _running(pod: Pod, lived: _Lived, speed: float) -> Pod:
    """Return the pod to create: without a uid, annotated with its run time."""
    annotations = dict(pod.metadata.annotations)
    if lived.run_seconds is not None:
        annotations[RUN_SECONDS] = repr(lived.run_seconds / speed)
    metadata = replace(pod.metadata, uid="", creation_timestamp=None, annotations=annotations)
    return replace(pod, metadata=metadata)


def _read(path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DecodeError(Source(path, 0), f"it cannot be read: {reason}") from None


def _times(data: bytes) -> Iterator[tuple[str, _Lived]]:
    rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), skipinitialspace=True)
    for row in rows:
        created = _seconds(row.get("creation_time")) or 0.0
        deleted = _seconds(row.get("deletion_time"))
        begun = _seconds(row.get("scheduled_time")) or created
        lived = None if deleted is None else max(deleted - begun, 0.0)
        yield row["name"].strip(), _Lived(created, lived)


def _seconds(text: str | None) -> float | None:
    # `read_openb` has validated its own columns; these are validated here.
    text = (text or "").strip()
    return float(text) if text.isascii() and text.isdigit() else None
