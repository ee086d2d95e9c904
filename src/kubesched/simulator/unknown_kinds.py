"""Finds the kinds that the files of a simulation lack, and the outcomes that depend on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubesched.explain.report import Unknown
from kubesched.explain.unknown import (
    UnknownKinds,
    always_needed,
    guessing_plugins,
    needed_kinds,
    no_nodes,
)
from kubesched.framework.needed_kinds import Decides, NeededKind
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

Needed = Mapping[str, list[NeededKind]]


class UnknownOutcomes:
    """Collects the unknown kinds that the outcomes of pods depend on.

    Args:
        snapshot: The cluster at the end.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._kinds = UnknownKinds()
        self._by_template: dict[tuple[str, PodTemplate], Needed] = {}
        self._kinds.add(no_nodes(snapshot))

    def unknown(self) -> tuple[Unknown, ...]:
        """Return the unknown kinds that outcomes so far depend on."""
        return self._kinds.unknown()

    def placed(self, profile: Profile, pod: PodInfo, *, had_choice: bool) -> None:
        """Add the unknown kinds that a pod's placement depends on."""
        self._kinds.add(always_needed(pod, self._snapshot))
        wanted = (Decides.FIT, Decides.CHOICE) if had_choice else (Decides.FIT,)
        self._add(self._needed(profile, pod), wanted)

    def preempted(self, profile: Profile, pod: PodInfo) -> None:
        """Add the unknown kinds that the choice of victims depends on."""
        self._add(self._needed(profile, pod), (Decides.FIT, Decides.VICTIMS))

    def is_guess(self, profile: Profile, pod: PodInfo, rejecting: Collection[str]) -> bool:
        """Add the unknown kinds that a rejection depends on; return whether it may be wrong."""
        self._kinds.add(always_needed(pod, self._snapshot))
        needed = self._needed(profile, pod)
        if not guessing_plugins(rejecting, needed):
            return False
        self._add(needed, (Decides.FIT,))
        return True

    def _add(self, needed: Needed, wanted: Collection[Decides]) -> None:
        self._kinds.add(one for found in needed.values() for one in found if one.decides in wanted)

    def _needed(self, profile: Profile, pod: PodInfo) -> Needed:
        if pod.spec.volumes or pod.spec.resource_claims:
            # Needed claims and volumes may differ between pods of one template.
            return needed_kinds(profile, pod, self._snapshot)
        key = (profile.scheduler_name, pod.template)
        found = self._by_template.get(key)
        if found is None:
            found = self._by_template[key] = needed_kinds(profile, pod, self._snapshot)
        return found
