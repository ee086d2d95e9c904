"""World is everything outside the scheduler: API server, kubelets, nodes, controllers.

    ObjectServer ──▶ informers ──▶ kubelets, controllers, node life     (what writes back)
         ▲     └───▶ informers ──▶ the scheduler's event handlers       (these may break)
         └─────────────────────── SimulatedApi ◀── the scheduler        (this may fail)

Everything happens on the running event loop; on a virtual one a day takes no time.

    world = World(RandomStreams(seed))
    scheduler, handlers = assemble(..., world.api, random=world.random_streams.stream("scheduler"))
    world.connect(handlers)
    world.nodes.add(node); world.server.create(pod)

Upstream: pkg/kubelet/status; pkg/controller/job, for restarts (v1.36)
Invariants: every random number comes from a stream, one per concern.
Differs:  containers have no statuses, pods no addresses. Restarts have no object; a job may get
          further runs at any time, and there is no limit to parallel ones; a run that the API
          server refuses is not tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from kubesched.api.apps import ReplicaSet
from kubesched.api.core import FINISHED, Pod, PodTemplateSpec
from kubesched.api.errors import AlreadyExistsError, ApiError
from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.api.meta import OwnerReference, ResourceEventHandler
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheme import known_kinds
from kubesched.cluster.controllers.controller import OwnedPods
from kubesched.cluster.controllers.daemon_sets import DaemonSetController
from kubesched.cluster.controllers.disruption_budgets import DisruptionBudgetController
from kubesched.cluster.controllers.pods_on_nodes import PodCollector, PodsByNode, TaintEviction
from kubesched.cluster.controllers.replica_sets import ReplicaSetController
from kubesched.cluster.kubelets import Kubelets, Lifetime, Pace, PodReports
from kubesched.cluster.server import Server, kind_name
from kubesched.simulator.faults import NO_FAULTS, FaultPlan, Latencies, RandomStreams
from kubesched.simulator.node_life import Disruption, NodeLife
from kubesched.simulator.object_server import NODES, PODS, ObjectServer
from kubesched.simulator.scenario_objects import pod_of_template
from kubesched.simulator.simulated_api import Delay, LocalServer, SimulatedApi, SimulatedInformer
from kubesched.simulator.traces import run_seconds_of

log = logging.getLogger(__name__)

_JOB: Final = "Job"
_BUDGETS: Final = kind_name(PodDisruptionBudget)
_NOT_WATCHED: Final = ("bindings", "events", "events.events.k8s.io", "leases.coordination.k8s.io")


def watched_kinds() -> tuple[str, ...]:
    """Return the kinds that a scheduler watches: nodes first, pods last."""
    names = [kind_name(kind.type) for kind in known_kinds()]
    return (NODES, *[name for name in names if name not in (NODES, PODS, *_NOT_WATCHED)], PODS)


class _PhaseReports(PodReports):
    """Writes the phase, and whether the pod is ready; containers have no statuses."""

    def __init__(self, server: ObjectServer) -> None:
        self._server = server

    def started(self, pod: Pod) -> Pod:
        return self._server.set_phase(pod, "Running")

    def ended(self, pod: Pod, exit_code: int) -> Pod:
        return self._server.set_phase(pod, "Failed" if exit_code else "Succeeded")


# Restarts, replica sets and daemon sets.


@dataclass(slots=True, eq=False)
class _Job:
    """One owner for many runs, so that their pods share a template."""

    owner: OwnerReference
    namespace: str
    waiting: list[_Run] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Run:
    """One run of a template, in one or more pods."""

    job: _Job
    name: str
    template: PodTemplateSpec
    pods: int = 0


class Workloads:
    """Creates workloads, and reconciles them with the controllers of `cluster`."""

    def __init__(
        self, server: ObjectServer, local_server: Server, pause: Callable[[], float]
    ) -> None:
        """Start without workloads; `local_server` is the same server, for controllers.

        `pause` draws the seconds until a controller reacts.
        """
        self._server = server
        self._pause = pause
        self._jobs: dict[str, _Job] = {}
        # By the uid of the run's current pod.
        self._runs: dict[str, _Run] = {}
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
        found = self._server.find(ReplicaSet, namespace, name)
        if found is not None:
            metadata = replace(found.metadata, generation=found.metadata.generation + 1)
            spec = replace(found.spec, replicas=replicas)
            self._server.update(replace(found, metadata=metadata, spec=spec))

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
        found.waiting.append(_Run(found, name, template))
        self._create_waiting(found)

    def finished(self, pod: Pod) -> None:
        """End the run of a pod that has finished."""
        self._runs.pop(pod.metadata.uid, None)

    def _pod_changed(
        self, _namespace: str, _name: str, before: Pod | None, after: Pod | None
    ) -> None:
        pod = after or before
        assert pod is not None, "a change has a pod"
        is_over = after is None or after.status.phase in FINISHED
        if not is_over and not pod.metadata.deletion_timestamp:
            return
        run = self._runs.pop(pod.metadata.uid, None)
        if run is not None:
            run.job.waiting.append(run)
            if len(run.job.waiting) == 1:
                loop = asyncio.get_running_loop()
                loop.call_later(self._pause(), self._create_waiting, run.job)

    def _create_waiting(self, job: _Job) -> None:
        waiting, job.waiting = job.waiting, []
        for run in waiting:
            run.pods += 1
            name = f"{run.name}-{run.pods}"
            try:
                pod = pod_of_template(run.template, name, job.namespace, job.owner)
                created = self._server.create(pod)
            except AlreadyExistsError as error:
                # Without the pod, the report would be about another scenario.
                raise ConfigError([FieldError("workloads", str(error))]) from error
            except ApiError as error:
                log.warning("A pod could not be created again: %s", error)
            else:
                self._runs[created.metadata.uid] = run


# The world.


class World:
    """A cluster without its scheduler; `api` is the scheduler's client, `informers` its own."""

    def __init__(
        self,
        random_streams: RandomStreams,
        latencies: Latencies | None = None,
        faults: FaultPlan = NO_FAULTS,
    ) -> None:
        """Start empty; there must be a running event loop."""
        latencies = latencies or Latencies()
        self.random_streams = random_streams
        self.server = ObjectServer(asyncio.get_running_loop().time)
        self._watch_latency = latencies.watch
        self._watch_faults = faults.watch
        self.api = SimulatedApi(self.server, random_streams, latencies, faults)
        self.kubelets = Kubelets(
            self._local_server("Kubelets", PODS), _PhaseReports(self.server), self._pace(latencies)
        )
        self.kubelets.start()
        self.nodes = NodeLife(self.server, self.kubelets, latencies.node_failure_detection)
        self.workloads = Workloads(
            self.server,
            self._local_server("Controllers", PODS, NODES),
            self._about(latencies.controller, "controllers"),
        )
        self.kubelets.on_finished += (self.workloads.finished, self.server.delete)
        self._start_controllers(latencies)
        self.informers: dict[str, SimulatedInformer] = {}

    def _about(self, seconds: float, concern: str) -> Delay:
        pace = self.random_streams.stream(concern)
        return lambda: seconds * (0.5 + pace.random())

    def _watch_delay(self, concern: str) -> Delay:
        pace, latency = self.random_streams.stream(concern), self._watch_latency
        return lambda: latency * (0.5 + pace.random() / 2)

    def _pace(self, latencies: Latencies) -> Pace:
        def lifetime_of(pod: Pod) -> Lifetime | None:
            seconds = run_seconds_of(pod)
            return None if seconds is None else Lifetime(seconds)

        return Pace(
            self._about(latencies.pod_start, "pod-start"),
            self._about(latencies.pod_stop, "pod-stop"),
            lifetime_of,
        )

    def _local_server(self, reader: str, *delayed: str) -> LocalServer:
        """Return the server for a reader that receives changes to some kinds after a delay."""
        # Each informer has its own stream, so that adding one does not affect the others.
        delays = {kind: self._watch_delay(f"watch/{reader}/{kind}") for kind in delayed}
        return LocalServer(self.server, delays)

    def _start_controllers(self, latencies: Latencies) -> None:
        server = self._local_server("NodeLife", PODS)
        pods = PodsByNode(server)
        evictions = TaintEviction(server, pods)
        evictions.on_evicted = lambda pod: self.nodes.on_disrupted(pod, Disruption.EVICTED)
        collector = PodCollector(server, pods, latencies.pod_garbage_collection)
        collector.on_collected = self._collected
        budgets = DisruptionBudgetController(
            self._local_server("BudgetController", PODS, _BUDGETS),
            self._about(latencies.controller, "budgets"),
        )
        for each in (pods, evictions, collector, budgets):
            each.start()

    def _collected(self, pod: Pod) -> None:
        if not pod.metadata.deletion_timestamp:
            self.nodes.on_disrupted(pod, Disruption.REMOVED)

    def connect(self, handlers: ResourceEventHandler, kinds: Iterable[str] | None = None) -> None:
        """Report all objects and every change from now on to a scheduler's event handlers.

        By default, of all kinds that a scheduler watches.
        """
        for kind in watched_kinds() if kinds is None else kinds:
            delay = self._watch_delay(f"watch/scheduler/{kind}")
            informer = SimulatedInformer(self.server.store, kind, handlers, delay)
            self.informers[kind] = informer
            informer.start()
            if self._watch_faults.every:
                self._inject_watch_losses(informer)

    def _inject_watch_losses(self, informer: SimulatedInformer) -> None:
        faults = self._watch_faults
        losses = self.random_streams.stream(f"faults/watch/{informer.kind}")

        def lose() -> None:
            informer.lose(faults.outage, expired=losses.random() < faults.expired)
            loop.call_later(faults.outage + losses.expovariate(1 / faults.every), lose)

        loop = asyncio.get_running_loop()
        loop.call_later(losses.expovariate(1 / faults.every), lose)
