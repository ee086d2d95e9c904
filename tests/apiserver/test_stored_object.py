"""Events in the form of the core group and in that of events.k8s.io."""

from __future__ import annotations

from kubesched.apiserver.stored_object import from_core, to_core

NEWER = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "e"},
    "eventTime": "2024-05-01T10:00:00.000000Z",
    "reportingController": "default-scheduler",
    "reportingInstance": "host",
    "action": "Binding",
    "reason": "Scheduled",
    "regarding": {"kind": "Pod", "name": "p"},
    "note": "text",
    "type": "Normal",
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def test_round_trip_of_events() -> None:
    """Converting an event to the other group and back gives an equal one."""
    core = to_core(NEWER)
    assert ("v1", "text", {"kind": "Pod", "name": "p"}) == (
        core["apiVersion"],
        core["message"],
        core["involvedObject"],
    )
    assert from_core(core) == NEWER


def test_core_events_say_more() -> None:
    """The core form shows empty fields that the newer one leaves out."""
    core = to_core({"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {}})
    assert core == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {},
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    assert "reportingController" not in from_core(core)
