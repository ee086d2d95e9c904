"""Registrations say after which events a pod that a plugin rejected is worth another try.

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
"""The pseudo plugin that stands for all extenders."""

# Only these can reject a pod, so only their events matter.
_REJECTING_POINTS: Final = (
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    ReservePlugin,
    PermitPlugin,
)
_USUAL_RESOURCES: Final = (
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
    """One event of one plugin, and the hint that weighs it (None: always worth a try).

    `per_template` and `filing` as in `ClusterEventWithHint`.
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
    queueing_hints: bool = True,
) -> tuple[Registration, ...]:
    """Ask a profile's plugins for their registrations.

    Args:
        plugins: All plugins of the profile; those that cannot reject a pod are left out.
        has_extenders: Whether pods may also be rejected by extenders.
        has_pod_groups: Whether PodGroup is among the usual resources (gate GenericWorkload).
        queueing_hints: Whether hints are kept; without them every matching event counts.
    """
    usual = _usual_events(has_pod_groups)
    found = list(_registered(EXTENDER, usual)) if has_extenders else []
    for plugin in plugins:
        if isinstance(plugin, _REJECTING_POINTS):
            events = plugin.events_to_register()
            found += _registered(plugin.name, usual if events is None else events)
    if queueing_hints:
        return tuple(found)
    return tuple(Registration(each.plugin, each.event) for each in found)


def _usual_events(has_pod_groups: bool) -> list[ClusterEventWithHint]:
    resources = (*_USUAL_RESOURCES, POD_GROUP) if has_pod_groups else _USUAL_RESOURCES
    return [ClusterEventWithHint(ClusterEvent(resource, Action.ALL)) for resource in resources]


def _registered(plugin: str, events: Sequence[ClusterEventWithHint]) -> Iterator[Registration]:
    on_nodes = Action(0)
    for each in events:
        if each.event.resource == NODE:
            on_nodes |= each.event.action
        yield Registration(plugin, each.event, each.hint, each.per_template, each.filing)
    # A new node may first be seen with taints, and be of use only when they go.
    if on_nodes & Action.ADD and not on_nodes & Action.UPDATE_NODE_TAINT:
        yield Registration(plugin, _TAINT_UPDATE)
