"""RejectionMemory reuses rejections of equal pods until the cluster changes.

In a full cluster most attempts fail like the one before: a pod that ends wakes all pending pods,
the first takes its place, and the others are rejected one by one.

Upstream: nothing like it; the decisions are those of pkg/scheduler/schedule_one.go (v1.36)
Invariants: a recalled rejection equals a computed one, and rejections that used the run's random
            source are not recalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kubesched.framework.plugin import UNSIGNED, Plugin
from kubesched.scheduler.decision import Rejected
from kubesched.scheduler.plugin_failure import SIGN, PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

_Stamp = tuple[Objects, int, int, int, int]
"""Versions that change with every change that a cycle can observe."""

_Kind = tuple[PodTemplate, str]
"""The template and the node's name, if the pod names one."""

_TEMPLATES_MAX: Final = 4096


class RejectionMemory:
    """The rejections in one profile since the cluster last changed."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._rejecting: tuple[Plugin, ...] = (
            *profile.pre_filter_plugins,
            *profile.filter_plugins,
            *profile.post_filter_plugins,
        )
        self._gating: tuple[Plugin, ...] = profile.pre_enqueue_plugins
        self._stamp: _Stamp | None = None
        self._rejections: dict[_Kind, Rejected] = {}
        self._are_shared: dict[_Kind, bool] = {}

    def recall(self, pod: PodInfo, snapshot: Snapshot) -> Rejected | None:
        """Return the pod's rejection if an equal pod was rejected in the same cluster state."""
        if not self._rejections:
            return None
        known = self._rejections.get(_kind_of(pod))
        if known is None or self._stamp != _stamp_of(snapshot) or _is_nominated(pod, snapshot):
            return None
        return replace(known, pod=pod) if self._is_shared(pod) else None

    def is_of_all(self, rejected: Rejected) -> bool:
        """Whether all pods of the template have this rejection, and pass the same gates."""
        pod = rejected.pod
        known = self._rejections.get(_kind_of(pod))
        if known is None or known.diagnosis is not rejected.diagnosis:
            return False
        return self._is_shared(pod) and self._are_per_template(self._gating, pod)

    def keep(self, rejected: Rejected, snapshot: Snapshot) -> None:
        """Keep a rejection, unless it evicts pods or the pod is nominated."""
        pod = rejected.pod
        if rejected.victims or rejected.nominated_node_name or _is_nominated(pod, snapshot):
            return
        stamp = _stamp_of(snapshot)
        if stamp != self._stamp or len(self._rejections) >= _TEMPLATES_MAX:
            self._rejections.clear()
            self._are_shared.clear()
            self._stamp = stamp
        self._rejections[_kind_of(pod)] = rejected

    def _is_shared(self, pod: PodInfo) -> bool:
        """Whether pods of the template are rejected alike; asked only if another pod comes."""
        kind = _kind_of(pod)
        is_shared = self._are_shared.get(kind)
        if is_shared is None:
            is_shared = self._are_shared[kind] = self._are_per_template(self._rejecting, pod)
        return is_shared

    def _are_per_template(self, plugins: Sequence[Plugin], pod: PodInfo) -> bool:
        return all(plugin.per_template or self._signs(plugin, pod) for plugin in plugins)

    def _signs(self, plugin: Plugin, pod: PodInfo) -> bool:
        try:
            return self._profile.ask(SIGN, plugin, plugin.sign, pod) is not UNSIGNED
        except PluginFailure:
            return False


def _kind_of(pod: PodInfo) -> _Kind:
    return pod.template, pod.pod.spec.node_name


def _stamp_of(snapshot: Snapshot) -> _Stamp:
    nodes, objects = snapshot.nodes, snapshot.objects
    changes = nodes.changes_dropped + len(nodes.changes)
    return objects, objects.changes, nodes.epoch, changes, snapshot.nominated.version


def _is_nominated(pod: PodInfo, snapshot: Snapshot) -> bool:
    """Whether the pod is nominated: its own nomination is ignored when it is tried."""
    return bool(pod.pod.status.nominated_node_name or snapshot.nominated.node_of(pod.uid))
