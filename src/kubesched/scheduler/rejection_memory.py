"""RejectionMemory reuses rejections of equal pods until the cluster changes.

In a full cluster most attempts fail like the one before: a pod that ends wakes all pending pods,
the first takes its place, and the others are rejected one by one.

Upstream: nothing like it; the decisions are those of pkg/scheduler/schedule_one.go (v1.36)
Invariants: a recalled rejection equals a computed one, and rejections that used the run's random
            source are not recalled.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from msgspec.structs import replace

from kubesched.framework.plugin import UNSIGNED, Plugin, Scope
from kubesched.scheduler.decision import Rejected
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

_Stamp = tuple[Objects, int, int, int]
"""Versions that change with every change that a cycle can observe."""

_Kind = tuple[PodTemplate, str, tuple[Hashable, ...]]
"""The template, the node's name if the pod names one, and the signs of plugins that may read more
of a pod than its template."""

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
        self._signing_pod = [
            plugin
            for plugin in dict.fromkeys((*self._rejecting, *self._gating))
            if not profile.signs_by_template(plugin)
        ]
        self._stamp: _Stamp | None = None
        self._rejections: dict[_Kind, Rejected] = {}
        self._alike: dict[_Kind, tuple[bool, bool]] = {}

    def recall(self, pod: PodInfo, snapshot: Snapshot) -> Rejected | None:
        """Return the pod's rejection if an equal pod was rejected in the same cluster state."""
        if not self._rejections:
            return None
        kind = self._kind_of(pod)
        known = self._rejections.get(kind)
        if known is None or self._stamp != _stamp_of(snapshot) or _is_nominated(pod, snapshot):
            return None
        is_alike, _ = self._are_alike(pod, kind)
        return replace(known, pod=pod) if is_alike else None

    def holds_for_template(self, rejected: Rejected) -> bool:
        """Whether all pods of the template have this rejection, and pass the same gates."""
        if self._signing_pod:
            return False
        pod = rejected.pod
        kind = self._kind_of(pod)
        known = self._rejections.get(kind)
        if known is None or known.diagnosis is not rejected.diagnosis:
            return False
        return all(self._are_alike(pod, kind))

    def keep(self, rejected: Rejected, snapshot: Snapshot) -> None:
        """Keep a rejection, unless it evicts pods or the pod is nominated."""
        pod = rejected.pod
        if rejected.victims or rejected.nominated_node_name or _is_nominated(pod, snapshot):
            return
        stamp = _stamp_of(snapshot)
        if stamp != self._stamp or len(self._rejections) >= _TEMPLATES_MAX:
            self._rejections.clear()
            self._alike.clear()
            self._stamp = stamp
        self._rejections[self._kind_of(pod)] = rejected

    def _kind_of(self, pod: PodInfo) -> _Kind:
        signs = [self._profile.sign_or_unsigned(plugin, pod) for plugin in self._signing_pod]
        return pod.template, pod.pod.spec.node_name, tuple(signs)

    def _are_alike(self, pod: PodInfo, kind: _Kind) -> tuple[bool, bool]:
        """Whether all pods of a kind have this rejection, and whether all pass the same gates.

        Computed only when another pod of the kind is tried.
        """
        known = self._alike.get(kind)
        if known is None:
            known = self._alike[kind] = (
                self._is_per_kind(self._rejecting, pod),
                self._is_per_kind(self._gating, pod),
            )
        return known

    def _is_per_kind(self, plugins: Sequence[Plugin], pod: PodInfo) -> bool:
        # An answer of scope CLUSTER may depend on anything, such as the time.
        return all(
            plugin.per_template
            or (
                plugin.scope is not Scope.CLUSTER
                and self._profile.sign_or_unsigned(plugin, pod) is not UNSIGNED
            )
            for plugin in plugins
        )


def _stamp_of(snapshot: Snapshot) -> _Stamp:
    nodes, objects = snapshot.nodes, snapshot.objects
    return objects, objects.changes, nodes.changes.version, snapshot.nominated.changes.version


def _is_nominated(pod: PodInfo, snapshot: Snapshot) -> bool:
    """Whether the pod is nominated: its own nomination is ignored when it is tried."""
    return bool(pod.pod.status.nominated_node_name or snapshot.nominated.node_of(pod.uid))
