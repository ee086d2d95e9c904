"""Unknown kinds: those that a decision depends on and the files have no object of.

Invariants: kinds are in the order of the command that saves a cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from kubesched.api.core import Node
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheduling import PriorityClass
from kubesched.explain.report import (
    NodeVerdict,
    PodExplanation,
    PodOutcome,
    PreemptionExplanation,
    Unknown,
)
from kubesched.explain.saving import KUBECTL_NAMES, get_command
from kubesched.framework.plugin import Decides, NeededKind
from kubesched.framework.plugin_answers import check_kinds
from kubesched.scheduler.decision import Decision, Failed, Rejected
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

Needed: TypeAlias = Mapping[str, Sequence[NeededKind]]
"""The kinds that plugins need for a pod, by plugin."""
_NO_NODES: Final = NeededKind(Node, "pods are placed on them")
_NO_CLASS: Final = NeededKind(PriorityClass, "pods have their priority from them")
_NO_BUDGETS: Final = NeededKind(
    PodDisruptionBudget, "they protect pods from eviction", Decides.VICTIMS
)


def with_unknown(
    report: PodExplanation,
    profile: Profile,
    pod: PodInfo,
    snapshot: Snapshot,
    rejecting: Collection[str],
) -> PodExplanation:
    """Return the explanation with the unknown kinds, and without results that depend on them.

    `rejecting` are the plugins that rejected the pod.
    """
    outcomes = UnknownOutcomes(snapshot)
    needed = outcomes.needed(profile, pod)
    if report.outcome is PodOutcome.SCHEDULABLE:
        outcomes.placed(profile, pod, had_choice=report.feasible_count > 1)
    elif not outcomes.rejected(profile, pod, rejecting) and _is_found_by(report.preemption, needed):
        outcomes.preempted(profile, pod)
    report = replace(report, unknown=outcomes.kinds())
    if guessing := guessing_plugins(rejecting, needed):
        return _without_guesses(report, guessing)
    every = (one.kind for found in needed.values() for one in found)
    if report.preemption is None or PodDisruptionBudget not in every:
        return report
    # Which candidates violate budgets is not known.
    candidates = (replace(one, pdb_violations=None) for one in report.preemption.candidates)
    preemption = replace(report.preemption, candidates=tuple(candidates))
    return replace(report, preemption=preemption)


def _is_found_by(preemption: PreemptionExplanation | None, needed: Needed) -> bool:
    """Whether the result of preemption depends on the needed kinds."""
    if preemption is None:
        return False
    rejecting = frozenset(node.answer.plugin for node in preemption.not_helped)
    return bool(preemption.candidates or guessing_plugins(rejecting, needed))


def guessing_plugins(rejecting: Collection[str], needed: Needed) -> frozenset[str]:
    """Return the plugins whose rejection may be caused by objects that the files lack."""
    return frozenset(
        name
        for name, found in needed.items()
        if name in rejecting and any(one.decides is Decides.FIT for one in found)
    )


def _without_guesses(report: PodExplanation, guessing: Collection[str]) -> PodExplanation:
    step = report.pre_filter
    return replace(
        report,
        outcome=PodOutcome.UNKNOWN,
        message="",
        held_by=None,
        pre_filter=None if step is not None and step.plugin in guessing else step,
        nodes=tuple(_judged(verdict, guessing) for verdict in report.nodes),
        post_filters=(),
        preemption=None,
        retry_after=(),
    )


def with_known_rejections(
    report: PodExplanation, verdicts: Iterable[NodeVerdict]
) -> PodExplanation:
    """Return the explanation with rejections of the nodes for which it has none.

    `verdicts` are about a pod that asks for less; there are none if that is not tried either.
    """
    known = {one.node: one for one in report.nodes if not one.unknown}
    nodes = tuple(known.get(one.node) or _judged(one, ()) for one in verdicts)
    return replace(report, nodes=nodes or report.nodes)


def _judged(verdict: NodeVerdict, guessing: Collection[str]) -> NodeVerdict:
    found = tuple(answer for answer in verdict.rejections if answer.plugin not in guessing)
    if found:
        return replace(verdict, rejections=found)
    return NodeVerdict(verdict.node, feasible=False, tried=verdict.tried, unknown=True)


class UnknownOutcomes:
    """Collects the unknown kinds that the outcomes of pods depend on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._by_template: dict[tuple[str, PodTemplate], Needed] = {}
        self._found: dict[str, NeededKind] = {}
        if not (len(snapshot.nodes) or snapshot.objects.knows(Node)):
            self._add([_NO_NODES])

    def kinds(self) -> tuple[Unknown, ...]:
        """Return the unknown kinds that outcomes so far depend on."""
        known = [kind for kind in KUBECTL_NAMES if kind in self._found]
        order = {kind: self._found[kind] for kind in [*known, *self._found]}
        return tuple(
            Unknown(kind, one.decides, one.why, get_command(kind)) for kind, one in order.items()
        )

    def placed(self, profile: Profile, pod: PodInfo, *, had_choice: bool) -> None:
        """Add the unknown kinds that a pod's placement depends on."""
        self._add_class(pod)
        wanted = (Decides.FIT, Decides.CHOICE) if had_choice else (Decides.FIT,)
        self._add_needed(profile, pod, *wanted)

    def preempted(self, profile: Profile, pod: PodInfo) -> None:
        """Add the unknown kinds that the choice of victims depends on."""
        self._add_needed(profile, pod, Decides.FIT, Decides.VICTIMS)

    def drained(self) -> None:
        """Add PodDisruptionBudget if the files lack it: evictions depend on budgets."""
        if not self._snapshot.objects.knows(PodDisruptionBudget):
            self._add([_NO_BUDGETS])

    def rejected(self, profile: Profile, pod: PodInfo, rejecting: Collection[str]) -> bool:
        """Add the unknown kinds that a rejection depends on; return whether it may be wrong."""
        self._add_class(pod)
        if not guessing_plugins(rejecting, self.needed(profile, pod)):
            return False
        self._add_needed(profile, pod, Decides.FIT)
        return True

    def _add_class(self, pod: PodInfo) -> None:
        """Add PriorityClass if the pod has its priority from a class that the files lack."""
        has_class = pod.spec.priority is None and pod.spec.priority_class_name
        if has_class and not self._snapshot.objects.knows(PriorityClass):
            self._add([_NO_CLASS])

    def _add(self, needed: Iterable[NeededKind]) -> None:
        for one in needed:
            self._found.setdefault(one.kind.__name__, one)

    def _add_needed(self, profile: Profile, pod: PodInfo, *wanted: Decides) -> None:
        every = [one for found in self.needed(profile, pod).values() for one in found]
        for decides in wanted:
            self._add(one for one in every if one.decides is decides)

    def needed(self, profile: Profile, pod: PodInfo) -> Needed:
        """Return the kinds that plugins need for a pod and the files lack, by plugin."""
        if pod.spec.volumes or pod.spec.resource_claims:
            # Needed claims and volumes may differ between pods of one template.
            return needed_kinds(profile, pod, self._snapshot)
        key = (profile.scheduler_name, pod.template)
        found = self._by_template.get(key)
        if found is None:
            found = self._by_template[key] = needed_kinds(profile, pod, self._snapshot)
        return found


def rejecting_plugins(decision: Decision) -> frozenset[str]:
    """Return the plugins that rejected the pod or failed."""
    match decision:
        case Rejected():
            diagnosis = decision.diagnosis
            return diagnosis.unschedulable_plugins | diagnosis.pending_plugins
        case Failed():
            return frozenset({decision.status.plugin})
        case _:
            return frozenset()


def needed_kinds(profile: Profile, pod: PodInfo, snapshot: Snapshot) -> dict[str, list[NeededKind]]:
    """Return plugin name -> the kinds it needs for a pod and the files lack."""
    found: dict[str, list[NeededKind]] = {}
    for name, plugin in profile.plugins.items():
        try:
            needed = list(plugin.kinds_needed(pod, snapshot))
            check_kinds(needed)
        except Exception as error:  # noqa: BLE001 - a user's plugin may raise anything
            profile.report(plugin, "KindsNeeded", pod.key, error)
            continue
        if missing := [one for one in needed if not snapshot.objects.knows(one.kind)]:
            found[name] = missing
    return found
