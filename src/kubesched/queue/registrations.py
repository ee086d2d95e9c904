"""Registrations: the events after which a pod that a plugin rejected is retried.

Upstream: pkg/scheduler/scheduler.go, buildQueueingHintMap; pkg/scheduler/framework/runtime,
          fillEnqueueExtensions (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kubesched.framework.cluster_event import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM,
    STORAGE_CLASS,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    Filing,
    QueueingHint,
)
from kubesched.framework.plugin import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)

EXTENDER: Final = "Extender"
"""The name under which all extenders together are registered, as if they were one plugin."""

# Only plugins of these extension points can reject a pod, so only their events matter.
_REJECTING_POINTS: Final = (
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    ReservePlugin,
    PermitPlugin,
)
_DEFAULT_RESOURCES: Final = (
    POD,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS,
    RESOURCE_CLAIM,
    DEVICE_CLASS,
)
_TAINT_UPDATE: Final = ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)


class Registration(msgspec.Struct, frozen=True):
    """One event of one plugin, with its hint (None: always retry the pod).

    `per_template` and `filing` are those of `ClusterEventWithHint`.
    """

    plugin: str
    event: ClusterEvent
    hint: QueueingHint | None = None
    per_template: bool = False
    filing: Filing | None = None


def registrations_of(
    plugins: Iterable[Plugin],
    *,
    has_extenders: bool = False,
    has_pod_groups: bool = False,
) -> tuple[Registration, ...]:
    """Return the registrations of a profile's plugins; those that cannot reject a pod are left out.

    Extenders may also reject pods if there are any. With the gate GenericWorkload,
    `has_pod_groups`, PodGroup is among the default resources.
    """
    resources = (*_DEFAULT_RESOURCES, POD_GROUP) if has_pod_groups else _DEFAULT_RESOURCES
    default_events = [ClusterEventWithHint(ClusterEvent(each, Action.ALL)) for each in resources]
    found = list(_registered(EXTENDER, default_events)) if has_extenders else []
    for plugin in plugins:
        if isinstance(plugin, _REJECTING_POINTS):
            events = plugin.events_to_register()
            found += _registered(plugin.name, default_events if events is None else events)
    return tuple(found)


def _registered(plugin: str, events: Sequence[ClusterEventWithHint]) -> Iterator[Registration]:
    on_nodes = Action(0)
    for each in events:
        if each.event.resource == NODE:
            on_nodes |= each.event.action
        yield Registration(plugin, each.event, each.hint, each.per_template, each.filing)
    # A new node may arrive with taints and become usable only when they are removed.
    if on_nodes & Action.ADD and not on_nodes & Action.UPDATE_NODE_TAINT:
        yield Registration(plugin, _TAINT_UPDATE)
