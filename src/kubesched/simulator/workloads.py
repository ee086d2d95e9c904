"""Workloads of a scenario: ReplicaSets, DaemonSets, and runs that are restarted.

A run whose pod is stopped before its end gets another pod.

Upstream: pkg/controller/job (v1.36), for restarts
Differs:  restarts have no object; a job may get further runs at any time, and there is no limit
          to parallel ones; a run that the API server refuses is not tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kubesched.api.core import FINISHED, Pod, PodTemplateSpec
from kubesched.api.errors import ApiError
from kubesched.api.meta import ObjectMeta, OwnerReference, controller_of
from kubesched.cluster.controllers.daemon_sets import DaemonSetController
from kubesched.cluster.controllers.indexes import OwnedPods
from kubesched.cluster.controllers.replica_sets import ReplicaSetController
from kubesched.cluster.server import Server
from kubesched.cluster.store import Key
from kubesched.simulator.object_server import ObjectServer

log = logging.getLogger(__name__)

_JOB: Final = "Job"


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


class _Run:
    """One run of a template, in one or more pods."""

    __slots__ = ("name", "pods", "template")

    def __init__(self, name: str, template: PodTemplateSpec) -> None:
        self.name = name
        self.template = template
        self.pods = 0


class _Job:
    """One owner for many runs, so that their pods share a template."""

    def __init__(self, owner: OwnerReference, namespace: str) -> None:
        self.owner = owner
        self.namespace = namespace
        self.runs: dict[str, _Run] = {}
        self.waiting: list[_Run] = []
        self.is_due = False


class Workloads:
    """Creates workloads, and reconciles them with the controllers of `cluster`."""

    def __init__(
        self, server: ObjectServer, local_server: Server, pause: Callable[[], float]
    ) -> None:
        """Start without workloads; `local_server` is the same server, for controllers.

        `pause` draws the seconds until a controller reacts.
        """
        self._server = server
        self._local_server = local_server
        self._pause = pause
        self._jobs: dict[str, _Job] = {}
        pods = OwnedPods(local_server)
        pods.subscribe(_JOB, self._pod_changed)
        for each in (
            pods,
            ReplicaSetController(local_server, pods, pause=pause),
            DaemonSetController(local_server, pods, pause),
        ):
            each.start()

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        """Set the number of replicas of a replica set; nothing happens if there is none."""
        key = Key(ReplicaSetController.kind, namespace, name)
        if self._server.store.find(key) is not None:
            self._local_server.scale(key, replicas)

    # Restarts.

    def add_run(self, job: str, namespace: str, template: PodTemplateSpec, name: str) -> None:
        """Run a pod of a job to its end; if it is stopped before, create another one.

        The job may have any number of runs. `name` is the beginning of the names of this run's
        pods.
        """
        uid = f"job-{namespace}-{job}"
        found = self._jobs.get(uid)
        if found is None:
            owner = OwnerReference(
                api_version="batch/v1", kind=_JOB, name=job, uid=uid, controller=True
            )
            found = self._jobs[uid] = _Job(owner, namespace)
        found.waiting.append(_Run(name, template))
        self._create_waiting(found)

    def finished(self, pod: Pod) -> None:
        """End the run of a pod that has finished."""
        job = self._job_of(pod)
        if job is not None:
            job.runs.pop(pod.metadata.uid, None)

    def _job_of(self, pod: Pod) -> _Job | None:
        owner = controller_of(pod.metadata)
        return None if owner is None else self._jobs.get(owner.uid)

    def _pod_changed(
        self, _namespace: str, _name: str, before: Pod | None, after: Pod | None
    ) -> None:
        pod = after or before
        assert pod is not None, "a change has a pod"
        is_over = after is None or after.status.phase in FINISHED
        if not is_over and not pod.metadata.deletion_timestamp:
            return
        job = self._job_of(pod)
        run = None if job is None else job.runs.pop(pod.metadata.uid, None)
        if job is not None and run is not None:
            job.waiting.append(run)
            if not job.is_due:
                job.is_due = True
                asyncio.get_running_loop().call_later(self._pause(), self._create_waiting, job)

    def _create_waiting(self, job: _Job) -> None:
        job.is_due = False
        waiting, job.waiting = job.waiting, []
        for run in waiting:
            run.pods += 1
            name = f"{run.name}-{run.pods}"
            try:
                pod = pod_of_template(run.template, name, job.namespace, job.owner)
                created = self._server.create(pod)
            except ApiError as error:
                log.warning("A pod could not be created again: %s", error)
            else:
                job.runs[created.metadata.uid] = run
