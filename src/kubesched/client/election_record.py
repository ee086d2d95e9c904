"""ElectionRecord is the content of a lock: in a Lease's spec or in an annotation.

Upstream: staging/src/k8s.io/client-go/tools/leaderelection/resourcelock: interface.go,
          leaselock.go (v1.36)
Differs:  two records of a Lease are equal only if their times are, to the microsecond; upstream
          compares seconds, so a candidate may miss a renewal and take over up to a second too
          early.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from kubesched.api.times import micro_time, moment_at, parse_time, second_time


class ElectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads, and for how long.

    Attributes:
        holder_identity: The leader's identity, "" for none.
        lease_duration_seconds: How long candidates wait after the last change they see.
        acquire_time: When the leader acquired the lock; None if not set.
        renew_time: When it last renewed it; None if not set.
        leader_transitions: How often the leader has changed.
        preferred_holder: Who should lead instead, "" for none.
        strategy: How the preferred holder was chosen.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    leader_transitions: int = 0
    preferred_holder: str = ""
    strategy: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    leader_transitions: int | None = None
    preferred_holder: str | None = None
    strategy: str | None = None


def record_of_spec(spec: dict[str, Any]) -> ElectionRecord:
    """Return the record of a Lease's spec; raises ValueError if a field has the wrong type."""
    fields = msgspec.convert(spec, _Spec)
    return _record(fields, fields.lease_transitions)


def record_of_annotation(text: str) -> ElectionRecord:
    """Return the record of an annotation's JSON text; raises ValueError if it is invalid."""
    try:
        fields = msgspec.json.decode(text, type=_Spec)
    except UnicodeEncodeError as error:
        raise ValueError(f"the annotation is no JSON: {error}") from None
    return _record(fields, fields.leader_transitions)


def _record(fields: _Spec, transitions: int | None) -> ElectionRecord:
    return ElectionRecord(
        holder_identity=fields.holder_identity or "",
        lease_duration_seconds=fields.lease_duration_seconds or 0,
        acquire_time=_time(fields.acquire_time),
        renew_time=_time(fields.renew_time),
        leader_transitions=transitions or 0,
        preferred_holder=fields.preferred_holder or "",
        strategy=fields.strategy or "",
    )


def _time(text: str | None) -> datetime | None:
    return moment_at(parse_time(text)) if text else None


def _second_time(moment: datetime | None) -> str | None:
    return None if moment is None else second_time(moment)


def _micro_time(moment: datetime | None) -> str | None:
    return None if moment is None else micro_time(moment)


def spec_of(record: ElectionRecord) -> dict[str, Any]:
    """Return a Lease's spec: times with microseconds."""
    spec: dict[str, Any] = {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": record.lease_duration_seconds,
        "acquireTime": _micro_time(record.acquire_time),
        "renewTime": _micro_time(record.renew_time),
        "leaseTransitions": record.leader_transitions,
    }
    if record.preferred_holder:
        spec["preferredHolder"] = record.preferred_holder
    if record.strategy:
        spec["strategy"] = record.strategy
    return spec


def annotation_of(record: ElectionRecord) -> str:
    """Return an annotation's JSON text: times in whole seconds."""
    return msgspec.json.encode(
        {
            "holderIdentity": record.holder_identity,
            "leaseDurationSeconds": record.lease_duration_seconds,
            "acquireTime": _second_time(record.acquire_time),
            "renewTime": _second_time(record.renew_time),
            "leaderTransitions": record.leader_transitions,
        }
    ).decode()


def raw_record(record: ElectionRecord) -> bytes:
    """Return bytes that are equal only for equal records."""
    return msgspec.json.encode(spec_of(record))
