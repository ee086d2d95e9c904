"""Explains a pod's decision from the trace of its cycle.

Upstream: pkg/scheduler/schedule_one.go, framework/preemption; ClusterEvent.Label in
          staging/src/k8s.io/kube-scheduler/framework/types.go (v1.36)
Reads:    the plugins' states of the cycle, and their `describe`; the trace, the decision, and the
          snapshot of the cycle
Differs:  a registration of several actions is spelled out, one name per action.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.explain.report import (
    Answer,
    NodeScore,
    NodeVerdict,
    NotHelped,
    PluginScore,
    PodExplanation,
    PodOutcome,
    PostFilterStep,
    PreemptionCandidate,
    PreemptionExplanation,
    PreFilterStep,
    RetryEvents,
    Victim,
)
from kubesched.framework.cluster_event import Action, ClusterEvent, ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import FilterPlugin, NoState, PreFilterPlugin
from kubesched.framework.preemption.candidates import potential_rows
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.status import NodeToStatus, Status
from kubesched.scheduler.decision import Decision, Failed, Placed, Rejected
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class Details:
    """Collects details from plugins; a plugin without `describe` gives none."""

    def __init__(self, profile: Profile, snapshot: Snapshot, trace: Trace, pod: PodInfo) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._cycle = trace.cycle or CycleState()
        self._pod = pod

    def of(self, row: int, status: Status) -> str:
        """Return the detail behind a row's `status`; empty if there is none."""
        plugin = self._profile.plugins.get(status.plugin)
        if not isinstance(plugin, FilterPlugin):
            return ""
        try:
            return self._described(plugin, row)
        except PluginFailure:
            return ""
        except Exception as error:  # noqa: BLE001 - a user's plugin may raise anything
            self._profile.report(plugin, "Describe", self._pod.key, error)
            return ""

    def of_pod(self, plugin_name: str) -> str:
        """Return the detail behind a plugin's rejection in PreFilter."""
        plugin = self._profile.plugins.get(plugin_name)
        if not isinstance(plugin, PreFilterPlugin):
            return ""
        try:
            ask, question = self._profile.ask, plugin.describe_rejection
            return ask(plugin, question, self._pod, self._snapshot)
        except PluginFailure:
            # The reason stands.
            return ""

    def _described(self, plugin: FilterPlugin[object], row: int) -> str:
        name = self._snapshot.nodes.names[row]
        nominated = self._snapshot.nominated.ahead_of(self._pod, name)
        state = self._cycle.filter_states.get(plugin.name)
        if isinstance(state, NoState):
            return ""
        node = self._snapshot.nodes.row_view(row)
        if not nominated or not plugin.filter(state, self._pod, node)[0].is_success:
            return self._profile.ask(plugin, plugin.describe, state, self._pod, node)
        text = self._described_with(nominated, plugin, row)
        listed = ", ".join(other.key for other in nominated)
        with_them = f"with the pods nominated to the node ({listed})"
        return f"{text} {with_them}" if text else with_them

    def _described_with(
        self, nominated: list[PodInfo], plugin: FilterPlugin[object], row: int
    ) -> str:
        """Describe the row with the nominated pods on it, because it was rejected that way."""
        cycle = self._cycle.clone()
        node = self._snapshot.nodes.take(np.array([row], np.intp))
        for other in nominated:
            if not self._profile.add_pod(cycle, self._pod, other, node).is_success:
                return ""
        state = cycle.filter_states.get(plugin.name)
        return self._profile.ask(plugin, plugin.describe, state, self._pod, node)


def awaited(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[str, ...]:
    """Return the steps before a pod can be bound to its node, such as provisioning a volume."""
    found: list[str] = []
    for plugin in profile.pre_bind_plugins:
        with suppress(PluginFailure):
            found += profile.ask(plugin, plugin.describe_wait, cycle, pod, node_name)
    return tuple(found)


# Explanations.

ANY_EVENT = ("any change of the cluster",)

_EVENT_WORDS = {
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


def explain_gate(profile: Profile, pod: PodInfo, held: Status, node_count: int) -> PodExplanation:
    """Explain a pod that a PreEnqueue plugin holds back."""
    return PodExplanation(
        pod=pod.key,
        scheduler_name=profile.scheduler_name,
        priority=pod.priority,
        outcome=PodOutcome.GATED,
        message=held.message,
        nominated_node=pod.pod.status.nominated_node_name,
        node_count=node_count,
        held_by=answer_of(held),
        retry_after=retry_events(profile, [held.plugin]),
    )


def explain_decision(
    profile: Profile, snapshot: Snapshot, trace: Trace, decision: Decision
) -> PodExplanation:
    """Explain the decision for a pod on an unchanged snapshot, from the trace of its cycle."""
    pod = decision.pod
    details = Details(profile, snapshot, trace, pod)
    report = PodExplanation(
        pod=pod.key,
        scheduler_name=profile.scheduler_name,
        priority=pod.priority,
        outcome=_outcome(decision),
        nominated_node=pod.pod.status.nominated_node_name,
        nominated_hit=trace.nominated_hit,
        node_count=len(snapshot.nodes),
        feasible_count=len(trace.feasible_rows),
        pre_filter=_pre_filter(trace, details),
        all_filters=trace.all_filters,
        nodes=_verdicts(details, snapshot, trace, decision),
        post_filters=tuple(
            PostFilterStep(name, result.status.code.label, result.status.all_reasons)
            for name, result in trace.post_filters.items()
        ),
    )
    match decision:
        case Placed():
            waits_for = awaited(profile, decision.cycle, pod, decision.node_name)
            report = replace(report, waits_for=waits_for)
            return _with_scores(report, snapshot, trace, decision)
        case Rejected():
            return _with_rejection(report, profile, snapshot, trace, decision)
        case Failed():
            return replace(report, message=decision.message)


def answer_of(status: Status, detail: str = "") -> Answer:
    """Return a plugin's status as part of a report."""
    return Answer(status.plugin, status.code.label, tuple(sorted(status.all_reasons)), detail)


def _outcome(decision: Decision) -> PodOutcome:
    if isinstance(decision, Placed):
        return PodOutcome.SCHEDULABLE
    if isinstance(decision, Failed) and not decision.status.is_rejected:
        return PodOutcome.ERROR
    return PodOutcome.UNSCHEDULABLE


# PreFilter.


def _pre_filter(trace: Trace, details: Details) -> PreFilterStep | None:
    status = trace.pre_filter_status
    if status is None:
        return None
    restricted = trace.restricted_to
    return PreFilterStep(
        code=status.code.label,
        plugin=status.plugin,
        reasons=tuple(sorted(status.all_reasons)),
        detail="" if status.is_success else details.of_pod(status.plugin),
        skipped=tuple(name for name, its in trace.pre_filter.items() if its.is_skip),
        restricted_to=None if restricted is None else tuple(sorted(restricted)),
        restricted_by=trace.restricting_plugins,
    )


# Filter.


def _verdicts(
    details: Details, snapshot: Snapshot, trace: Trace, decision: Decision
) -> tuple[NodeVerdict, ...]:
    tried = _mask(len(snapshot.nodes), trace.tried_rows)
    feasible = _mask(len(snapshot.nodes), trace.feasible_rows)
    asked = _asked_filters(trace, len(snapshot.nodes))
    untried = _untried_answer(decision)
    verdicts = []
    for name, row in sorted(snapshot.nodes.row_of.items()):
        if not tried[row]:
            verdicts.append(NodeVerdict(name, feasible=False, tried=False, rejections=untried))
            continue
        statuses = _rejections(trace, asked, row)
        rejections = tuple(answer_of(status, details.of(row, status)) for status in statuses)
        verdicts.append(NodeVerdict(name, feasible=bool(feasible[row]), rejections=rejections))
    return tuple(verdicts)


def _mask(rows: int, chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
    mask = np.zeros(rows, np.bool_)
    mask[chosen] = True
    return mask


def _asked_filters(trace: Trace, rows: int) -> list[list[Status]]:
    """Return the rejections of all filters per row, in the profile's order."""
    asked: list[list[Status]] = [[] for _ in range(rows if trace.filters else 0)]
    for filtered in trace.filters:
        rejected = np.flatnonzero(filtered.answers.index)
        for at in rejected.tolist():
            status = filtered.answers[at].by(filtered.plugin)
            asked[int(filtered.rows[at])].append(status)
    return asked


def _rejections(trace: Trace, asked: list[list[Status]], row: int) -> list[Status]:
    """Return the first rejection of a row, or all of them if all filters ran."""
    first = [trace.statuses[row]] if len(trace.statuses) else []
    first = [status for status in first if not status.is_success]
    if not asked:
        return first
    # A rejection that only holds with nominated pods on the node is not in `asked`.
    plugins = {status.plugin for status in asked[row]}
    return [*(status for status in first if status.plugin not in plugins), *asked[row]]


def _untried_answer(decision: Decision) -> tuple[Answer, ...]:
    if not isinstance(decision, Rejected):
        return ()
    status = decision.diagnosis.absent_status
    return (answer_of(status),) if status.all_reasons else ()


# Placed pods.


def _with_scores(
    report: PodExplanation, snapshot: Snapshot, trace: Trace, decision: Placed
) -> PodExplanation:
    names = [snapshot.nodes.names[row] for row in trace.feasible_rows.tolist()]
    scores = _node_scores(trace, names)
    best = tuple(score.node for score in scores if score.rank == 1)
    return replace(
        report,
        node=decision.node_name,
        scores=scores,
        ties=best if len(best) > 1 else (),
        skipped_scores=tuple(name for name, its in trace.pre_score.items() if its.is_skip),
    )


def _node_scores(trace: Trace, names: Sequence[str]) -> tuple[NodeScore, ...]:
    if trace.totals is None:
        return ()
    totals = trace.totals.tolist()
    columns = [
        (score.plugin, score.weight, score.raw.tolist(), score.normalized.tolist())
        for score in trace.scores
    ]
    order = sorted(range(len(names)), key=lambda at: (-totals[at], names[at]))
    found: list[NodeScore] = []
    for place, at in enumerate(order, 1):
        is_tied = bool(found) and found[-1].total == totals[at]
        rank = found[-1].rank if is_tied else place
        scores = tuple(
            PluginScore(plugin, raw[at], normalized[at], weight, normalized[at] * weight)
            for plugin, weight, raw, normalized in columns
        )
        found.append(NodeScore(names[at], rank, totals[at], scores))
    return tuple(found)


# Rejected pods.


def _with_rejection(
    report: PodExplanation,
    profile: Profile,
    snapshot: Snapshot,
    trace: Trace,
    decision: Rejected,
) -> PodExplanation:
    diagnosis = decision.diagnosis
    statuses = diagnosis.status_per_row(len(snapshot.nodes))
    preemption = None
    for result in trace.post_filters.values():
        if isinstance(result.details, PreemptionReport):
            preemption = explain_preemption(result.details, statuses)
        elif result.victims and result.nominated_node_name:
            preemption = _without_report(result.victims, result.nominated_node_name)
    return replace(
        report,
        message=decision.message,
        preemption=preemption,
        retry_after=retry_events(profile, sorted(diagnosis.unschedulable_plugins)),
    )


def retry_events(profile: Profile, names: Iterable[str]) -> tuple[RetryEvents, ...]:
    """Return the events that requeue a pod, for each of the plugins that rejected it."""
    return tuple(
        RetryEvents(name, event_names(profile.plugins[name].events_to_register()))
        for name in names
        if name in profile.plugins
    )


def explain_preemption(report: PreemptionReport, statuses: NodeToStatus) -> PreemptionExplanation:
    """Explain which pods to evict on which node, and why, from the plugin's report.

    `statuses` has the rejection of each row.
    """
    if not report.eligible:
        return PreemptionExplanation(eligible=False, reason=report.reason)
    return PreemptionExplanation(
        eligible=True,
        candidates=tuple(
            PreemptionCandidate(found.node_name, _victims(found.victims), found.pdb_violations)
            for found in sorted(report.candidates, key=lambda c: c.node_name)
        ),
        chosen=report.chosen,
        decided_by="" if report.decided_by is None else str(report.decided_by),
        ties=report.best if len(report.best) > 1 else (),
        not_helped=tuple(
            NotHelped(name, answer_of(status))
            for name, status in sorted(report.node_statuses.items())
        ),
        not_tried=len(statuses) - len(potential_rows(statuses)),
    )


def _without_report(victims: Iterable[PodInfo], node_name: str) -> PreemptionExplanation:
    """Explain a preemption by a plugin that tells only whom it evicts."""
    by_priority = sorted(victims, key=lambda pod: -pod.priority)
    chosen = PreemptionCandidate(node_name, _victims(by_priority), pdb_violations=None)
    return PreemptionExplanation(eligible=True, candidates=(chosen,), chosen=node_name)


def _victims(pods: Iterable[PodInfo]) -> tuple[Victim, ...]:
    return tuple(Victim(pod.key, pod.priority) for pod in pods)


def event_names(registered: Sequence[ClusterEventWithHint] | None) -> tuple[str, ...]:
    """Return the events that requeue a pod, such as `Node added`; None stands for all events."""
    if registered is None:
        return ANY_EVENT
    names: list[str] = []
    for entry in registered:
        if entry.event.is_wildcard:
            return ANY_EVENT
        names += _action_names(entry.event)
    return tuple(dict.fromkeys(names))


def _action_names(event: ClusterEvent) -> list[str]:
    kind = event.resource.rpartition("/")[2]
    left = event.action
    names: list[str] = []
    for action, word in _EVENT_WORDS.items():
        if action is Action.UPDATE_NODE_ALLOCATABLE and left & Action.UPDATE == Action.UPDATE:
            # All bits together mean any update, which reads better than a list of each.
            names.append(f"{kind} updated")
            left &= ~Action.UPDATE
        if left & action:
            names.append(f"{kind} {word}")
    return names
