from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kubesched.client.resource_locks import (
    ElectionRecord,
    annotation_of,
    raw_record,
    record_of_annotation,
    record_of_spec,
    spec_of,
)

_TIME = datetime(2024, 5, 1, 10, 0, 0, 500_000, tzinfo=UTC)
_RECORD = ElectionRecord(
    holder_identity="a",
    lease_duration_seconds=15,
    acquire_time=_TIME,
    renew_time=_TIME,
    leader_transitions=3,
)


def test_spec_has_microseconds() -> None:
    """A Lease's times are written with six digits, in UTC, and nothing is added that is empty."""
    zone = timezone(timedelta(hours=2))
    assert {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2024-05-01T10:00:00.500000Z",
        "renewTime": "2024-05-01T10:00:00.500000Z",
        "leaseTransitions": 3,
    } == spec_of(_RECORD)
    moved = ElectionRecord(acquire_time=_TIME.astimezone(zone))
    assert "2024-05-01T10:00:00.500000Z" == spec_of(moved)["acquireTime"]


def test_annotation_has_seconds() -> None:
    """An annotation's times are written in whole seconds, its count under another name."""
    assert (
        '{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2024-05-01T10:00:00Z",'
        '"renewTime":"2024-05-01T10:00:00Z","leaderTransitions":3}'
    ) == annotation_of(_RECORD)


def test_reads_what_it_writes() -> None:
    """A spec holds the whole record, an annotation all but the fractions of times."""
    assert _RECORD == record_of_spec(spec_of(_RECORD))
    read = record_of_annotation(annotation_of(_RECORD))
    assert _TIME.replace(microsecond=0) == read.renew_time
    assert 3 == read.leader_transitions


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None, "renewTime": None}])
def test_empty_lease(spec: dict[str, None]) -> None:
    """It has no holder, and its duration is 0."""
    assert ElectionRecord() == record_of_spec(spec)


def test_raw_record_tells_microseconds_apart() -> None:
    """Every renewal is a change."""
    later = ElectionRecord(renew_time=_TIME + timedelta(microseconds=1))
    assert raw_record(ElectionRecord(renew_time=_TIME)) != raw_record(later)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"holderIdentity":1}', '{"renewTime":"soon"}'])
def test_refuses_what_is_no_record(text: str) -> None:
    """A broken annotation is a ValueError."""
    with pytest.raises(ValueError, match=r"."):
        record_of_annotation(text)
