"""Recorded scripts run with our scheduler, compared with kube-scheduler 1.36."""

from __future__ import annotations

from typing import Final

import pytest

from kubesched.simulator.virtual_loop import run

from .comparing import Story, recorded_story, replayed_story
from .in_process_connection import Plain
from .records import read_record, recorded_names
from .replay import Replayed, replay
from .table import MORE_READS, REPLAYED

_START: Final = 100.5
"""When to begin: where the whole seconds lie, at which pods leave the backoff queue."""


def _stories(record: Plain, start: float = _START) -> tuple[Story, Story, Replayed]:
    replayed, extender = run(replay(record), start=start)
    return recorded_story(record), replayed_story(record, replayed, extender.asked), replayed


def test_the_table_lists_every_record() -> None:
    """And no other."""
    assert recorded_names() == REPLAYED


@pytest.mark.parametrize("name", REPLAYED)
def test_the_replay_equals_the_record(name: str) -> None:
    """Reads, writes, events, changes of pods, extender requests, final objects, exits."""
    record = read_record(name)
    expected, actual, replayed = _stories(record)
    assert expected.reads | MORE_READS.get(name, set()) == actual.reads
    assert expected.writes == actual.writes
    assert expected.deletions == actual.deletions
    assert expected.events == actual.events
    assert expected.changes == actual.changes
    assert expected.asked == actual.asked
    assert expected.final == actual.final
    exits = {step["id"]: step["exit_code"] for step in record["steps"] if "exit_code" in step}
    ended = {id_: code for id_, code in exits.items() if code >= 0}
    assert ended == {id_: code for id_, (code, _) in replayed.exits.items()}


def test_backlog_is_bound_by_priority_and_age() -> None:
    """With one binding at a time, their order is that of the queue."""
    _, actual, _ = _stories(read_record("startup-backlog"))
    expected = ["d-high", "f-high", "b-mid", "e-mid", "a-low", "c-low"]
    assert expected == actual.bindings


@pytest.mark.slow
@pytest.mark.parametrize("start", [100.0, 100.25, 100.75])
def test_the_phase_of_whole_seconds_does_not_matter(start: float) -> None:
    """Of the backoff queue."""
    for name in REPLAYED:
        expected, actual, _ = _stories(read_record(name), start)
        assert expected.changes == actual.changes, name
        assert expected.final == actual.final, name
