"""The comparison finds differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .comparing import Story, recorded_story
from .in_process_connection import Plain
from .records import read_record

PARTS = ("reads", "writes", "events", "changes", "asked", "deletions", "final")


def _writes(record: Plain) -> list[Plain]:
    return [sent for sent in record["requests"] if sent["verb"] not in ("get", "list", "watch")]


def _event(record: Plain) -> Plain:
    return next(sent for sent in _writes(record) if "/events" in sent["path"])


def _watch(record: Plain) -> Plain:
    return next(
        sent
        for sent in record["requests"]
        if sent["verb"] == "watch" and sent["client"] == "scheduler"
    )


def _patch(record: Plain) -> Plain:
    return next(sent for sent in _writes(record) if sent["path"].endswith("/status"))


def _binding(record: Plain) -> Plain:
    return next(sent for sent in _writes(record) if sent["path"].endswith("/binding"))


def _condition(record: Plain) -> Plain:
    condition: Plain = _patch(record)["body"]["status"]["conditions"][0]
    return condition


def _parts(story: Story) -> dict[str, object]:
    return {name: getattr(story, name) for name in PARTS}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda r: None, set(), id="nothing"),
        pytest.param(lambda r: _event(r)["body"].update(note="?"), {"events"}, id="note"),
        pytest.param(
            lambda r: _event(r)["body"].update(related={"kind": "Pod"}), {"events"}, id="related"
        ),
        pytest.param(
            lambda r: _event(r)["body"]["regarding"].update(resourceVersion="<rv:9>"),
            {"events"},
            id="version-that-an-event-is-about",
        ),
        pytest.param(lambda r: r["requests"].remove(_event(r)), {"events"}, id="event-missing"),
        pytest.param(lambda r: _condition(r).update(message="?"), {"writes"}, id="message"),
        pytest.param(
            lambda r: _condition(r).pop("observedGeneration"), {"writes"}, id="generation"
        ),
        pytest.param(
            lambda r: _patch(r)["body"]["status"].pop("nominatedNodeName"),
            {"writes"},
            id="nomination",
        ),
        pytest.param(lambda r: _binding(r).update(code=409), {"writes"}, id="code"),
        pytest.param(lambda r: _binding(r).update(t=0.0), {"writes"}, id="moment"),
        pytest.param(lambda r: _binding(r)["response"].update(code=200), {"writes"}, id="answer"),
        pytest.param(lambda r: _binding(r)["body"].pop("kind"), {"writes"}, id="body"),
        pytest.param(lambda r: _binding(r).update(client="?"), {"writes"}, id="client"),
        pytest.param(
            lambda r: _event(r)["body"].update(eventTime="2026-01-01T00:00:00Z"),
            {"events"},
            id="fractions-of-a-second",
        ),
        pytest.param(
            lambda r: _event(r)["body"].pop("deprecatedSource"), {"events"}, id="event-body"
        ),
        pytest.param(
            lambda r: _watch(r)["query"].pop("sendInitialEvents"), {"reads"}, id="parameter"
        ),
        pytest.param(
            lambda r: _watch(r)["query"].update(timeoutSeconds="7"), {"reads"}, id="long-watch"
        ),
        pytest.param(
            lambda r: r["requests"].append(r["requests"].pop(r["requests"].index(_patch(r)))),
            {"writes"},
            id="order",
        ),
        pytest.param(
            lambda r: r["pod_history"][-1].update(nominated="n1"), {"changes"}, id="history"
        ),
        pytest.param(
            lambda r: r["final"]["events"][0].update(note="?"), {"final"}, id="final-event"
        ),
        pytest.param(
            lambda r: r["final"]["pods"][0]["status"].pop("qosClass"), {"final"}, id="final-part"
        ),
        pytest.param(
            lambda r: r["final"]["pods"][0]["spec"].update(nodeName="?"), {"final"}, id="final"
        ),
        pytest.param(
            lambda r: [sent.update(path="/api/v1/namespaces/default/pods/v1")
                       for sent in _writes(r) if sent["verb"] == "delete"],
            {"writes", "deletions"},
            id="victim",
        ),
    ],
)  # fmt: skip
def test_a_changed_record_changes_one_part(
    change: Callable[[Plain], object], expected: set[str]
) -> None:
    """The part of the story that it belongs to."""
    before = _parts(recorded_story(read_record("preemption-basic")))
    record = read_record("preemption-basic")
    change(record)
    after = _parts(recorded_story(record))
    assert expected == {name for name in PARTS if before[name] != after[name]}


def test_volatile_values_are_not_compared() -> None:
    """Times, and the numbers in uids and versions, may differ."""
    record = read_record("preemption-basic")
    before = _parts(recorded_story(record))
    record = _renamed(record)
    assert before == _parts(recorded_story(record))


def _renamed(value: object) -> Plain:
    def rename(item: object) -> object:
        if isinstance(item, dict):
            return {name: rename(inner) for name, inner in item.items()}
        if isinstance(item, list):
            return [rename(inner) for inner in item]
        if isinstance(item, str):
            return item.replace("<uid:", "<uid:7").replace("<rv:", "<rv:7").replace("2026", "2027")
        return item

    renamed = rename(value)
    assert isinstance(renamed, dict)
    return renamed
