"""A transcript exists for every row, transition and registration."""

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
def test_every_failure_has_its_transcript(row: Failure) -> None:
    """With all columns of its row."""
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
def test_every_queue_transition_is_in_a_transcript(transcript: str, line: str) -> None:
    """Named by the table."""
    assert re.search(line, expected_of(f"queue/{transcript}"))


def test_every_hint_is_shown_with_both_outcomes() -> None:
    """For each registration and each event that matches it: Queue and QueueSkip."""
    missing = wanted_hints() - shown_hints() - NEVER.keys()
    assert [] == sorted(missing)


def test_exceptions_are_needed() -> None:
    """Each is an outcome that could be shown, and is not."""
    assert NEVER.keys() <= wanted_hints()
    assert set() == NEVER.keys() & shown_hints()


def test_every_plugin_has_its_transcript() -> None:
    """Transcripts of hints have the plugins' names."""
    shown = {plugin for plugin, _, _ in shown_hints()}
    excused = {plugin for plugin, _, _ in NEVER}
    assert {each.plugin for each in all_registrations()} <= shown | excused
