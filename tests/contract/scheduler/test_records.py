"""Our scheduler, played the recorded scripts, does what kube-scheduler 1.36 did."""

from __future__ import annotations

from typing import Final

import pytest

from kubesched.simulator.virtual_loop import run

from .comparing import recorded_story, replayed_story
from .records import read_record, recorded_names
from .replay import replay

AGREES: Final = "agrees"
READING: Final = "writes agree; what is read at the start is not compared: it needs a client"
WIRE: Final = "writes agree; the wire itself is not compared: it needs sockets"
PORT: Final = "writes agree; the secure port is not compared: it needs a process"
ELECTION: Final = "not replayed: leader election needs leases, sockets and processes"
CONFIG: Final = "not replayed: no scenario, but configurations and a process that reads them"

TABLE: Final = {
    "bind-node-deleted": AGREES,
    "bind-pod-bound-elsewhere": AGREES,
    "bind-pod-deleted": AGREES,
    "bind-server-refuses": AGREES,
    "config-errors": CONFIG,
    "extender-broken": AGREES,
    "extender-cache-capable": AGREES,
    "extender-filter-prioritize-bind": AGREES,
    "extender-managed-resources": AGREES,
    "extender-preempt": AGREES,
    "five-pods-three-nodes": AGREES,
    "leader-election-expired-foreign": ELECTION,
    "leader-election-server-gone": ELECTION,
    "leader-election-sigkill": ELECTION,
    "leader-election-sigterm": ELECTION,
    "leader-election-stolen": ELECTION,
    "metrics-and-health": PORT,
    "pods-deleted-while-pending": AGREES,
    "preemption-basic": AGREES,
    "preemption-no-help": AGREES,
    "preemption-overtaken": AGREES,
    "preemption-pdb": AGREES,
    "preemption-pdb-violated": AGREES,
    "preemption-policy-never": AGREES,
    "preemption-two-preemptors": AGREES,
    "preemption-victim-finishes": AGREES,
    "repeated-failures": AGREES,
    "restart": AGREES,
    "scheduling-gates": AGREES,
    "selectors-and-affinity": AGREES,
    "startup": READING,
    "startup-backlog": AGREES,
    "startup-empty": READING,
    "startup-headers-json": WIRE,
    "startup-headers-protobuf": WIRE,
    "startup-no-watchlist": WIRE,
    "two-profiles": AGREES,
    "unschedulable-affinity": AGREES,
    "unschedulable-cordoned": AGREES,
    "unschedulable-cpu": AGREES,
    "unschedulable-host-port": AGREES,
    "unschedulable-mixed": AGREES,
    "unschedulable-no-nodes": AGREES,
    "unschedulable-several-resources": AGREES,
    "unschedulable-spread": AGREES,
    "unschedulable-volumes": AGREES,
    "volume-binding": AGREES,
    "written-config": CONFIG,
}
"""Every recorded file, and what becomes of it here."""

REPLAYED: Final = sorted(name for name, outcome in TABLE.items() if not outcome.startswith("not"))
_PHASES: Final = (100.5, 100.9)
"""When to begin: where the whole seconds lie, at which pods leave the backoff queue."""


def test_the_table_is_complete() -> None:
    """What is replayed is kept here, and nothing else is."""
    assert recorded_names() == REPLAYED


@pytest.mark.parametrize("name", REPLAYED)
def test_replay(name: str) -> None:
    """Writes, events, changes of pods, questions to extenders and the final objects agree."""
    record = read_record(name)
    replayed, extender = run(replay(record), start=_PHASES[0])
    expected = recorded_story(record)
    actual = replayed_story(record, replayed, extender.asked)
    if not record.get("runs_agree", {}).get("events", True):
        expected.without_repetitions()
        actual.without_repetitions()
    assert expected.writes == actual.writes
    assert expected.events == actual.events
    assert expected.changes == actual.changes
    assert expected.asked == actual.asked
    assert expected.final == actual.final
