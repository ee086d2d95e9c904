"""The cluster events of a pod's update.

Upstream: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange (v1.36)
Reads:    pod.metadata.labels, pod.spec, pod.status (claims, resizes)
Differs:  requests are compared as scheduling counts them, in whole bytes.
"""

from __future__ import annotations

from functools import cache

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import ASSIGNED_POD, UNSCHEDULABLE_POD, Action, ClusterEvent
from kubesched.snapshot.pod_info import PodInfo


def pod_events(old: PodInfo, new: PodInfo) -> tuple[ClusterEvent, ...]:
    """Return the events of a pod's update: specific ones, or else one plain Update.

    They are events of an assigned pod if the new version has a node, else of an unschedulable one.
    """
    actions: list[Action] = []
    # Pods of one template have equal labels, requests, gates and tolerations.
    if old.template is not new.template:
        actions += _template_actions(old, new)
    if _claims_of(old.pod) != _claims_of(new.pod):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    resource = ASSIGNED_POD if new.pod.spec.node_name else UNSCHEDULABLE_POD
    return _events(resource, *actions) if actions else _events(resource, Action.UPDATE)


@cache
def _events(resource: str, *actions: Action) -> tuple[ClusterEvent, ...]:
    return tuple(ClusterEvent(resource, action) for action in actions)


def _template_actions(old: PodInfo, new: PodInfo) -> list[Action]:
    actions: list[Action] = []
    if old.labels != new.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    before, after = old.template.held, new.template.held
    if any(name not in after or amount > after[name] for name, amount in before.items()):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API only allows adding tolerations, so comparing their number is enough.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    return actions


def _claims_of(pod: Pod) -> tuple[object, object]:
    status = pod.status
    return status.resource_claim_statuses, status.extended_resource_claim_status
