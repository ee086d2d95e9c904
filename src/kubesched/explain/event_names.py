"""Names of the events that requeue a rejected pod.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go, ClusterEvent.Label (v1.36)
Differs:  a registration of several actions is spelled out, one name per action.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.cluster_event import Action, ClusterEvent, ClusterEventWithHint

ANY_EVENT = ("any change of the cluster",)

_WORDS = {
    Action.ADD: "added",
    Action.DELETE: "deleted",
    Action.UPDATE_NODE_ALLOCATABLE: "allocatable updated",
    Action.UPDATE_NODE_LABEL: "labels updated",
    Action.UPDATE_NODE_TAINT: "taints updated",
    Action.UPDATE_NODE_CONDITION: "conditions updated",
    Action.UPDATE_NODE_ANNOTATION: "annotations updated",
    Action.UPDATE_NODE_DECLARED_FEATURE: "declared features updated",
    Action.UPDATE_POD_LABEL: "labels updated",
    Action.UPDATE_POD_SCALE_DOWN: "requests lowered",
    Action.UPDATE_POD_TOLERATION: "tolerations updated",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "scheduling gates removed",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "resource claim generated",
}


def event_names(registered: Sequence[ClusterEventWithHint] | None) -> tuple[str, ...]:
    """Return the events that requeue a pod, such as `Node added`; None stands for all events."""
    if registered is None:
        return ANY_EVENT
    names: list[str] = []
    for entry in registered:
        if entry.event.is_wildcard:
            return ANY_EVENT
        names += _names(entry.event)
    return tuple(dict.fromkeys(names))


def _names(event: ClusterEvent) -> list[str]:
    kind = event.resource.rpartition("/")[2]
    left = event.action
    names: list[str] = []
    for action, word in _WORDS.items():
        if action is Action.UPDATE_NODE_ALLOCATABLE and left & Action.UPDATE == Action.UPDATE:
            # All bits together mean any update, which reads better than a list of each.
            names.append(f"{kind} updated")
            left &= ~Action.UPDATE
        if left & action:
            names.append(f"{kind} {word}")
    return names
