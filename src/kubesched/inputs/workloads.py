"""Checks of workloads among the files: only Pods are placed, and nothing creates their pods.

A dump has workloads beside their pods, for topology spreading.

Rejects:  workloads whose pods are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubesched.api.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.api.codec import Loaded
from kubesched.api.core import Pod, ReplicationController
from kubesched.api.meta import KubeObject
from kubesched.api.requirements import SelectorError
from kubesched.api.selectors import compile_label_selector, matches_set
from kubesched.inputs.errors import UserError, first_of

_WORKLOADS: Final = (
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    ReplicationController,
    Job,
    CronJob,
)
_REMEDY: Final = (
    "only Pods are placed here; ask `kubesched fit`, or write each of its pods as a Pod with the "
    "spec of its template"
)

Key = tuple[str, str, str]
"""Namespace, kind and name."""


def collecting(loaded: Iterable[Loaded], workloads: list[Loaded]) -> Iterator[Loaded]:
    """Yield all objects, and add the workloads among them to the list."""
    for found in loaded:
        if isinstance(found.object, _WORKLOADS):
            workloads.append(found)
        yield found


def check_workloads(
    objects: Sequence[KubeObject],
    of_cluster: Sequence[Loaded],
    to_place: Sequence[Loaded] = (),
    placed: Sequence[Pod] = (),
) -> list[str]:
    """Return a warning if workloads of a dump have no pods.

    A workload without a uid is a manifest, whose pods do not exist. If the files have no pods at
    all, every workload counts as a manifest. `of_cluster` are the workloads among the cluster's
    objects; `to_place` and `placed` are the workloads and pods in the files of --pods.

    Raises:
        UserError: A manifest has no pods; one line for each.
    """
    if not of_cluster and not to_place:
        return []
    pods = [item for item in objects if isinstance(item, Pod)]
    owners = _owners(pods, objects)
    missing = [
        found
        for found in of_cluster
        if _makes_pods(found) and _key(found) not in owners and not _selects_any(found, pods)
    ]
    own_pods = _owners(placed, objects)
    refused = [found for found in to_place if _makes_pods(found) and _key(found) not in own_pods]
    refused += [found for found in missing if not pods or not found.object.metadata.uid]
    if refused:
        raise UserError(*first_of([_refusal(found) for found in refused], "workloads"))
    if not missing:
        return []
    kinds = Counter(type(found.object).__name__ for found in missing)
    listed = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    return [f"workloads without pods in the files are not expanded: {listed}"]


def _refusal(found: Loaded) -> str:
    namespace, kind, name = _key(found)
    return f"{found.source}: {kind} {namespace}/{name}: {_REMEDY}"


def _makes_pods(found: Loaded) -> bool:
    return getattr(getattr(found.object, "spec", None), "replicas", None) != 0


def _key(found: Loaded) -> Key:
    metadata = found.object.metadata
    return metadata.namespace, type(found.object).__name__, metadata.name


def _selects_any(found: Loaded, pods: Sequence[Pod]) -> bool:
    """Whether the workload's selector matches one of the pods."""
    item = found.object
    if isinstance(item, ReplicationController):
        wanted = item.spec.selector or {}
        return bool(wanted) and any(matches_set(wanted, labels) for labels in _labels(item, pods))
    selector = getattr(getattr(item, "spec", None), "selector", None)
    if selector is None:
        return False
    try:
        compiled = compile_label_selector(selector)
    except SelectorError:
        return False
    return any(map(compiled.matches, _labels(item, pods)))


def _labels(item: KubeObject, pods: Sequence[Pod]) -> Iterator[dict[str, str]]:
    namespace = item.metadata.namespace
    return (pod.metadata.labels for pod in pods if pod.metadata.namespace == namespace)


def _owners(pods: Iterable[Pod], objects: Sequence[KubeObject]) -> frozenset[Key]:
    """Return what owns one of the pods, directly or through a ReplicaSet or a Job."""
    found: dict[Key, None] = {}

    def add(item: KubeObject) -> None:
        metadata = item.metadata
        for owner in metadata.owner_references:
            found[metadata.namespace, owner.kind, owner.name] = None

    for pod in pods:
        add(pod)
    for item in objects:
        if isinstance(item, ReplicaSet | Job):
            metadata = item.metadata
            if (metadata.namespace, type(item).__name__, metadata.name) in found:
                add(item)
    return frozenset(found)
