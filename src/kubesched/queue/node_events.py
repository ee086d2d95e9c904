"""The cluster events of a node's update.

Upstream: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange (v1.36)
Reads:    node.metadata.{labels,annotations}, node.spec.{unschedulable,taints},
          node.status.{allocatable,conditions,declaredFeatures}
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.core import Node
from kubesched.api.quantity import Quantity, parse_quantity
from kubesched.framework.cluster_event import NODE, Action, ClusterEvent


def node_events(
    old: Node, new: Node, *, declared_features: bool = True
) -> tuple[ClusterEvent, ...]:
    """Return the events of a node's update, in a fixed order; none if nothing relevant changed.

    A node that becomes schedulable counts as a change of taints, so that event may occur twice.
    Declared features count with the gate NodeDeclaredFeatures.
    """
    changed = (
        (Action.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (
            Action.UPDATE_NODE_ALLOCATABLE,
            not _are_equal(old.status.allocatable, new.status.allocatable),
        ),
        (Action.UPDATE_NODE_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (Action.UPDATE_NODE_CONDITION, _statuses(old) != _statuses(new)),
        (Action.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (
            Action.UPDATE_NODE_DECLARED_FEATURE,
            declared_features and old.status.declared_features != new.status.declared_features,
        ),
    )
    return tuple(ClusterEvent(NODE, action) for action, has_changed in changed if has_changed)


def _are_equal(old: Mapping[str, Quantity], new: Mapping[str, Quantity]) -> bool:
    """Whether the amounts are equal, even if written differently, such as 1 and 1000m."""
    if old == new:
        return True
    return old.keys() == new.keys() and not any(
        parse_quantity(quantity).compare(parse_quantity(new[name]))
        for name, quantity in old.items()
    )


def _statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
