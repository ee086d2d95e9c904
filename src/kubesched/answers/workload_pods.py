"""The workloads of manifests, the pods that their controllers create, and the owners of pods.

A workload may lack pods because of a quota, a limit range or another admission. Its condition
ReplicaFailure and its events FailedCreate say so, if the files hold them.

Upstream: pkg/controller/{deployment,replicaset,replication,statefulset,daemon,job,cronjob} (v1.36)
Rejects:  manifests without a workload, and workloads that would make an answer wrong.
Differs:  all pods of a StatefulSet are created at once; a CronJob stands for one run; nothing is
          rolled out: existing pods stay as they are.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.apps import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetSpec,
)
from kubesched.api.codec import Loaded, Skipped, Source, objects_in
from kubesched.api.conditions import find_condition
from kubesched.api.core import CoreEvent, Node, Pod, PodSpec, PodTemplateSpec, ReplicationController
from kubesched.api.decode import STANDARD_INPUT, load, load_bytes
from kubesched.api.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from kubesched.api.scheme import kind_of
from kubesched.api.volume import PersistentVolumeClaim
from kubesched.api.well_known import SELECTED_NODE
from kubesched.cluster.controllers.controller import is_active, pod_of, with_owner
from kubesched.cluster.controllers.daemon_sets import daemons_of
from kubesched.cluster.controllers.deployments import current_replica_set
from kubesched.cluster.controllers.jobs import indexed_pod, job_of
from kubesched.cluster.controllers.stateful_sets import claims_of, pod_at
from kubesched.cluster.eviction import is_mirror
from kubesched.cluster.server import Plain
from kubesched.explain.sentences import count, names
from kubesched.inputs.completed_input import completed, not_read, on_runtime_classes, unknown_fields
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import distinct_objects, pending_again, with_scheduler_name
from kubesched.inputs.pod_names import belongs_to, find_pod, workload_named, workloads_of
from kubesched.simulator.object_server import TOPOLOGY_LABELS
from kubesched.simulator.simulated_api import plain_workload
from kubesched.simulator.soundness import spec_errors
from kubesched.snapshot.pod_info import PodInfo

_JOB_LABELS: Final = {
    "name": ("batch.kubernetes.io/job-name", "job-name"),
    "uid": ("batch.kubernetes.io/controller-uid", "controller-uid"),
}
_ONE_RUN: Final = "1"
_WORKLOADS: Final = (
    "Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, ReplicaSets, ReplicationControllers or "
    "Pods"
)
_BUILT_IN: Final = ".k8s.io"
_LIMITS: Final = ("v1/LimitRange", "v1/ResourceQuota")

Scaled: TypeAlias = Deployment | ReplicaSet | StatefulSet | ReplicationController | Job | CronJob
"""Workloads with a number of pods."""
Workload: TypeAlias = Scaled | DaemonSet | Pod
_Owner: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job
"""Workloads that control pods, directly or through ReplicaSets."""
_Between = TypeVar("_Between", ReplicaSet, Job)


class NewPods(NamedTuple):
    """The pods that a workload's controller creates, and their claims and owners.

    Owners are ReplicaSets and Jobs between the workload and its pods; StatefulSets have claims.
    """

    owners: list[ReplicaSet | Job]
    claims: list[PersistentVolumeClaim]
    pods: list[Pod]


def replicas_of(item: Workload) -> int:
    """Return the replicas of a workload; 0 for a DaemonSet, which has a pod per node."""
    match item:
        case DaemonSet():
            return 0
        case Pod():
            return 1
        case Job():
            wanted = 1 if item.spec.parallelism is None else item.spec.parallelism
            return wanted if item.spec.completions is None else min(wanted, item.spec.completions)
        case CronJob():
            return replicas_of(Job(spec=item.spec.job_template.spec))
        case _:
            return 1 if item.spec.replicas is None else item.spec.replicas


def left_of(job: Job, active: int, succeeded: int) -> int:
    """Return how many pods a Job has at a time once some have succeeded."""
    if job.spec.completions is None:
        # One success means that the work is done: no more pods are created.
        return min(replicas_of(job), active) if succeeded else replicas_of(job)
    return max(min(replicas_of(job), job.spec.completions - succeeded), 0)


def owns(item: Workload, pod: Pod, replica_sets: Container[str] = ()) -> bool:
    """Return whether a pod of the same namespace counts as a pod of a workload.

    `replica_sets` are the names of those that a Deployment owns.
    """
    owner = controller_of(pod.metadata)
    if not is_active(pod):
        return False
    if owner is None:
        # It adopts a pod with a name that it would use, and cannot create another one.
        name, _, ordinal = pod.metadata.name.rpartition("-")
        is_its_name = name == item.metadata.name and ordinal.isdecimal()
        return isinstance(item, StatefulSet) and is_its_name
    if belongs_to(pod, type(item).__name__, item.metadata.name):
        return True
    return owner.kind == "ReplicaSet" and owner.name in replica_sets


def replica_sets_of(item: Workload, replica_sets: Iterable[ReplicaSet]) -> frozenset[str]:
    """Return the names of the ReplicaSets of a Deployment; none for another workload."""
    namespace, own = item.metadata.namespace, (type(item).__name__, item.metadata.name)
    return frozenset(
        one.metadata.name
        for one in replica_sets
        if one.metadata.namespace == namespace
        and (owner := controller_of(one.metadata)) is not None
        and (owner.kind, owner.name) == own
    )


def new_pods(
    item: Workload, number: int, taken: Iterable[str] = (), nodes: Iterable[Node] = ()
) -> NewPods:
    """Return further pods of a workload, whose uid names it as their owner.

    `taken` are the names of the pods that it has. For a DaemonSet they are the nodes that have one;
    then `nodes` are all nodes, and `number` is not read.
    """
    if isinstance(item, Pod):
        return NewPods([], [], _copies(item, number, frozenset(taken)))
    plain = _plain(item)
    between: list[ReplicaSet | Job] = []
    match item:
        case DaemonSet():
            found = daemons_of(plain, nodes).items()
            used = frozenset(taken)
            return NewPods([], [], [_owned(plain, pod) for node, pod in found if node not in used])
        case StatefulSet():
            return _stateful(plain, number, frozenset(taken))
        case Deployment():
            replica_set = current_replica_set(plain)
            replica_set["spec"]["replicas"] = replicas_of(item)
            between = [_between(plain, replica_set, ReplicaSet)]
        case CronJob():
            between = [_between(plain, job_of(plain, f"{item.metadata.name}-{_ONE_RUN}"), Job)]
    owner = _plain(between[0]) if between else plain
    template, metadata = owner["spec"]["template"], owner["metadata"]
    if owner["kind"] == "Job":
        named = {label: metadata[of] for of, labels in _JOB_LABELS.items() for label in labels}
        own = template.setdefault("metadata", {})
        own["labels"] = {**own.get("labels", {}), **named}
    if owner["spec"].get("completionMode") == "Indexed":
        prefix = f"{metadata['name']}-"
        indexes = {name.removeprefix(prefix).partition("-")[0] for name in taken}
        free = (at for at in itertools.count() if str(at) not in indexes)
        pods = [indexed_pod(owner, at, 0) for at in itertools.islice(free, number)]
        return NewPods(between, [], [_owned(owner, pod) for pod in pods])
    return NewPods(between, [], [_owned(owner, pod_of(template, metadata["name"]))] * number)


def _copies(pod: Pod, number: int, taken: frozenset[str]) -> list[Pod]:
    """Return the pod itself, unless it is there, then copies with generated names."""
    metadata = replace(pod.metadata, name="", uid="", generate_name=f"{pod.metadata.name}-")
    first = [] if pod.metadata.name in taken else [pod]
    return [*first, *[replace(pod, metadata=metadata)] * number][:number]


def _stateful(owner: Plain, number: int, taken: frozenset[str]) -> NewPods:
    name, start = owner["metadata"]["name"], owner["spec"].get("ordinals", {}).get("start", 0)
    missing = itertools.islice(
        (at for at in itertools.count(start) if f"{name}-{at}" not in taken), number
    )
    new = NewPods([], [], [])
    for at in missing:
        found = claims_of(owner, at)
        new.claims.extend(msgspec.convert(claim, PersistentVolumeClaim) for claim in found)
        new.pods.append(_owned(owner, pod_at(owner, at)))
    return new


def stateful_set_of(pods: Iterable[Pod], claims: Iterable[PersistentVolumeClaim]) -> StatefulSet:
    """Return the StatefulSet that an input lacks, as its pods and their claims show it."""
    first = min(pods, key=ordinal_of)
    metadata, owner = first.metadata, controller_of(first.metadata)
    assert owner is not None, "the pods belong to a StatefulSet"
    own = {f"{volume.name}-{metadata.name}": volume.name for volume in first.spec.volumes}
    templates = tuple(
        replace(
            claim,
            metadata=replace(
                claim.metadata,
                name=own[claim.metadata.name],
                # Otherwise all new pods would have to go to the node of the first one.
                annotations={
                    key: text
                    for key, text in claim.metadata.annotations.items()
                    if key != SELECTED_NODE
                },
            ),
            spec=replace(claim.spec, volume_name=""),
        )
        for claim in claims
        if claim.metadata.namespace == metadata.namespace and claim.metadata.name in own
    )
    template = PodTemplateSpec(metadata=metadata, spec=replace(first.spec, node_name=""))
    start = StatefulSetOrdinals(start=ordinal_of(first))
    return StatefulSet(
        metadata=ObjectMeta(name=owner.name, namespace=metadata.namespace, uid=owner.uid),
        spec=StatefulSetSpec(template=template, ordinals=start, volume_claim_templates=templates),
    )


def ordinal_of(pod: Pod) -> int:
    """Return the number at the end of a pod's name, -1 if there is none."""
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isdecimal() else -1


def _plain(item: Scaled | DaemonSet) -> Plain:
    """Return a workload as plain values; one that exists only in a file gets a uid."""
    plain = plain_workload(item)
    metadata = plain["metadata"]
    return {**plain, "metadata": {"uid": f"{plain['kind']}/{metadata['name']}", **metadata}}


def _between(owner: Plain, plain: Plain, type_: type[_Between]) -> _Between:
    """Return the ReplicaSet or Job that a workload's controller creates."""
    metadata = plain["metadata"]
    uid = f"{owner['metadata']['uid']}/{metadata['name']}"
    kind = kind_of(type_)
    whole = {**plain, "apiVersion": kind.api_version, "kind": kind.kind}
    return msgspec.convert(
        with_owner(owner, {**whole, "metadata": {**metadata, "uid": uid}}), type_
    )


def _owned(owner: Plain, pod: Plain) -> Pod:
    return replace(msgspec.convert(with_owner(owner, pod), Pod), api_version="v1", kind="Pod")


def replacement_of(pod: Pod) -> Pod | None:
    """Return the pod that a controller creates after this one; None without a controller."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind == "Node" or not is_active(pod):
        return None
    metadata = pod.metadata
    keeps_name = owner.kind == "StatefulSet"
    kept = ObjectMeta(
        name=metadata.name if keeps_name else "",
        generate_name="" if keeps_name else metadata.generate_name or f"{owner.name}-",
        namespace=metadata.namespace,
        labels={key: text for key, text in metadata.labels.items() if key not in TOPOLOGY_LABELS},
        annotations=metadata.annotations,
        owner_references=metadata.owner_references,
    )
    spec = replace(pod.spec, node_name="")
    return Pod(api_version="v1", kind="Pod", metadata=kept, spec=spec)


def is_daemon(pod: Pod) -> bool:
    """Whether a pod belongs to its node: a DaemonSet's pod, or a static one."""
    owner = controller_of(pod.metadata)
    return is_mirror(pod) or (owner is not None and owner.kind in ("DaemonSet", "Node"))


# Owners of pods.

_BETWEEN: Final = ("ReplicaSet", "Job")
"""The kinds that other workloads create between themselves and their pods."""


class PodOwner(NamedTuple):
    """The topmost owner of a pod, or the pod if it has none; nodes own static pods."""

    namespace: str
    name: str
    kind: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


class Owners:
    """The owners of a cluster's pods."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        """Read the ReplicaSets and Jobs among the objects; others are ignored."""
        self._above: dict[PodOwner, OwnerReference | None] = {}
        for item in objects:
            if isinstance(item, ReplicaSet | Job):
                metadata = item.metadata
                key = PodOwner(metadata.namespace, metadata.name, type(item).__name__)
                self._above[key] = controller_of(metadata)

    def of(self, info: PodInfo) -> PodOwner:
        """Return the topmost known owner of a pod."""
        controller = info.template.controller
        if controller is None:
            return PodOwner(info.namespace, info.name, "Pod")
        if controller.kind == "Node":
            return PodOwner("", controller.name, controller.kind)
        owner = PodOwner(info.namespace, controller.name, controller.kind)
        if owner.kind not in _BETWEEN:
            return owner
        if owner in self._above:
            above = self._above[owner]
            return owner if above is None else PodOwner(info.namespace, above.name, above.kind)
        # The input has no ReplicaSets.
        *_, (kind, name) = workloads_of(info.pod)
        return PodOwner(info.namespace, name, kind)


# Workloads of manifests.


def read_manifests(
    manifests: Sequence[Path | Mapping[str, Any]], namespace: str, *, needs_workload: bool = True
) -> tuple[list[KubeObject], list[str]]:
    """Return the objects of manifests without those that workloads create, and warnings.

    Objects that name no namespace get the given one. Raises DecodeError, and UserError if an object
    is wrong, or there is no workload where one is needed.
    """
    skipped = Skipped()
    files = [one for one in manifests if isinstance(one, Path)]
    objects = [one for one in manifests if not isinstance(one, Path)]
    stdin = sys.stdin.buffer.read() if Path(STANDARD_INPUT) in files else b""
    loaded: list[Loaded] = []
    for file in files:
        if str(file) == STANDARD_INPUT:
            loaded += load_bytes(stdin, STANDARD_INPUT, skipped, namespace=namespace)
        else:
            loaded += load([file], skipped, namespace=namespace)
    loaded += decoded(objects, skipped, namespace)
    items = distinct_objects(loaded)
    errors = [error for found in loaded for error in _errors_of(found)]
    if errors:
        raise UserError(*errors)
    # Pods and ReplicaSets of a workload are created again.
    own = [
        pending_again(item) if isinstance(item, Pod) else item
        for item in items
        if controller_of(item.metadata) is None
    ]
    if needs_workload and not any(isinstance(item, Workload) for item in own):
        where = names([str(Source(str(file), 0)) for file in files] or ["manifests"])
        owners = [controller_of(item.metadata) for item in items if isinstance(item, Workload)]
        if (owner := next(filter(None, owners), None)) is not None:
            raise UserError(
                f"{where}: {owner.kind} {owner.name} creates what is in it; name a file with that "
                "workload, or with the one that creates it"
            )
        custom = _custom_kinds(skipped)
        which = f" that is known, only {names(custom)}" if custom else ""
        raise UserError(f"{where}: no workload in it{which}; name files with {_WORKLOADS}")
    specs = (
        item.spec if isinstance(item, Pod) else _template(item)[1]
        for item in own
        if isinstance(item, Workload)
    )
    warnings = [*unknown_fields(files, stdin), *not_read(own, skipped), *_limits(skipped)]
    return own, [*warnings, *on_runtime_classes(specs)]


def _limits(skipped: Skipped) -> Iterator[str]:
    """Yield warnings about skipped objects that limit or raise the number of pods."""
    if custom := _custom_kinds(skipped):
        yield f"not read: {names(custom)}; pods that their controllers may create are not counted"
    found = [name.partition("/")[2] for name in _LIMITS if skipped[name]]
    if found:
        yield f"not read: {names(found)}, which may keep pods from being created"
    if any(name.endswith("/HorizontalPodAutoscaler") for name in skipped):
        yield "not read: HorizontalPodAutoscaler, which may want more pods; give their number"


def _custom_kinds(skipped: Skipped) -> list[str]:
    """Return the kinds of custom resources."""
    named = (name.split("/") for name in skipped)
    found = ((parts[0], parts[-1]) for parts in named if "." in parts[0])
    return sorted({kind for group, kind in found if not group.endswith(_BUILT_IN)})


def decoded(
    objects: Iterable[Mapping[str, Any]],
    skipped: Skipped,
    namespace: str = "default",
    name: str = "objects",
) -> Iterator[Loaded]:
    """Yield objects given as Kubernetes' JSON, as `load` does; errors call them `name[NUMBER]`.

    Raises DecodeError if an object cannot be decoded, and UserError if `objects` is one object
    instead of a list of them; a List, as kubectl prints it, may be in the list.
    """
    if isinstance(objects, Mapping):
        raise UserError(f"{name}: expected a list of objects, not one object; put it into [ ]")
    for number, item in enumerate(objects):
        place = Source(f"{name}[{number}]", 0)
        yield from objects_in(dict(item), place, skipped, namespace=namespace)


def more_pods(
    pods: Iterable[Mapping[str, Any]], objects: Iterable[KubeObject], profile: str | None
) -> list[Pod]:
    """Return pending pods given as Kubernetes' JSON, for a cluster of `objects`.

    `profile` is the name of the scheduler that places them; None for each pod's own. Raises
    DecodeError or UserError if one is invalid, or no pod.
    """
    items = distinct_objects(decoded(pods, Skipped()))
    strange = next((item for item in items if not isinstance(item, Pod)), None)
    if strange is not None:
        raise UserError(f"{type(strange).__name__} {strange.metadata.name}: it is not a Pod")
    others = [item for item in objects if not isinstance(item, Pod)]
    found, _ = completed([*others, *items], Skipped())
    new = [item for item in found if isinstance(item, Pod)]
    return [with_scheduler_name(pending_again(pod), profile) for pod in new]


def _errors_of(found: Loaded) -> Iterator[str]:
    """Yield the field errors of a workload that would make an answer wrong."""
    item = found.object
    if not isinstance(item, Workload) or isinstance(item, Pod):
        return
    name = f"{found.source}: {type(item).__name__} {item.metadata.key}"
    if replicas_of(item) < 0:
        yield f"{name}: the number of pods is {replicas_of(item)}; write 0 or more"
    path, spec = _template(item)
    if not spec.containers:
        yield f"{name}: {path}.containers: it has none; a pod needs a container"
    for error in spec_errors(spec, path):
        yield f"{name}: {error}"


def _template(item: Scaled | DaemonSet) -> tuple[str, PodSpec]:
    if isinstance(item, CronJob):
        return "spec.jobTemplate.spec.template.spec", item.spec.job_template.spec.template.spec
    template = item.spec.template
    return "spec.template.spec", PodSpec() if template is None else template.spec


# Pods that were never created.


class LackedPodsError(UserError):
    """A workload has no pods, because none was ever created; `sentence` says why."""

    def __init__(self, text: str, sentence: str) -> None:
        super().__init__(f"{text}: {sentence}")
        self.sentence = sentence


def find_pod_among(
    objects: Sequence[KubeObject], text: str, preferred: str, *, only: bool
) -> tuple[Pod, tuple[str, ...]]:
    """Return the named pod, and notes on it; one may say why its workload lacks others.

    The other arguments are as for `find_pod`, which looks among the pods of `objects`. Raises
    LackedPodsError for a workload without pods, and UserError as `find_pod` does.
    """
    item = _named_workload(text, objects, preferred, only=only)
    lack, has_any = ("", True) if item is None else _lack(item, objects)
    if not has_any:
        raise LackedPodsError(text, lack)
    pods = [one for one in objects if isinstance(one, Pod)]
    stored = ((type(one).__name__, one.metadata.name) for one in objects if isinstance(one, _Owner))
    found, notes = find_pod(text, pods, preferred, only=only, stored=stored)
    return found, (*notes, lack) if lack else notes


def _named_workload(
    text: str, objects: Sequence[KubeObject], preferred: str, *, only: bool
) -> _Owner | None:
    """Return the named workload; None if there is none, or several namespaces have one."""
    named = workload_named(text)
    found = [
        item
        for item in objects
        if isinstance(item, _Owner)
        and (type(item).__name__, item.metadata.name) == named
        and (not only or item.metadata.namespace == preferred)
    ]
    found = [item for item in found if item.metadata.namespace == preferred] or found
    return found[0] if len(found) == 1 else None


def _lack(item: _Owner, objects: Sequence[KubeObject]) -> tuple[str, bool]:
    """Return why a workload lacks pods, "" if it has its pods; and whether it has any."""
    kind, metadata = type(item).__name__, item.metadata
    pods = [
        one
        for one in objects
        if isinstance(one, Pod) and one.metadata.namespace == metadata.namespace
    ]
    sets = replica_sets_of(item, (one for one in objects if isinstance(one, ReplicaSet)))
    has = sum(owns(item, one, sets) for one in pods)
    has_any = bool(has) or any(belongs_to(one, kind, metadata.name) for one in pods)
    wanted = replicas_of(item)
    if isinstance(item, DaemonSet):
        wanted = item.status.desired_number_scheduled
    reason = _refusal(item, objects)
    if has_any and (has >= wanted or not reason or isinstance(item, Job)):
        return "", has_any
    if not wanted and not isinstance(item, DaemonSet):
        return f"{kind} {metadata.key} asks for no pods.", has_any
    describe = f"`kubectl describe {kind.lower()} {metadata.name} -n {metadata.namespace}`"
    reason = reason or f"the input does not tell why; {describe} shows its events"
    number = f"{has} of {count(wanted, 'pod')}" if wanted else "no pods"
    return f"{kind} {metadata.key} has {number}: {reason}.", has_any


def _refusal(item: _Owner, objects: Sequence[KubeObject]) -> str:
    """Return the message of the API server that refuses the pods; "" if it is not known."""
    if isinstance(item, Deployment | ReplicaSet | ReplicationController):
        condition = find_condition(item.status.conditions, "ReplicaFailure")
        if condition is not None and condition.status == "True":
            return condition.message.rstrip(".")
    kind, metadata = type(item).__name__, item.metadata
    events = [
        one
        for one in objects
        if isinstance(one, CoreEvent)
        and one.reason == "FailedCreate"
        and (one.involved_object.kind, one.involved_object.name) == (kind, metadata.name)
        and one.involved_object.namespace == metadata.namespace
    ]
    newest = max(events, key=lambda one: one.last_timestamp or one.event_time or "", default=None)
    # "create Pod web-0 in StatefulSet web failed error: ..." names what is known.
    return newest.message.rpartition(" failed error: ")[2].rstrip(".") if newest else ""
