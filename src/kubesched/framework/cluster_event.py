"""ClusterEvent: a change in the cluster that may make a waiting pod schedulable.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go, pkg/scheduler/framework/types.go,
          pkg/scheduler/framework/events.go (v1.36)
Reads:    node.metadata.{labels,annotations}, node.spec.{unschedulable,taints},
          node.status.{allocatable,conditions,declaredFeatures}; pod.metadata.labels, pod.spec,
          pod.status (claims, resizes)
Differs:  requests of pods are compared as scheduling counts them, in whole bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntFlag
from functools import cache
from typing import Final

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.api.quantity import Quantity, parse_quantity
from kubesched.snapshot.pod_info import PodInfo


class Action(IntFlag):
    """What happened to an object; matching relies on upstream's order of the bits."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = (1 << 13) - (1 << 2)
    ALL = (1 << 13) - 1


_ACTION_LABELS: Final = {
    action: "".join(word.capitalize() for word in name.split("_"))
    for name, action in Action.__members__.items()
}

# Resources, as written in event labels.
POD: Final = "Pod"
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
NODE: Final = "Node"
PERSISTENT_VOLUME: Final = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
CSI_NODE: Final = "storage.k8s.io/CSINode"
CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
WILDCARD: Final = "*"
RESOURCES: Final = (
    POD,
    ASSIGNED_POD,
    UNSCHEDULABLE_POD,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    CSI_NODE,
    CSI_DRIVER,
    VOLUME_ATTACHMENT,
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DEVICE_CLASS,
    POD_GROUP,
    WILDCARD,
)
"""All resources that have events."""

_POD_KINDS: Final = frozenset({ASSIGNED_POD, UNSCHEDULABLE_POD})


class ClusterEvent(msgspec.Struct, frozen=True):
    """A resource and actions on it: several in a registration, exactly one in an occurrence."""

    resource: str
    action: Action
    custom_label: str = ""

    @property
    def is_wildcard(self) -> bool:
        """Whether it covers every change of every resource."""
        return self.resource == WILDCARD and self.action == Action.ALL

    @property
    def label(self) -> str:
        """The event's name in metrics and logs, such as `NodeAdd`."""
        if self.custom_label:
            return self.custom_label
        return self.resource + _ACTION_LABELS.get(self.action, "")

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether this registration covers the `incoming` event.

        As upstream, an incoming `Update` without details does not match a registration of one
        specific update, because its value is larger.
        """
        if self.is_wildcard:
            return True
        same = self.resource in (WILDCARD, incoming.resource) or (
            self.resource == POD and incoming.resource in _POD_KINDS
        )
        return bool(same and self.action & incoming.action and incoming.action <= self.action)


# Registrations.

# (waiting pod, old object, new object) -> whether to retry the pod.
QueueingHint = Callable[[Pod, object | None, object | None], bool]


class Filing(msgspec.Struct, frozen=True):
    """An index of waiting pods by name, so that an event calls a hint only for pods it may concern.

    Unless the change has one of a pod's names, retrying the pod would be in vain. Neither function
    raises. Upstream has nothing like it: there, every event calls the hints of all pods.

    Attributes:
        of_pod: Returns the pod's names, such as those of the claims it uses.
        of_change: Returns the names of a change, given the old and the new object; None to call
            the hint for all pods.
    """

    of_pod: Callable[[Pod], Iterable[str]]
    of_change: Callable[[object | None, object | None], Iterable[str] | None]


class ClusterEventWithHint(msgspec.Struct, frozen=True):
    """A plugin's registration of an event.

    Attributes:
        event: The event after which a rejected pod may fit.
        hint: Decides per pod whether to retry it; None means always.
        per_template: Whether the hint reads only the waiting pod's namespace, labels, controller
            and spec, but not which claims it uses, so that one call serves all pods that share
            these.
        filing: Selects the pods for which to call the hint; None means all.
    """

    event: ClusterEvent
    hint: QueueingHint | None = None
    per_template: bool = False
    filing: Filing | None = None


def retry_on(
    resource: str,
    action: Action,
    hint: QueueingHint | None = None,
    *,
    per_template: bool = False,
    filing: Filing | None = None,
) -> ClusterEventWithHint:
    """Return a registration of actions on a resource."""
    return ClusterEventWithHint(ClusterEvent(resource, action), hint, per_template, filing)


# The names in the filing of a hint that reads labels: the labels that a changed pod must have, and
# those that it had before or has after the change.

ANY_POD: Final = "any pod"
"""The name of waiting pods that a pod with any labels may concern."""


def names_of_labels(labels: Iterable[tuple[str, str]] | None) -> list[str]:
    """Return a name for each label; ANY_POD if the labels are not known, which is None."""
    return [ANY_POD] if labels is None else [f"{key}={value}" for key, value in labels]


def names_of_pods(old: object | None, new: object | None) -> list[str] | None:
    """Return the names of the changed pod, ANY_POD among them; None if no pod changed."""
    pods = [pod for pod in (old, new) if isinstance(pod, Pod)]
    labels = {pair: None for pod in pods for pair in pod.metadata.labels.items()}
    return [*names_of_labels(labels), ANY_POD] if pods else None


# Events of a node's update.


def node_events(old: Node, new: Node, *, declared_features: bool) -> tuple[ClusterEvent, ...]:
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


# Events of a pod's update.


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
