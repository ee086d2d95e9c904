"""Script plays a scenario: it sets a timer for each next step and applies the step to the world.

Times come from generators, one step ahead, so memory does not grow with the length of a scenario.
Arrivals are drawn from a workload's own random streams.

Invariants: script and scheduler do not depend on each other.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import count, islice
from random import Random
from typing import Final, TypeVar

from msgspec.structs import replace

from kubesched.api.apps import DaemonSet, ReplicaSet
from kubesched.api.core import Node, Pod, PodTemplateSpec
from kubesched.api.errors import ApiError
from kubesched.api.field_errors import ConfigError, FieldError, child, duplicate
from kubesched.api.meta import KubeObject
from kubesched.api.scheduling import PriorityClass
from kubesched.api.well_known import SYSTEM_CLASSES
from kubesched.simulator.scenario import (
    NodeSelection,
    PodArrivals,
    PodSelection,
    RunTime,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    TraceSpec,
)
from kubesched.simulator.scenario_objects import (
    daemon_set_of,
    disruption_budget_of,
    is_selected,
    nodes_of,
    pod_of_template,
    pods_of_trace,
    priority_class_of,
    replica_set_of,
    template_of,
    unknown_classes,
)
from kubesched.simulator.traces import trace_nodes, with_run_seconds
from kubesched.simulator.world import World

_SECONDS_PER_HOUR: Final = 3600.0
# math.exp(700) is near the largest float; no pod runs that long.
_LOG_MAX: Final = 60.0


def arrival_seconds(arrivals: PodArrivals, end_seconds: float, random: Random) -> Iterator[float]:
    """Yield the time of each burst in virtual seconds, up to the end of the simulation.

    The random source is used for these arrivals only.
    """
    end = end_seconds if arrivals.end is None else min(arrivals.end, end_seconds)
    for seconds in _endless(arrivals, random):
        if seconds >= end:
            return
        yield seconds


def _endless(arrivals: PodArrivals, random: Random) -> Iterator[float]:
    if arrivals.at:
        yield from sorted(arrivals.at)
    elif arrivals.every is not None:
        number = 0
        while True:
            # Multiplied, because a running sum would drift.
            yield arrivals.start + number * arrivals.every
            number += 1
    else:
        assert arrivals.per_hour is not None, "one of three is given"
        seconds = arrivals.start
        while True:
            seconds += random.expovariate(arrivals.per_hour / _SECONDS_PER_HOUR)
            yield seconds


def run_seconds(run_time: RunTime | None, random: Random) -> Callable[[], float | None]:
    """Return a function that draws run times in seconds; None: the pod runs until deleted."""
    if run_time is None:
        return lambda: None
    if run_time.fixed is not None:
        fixed = run_time.fixed
        return lambda: fixed
    if run_time.exponential is not None:
        rate = 1 / run_time.exponential
        return lambda: random.expovariate(rate)
    if run_time.uniform is not None:
        shortest, longest = run_time.uniform.min, run_time.uniform.max
        return lambda: random.uniform(shortest, longest)
    assert run_time.log_normal is not None, "one of four is given"
    median, sigma = math.log(run_time.log_normal.median), run_time.log_normal.sigma
    return lambda: math.exp(min(random.gauss(median, sigma), _LOG_MAX))


# The script.

Chosen = TypeVar("Chosen")

Step = tuple[float, Callable[[], object]]
"""A time in virtual seconds, and what happens then."""


class Script:
    """Plays one scenario in one world."""

    def __init__(self, scenario: Scenario, world: World) -> None:
        self._scenario = scenario
        self._world = world

    def prepare(self, objects: Iterable[KubeObject] = ()) -> None:
        """Create the objects that exist from the beginning: those given, and those of traces.

        Raises ConfigError if the API server rejects an object, DecodeError if a trace cannot be
        read.
        """
        for spec in self._scenario.priority_classes:
            self._world.server.create(priority_class_of(spec))
        rejected = []
        # Classes first: pods may name them before.
        for item in sorted(objects, key=lambda item: not isinstance(item, PriorityClass)):
            try:
                self._create_object(item)
            except ApiError as error:
                rejected.append(FieldError("objects", str(error)))
        if rejected:
            raise ConfigError(rejected)
        for i, group in enumerate(self._scenario.nodes):
            nodes = trace_nodes(group.trace) if group.trace else nodes_of(group)
            self._at(group.at, self._add_nodes, child("nodes", i), nodes)

    def start(self) -> None:
        """Set the timers of workloads and events.

        Raises:
            ConfigError: if workloads have a priority class that does not exist, or the name of an
                object that does.
            DecodeError: if a trace cannot be read.
        """
        found = self._world.server.all(PriorityClass)
        classes = {*SYSTEM_CLASSES, *(one.metadata.name for one in found)}
        workloads = self._scenario.workloads
        errors = [*unknown_classes(workloads, classes)]
        errors += (
            duplicate(child("workloads", i, "name"), workload.name)
            for i, workload in enumerate(workloads)
            if self._is_taken(workload)
        )
        if errors:
            raise ConfigError(errors)
        for i, workload in enumerate(workloads):
            self._start_workload(workload, child("workloads", i), classes)
        for number, event in enumerate(self._scenario.events):
            random = self._world.random_streams.stream(f"events/{number}")
            self._play(self._occurrences(event, random))

    # Timers.

    def _play(self, steps: Iterator[Step]) -> None:
        """Take the steps that are due, and set a timer for the next one."""
        for seconds, step in steps:
            if seconds > asyncio.get_running_loop().time():
                self._at(seconds, self._continue, step, steps)
                return
            step()

    def _continue(self, step: Callable[[], object], steps: Iterator[Step]) -> None:
        step()
        self._play(steps)

    def _at(self, seconds: float, action: Callable[..., object], *arguments: object) -> None:
        """Run an action at a time, immediately if the time is now."""
        loop = asyncio.get_running_loop()
        if seconds > self._scenario.duration:
            return
        if seconds <= loop.time():
            action(*arguments)
        else:
            loop.call_at(seconds, action, *arguments)

    def _try(self, path: str, action: Callable[..., object], *arguments: object) -> None:
        """Run an action for a field of the scenario.

        Raises ConfigError if the API server rejects it: a name is taken. Without the object, the
        report would be about another scenario.
        """
        try:
            action(*arguments)
        except ApiError as error:
            raise ConfigError([FieldError(path, str(error))]) from error

    # Nodes and other objects.

    def _create_object(self, item: KubeObject) -> None:
        if isinstance(item, Node):
            self._world.nodes.add(item)
        else:
            self._world.server.create(item)

    def _add_nodes(self, path: str, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._try(path, self._world.nodes.add, node)

    # Workloads.

    def _is_taken(self, workload: ScenarioWorkload) -> bool:
        """Whether there is an object of the workload's kind and name."""
        if workload.deployment is None and workload.daemon_set is None:
            return False
        type_ = DaemonSet if workload.deployment is None else ReplicaSet
        return self._world.server.find(type_, workload.namespace, workload.name) is not None

    def _start_workload(
        self, workload: ScenarioWorkload, path: str, classes: Collection[str]
    ) -> None:
        if workload.trace is not None:
            self._play(self._traced(workload, path, workload.trace, classes))
            return
        template = template_of(workload)
        budget = disruption_budget_of(workload, template)
        if budget is not None:
            self._try(path, self._world.server.create, budget)
        if workload.pods is not None:
            self._play(self._bursts(workload, path, workload.pods, template))
        elif workload.deployment is not None:
            replica_set = replica_set_of(workload, template)
            self._at(workload.deployment.at, self._world.server.create, replica_set)
            for scaling in workload.deployment.scale:
                where = (workload.namespace, workload.name)
                self._at(scaling.at, self._world.workloads.scale, *where, scaling.replicas)
        else:
            assert workload.daemon_set is not None, "one of four is given"
            daemon_set = daemon_set_of(workload, template)
            self._at(workload.daemon_set.at, self._world.server.create, daemon_set)

    def _traced(
        self, workload: ScenarioWorkload, path: str, trace: TraceSpec, classes: Collection[str]
    ) -> Iterator[Step]:
        """Yield the creation of each pod of a trace."""
        for at, pod in pods_of_trace(workload, classes):
            spec, metadata = pod.spec, replace(pod.metadata, namespace=workload.namespace)
            if workload.priority_class_name and not spec.priority_class_name:
                spec = replace(spec, priority_class_name=workload.priority_class_name)
            arriving = replace(pod, metadata=metadata, spec=spec)
            yield trace.start + at, partial(self._try, path, self._world.server.create, arriving)

    def _bursts(
        self,
        workload: ScenarioWorkload,
        path: str,
        arrivals: PodArrivals,
        template: PodTemplateSpec,
    ) -> Iterator[Step]:
        """Yield the creation of each burst of pods."""
        key = f"{workload.namespace}/{workload.name}"
        streams = self._world.random_streams
        draw = run_seconds(arrivals.run_time, streams.stream(f"run-times/{key}"))
        numbers = count() if arrivals.count is None else iter(range(arrivals.count))

        def create(burst: Iterable[int]) -> None:
            for number in burst:
                seconds, metadata = draw(), template.metadata
                if seconds is not None:
                    metadata = with_run_seconds(metadata, seconds)
                own, name = replace(template, metadata=metadata), f"{workload.name}-{number}"
                if arrivals.restart:
                    where = (workload.name, workload.namespace)
                    self._world.workloads.add_run(*where, own, name)
                else:
                    pod = pod_of_template(own, name, workload.namespace)
                    self._try(path, self._world.server.create, pod)

        arriving = streams.stream(f"arrivals/{key}")
        for at in arrival_seconds(arrivals, self._scenario.duration, arriving):
            burst = tuple(islice(numbers, arrivals.burst))
            if not burst:
                return
            yield at, partial(create, burst)

    # Events.

    def _occurrences(self, event: ScenarioEvent, random: Random) -> Iterator[Step]:
        for number in count() if event.every else range(1):
            yield event.at + number * (event.every or 0), partial(self._apply, event, random)

    def _apply(self, event: ScenarioEvent, random: Random) -> None:
        nodes = self._world.nodes
        drain, fail, label = event.drain, event.fail, event.label
        if event.delete is not None:
            self._delete_pods(event.delete, random)
        if drain is not None:
            evicts = not drain.disable_eviction
            self._on_nodes(drain, partial(nodes.drain, evicts=evicts), random)
        if fail is not None:
            self._on_nodes(fail, partial(nodes.fail, recovery_seconds=fail.duration), random)
        if label is not None:
            relabel = partial(nodes.relabel, changed=label.set, removed=label.remove)
            self._on_nodes(label, relabel, random)
        self._on_nodes(event.cordon, nodes.cordon, random)
        self._on_nodes(event.uncordon, partial(nodes.cordon, on=False), random)
        self._on_nodes(event.remove, nodes.remove, random)
        self._on_nodes(event.recover, nodes.recover, random)

    def _on_nodes(
        self, selection: NodeSelection | None, action: Callable[[str], object], random: Random
    ) -> None:
        if selection is not None:
            names = [
                node.metadata.name
                for node in self._world.server.all(Node)
                if is_selected(node.metadata, selection)
            ]
            for name in _sample(names, selection.count, random):
                action(name)

    def _delete_pods(self, selection: PodSelection, random: Random) -> None:
        found = [
            pod.metadata
            for pod in self._world.server.all(Pod)
            if selection.namespace in ("", pod.metadata.namespace)
            and is_selected(pod.metadata, selection)
            and not pod.metadata.deletion_timestamp
        ]
        for one in _sample(found, selection.count, random):
            self._world.server.delete_pod(one.namespace, one.name, one.uid)


def _sample(found: list[Chosen], wanted: int | None, random: Random) -> list[Chosen]:
    return found if wanted is None or wanted >= len(found) else random.sample(found, wanted)
