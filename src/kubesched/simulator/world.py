"""World is everything outside the scheduler: an API server, kubelets, nodes' lives, controllers.

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
from kubesched.api.meta import KubeStruct
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheme import KINDS
from kubesched.simulator.budget_controller import BudgetController
from kubesched.simulator.controllers import Controllers
from kubesched.simulator.faults import NO_FAULTS, FaultPlan
from kubesched.simulator.informer import Handler, SimulatedInformer, is_unfinished
from kubesched.simulator.kubelets import Kubelets
from kubesched.simulator.latencies import Latencies
from kubesched.simulator.node_life import NodeLife
from kubesched.simulator.object_server import NODES, PODS, ObjectServer, kind_name
from kubesched.simulator.random_streams import RandomStreams
from kubesched.simulator.simulated_api import SimulatedApi

_NOT_WATCHED: Final = ("bindings", "events", "events.events.k8s.io", "leases.coordination.k8s.io")


class World:
    """A cluster without its scheduler.

    Attributes:
        random_streams: Where every chance comes from.
        server: The objects; create pods here.
        api: What the scheduler is handed.
        kubelets: Run pods.
        nodes: Adds, removes, drains and breaks nodes.
        controllers: Keep pods in number.
        budgets: Keep disruption budgets up to date.
        informers: The scheduler's, by kind; `connect` makes them.
    """

    def __init__(
        self,
        random_streams: RandomStreams,
        latencies: Latencies | None = None,
        faults: FaultPlan = NO_FAULTS,
    ) -> None:
        """Begin with nothing; there must be a running event loop."""
        latencies = latencies or Latencies()
        self.random_streams = random_streams
        self.server = ObjectServer(asyncio.get_running_loop().time)
        self.api = SimulatedApi(self.server, random_streams, latencies, faults)
        self.kubelets = Kubelets(self.server, random_streams, latencies)
        self.nodes = NodeLife(self.server, self.kubelets, latencies)
        pace = random_streams.stream("controllers")
        self.controllers = Controllers(
            self.server, lambda: latencies.controller * pace.uniform(0.5, 1.5)
        )
        self.kubelets.on_finished.append(self.controllers.finished)
        budget_pace = random_streams.stream("budgets")
        self.budgets = BudgetController(
            self.server,
            self.controllers.scale_of,
            lambda: latencies.controller * budget_pace.uniform(0.5, 1.5),
            lambda budgets: self._own_informers.append(self._follow(PODS, budgets)),
        )
        self.informers: dict[str, SimulatedInformer] = {}
        self._watch_latency = latencies.watch
        self._watch_faults = faults.watch
        self._own_informers = [
            self._follow(kind, handler)
            for kind, handler in (
                (PODS, self.kubelets),
                (PODS, self.nodes),
                (PODS, self.controllers),
                (NODES, self.controllers),
                (kind_name(PodDisruptionBudget), self.budgets),
            )
        ]

    def _follow(self, kind: str, handler: Handler) -> SimulatedInformer:
        # Each informer has its own stream, so that one more of them moves no other.
        pace = self.random_streams.stream(f"watch/{type(handler).__name__}/{kind}")
        latency = self._watch_latency
        informer = SimulatedInformer(
            self.server.store, kind, handler, lambda: latency * pace.uniform(0.5, 1.0)
        )
        informer.start()
        return informer

    def connect(self, handlers: Handler, kinds: Iterable[type[KubeStruct]] | None = None) -> None:
        """Tell a scheduler's event handlers of what there is, and of every change from now on.

        Nodes and other objects are told of before pods.

        Args:
            handlers: Are told.
            kinds: Classes of objects to watch besides nodes and pods; None for all.
        """
        others = (kind.type for kind in KINDS) if kinds is None else kinds
        names = [kind_name(type_) for type_ in others if type_ not in (Pod, Node)]
        for name in (NODES, *names, PODS):
            if name not in _NOT_WATCHED:
                self._connect(name, handlers)

    def _connect(self, kind: str, handlers: Handler) -> None:
        pace = self.random_streams.stream(f"watch/scheduler/{kind}")
        latency = self._watch_latency
        informer = SimulatedInformer(
            self.server.store,
            kind,
            handlers,
            lambda: latency * pace.uniform(0.5, 1.0),
            is_unfinished,
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
