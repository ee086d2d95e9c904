"""Why a pod is pending, or has its node: one sentence, then changes that would help.

Reads:    the pod's status, an explanation of its decision, and trials of what would change it; the
          answer of `/debug/decisions`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import numpy as np
from msgspec.structs import replace

from kubesched.answers.cluster_changes import cluster_changes
from kubesched.answers.near_misses import missing_objects, near_misses
from kubesched.answers.pod_changes import pod_changes
from kubesched.answers.pod_changes_together import changes_together
from kubesched.answers.pod_explanation import PlacedWithGang, explain_pod
from kubesched.answers.trial import ChangeKind, ChangeTrial, SuggestedChange, by_size
from kubesched.answers.workload_pods import LackedPodsError
from kubesched.api.conditions import find_condition
from kubesched.api.core import FINISHED, Pod
from kubesched.api.resource import ResourceClaim, ResourceClaimStatus
from kubesched.explain.decision_records import (
    DecisionRecord,
    DecisionRecords,
    QueueState,
    RecordedOutcome,
)
from kubesched.explain.document import Document, DocumentPart
from kubesched.explain.report import NodeVerdict, PodExplanation, PodOutcome, RetryEvents, Unknown
from kubesched.explain.sentences import (
    as_far_as_known,
    count,
    fits_nowhere,
    grouped_by,
    headline,
    is_rejected_everywhere,
    largest_first,
    names,
    preemption_sentence,
)
from kubesched.framework.preemption.eligibility import VICTIMS_TERMINATE
from kubesched.framework.preemption.report import Criterion
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo, scheduler_name_of

_EXAMPLES_MAX: Final = 3
_CAUSES_MAX: Final = 4


class PodState(StrEnum):
    """Where a pod is on its way to a node."""

    FINISHED = "Finished"
    TERMINATING = "Terminating"
    BOUND = "Bound"
    OTHER_SCHEDULER = "OtherScheduler"
    GATED = "Gated"
    NOMINATED = "Nominated"
    PROVISIONING = "Provisioning"
    FITS = "Fits"
    PREEMPTS = "Preempts"
    UNSCHEDULABLE = "Unschedulable"
    GANG_UNSCHEDULABLE = "GangUnschedulable"
    UNKNOWN = "Unknown"
    GONE = "Gone"
    NOT_CREATED = "NotCreated"


_NEEDS_CHANGES: Final = (PodState.GATED, PodState.UNSCHEDULABLE)


class LastAttempt(DocumentPart, frozen=True):
    """What the scheduler wrote about its last attempt into the pod's condition PodScheduled.

    Attributes:
        time: Since when the condition is False, whatever attempts followed, as Kubernetes writes
            it; empty if unknown.
        reason: The condition's reason.
        message: The condition's message.
    """

    time: str
    reason: str
    message: str


class CauseExample(DocumentPart, frozen=True):
    """Nodes where the same amounts, taints or labels decide.

    Attributes:
        nodes: Their names.
        details: The amounts, taints or labels.
    """

    nodes: tuple[str, ...]
    details: tuple[str, ...]


class Cause(DocumentPart, frozen=True):
    """Nodes that reject the pod for the same reasons.

    Attributes:
        plugins: The plugins that reject it there; all must be satisfied for the pod to fit.
        reasons: Their messages, as kubectl shows them.
        count: Number of nodes.
        examples: Some of the nodes: those that lack the least of what the pod requests first, and
            among these the most frequent details.
    """

    plugins: tuple[str, ...]
    reasons: tuple[str, ...]
    count: int
    examples: tuple[CauseExample, ...]


class WhyReport(Document, frozen=True, kw_only=True):
    """Why a pod is pending, and the smallest changes that make it fit.

    Attributes:
        pod: `namespace/name`; empty if the workload that was named has none.
        state: Where the pod is on its way to a node.
        sentence: The answer in one sentence.
        uid: The pod's uid; empty if the input has none.
        notes: Remarks that matter for reading the answer.
        changes: Changes of one thing each after which the pod is placed; each was tried. The
            smallest kind of change first, the best one of each kind before the second of any.
        together: If there are none, changes of the pod that place it together; without any one of
            them it does not fit.
        near_misses: Names, labels and values that the pod asks for and almost exist.
        causes: Why nodes reject the pod, those that reject it for the fewest reasons first.
        message: The message of the condition that the scheduler would write now, as kubectl shows
            it.
        last_attempt: What the scheduler wrote about its last attempt; None if it wrote nothing.
        retry_after: The events that requeue the pod, per plugin that rejected it.
        unknown: The kinds that the answer depends on and the files lack.
        queue: Where the pod is in the queue of the running scheduler; null if that was not asked,
            or does not hold the pod.
        records: What the running scheduler decided about the pod, the newest first.
    """

    pod: str
    state: PodState
    sentence: str
    uid: str = ""
    notes: tuple[str, ...] = ()
    changes: tuple[SuggestedChange, ...] = ()
    together: tuple[SuggestedChange, ...] = ()
    near_misses: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    message: str = ""
    last_attempt: LastAttempt | None = None
    retry_after: tuple[RetryEvents, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    queue: QueueState | None = None
    records: tuple[DecisionRecord, ...] = ()

    @property
    def needs_changes(self) -> bool:
        """Whether the pod stays pending unless something changes."""
        return self.state in _NEEDS_CHANGES


def state_of(pod: Pod, schedulers: Iterable[str]) -> PodState | None:
    """Return why the scheduler makes no decision for a pod; None if it makes one."""
    if pod.status.phase in FINISHED:
        return PodState.FINISHED
    if pod.metadata.deletion_timestamp is not None:
        return PodState.TERMINATING
    if pod.spec.node_name:
        return PodState.BOUND
    if scheduler_name_of(pod) not in schedulers:
        return PodState.OTHER_SCHEDULER
    return None


def why_undecided(pod: Pod, state: PodState, schedulers: Sequence[str]) -> WhyReport:
    """Answer for a pod that no decision is made for."""
    key = pod.metadata.key
    match state:
        case PodState.FINISHED:
            sentence = f"Pod {key} has finished ({pod.status.phase}) and needs no node."
        case PodState.TERMINATING:
            sentence = f"Pod {key} is being deleted{_by_whom(pod)}; no scheduler places it."
        case PodState.BOUND:
            since = f" since {pod.status.start_time}" if pod.status.start_time else ""
            sentence = f"Pod {key} is on node {pod.spec.node_name}{since}."
        case _:
            known = sorted(schedulers)
            sentence = (
                f"Pod {key} asks for the scheduler {pod.spec.scheduler_name}; it stays pending if "
                f"no scheduler of that name runs. The configuration has {names(known)}; "
                f"--profile {known[0]} asks that one instead."
            )
    return WhyReport(
        pod=key,
        state=state,
        sentence=sentence,
        uid=pod.metadata.uid,
        last_attempt=_last_attempt(pod),
    )


def why_uncreated(lacking: LackedPodsError) -> WhyReport:
    """Answer for a workload without pods."""
    return WhyReport(pod="", state=PodState.NOT_CREATED, sentence=lacking.sentence)


def _why_pending(trial: ChangeTrial, explanation: PodExplanation) -> WhyReport:
    """Answer for a pending pod; `explanation` has every filter's answer."""
    pod, cache = trial.pod, trial.cluster.cache
    if not trial.profile.feature_gates.enabled("GenericWorkload"):
        # Without the gate, nothing depends on the pod's group.
        pod = replace(pod, spec=replace(pod.spec, scheduling_group=None))
    state = _state(explanation)
    changes: tuple[SuggestedChange, ...] = ()
    together: tuple[SuggestedChange, ...] = ()
    misses: tuple[str, ...] = ()
    notes = [*explanation.notes]
    if state in _NEEDS_CHANGES:
        found = [*pod_changes(trial), *cluster_changes(trial, explanation.nodes)]
        changes = _varied(found)
        together = () if changes else changes_together(trial)
    if state is PodState.UNSCHEDULABLE:
        notes += [*_preemption_note(explanation), *_ending_note(trial), *_releasing_note(trial)]
    if state in (*_NEEDS_CHANGES, PodState.UNKNOWN):
        misses = tuple(near_misses(pod, cache.nodes, cache.objects))
        notes += missing_objects(pod, cache.objects)
    return WhyReport(
        pod=explanation.pod,
        state=state,
        sentence=_sentence(state, explanation),
        uid=pod.metadata.uid,
        changes=changes,
        together=together,
        near_misses=misses,
        causes=_causes_of(explanation.nodes, _lacked_shares(PodInfo(pod), cache.nodes)),
        notes=tuple(notes),
        message=explanation.message,
        last_attempt=_last_attempt(pod),
        retry_after=explanation.retry_after,
        unknown=explanation.unknown,
    )


def _preemption_note(explanation: PodExplanation) -> Iterable[str]:
    """Yield why a pod that stays pending does not preempt others, if it may not."""
    preemption = explanation.preemption
    if preemption is not None and not preemption.eligible:
        yield preemption_sentence(preemption)


def _ending_note(trial: ChangeTrial) -> Iterable[str]:
    """Yield where a pod that stays pending fits once the pods that are being deleted are gone."""
    on_nodes = (info for pods in trial.cluster.cache.nodes.pods for info in pods.values())
    ending = [info for info in on_nodes if info.is_terminating]
    if ending and (node := trial.node_for_without(ending)):
        there = [info.key for info in ending if info.node_name == node]
        which = there or [info.key for info in ending]
        yield f"It fits {node} once pods that are being deleted are gone: {names(which)}."


def _releasing_note(trial: ChangeTrial) -> Iterable[str]:
    """Yield where a pod that stays pending fits once the scheduler releases devices it cannot use.

    It does so after an attempt, if no other pod uses the claim.
    """
    own, objects = trial.pod.metadata, trial.cluster.cache.objects
    for _, name in trial.pod.resource_claims():
        claim = objects.get(ResourceClaim, name, own.namespace)
        if claim is None or claim.status.allocation is None:
            continue
        unused = replace(claim, status=ResourceClaimStatus())
        if {user.uid for user in claim.status.reserved_for} <= {own.uid} and (
            node := trial.node_for_with(unused)
        ):
            yield (
                f"It fits {node} once the devices of ResourceClaim {name} are released, which the "
                "scheduler does, as no other pod uses them."
            )


def _by_size(change: SuggestedChange) -> tuple[int, float, str]:
    """Return the key that sorts changes; a dropped request is as large as a dropped constraint."""
    if change.kind is ChangeKind.LOWER_REQUEST and change.after == "0":
        change = replace(change, kind=ChangeKind.DROP_CONSTRAINT)
    return by_size(change)


def _varied(changes: Iterable[SuggestedChange]) -> tuple[SuggestedChange, ...]:
    """Sort changes by size, the best one of each kind before the second of any."""
    seen: Counter[ChangeKind] = Counter()
    ranked: list[tuple[int, SuggestedChange]] = []
    for change in sorted(changes, key=_by_size):
        ranked.append((seen[change.kind], change))
        seen[change.kind] += 1
    return tuple(change for _, change in sorted(ranked, key=lambda pair: pair[0]))


def _state(explanation: PodExplanation) -> PodState:
    match explanation.outcome:
        case PodOutcome.GATED:
            return PodState.GATED
        case PodOutcome.SCHEDULABLE if explanation.waits_for:
            return PodState.PROVISIONING
        case PodOutcome.SCHEDULABLE:
            return PodState.FITS
        case PodOutcome.UNSCHEDULABLE:
            preemption = explanation.preemption
            if preemption is not None and preemption.reason == VICTIMS_TERMINATE:
                return PodState.NOMINATED
            is_helped = preemption is not None and preemption.chosen
            return PodState.PREEMPTS if is_helped else PodState.UNSCHEDULABLE
        case _:
            return PodState.UNKNOWN


def _sentence(state: PodState, explanation: PodExplanation) -> str:
    subject = f"Pod {explanation.pod}"
    match state:
        case PodState.FITS:
            fitting, nodes = explanation.feasible_count, explanation.node_count
            where = "the only node" if nodes == 1 else f"{count(fitting, 'node')} of {nodes:,}"
            text = f"{subject} fits {where} now, and would go to {explanation.node}."
            if explanation.nominated_hit:
                text = f"{subject} fits {explanation.node} now, to which it is nominated."
            return as_far_as_known(explanation, text)
        case PodState.NOMINATED:
            return (
                f"{subject} waits for pods on {explanation.nominated_node} to end: it is nominated "
                "to that node."
            )
        case PodState.PREEMPTS:
            preemption = explanation.preemption
            assert preemption is not None, "it is how the state was found"
            chosen = next(one for one in preemption.candidates if one.node == preemption.chosen)
            return (
                f"{subject} fits no node as it is, and would evict "
                f"{names([victim.pod for victim in chosen.victims])} on {chosen.node} to get there."
            )
        case PodState.UNSCHEDULABLE if explanation.node_count and explanation.nodes:
            return _fits_nowhere(explanation)
        case PodState.UNKNOWN if (
            explanation.outcome is PodOutcome.UNKNOWN and is_rejected_everywhere(explanation)
        ):
            return as_far_as_known(explanation, _fits_nowhere(explanation))
        case _:
            return headline(explanation)


def _fits_nowhere(explanation: PodExplanation) -> str:
    step = explanation.pre_filter
    if step is not None and step.plugin:
        reasons = ", ".join(step.reasons)
        detail = f" ({step.detail})" if step.detail else ""
        return f"Pod {explanation.pod} cannot be placed: {reasons}{detail}."
    words = fits_nowhere(explanation.node_count)
    return f"Pod {explanation.pod} {words}{_causes(explanation)}."


def _causes(explanation: PodExplanation) -> str:
    """Return what follows the number of nodes: why they reject the pod."""
    found: Counter[tuple[str, str]] = Counter()
    for verdict in explanation.nodes:
        if verdict.rejections:
            first = verdict.rejections[0]
            found[cause_words(first.plugin, first.message)] += 1
    if explanation.node_count == 1:
        return "".join(f", which {one}" for one, _ in found)
    # Naming one more takes no more room than counting it.
    shown = found.most_common(_CAUSES_MAX + (len(found) == _CAUSES_MAX + 1))
    texts = [f"{number:,} {one if number == 1 else many}" for (one, many), number in shown]
    left = found.total() - sum(number for _, number in shown)
    return f": {', '.join([*texts, *([f'{left:,} for other reasons'] if left else [])])}"


_CAUSE_WORDS: Final = {
    "TaintToleration": (
        "has a taint that it does not tolerate",
        "have taints that it does not tolerate",
    ),
    "NodeAffinity": (
        "does not match its node selector or affinity",
        "do not match its node selector or affinity",
    ),
    "NodeUnschedulable": ("is cordoned", "are cordoned"),
    "NodePorts": ("has its host port in use", "have its host port in use"),
    "PodTopologySpread": ("would break its topology spread", "would break its topology spread"),
}


def cause_words(plugin: str, message: str) -> tuple[str, str]:
    """Return why one node rejects a pod, in a few words, and why several do."""
    if plugin == "NodeResourcesFit":
        lacking = message.replace("Insufficient ", "").replace("Too many pods", "room for pods")
        lacking = " and ".join(lacking.rsplit(", ", 1))
        return f"has too little {lacking}", f"have too little {lacking}"
    if plugin in _CAUSE_WORDS:
        return _CAUSE_WORDS[plugin]
    words = message.removeprefix("node(s) ")
    if message.startswith("node(s) "):
        return words, words
    return f"rejects it ({words or plugin})", f"reject it ({words or plugin})"


def _lacked_shares(info: PodInfo, nodes: NodeTable) -> dict[str, float]:
    """Return by node which share of its requests a pod lacks there, summed over the resources."""
    requests = info.template.requests
    free, _ = nodes.free_for([*requests])
    # A pod slot, as the first row.
    wanted = np.array([1, *requests.values()], np.float64)[:, None]
    shares = np.clip(wanted - free, 0, None) / np.maximum(wanted, 1)
    return dict(zip(nodes.names, shares.sum(axis=0).tolist(), strict=True))


def _causes_of(verdicts: Iterable[NodeVerdict], lacked: Mapping[str, float]) -> tuple[Cause, ...]:
    """Group the nodes that reject a pod for the same reasons, the nearest misses first."""
    rejecting = [verdict for verdict in verdicts if verdict.rejections and verdict.tried]
    groups = grouped_by(rejecting, _plugins_and_reasons)
    ordered = sorted(largest_first(groups), key=lambda group: len(group[0][0]))
    return tuple(
        Cause(plugins, reasons, len(found), _examples(found, lacked))
        for (plugins, reasons), found in ordered
    )


def _plugins_and_reasons(verdict: NodeVerdict) -> tuple[tuple[str, ...], tuple[str, ...]]:
    plugins = tuple(answer.plugin for answer in verdict.rejections)
    return plugins, tuple(answer.message for answer in verdict.rejections)


def _examples(
    verdicts: Iterable[NodeVerdict], lacked: Mapping[str, float]
) -> tuple[CauseExample, ...]:
    nearest = sorted(verdicts, key=lambda verdict: lacked[verdict.node])
    groups = sorted(
        grouped_by(nearest, _details).items(),
        key=lambda group: (lacked[group[1][0].node], -len(group[1])),
    )
    return tuple(
        CauseExample(tuple(one.node for one in found), details)
        for details, found in groups[:_EXAMPLES_MAX]
    )


def _details(verdict: NodeVerdict) -> tuple[str, ...]:
    return tuple(answer.detail for answer in verdict.rejections if answer.detail)


def _last_attempt(pod: Pod) -> LastAttempt | None:
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is None or condition.status == "True" or not condition.message:
        return None
    return LastAttempt(condition.last_transition_time or "", condition.reason, condition.message)


def _by_whom(pod: Pod) -> str:
    disrupted = find_condition(pod.status.conditions, "DisruptionTarget")
    if disrupted is None or disrupted.status != "True":
        return ""
    return f" ({disrupted.reason}: {disrupted.message})"


# A pod of a cluster.


def why_pod(
    cluster: ClusterState, info: PodInfo, explanation: PodExplanation | None = None
) -> WhyReport:
    """Answer why a pod is pending, or why it is not decided at all.

    `explanation` has every filter's answer; None to find it.
    """
    schedulers = list(cluster.profiles)
    state = state_of(info.pod, schedulers)
    if state is not None:
        report = why_undecided(info.pod, state, schedulers)
        on, nodes = info.node_name, cluster.cache.nodes
        if state is not PodState.BOUND or on in nodes.row_of or not len(nodes):
            return report
        return replace(report, notes=(f"Node {on} was removed, or is not in the input.",))
    explanation = explanation or explain_pod(cluster, info, all_filters=True)
    return _why_pending(ChangeTrial(cluster, info.pod), explanation)


def with_gang(report: WhyReport, found: PlacedWithGang) -> WhyReport:
    """Return the answer about a pod after its gang was placed, which may preempt other pods."""
    is_alone = report.state is PodState.FITS
    if not (is_alone or found.fits):
        return report
    state = PodState.PREEMPTS if found.evicts and not is_alone else PodState.FITS
    return replace(
        report,
        state=state if found.fits else PodState.GANG_UNSCHEDULABLE,
        sentence=found.sentence,
        notes=found.notes,
        changes=(),
        together=(),
    )


# What a running scheduler recorded: where the pod is in its queue, and who evicted it.

_NOT_LEADING: Final = (
    "The scheduler that was asked does not lead; the one that does has the queue and the records."
)


def with_records(report: WhyReport, found: DecisionRecords) -> WhyReport:
    """Add the queue's state and the records of the pod, and who evicted it."""
    sentence, notes = report.sentence, report.notes
    eviction = next((one for one in found.records if one.evicts(report.pod, report.uid)), None)
    if eviction is not None and report.state is PodState.TERMINATING:
        sentence = f"Pod {report.pod} is being deleted: {_evicted(eviction)}."
    earlier = next((one for one in found.records if one.evicts(report.pod)), None)
    if eviction is None and earlier is not None:
        notes = (*notes, f"An earlier pod of this name is gone: {_evicted(earlier)}.")
    if not found.leads:
        notes = (*notes, _NOT_LEADING)
    return replace(report, sentence=sentence, notes=notes, queue=found.queue, records=found.records)


def why_gone(pod: str, found: DecisionRecords) -> WhyReport | None:
    """Answer for a pod that does not exist any more; None if there is no record of it."""
    if not found.records:
        return None
    newest = found.records[0]
    if newest.evicts(pod):
        words = _evicted(newest)
    else:
        words = f"the scheduler's last decision about it was at {newest.time}: {outcome_of(newest)}"
    return WhyReport(
        pod=pod,
        state=PodState.GONE,
        sentence=f"Pod {pod} is gone: {words}.",
        notes=() if found.leads else (_NOT_LEADING,),
        records=found.records,
    )


def outcome_of(record: DecisionRecord) -> str:
    """Return the outcome in a few words."""
    match record.outcome:
        case RecordedOutcome.PLACED:
            return f"placed on {record.node}"
        case RecordedOutcome.BINDING_FAILED:
            return f"not bound to {record.node}: {record.message}"
        case RecordedOutcome.FAILED:
            return f"failed: {record.message}"
    by_whom = f" by {', '.join(record.rejecting_plugins)}" if record.rejecting_plugins else ""
    if record.nominated_node:
        return f"rejected{by_whom}; nominated to {record.nominated_node}"
    return f"rejected{by_whom}" if by_whom else f"rejected: {record.message}"


def _evicted(record: DecisionRecord) -> str:
    node = record.nominated_node
    words = f"the scheduler evicted it from {node} at {record.time} to make room for {record.pod}"
    if record.criterion == Criterion.ONLY_CANDIDATE:
        return f"{words}; evicting pods helped on no other node"
    return f"{words}; {node} was chosen for its {record.criterion}" if record.criterion else words
