"""Controllers keep as many pods as were asked for: replica sets, daemon sets and jobs.

They hear of pods as everybody does, answer after a while, and count what they created themselves
before they hear of it.

Upstream: pkg/controller/{replicaset,daemon,job} (v1.36)
Differs:  there is one controller for all; a failed creation is not tried again by itself; a job
          may be given further runs at any time, and has no limit to parallel ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from msgspec.structs import replace

from kubesched.api.apps import DaemonSet, ReplicaSet
from kubesched.api.core import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodTemplateSpec,
    Toleration,
)
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from kubesched.api.selectors import required_node_affinity
from kubesched.api.tolerations import HARD_EFFECTS, find_untolerated
from kubesched.simulator.object_server import FINISHED, ObjectServer
from kubesched.snapshot.objects import KubernetesObject

log = logging.getLogger(__name__)

_APPS: Final = "apps/v1"

# Daemons run on nodes in trouble, too.
_DAEMON_TOLERATIONS: Final = (
    Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/pid-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule"),
)


def pod_of_template(
    template: PodTemplateSpec, name: str, namespace: str, owner: OwnerReference | None = None
) -> Pod:
    """Return a pod that is made from a template."""
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=() if owner is None else (owner,),
    )
    return Pod(api_version="v1", kind="Pod", metadata=metadata, spec=template.spec)


class _Owned:
    """The pods of one owner that count, by uid, in order of creation."""

    def __init__(self, owner: OwnerReference, namespace: str) -> None:
        self.owner = owner
        self.namespace = namespace
        self.pods: dict[str, Pod] = {}
        self.created = 0
        self.is_due = False

    def next_name(self) -> str:
        self.created += 1
        return f"{self.owner.name}-{self.created:05d}"


class _Replicas(_Owned):
    def __init__(self, owner: OwnerReference, item: ReplicaSet, replicas: int) -> None:
        super().__init__(owner, item.metadata.namespace)
        self.template = item.spec.template
        self.replicas = replicas


class _Daemons(_Owned):
    def __init__(self, owner: OwnerReference, item: DaemonSet) -> None:
        super().__init__(owner, item.metadata.namespace)
        spec = item.spec.template.spec
        tolerations = (*spec.tolerations, *_DAEMON_TOLERATIONS)
        self.template = replace(item.spec.template, spec=replace(spec, tolerations=tolerations))
        # Asked with the affinity of the template, before it is bent to one node.
        self.affinity = required_node_affinity(
            pod_of_template(self.template, "probe", self.namespace)
        )

    def should_run_on(self, node: Node) -> bool:
        """Whether the template selects a node and bears its taints."""
        return self.affinity.matches(node) and self._bears(node, HARD_EFFECTS)

    def may_stay_on(self, node: Node) -> bool:
        """Whether a pod that is there need not go: taints against newcomers do not count."""
        return self.affinity.matches(node) and self._bears(node, ("NoExecute",))

    def _bears(self, node: Node, effects: Collection[str]) -> bool:
        tolerations = self.template.spec.tolerations
        return find_untolerated(node.spec.taints, tolerations, effects) is None


class _Run:
    """One run of a job's template to its end, however many pods it takes."""

    __slots__ = ("name", "pods", "template")

    def __init__(self, name: str, template: PodTemplateSpec) -> None:
        self.name = name
        self.template = template
        self.pods = 0


class _Job(_Owned):
    """One owner for many runs: pods of one template stay pods of one template."""

    def __init__(self, owner: OwnerReference, namespace: str) -> None:
        super().__init__(owner, namespace)
        self.runs: dict[str, _Run] = {}
        self.due: list[_Run] = []


class Controllers:
    """Creates and deletes pods for their owners; is told of pods and nodes."""

    def __init__(self, server: ObjectServer, latency: Callable[[], float]) -> None:
        """Start without owners.

        Args:
            server: Where objects are.
            latency: Draws the seconds that an answer takes.
        """
        self._server = server
        self._latency = latency
        self._owned: dict[str, _Owned] = {}

    # Owners.

    def add_replica_set(self, item: ReplicaSet) -> None:
        """Keep a replica set's pods."""
        created = self._server.create(item)
        replicas = 1 if item.spec.replicas is None else item.spec.replicas
        owner = _reference(created, _APPS, "ReplicaSet")
        self._adopt(_Replicas(owner, created, replicas))

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        """Ask for another number of replicas of all replica sets of that name."""
        for owned in self._owned.values():
            if isinstance(owned, _Replicas) and (namespace, name) == (
                owned.namespace,
                owned.owner.name,
            ):
                owned.replicas = replicas
                self._reconcile_soon(owned)

    def scale_of(self, owner: OwnerReference) -> int | None:
        """Return how many pods an owner wants; None if it is none that says so."""
        owned = self._owned.get(owner.uid)
        return owned.replicas if isinstance(owned, _Replicas) else None

    def add_daemon_set(self, item: DaemonSet) -> None:
        """Keep a daemon set's pods, one per node."""
        created = self._server.create(item)
        self._adopt(_Daemons(_reference(created, _APPS, "DaemonSet"), created))

    def add_run(self, job: str, namespace: str, template: PodTemplateSpec, name: str) -> None:
        """Run a pod to its end, in another pod if it is stopped before.

        Args:
            job: The job's name; it may have any number of runs.
            namespace: Where its pods live.
            template: Of this run's pods.
            name: The beginning of their names.
        """
        uid = f"job-{namespace}-{job}"
        found = self._owned.get(uid)
        if not isinstance(found, _Job):
            owner = OwnerReference(
                api_version="batch/v1", kind="Job", name=job, uid=uid, controller=True
            )
            found = self._owned[uid] = _Job(owner, namespace)
        found.due.append(_Run(name, template))
        self._reconcile_job(found)

    def _adopt(self, owned: _Owned) -> None:
        self._owned[owned.owner.uid] = owned
        self._reconcile_soon(owned)

    # What they hear.

    def added(self, item: KubernetesObject) -> None:
        """A pod or node came."""
        if isinstance(item, Node):
            self._nodes_changed()
        elif isinstance(item, Pod):
            owned = self._owner_of(item)
            if owned is None:
                return
            if item.metadata.deletion_timestamp or item.status.phase in FINISHED:
                self._lost(owned, item)
            else:
                owned.pods[item.metadata.uid] = item

    def updated(self, old: KubernetesObject, new: KubernetesObject) -> None:
        """A pod or node changed."""
        if isinstance(old, Pod) and old.metadata.uid != new.metadata.uid:
            self.deleted(old)
        self.added(new)

    def deleted(self, item: KubernetesObject, *, is_final_state_known: bool = True) -> None:
        """A pod or node is gone."""
        if isinstance(item, Node):
            self._nodes_changed()
        elif isinstance(item, Pod) and (owned := self._owner_of(item)) is not None:
            self._lost(owned, item)

    def finished(self, pod: Pod) -> None:
        """A pod ran to its end: so did the run of its job."""
        owned = self._owner_of(pod)
        if isinstance(owned, _Job):
            owned.runs.pop(pod.metadata.uid, None)

    def _owner_of(self, pod: Pod) -> _Owned | None:
        owner = controller_of(pod.metadata)
        return None if owner is None else self._owned.get(owner.uid)

    def _lost(self, owned: _Owned, pod: Pod) -> None:
        uid = pod.metadata.uid
        if owned.pods.pop(uid, None) is None:
            return
        if isinstance(owned, _Job):
            run = owned.runs.pop(uid, None)
            if run is None:
                return
            owned.due.append(run)
        self._reconcile_soon(owned)

    def _nodes_changed(self) -> None:
        for owned in self._owned.values():
            if isinstance(owned, _Daemons):
                self._reconcile_soon(owned)

    # What they do.

    def _reconcile_soon(self, owned: _Owned) -> None:
        if not owned.is_due:
            owned.is_due = True
            asyncio.get_running_loop().call_later(self._latency(), self._reconcile, owned)

    def _reconcile(self, owned: _Owned) -> None:
        owned.is_due = False
        match owned:
            case _Replicas():
                self._reconcile_replicas(owned)
            case _Daemons():
                self._reconcile_daemons(owned)
            case _Job():
                self._reconcile_job(owned)

    def _reconcile_replicas(self, owned: _Replicas) -> None:
        for _ in range(owned.replicas - len(owned.pods)):
            self._create(owned, owned.template)
        surplus = len(owned.pods) - owned.replicas
        if surplus > 0:
            # Those without a node first, then the youngest.
            pods = list(reversed(owned.pods.values()))
            pods.sort(key=lambda pod: bool(self._node_name_of(pod)))
            for pod in pods[:surplus]:
                self._delete(owned, pod)

    def _reconcile_daemons(self, owned: _Daemons) -> None:
        nodes = {node.metadata.name: node for node in self._server.all(Node)}
        served: dict[str, None] = {}
        for pod in list(owned.pods.values()):
            name = _daemon_node_name(pod)
            node = nodes.get(name)
            if node is None or name in served or not owned.may_stay_on(node):
                self._delete(owned, pod)
            else:
                served[name] = None
        for name, node in nodes.items():
            if name not in served and owned.should_run_on(node):
                self._create(owned, _bent_to(owned.template, name))

    def _reconcile_job(self, job: _Job) -> None:
        due, job.due = job.due, []
        for run in due:
            run.pods += 1
            created = self._create(job, run.template, f"{run.name}-{run.pods}")
            if created is not None:
                job.runs[created.metadata.uid] = run

    def _create(
        self, owned: _Owned, template: PodTemplateSpec, name: str | None = None
    ) -> Pod | None:
        """Create a pod; return it, or None if the API server does not take it."""
        pod = pod_of_template(template, name or owned.next_name(), owned.namespace, owned.owner)
        try:
            created = self._server.create(pod)
        except ApiError as error:
            log.warning("A controller could not create a pod: %s", error)
            return None
        owned.pods[created.metadata.uid] = created
        return created

    def _delete(self, owned: _Owned, pod: Pod) -> None:
        metadata = pod.metadata
        del owned.pods[metadata.uid]
        if self._server.pod(metadata.namespace, metadata.name, metadata.uid) is not None:
            self._server.delete_pod(metadata.namespace, metadata.name, metadata.uid)

    def _node_name_of(self, pod: Pod) -> str:
        metadata = pod.metadata
        current = self._server.pod(metadata.namespace, metadata.name, metadata.uid)
        return "" if current is None else current.spec.node_name


def _reference(item: KubeObject, api_version: str, kind: str) -> OwnerReference:
    metadata = item.metadata
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=metadata.name,
        uid=metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def _bent_to(template: PodTemplateSpec, node_name: str) -> PodTemplateSpec:
    """Return a template whose pods fit one node only, whatever its required affinity was."""
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))
    affinity = template.spec.affinity or Affinity()
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=selector,
    )
    affinity = replace(affinity, node_affinity=node_affinity)
    return replace(template, spec=replace(template.spec, affinity=affinity))


def _daemon_node_name(pod: Pod) -> str:
    """Return the node that a daemon's affinity names."""
    affinity = pod.spec.affinity
    assert affinity is not None and affinity.node_affinity is not None, "daemons have an affinity"  # noqa: PT018
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None, "daemons require one node"
    return required.node_selector_terms[0].match_fields[0].values[0]
