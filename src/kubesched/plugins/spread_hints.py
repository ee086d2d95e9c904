"""Which changes of pods and nodes may help a pod that PodTopologySpread rejected.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go (v1.36)
Reads:    labels, tolerations, node names of pods; labels and taints of nodes
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.core import Node, Pod
from kubesched.plugins.spread_constraints import Constraint, Constraints


def after_pod_change(
    pod: Pod, constraints: Constraints, old: object | None, new: object | None
) -> bool:
    """Whether a pod that came, went or changed may even out the domains for `pod`."""
    before = old if isinstance(old, Pod) else None
    after = new if isinstance(new, Pod) else None
    if any(other is not None and not _counts_for(other, pod) for other in (after, before)):
        return False
    if constraints.error or (before is None and after is None):
        return True
    if before is not None and after is not None:
        return _after_pod_update(pod, constraints.items, before, after)
    labels = (after or before or pod).metadata.labels
    return any(constraint.selector.matches(labels) for constraint in constraints.items)


def after_node_change(constraints: Constraints, old: object | None, new: object | None) -> bool:
    """Whether a node that came, went or changed belongs to a domain, or did."""
    if constraints.error:
        return True
    items = constraints.items
    before = isinstance(old, Node) and _has_all_keys(old.metadata.labels, items)
    after = isinstance(new, Node) and _has_all_keys(new.metadata.labels, items)
    if not isinstance(old, Node) or not isinstance(new, Node):
        return before or after
    if before != after:
        return True
    return after and (
        old.spec.taints != new.spec.taints
        or any(
            old.metadata.labels.get(constraint.topology_key, "")
            != new.metadata.labels.get(constraint.topology_key, "")
            for constraint in items
        )
    )


def _after_pod_update(
    pod: Pod, constraints: tuple[Constraint, ...], before: Pod, after: Pod
) -> bool:
    if (
        pod.metadata.uid == after.metadata.uid
        and before.spec.tolerations != after.spec.tolerations
        and any(constraint.honors_taints for constraint in constraints)
    ):
        return True
    return any(
        constraint.selector.matches(before.metadata.labels)
        != constraint.selector.matches(after.metadata.labels)
        for constraint in constraints
    )


def _counts_for(other: Pod, pod: Pod) -> bool:
    """Whether `other` is the pod itself, or has a place and can be among its siblings."""
    if other.metadata.uid == pod.metadata.uid:
        return True
    has_place = bool(other.spec.node_name or other.status.nominated_node_name)
    return has_place and other.metadata.namespace == pod.metadata.namespace


def _has_all_keys(labels: Mapping[str, str], constraints: tuple[Constraint, ...]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)
