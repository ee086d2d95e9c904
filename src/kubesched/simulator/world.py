"""World is everything outside the scheduler: API server, kubelets, nodes, controllers.

    ObjectServer ──▶ informers ──▶ kubelets, controllers, node life     (what writes back)
         ▲     └───▶ informers ──▶ the scheduler's event handlers       (these may break)
         └─────────────────────── SimulatedApi ◀── the scheduler        (this may fail)

Everything happens on the running event loop; on a virtual one a day takes no time.

    world = World(RandomStreams(seed))
    scheduler, handlers = assemble(..., world.api, random=world.random_streams.stream("scheduler"))
    world.connect(handlers)
    world.nodes.add(node); world.server.create(pod)

Invariants: every random number comes from a stream, one per concern.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject, ResourceEventHandler
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheme import KINDS
from kubesched.cluster.controllers.disruption_budgets import DisruptionBudgetController
from kubesched.cluster.controllers.garbage_collector import PodCollector
from kubesched.cluster.controllers.indexes import PodsByNode
from kubesched.cluster.controllers.taint_eviction import TaintEviction
from kubesched.cluster.kubelets import Kubelets, Lifetime, Pace
from kubesched.cluster.server import kind_name
from kubesched.simulator.faults import NO_FAULTS, FaultPlan, Latencies
from kubesched.simulator.local_server import Delay, LocalServer
from kubesched.simulator.node_life import Disruption, NodeLife
from kubesched.simulator.object_server import NODES, PODS, ObjectServer
from kubesched.simulator.pod_reports import PhaseReports, run_seconds_of
from kubesched.simulator.random_streams import RandomStreams
from kubesched.simulator.simulated_api import SimulatedApi, SimulatedInformer
from kubesched.simulator.workloads import Workloads

_BUDGETS: Final = kind_name(PodDisruptionBudget)
_NOT_WATCHED: Final = ("bindings", "events", "events.events.k8s.io", "leases.coordination.k8s.io")


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
            self._local_server("Kubelets", PODS), PhaseReports(self.server), self._pace(latencies)
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

        def delay_of(kind: str) -> Delay | None:
            if kind not in delayed:
                return None
            # Each informer has its own stream, so that adding one does not affect the others.
            return self._watch_delay(f"watch/{reader}/{kind}")

        return LocalServer(self.server, asyncio.get_running_loop().time, delay_of)

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

    def connect(
        self, handlers: ResourceEventHandler, kinds: Iterable[type[KubeObject]] | None = None
    ) -> None:
        """Report all objects and every change from now on to a scheduler's event handlers.

        Nodes and other objects are reported before pods. `kinds` are the classes to watch besides
        nodes and pods, None for all.
        """
        others = (kind.type for kind in KINDS) if kinds is None else kinds
        names = [kind_name(type_) for type_ in others if type_ not in (Pod, Node)]
        for name in (NODES, *names, PODS):
            if name not in _NOT_WATCHED:
                self._connect(name, handlers)

    def _connect(self, kind: str, handlers: ResourceEventHandler) -> None:
        informer = SimulatedInformer(
            self.server.store, kind, handlers, self._watch_delay(f"watch/scheduler/{kind}")
        )
        self.informers[kind] = informer
        informer.start()
        if self._watch_faults.every:
            self._lose_some_time(informer)

    def _lose_some_time(self, informer: SimulatedInformer) -> None:
        faults = self._watch_faults
        losses = self.random_streams.stream(f"faults/watch/{informer.kind}")

        def lose() -> None:
            informer.lose(faults.outage, expired=losses.random() < faults.expired)
            loop.call_later(faults.outage + losses.expovariate(1 / faults.every), lose)

        loop = asyncio.get_running_loop()
        loop.call_later(losses.expovariate(1 / faults.every), lose)
