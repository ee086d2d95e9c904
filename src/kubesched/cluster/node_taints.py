"""Taints that follow from a node's state.

Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Node
from kubesched.api.node import Taint

_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
# By condition and its status.
_OF_CONDITIONS: Final = {
    ("Ready", "False"): _LOST[0],
    ("Ready", "Unknown"): _LOST[1],
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
STATE_TAINTS: Final = (*_OF_CONDITIONS.values(), _UNSCHEDULABLE)
"""The keys of taints that follow from a node's state."""


def wanted_taints(
    conditions: Iterable[tuple[str, str]], *, is_unschedulable: bool
) -> list[tuple[str, str]]:
    """Return the keys and effects of the taints that a node in a state has.

    Args:
        conditions: Type and status of the node's conditions.
        is_unschedulable: Whether the node is cordoned.
    """
    wanted = [(_UNSCHEDULABLE, "NoSchedule")] if is_unschedulable else []
    for condition in conditions:
        key = _OF_CONDITIONS.get(condition)
        if key is not None:
            wanted.append((key, "NoSchedule"))
            if key in _LOST:
                wanted.append((key, "NoExecute"))
    return wanted


def with_state_taints(node: Node) -> Node:
    """Return a node with the taints that follow from its state, and its other taints."""
    states = ((one.type, one.status) for one in node.status.conditions)
    wanted = wanted_taints(states, is_unschedulable=node.spec.unschedulable)
    kept = [
        taint
        for taint in node.spec.taints
        if taint.key not in STATE_TAINTS or (taint.key, taint.effect) in wanted
    ]
    known = [(taint.key, taint.effect) for taint in kept]
    new = [Taint(key=key, effect=effect) for key, effect in wanted if (key, effect) not in known]
    return replace(node, spec=replace(node.spec, taints=(*kept, *new)))
