"""The work of `kubesched explain`: load the cluster, find the pod, schedule it with a trace.

Rejects:  unknown names of pods, nodes and schedulers; suggests similar ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubesched.answers.explaining import explain_pod
from kubesched.api.core import Node, Pod
from kubesched.cli.errors import write_warnings
from kubesched.config.types import DEFAULT_SCHEDULER_NAME, Configuration
from kubesched.explain.report import PodExplanation
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.completed_input import FINISHED
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import (
    load_scheduler,
    new_cluster,
    pending_again,
    with_scheduler_name,
)
from kubesched.inputs.near_names import near_names
from kubesched.inputs.pod_names import find_pod
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.scheduler.sampling import feasible_nodes_to_find
from kubesched.simulator.exhaustive import exhaustive
from kubesched.snapshot.pod_info import PodInfo


def ask(
    options: SchedulerOptions,
    pod_name: str,
    source: ClusterSource,
    namespace: str = "",
    *,
    all_filters: bool = False,
    nodes: Sequence[str] = (),
) -> PodExplanation:
    """Explain what the scheduler decides for a pod.

    Args:
        options: Which scheduler.
        pod_name: As `find_pod` takes it.
        source: The cluster.
        namespace: The namespace of names without one; "" for that of the live context, or any.
        all_filters: Run every filter for every node.
        nodes: Node names that must exist.

    Raises:
        UserError: A pod, node or scheduler does not exist.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """
    scheduler = load_scheduler(options)
    objects, warnings, complete, _, context = read_cluster(source)
    write_warnings(warnings)
    pods = [item for item in objects if isinstance(item, Pod)]
    found, chosen = find_pod(pod_name, pods, namespace or context, only=bool(namespace))
    _check_nodes(nodes, [item.metadata.name for item in objects if isinstance(item, Node)])
    pod = with_scheduler_name(pending_again(found), options.profile)
    _check_scheduler(pod, scheduler.configuration)
    looked_at = scheduler._replace(configuration=exhaustive(scheduler.configuration))
    cluster = new_cluster(looked_at, options, remembers=False)
    cluster.load(pod if item is found else item for item in objects)
    cluster.declare_complete(complete)
    report = explain_pod(cluster, cluster.pending[PodInfo(pod).uid], all_filters=all_filters)
    cluster.check_plugins()
    notes = [*chosen, *_notes(found), *_sampling_notes(report, scheduler.configuration)]
    return msgspec.structs.replace(report, bound_to=found.spec.node_name, notes=tuple(notes))


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
            f"pod {PodInfo(pod).key}: spec.schedulerName is {name}, for which the configuration "
            f"has no profile; --profile {names[0]} asks that one instead"
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
