"""Every recorded file of the scheduler's conversations, and what becomes of it here."""

from __future__ import annotations

from typing import Final

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
"""The names of those that are played."""
