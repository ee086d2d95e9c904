"""Explanations of the decision for one pod of a cluster, and what becomes of it with its gang.

Reads:    the pod, and the decision of the scheduler's plugins for it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from kubesched.answers.pod_changes import requests_of
from kubesched.api.core import FINISHED, Pod
from kubesched.api.meta import KubeObject
from kubesched.api.scheduling import PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from kubesched.config.types import Configuration
from kubesched.explain.explain import explain_decision, explain_gate
from kubesched.explain.report import PodExplanation, PodOutcome
from kubesched.explain.sentences import count, is_rejected_everywhere, names
from kubesched.explain.unknown import rejecting_plugins, with_known_rejections, with_unknown
from kubesched.framework.dra.devices import resources_without_node
from kubesched.framework.plugin_error import is_in_tree
from kubesched.framework.pod_groups import pod_group_name_of, pod_group_of
from kubesched.inputs.errors import UserError
from kubesched.plugins.volumes.claims import has_claims
from kubesched.scheduler.sampling import feasible_nodes_to_find
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.simulation import SimulationEnd
from kubesched.snapshot.pod_info import PodInfo, scheduler_name_of
from kubesched.snapshot.snapshot import Snapshot


def check_scheduler(pod: Pod, cluster: ClusterState) -> None:
    """Raise UserError if a pod is for a scheduler that is not configured."""
    known = list(cluster.profiles)
    name = scheduler_name_of(pod)
    if name not in known:
        raise UserError(
            f"pod {PodInfo(pod).key}: spec.schedulerName is {name}, for which the "
            f"configuration has no profile; --profile {known[0]} asks that one instead"
        )


def explain_pod(cluster: ClusterState, info: PodInfo, *, all_filters: bool) -> PodExplanation:
    """Explain what is decided for a pending pod of a cluster."""
    report = _explained(cluster, info, all_filters=all_filters)
    group = group_of(cluster, info)
    if group is not None:
        report = replace(report, notes=(*report.notes, _gang_note(group)))
    if report.outcome is PodOutcome.SCHEDULABLE:
        report = replace(report, notes=(*report.notes, *_later_notes(cluster, info)))
    if report.outcome is not PodOutcome.UNKNOWN or is_rejected_everywhere(report):
        return report
    less = PodInfo(_without_devices_and_claims(info, cluster.snapshot()))
    rest = _explained(cluster, less, all_filters=all_filters)
    return with_known_rejections(report, rest.nodes)


def _later_notes(cluster: ClusterState, info: PodInfo) -> Iterator[str]:
    """Yield a note if plugins of the user's may refuse a pod after its node was chosen."""
    profile = cluster.profiles[info.scheduler_name]
    later = (*profile.reserve_plugins, *profile.permit_plugins, *profile.pre_bind_plugins)
    own = dict.fromkeys(plugin.name for plugin in later if not is_in_tree(type(plugin)))
    if own:
        who = names([*own])
        yield f"{who} may still refuse it on the chosen node; `kubesched simulate` shows whether."


def _without_devices_and_claims(info: PodInfo, snapshot: Snapshot) -> Pod:
    """Return a pod that asks for nothing that only missing claims and device classes provide.

    A node that rejects this pod rejects the one that asks for more, too.
    """
    volumes = tuple(volume for volume in info.spec.volumes if not has_claims((volume,)))
    pod = replace(info.pod, spec=replace(info.spec, resource_claims=(), volumes=volumes))
    lacking = resources_without_node(info, snapshot)
    for request in requests_of(pod):
        if request.resource in lacking:
            pod = request.put(pod, "0")
    return pod


def _explained(cluster: ClusterState, info: PodInfo, *, all_filters: bool) -> PodExplanation:
    profile = cluster.profiles[info.scheduler_name]
    snapshot = cluster.snapshot()
    held = cluster.pre_enqueue(info)
    if not held.is_success:
        report = explain_gate(profile, info, held, len(snapshot.nodes))
        return with_unknown(report, profile, info, snapshot, {held.plugin})
    trace = Trace(all_filters=all_filters)
    decision = cluster.schedule_one(info, trace)
    report = explain_decision(profile, snapshot, trace, decision)
    return with_unknown(report, profile, info, snapshot, rejecting_plugins(decision))


def notes_on(pod: Pod) -> Iterable[str]:
    """Yield notes about a pod that is not simply pending."""
    on = pod.spec.node_name
    if pod.status.phase in FINISHED:
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


def extender_warnings(configuration: Configuration) -> Iterable[str]:
    """Yield a warning about the extenders of a configuration: answers are without them."""
    if urls := [extender.url_prefix for extender in configuration.extenders]:
        yield f"not called: the extenders {names(urls)}, which may refuse or prefer nodes"


# Gangs: pods that are placed together, or not at all.


def group_of(cluster: ClusterState, info: PodInfo) -> PodGroup | None:
    """Return the group of a pod on which its place depends; None if it is placed for itself.

    A gang is placed together or not at all; topology constraints keep a group in one domain. The
    group has only those that the scheduler reads.
    """
    group, profile = pod_group_of(info, cluster.cache.objects), cluster.profile_of(info)
    if group is None or profile is None:
        return None
    spec = group.spec
    if "GangScheduling" not in profile.plugins:
        spec = replace(spec, scheduling_policy=PodGroupSchedulingPolicy())
    if "TopologyPlacementGenerator" not in profile.plugins:
        spec = replace(spec, scheduling_constraints=None)
    depends = spec.scheduling_policy.gang is not None or topology_key_of(spec)
    return replace(group, spec=spec) if depends else None


def topology_key_of(spec: PodGroupSpec) -> str:
    """Return the node label that is the same for all pods of a group; "" if there is none."""
    constraints = spec.scheduling_constraints
    return constraints.topology[0].key if constraints and constraints.topology else ""


def _rule(group: PodGroup) -> str:
    gang, key = group.spec.scheduling_policy.gang, topology_key_of(group.spec)
    pods = "pods" if gang is None else f"at least {count(gang.min_count, 'pod')}"
    together = "" if gang is None else " together"
    where = f" where {key} is the same" if key else ""
    return f"{pods} of PodGroup {group.metadata.name} must fit{together}{where}"


def _gang_note(group: PodGroup) -> str:
    """Return the note of an answer about one pod of a group."""
    rule = _rule(group)
    alone = f"this is about the pod alone, and `kubesched simulate` places the {_word(group)}."
    return f"{rule[0].upper()}{rule[1:]}; {alone}"


def _word(group: PodGroup) -> str:
    return "group" if group.spec.scheduling_policy.gang is None else "gang"


class PlacedWithGang(NamedTuple):
    """What becomes of a pod that fits alone if it is placed with its gang.

    `fits` and `evicts` are about the gang; `notes` are those on the pod alone, reworded.
    """

    fits: bool
    sentence: str
    notes: tuple[str, ...]
    evicts: bool = False


def placed_with_gang(
    cluster: ClusterState,
    pod: Pod,
    notes: Iterable[str],
    objects: Iterable[KubeObject],
    simulate: Callable[[Iterable[KubeObject]], SimulationEnd],
) -> PlacedWithGang | None:
    """Place a pod with its gang; return None if it has none.

    The sentence is about a pod that fits alone, unless the gang fits.

    `notes` are those of the answer about the pod alone, `objects` those of the cluster. `simulate`
    places the pending pods among objects.
    """
    info = PodInfo(pod)
    group = group_of(cluster, info)
    if group is None:
        return None
    alone, word = _gang_note(group), _word(group)
    kept = tuple(note for note in notes if note != alone)
    placed = simulate(_without_other_pending_pods(objects, group)).report
    node = next((one.node for one in placed.placements if one.pod == info.key), "")
    if node:
        evicted = [one.pod for one in placed.evictions]
        cost = [f"The {word} would evict {names(evicted)}."] if evicted else []
        sentence = f"Pod {info.key} fits together with its {word}, and would go to {node}."
        return PlacedWithGang(True, sentence, (*kept, *cost), bool(evicted))
    rejected = [one for one in placed.unplaced if one.plugins]
    sentence = f"Pod {info.key} fits alone, but its {word} does not: {_rule(group)}"
    if rejected:
        # The others found a node, and had to leave it again.
        pending = len(placed.unplaced)
        reasons = ", ".join(sorted({reason for one in rejected for reason in one.reasons}))
        sentence += f", and {pending - len(rejected)} of {pending} pending ones do ({reasons})"
    return PlacedWithGang(False, f"{sentence}.", kept)


def _without_other_pending_pods(
    objects: Iterable[KubeObject], group: PodGroup
) -> Iterator[KubeObject]:
    key = group.metadata.namespace, group.metadata.name
    for item in objects:
        if isinstance(item, Pod) and not item.spec.node_name:
            if (item.metadata.namespace, pod_group_name_of(item)) == key:
                yield item
        else:
            yield item
