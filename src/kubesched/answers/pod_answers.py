"""Answers about one pod of a cluster: how it is decided, and why it is pending."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.answers.trial import ChangeTrial
from kubesched.answers.why import WhyReport, state_of, why, why_undecided
from kubesched.api.core import Pod
from kubesched.config.types import Configuration
from kubesched.explain.explain import explain_decision, explain_gate
from kubesched.explain.report import PodExplanation
from kubesched.explain.unknown import (
    always_needed,
    needed_kinds,
    rejecting_plugins,
    with_unknown,
)
from kubesched.inputs.errors import UserError
from kubesched.scheduler.sampling import feasible_nodes_to_find
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo, scheduler_name_of

_FINISHED: Final = ("Succeeded", "Failed")


def why_pod(cluster: ClusterState, info: PodInfo) -> WhyReport:
    """Answer why a pod is pending, or why it is not decided at all."""
    schedulers = list(cluster.profiles)
    state = state_of(info.pod, schedulers)
    if state is not None:
        return why_undecided(info.pod, state, schedulers)
    return why(ChangeTrial(cluster, info.pod), explain_pod(cluster, info, all_filters=True))


def check_scheduler(pod: Pod, cluster: ClusterState) -> None:
    """Raise UserError if a pod is for a scheduler that is not configured."""
    names = list(cluster.profiles)
    name = scheduler_name_of(pod)
    if name not in names:
        raise UserError(
            f"pod {PodInfo(pod).key}: spec.schedulerName is {name}, for which the "
            f"configuration has no profile; --profile {names[0]} asks that one instead"
        )


def explain_pod(cluster: ClusterState, info: PodInfo, *, all_filters: bool) -> PodExplanation:
    """Explain what is decided for a pending pod of a cluster."""
    profile = cluster.profile_of(info)
    assert profile is not None, "checked before"
    snapshot = cluster.snapshot()
    needed = needed_kinds(profile, info, snapshot)
    held = cluster.pre_enqueue(info)
    if not held.is_success:
        report = explain_gate(profile, info, held, len(snapshot.nodes))
        return with_unknown(report, {held.plugin}, needed, always_needed(info, snapshot))
    trace = Trace(all_filters=all_filters)
    decision = cluster.schedule_one(info, trace)
    report = explain_decision(profile, snapshot, trace, decision)
    return with_unknown(report, rejecting_plugins(decision), needed, always_needed(info, snapshot))


def notes_on(pod: Pod) -> Iterable[str]:
    """Yield what is special about explaining a pod as it is."""
    on = pod.spec.node_name
    if pod.status.phase in _FINISHED:
        yield f"The pod has finished ({pod.status.phase}); this is what would happen to it now."
    elif on:
        yield f"The pod is on {on}; this is how it would be placed again, without it there."
    if pod.metadata.deletion_timestamp is not None:
        yield "The pod is being deleted; a live scheduler would leave it alone."


def sampling_notes(report: PodExplanation, configuration: Configuration) -> Iterable[str]:
    """Yield a note if the configuration would end the search for nodes early."""
    own = next(
        profile.percentage_of_nodes_to_score
        for profile in configuration.profiles
        if profile.scheduler_name == report.scheduler_name
    )
    percentage = configuration.percentage_of_nodes_to_score if own is None else own
    limit = feasible_nodes_to_find(report.node_count, percentage)
    if report.feasible_count > limit:
        yield (
            f"With percentageOfNodesToScore {percentage} the search ends after {limit} nodes that "
            "fit, and takes the best of those; here all nodes were looked at."
        )
