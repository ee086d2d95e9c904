"""The work of `kubesched explain`: load the cluster, find the pod, schedule it with a trace.

Rejects:  unknown names of pods, nodes and schedulers; suggests similar ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.cli.cluster_input import read_cluster
from kubesched.cli.cluster_options import ClusterSource
from kubesched.cli.completed_input import FINISHED
from kubesched.cli.errors import UserError, write_warnings
from kubesched.cli.loading import (
    load_scheduler,
    new_cluster,
    pending_again,
    with_scheduler_name,
)
from kubesched.cli.near_names import NEAR_MAX, near_names
from kubesched.cli.options import SchedulerOptions
from kubesched.config.types import DEFAULT_SCHEDULER_NAME, Configuration
from kubesched.explain.explain import explain_decision, explain_gate
from kubesched.explain.report import PodExplanation
from kubesched.explain.unknown import (
    always_needed,
    needed_kinds,
    rejecting_plugins,
    with_unknown,
)
from kubesched.scheduler.sampling import feasible_nodes_to_find
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import Cluster
from kubesched.simulator.exhaustive import exhaustive
from kubesched.snapshot.pod_info import PodInfo


def ask(
    options: SchedulerOptions,
    pod_name: str,
    source: ClusterSource,
    *,
    all_filters: bool = False,
    nodes: Sequence[str] = (),
) -> PodExplanation:
    """Explain what the scheduler decides for a pod.

    Args:
        options: Which scheduler.
        pod_name: `[namespace/]name`.
        source: The cluster.
        all_filters: Run every filter for every node.
        nodes: Node names that must exist.

    Raises:
        UserError: A pod, node or scheduler does not exist.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """
    scheduler = load_scheduler(options)
    objects, warnings, complete, _, namespace = read_cluster(source, scheduler.feature_gates)
    write_warnings(warnings)
    found = find_pod(pod_name, [item for item in objects if isinstance(item, Pod)], namespace)
    _check_nodes(nodes, [item.metadata.name for item in objects if isinstance(item, Node)])
    pod = with_scheduler_name(pending_again(found), options.profile)
    _check_scheduler(pod, scheduler.configuration)
    looked_at = scheduler._replace(configuration=exhaustive(scheduler.configuration))
    cluster = new_cluster(looked_at, options, remembers=False)
    cluster.load(pod if item is found else item for item in objects)
    cluster.declare_complete(complete)
    report = _asked(cluster, cluster.pending[PodInfo(pod).uid], all_filters)
    cluster.check_plugins()
    notes = [*_notes(found), *_sampling_notes(report, scheduler.configuration)]
    return msgspec.structs.replace(report, bound_to=found.spec.node_name, notes=tuple(notes))


def _asked(cluster: Cluster, info: PodInfo, all_filters: bool) -> PodExplanation:
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


# The pod.


def find_pod(text: str, pods: Sequence[Pod], preferred: str = "") -> Pod:
    """Return the pod that `[namespace/]name` names.

    Args:
        text: The name.
        pods: All pods.
        preferred: The namespace to prefer if several have a pod of that name.

    Raises:
        UserError: There is none, or without a namespace there are several.
    """
    namespace, slash, name = text.rpartition("/")
    found = [
        pod
        for pod in pods
        if pod.metadata.name == name and (not slash or pod.metadata.namespace == namespace)
    ]
    if len(found) > 1:
        found = [pod for pod in found if pod.metadata.namespace == preferred] or found
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(sorted(_key(pod) for pod in found)[:NEAR_MAX])
        raise UserError(f"pod {text}: there are {len(found)} of that name; write one of {listed}")
    raise UserError(f"pod {text}: there is no such pod{_near_pods(text, pods)}")


def _near_pods(text: str, pods: Sequence[Pod]) -> str:
    if not pods:
        return "; there are no pods at all"
    keys = [_key(pod) for pod in pods]
    near = near_names(text, keys)
    if not near:
        by_name = {pod.metadata.name: _key(pod) for pod in pods}
        name = text.rpartition("/")[2]
        near = [by_name[found] for found in near_names(name, by_name)]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    waiting = [_key(pod) for pod in pods if not pod.spec.node_name]
    listed = ", ".join((waiting or keys)[:NEAR_MAX])
    return f"; there are {len(pods)} pods, among them {listed}"


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _notes(pod: Pod) -> Iterable[str]:
    on = pod.spec.node_name
    if pod.status.phase in FINISHED:
        yield f"The pod has finished ({pod.status.phase}); this is what would happen to it now."
    elif on:
        yield f"The pod is on {on}; this is how it would be placed again, without it there."
    if pod.metadata.deletion_timestamp is not None:
        yield "The pod is being deleted; a live scheduler would leave it alone."


# Checks.


def _check_nodes(wanted: Iterable[str], existing: Sequence[str]) -> None:
    known = frozenset(existing)
    missing = [name for name in wanted if name not in known]
    if missing:
        raise UserError(*(_no_such_node(name, existing) for name in missing))


def _no_such_node(name: str, existing: Sequence[str]) -> str:
    near = near_names(name, existing)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"there are {len(existing)} nodes" if existing else "there are no nodes at all"
    return f"--node {name}: there is no such node; {hint}"


def _check_scheduler(pod: Pod, configuration: Configuration) -> None:
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    names = [profile.scheduler_name for profile in configuration.profiles]
    if name not in names:
        raise UserError(
            f"pod {_key(pod)}: spec.schedulerName is {name}, for which the configuration has no "
            f"profile; --profile {names[0]} asks that one instead"
        )


def _sampling_notes(report: PodExplanation, configuration: Configuration) -> Iterable[str]:
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
