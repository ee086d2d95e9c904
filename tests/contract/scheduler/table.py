"""Every recorded conversation of the scheduler, and how it is tested here."""

from __future__ import annotations

from typing import Final

AGREES: Final = "agrees"
WIRE: Final = "agrees; `test_wire.py` compares the headers, with JSON for the recorded protobuf"
PORT: Final = "agrees; `tests/app` compares the secure port"
CONFIG: Final = "no scenario, but configurations and flags: compared in `tests/app/test_options.py`"

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
    "leader-election-expired-foreign": AGREES,
    "leader-election-server-gone": AGREES,
    "leader-election-sigkill": AGREES,
    "leader-election-sigterm": AGREES,
    "leader-election-stolen": AGREES,
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
    "startup": AGREES,
    "startup-backlog": AGREES,
    "startup-empty": AGREES,
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

REPLAYED: Final = sorted(name for name, outcome in TABLE.items() if outcome != CONFIG)
"""The names of those that are played."""

ELECTIONS: Final = [name for name in REPLAYED if name.startswith("leader-election")]
"""Those in which replicas elect their leader."""

MORE_READS: Final = {
    # Objects here hold only what scheduling reads, so an update begins with a GET.
    "volume-binding": {("scheduler", "/api/v1/persistentvolumes/v1", "[]")},
}
"""What we read and kube-scheduler does not."""
