"""A pod that is placed together with its gang, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.api.scheduling import PodGroup
from kubesched.explain.sentences import count, names
from kubesched.framework.pod_groups import pod_group_name_of
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.simulation import SimulationEnd
from kubesched.snapshot.pod_info import PodInfo


def gang_of(cluster: ClusterState, info: PodInfo) -> PodGroup | None:
    """Return the group of a pod that is placed together with others, or not at all."""
    name, profile = pod_group_name_of(info.pod), cluster.profile_of(info)
    if not name or profile is None or "GangScheduling" not in profile.plugins:
        return None
    group = cluster.cache.objects.get(PodGroup, name, info.namespace)
    return None if group is None or group.spec.scheduling_policy.gang is None else group


def _rule(group: PodGroup) -> str:
    gang = group.spec.scheduling_policy.gang
    assert gang is not None, "checked before"
    pods = count(gang.min_count, "pod")
    return f"{pods} of PodGroup {group.metadata.name} must fit together"


def gang_note(group: PodGroup) -> str:
    """Return the note of an answer about one pod of a gang."""
    alone = "this is about the pod alone, and `kubesched simulate` places the gang."
    return f"At least {_rule(group)}; {alone}"


class PlacedWithGang(NamedTuple):
    """What becomes of a pod that fits alone if it is placed with its gang.

    Attributes:
        fits: Whether the gang fits.
        sentence: What becomes of the pod.
        notes: Notes on the pod alone, reworded for its gang.
    """

    fits: bool
    sentence: str
    notes: tuple[str, ...]


def placed_with_gang(
    cluster: ClusterState,
    pod: Pod,
    notes: Iterable[str],
    objects: Iterable[KubeObject],
    simulate: Callable[[Iterable[KubeObject]], SimulationEnd],
) -> PlacedWithGang | None:
    """Place a pod that fits alone with its gang; return None if it has none.

    `notes` are those of the answer about the pod alone, `objects` those of the cluster. `simulate`
    places the pending pods among objects.
    """
    info = PodInfo(pod)
    group = gang_of(cluster, info)
    if group is None:
        return None
    alone = gang_note(group)
    kept = tuple(note for note in notes if note != alone)
    placed = simulate(_without_other_pending_pods(objects, group)).report
    node = next((one.node for one in placed.placements if one.pod == info.key), "")
    if node:
        evicted = [one.pod for one in placed.evictions]
        cost = [f"The gang would evict {names(evicted)}."] if evicted else []
        sentence = f"Pod {info.key} fits together with its gang, and would go to {node}."
        return PlacedWithGang(True, sentence, (*kept, *cost))
    rejected = [one for one in placed.unplaced if one.plugins]
    sentence = f"Pod {info.key} fits alone, but its gang does not: at least {_rule(group)}"
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
