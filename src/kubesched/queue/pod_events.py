"""The cluster events of a pod's update.

Upstream: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange (v1.36)
Reads:    pod.metadata.labels, pod.spec, pod.status (claims, resizes)
Differs:  nothing.
"""

from __future__ import annotations

from functools import cache

from kubesched.api.core import Pod
from kubesched.api.pod_requests import pod_request_amounts
from kubesched.framework.cluster_event import ASSIGNED_POD, UNSCHEDULABLE_POD, Action, ClusterEvent
from kubesched.snapshot.pod_info import PodInfo


def pod_events(old: PodInfo, new: PodInfo) -> tuple[ClusterEvent, ...]:
    """Return the events of a pod's update: specific ones, or else one plain Update.

    They are events of an assigned pod if the new version has a node, else of an unschedulable one.
    """
    actions: list[Action] = []
    # Pods of one template have equal labels, requests, gates and tolerations.
    if old.template is not new.template:
        actions += _template_actions(old.pod, new.pod)
    if _claims_of(old.pod) != _claims_of(new.pod):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    resource = ASSIGNED_POD if new.pod.spec.node_name else UNSCHEDULABLE_POD
    return _events(resource, *actions) if actions else _events(resource, Action.UPDATE)


@cache
def _events(resource: str, *actions: Action) -> tuple[ClusterEvent, ...]:
    return tuple(ClusterEvent(resource, action) for action in actions)


def _template_actions(old: Pod, new: Pod) -> list[Action]:
    actions: list[Action] = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if _is_scaled_down(old, new):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API only allows adding tolerations, so comparing their number is enough.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    return actions


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    if _has_equal_requests(old, new) and _is_as_requested(old) and _is_as_requested(new):
        # A kubelet's status report is by far the most frequent update.
        return False
    before = pod_request_amounts(old, use_status=True)
    after = pod_request_amounts(new, use_status=True)
    return any(
        name not in after or amount.milli_value() > after[name].milli_value()
        for name, amount in before.items()
    )


def _has_equal_requests(old: Pod, new: Pod) -> bool:
    before, after = old.spec, new.spec
    return (
        before.containers == after.containers
        and before.init_containers == after.init_containers
        and before.resources == after.resources
        and before.overhead == after.overhead
    )


def _is_as_requested(pod: Pod) -> bool:
    """Whether the resources in the status do not differ from the requests in the spec."""
    status = pod.status
    if status.resources is not None or status.init_container_statuses:
        return False
    requests = {each.name: each.resources.requests for each in pod.spec.containers}
    return all(
        reported.resources is None
        or (
            reported.resources.requests == requests.get(reported.name)
            and reported.allocated_resources in (None, requests.get(reported.name))
        )
        for reported in status.container_statuses
    )


def _claims_of(pod: Pod) -> tuple[object, object]:
    status = pod.status
    return status.resource_claim_statuses, status.extended_resource_claim_status
