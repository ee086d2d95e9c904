"""Explains the decision for a pending pod of a cluster."""

from __future__ import annotations

from kubesched.explain.explain import explain_decision, explain_gate
from kubesched.explain.report import PodExplanation
from kubesched.explain.unknown import (
    always_needed,
    needed_kinds,
    rejecting_plugins,
    with_unknown,
)
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo


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
