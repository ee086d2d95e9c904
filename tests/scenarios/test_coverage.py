"""Every row, transition and registration has a transcript that shows it."""

from __future__ import annotations

import re

import pytest

from .coverage import (
    FAILURES,
    NEVER,
    TRANSITIONS,
    Failure,
    all_registrations,
    expected_of,
    shown_hints,
    wanted_hints,
)


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=name.replace(" ", "-")) for name, row in FAILURES.items()]
)
def test_failures(row: Failure) -> None:
    """All columns of a row stand in its transcript."""
    text, pod = expected_of(row.transcript), row.pod
    moved = f"{pod}: in flight > {row.place} by ScheduleAttemptFailure {row.rejectors}"
    assert moved in text
    assert re.search(rf"event    {pod}: Warning FailedScheduling/Scheduling", text)
    patch = rf"patch {pod}: PodScheduled=False {row.reason} .*{row.nomination}"
    assert re.search(patch, text, re.MULTILINE)
    assert row.is_undone == bool(
        re.search(rf"unreserve {pod} on .*\n(.*\n)*.*{pod} forgotten", text)
    )
    assert not row.is_released or "on AssignedPodDelete: Queue" in text


@pytest.mark.parametrize(
    ("transcript", "line"),
    [pytest.param(*shown, id=name.replace(" ", "-")) for name, shown in TRANSITIONS.items()],
)
def test_transitions(transcript: str, line: str) -> None:
    """A transition of the queue stands in its transcript."""
    assert re.search(line, expected_of(f"queue/{transcript}"))


def test_every_hint_is_shown_both_ways() -> None:
    """For each registration and each event it covers: once Queue, and once QueueSkip."""
    missing = wanted_hints() - shown_hints() - NEVER.keys()
    assert [] == sorted(missing)


def test_nothing_is_excused_without_need() -> None:
    """What can never be shown is something that could be wanted, and is not shown."""
    assert NEVER.keys() <= wanted_hints()
    assert set() == NEVER.keys() & shown_hints()


def test_every_plugin_has_its_transcript() -> None:
    """Transcripts of hints are named as the plugins."""
    shown = {plugin for plugin, _, _ in shown_hints()}
    excused = {plugin for plugin, _, _ in NEVER}
    assert {each.plugin for each in all_registrations()} <= shown | excused
