"""Runs a scenario on virtual time: the production scheduler in a simulated world.

    report = simulate(load_scenario(Path("scenario.yaml")), in_tree_registry())

Invariants: the same scenario, seed and registry give the same report and the same decision log,
            byte for byte.
Differs:  a scheduling cycle takes no time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.decode import load
from kubesched.api.meta import KubeObject
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.config.types import Configuration
from kubesched.framework.plugin_error import PluginError
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.framework.status import Status
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, RejectedAgain
from kubesched.scheduler.decision_recorder import DecisionRecorder
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.observer import Observer
from kubesched.simulator.checkers import Checkers
from kubesched.simulator.decision_log import DecisionLog
from kubesched.simulator.node_life import Disruption
from kubesched.simulator.playback_recorder import PlaybackRecorder
from kubesched.simulator.pod_ledger import PodLedger
from kubesched.simulator.random_streams import RandomStreams
from kubesched.simulator.scenario import Scenario
from kubesched.simulator.script import Script
from kubesched.simulator.simulated_extender import SimulatedExtenders
from kubesched.simulator.timeline import Timeline
from kubesched.simulator.timeline_report import RequestCount, TimelineReport
from kubesched.simulator.virtual_loop import run
from kubesched.simulator.world import World

_SERIES_BINS: Final = 300
_CHECKS: Final = 100
_SHORTEST_SECONDS: Final = 0.001

Watch = Callable[[float, int, int], bool]
"""(virtual seconds, attempts, pods bound) -> whether to continue."""


def simulate(
    scenario: Scenario,
    registry: Registry,
    *,
    seed: int | None = None,
    write_decision: Callable[[bytes], object] | None = None,
    checks: bool = True,
    watch: Watch | None = None,
    recorder: PlaybackRecorder | None = None,
    recording: DecisionRecorder | None = None,
) -> TimelineReport:
    """Run a scenario to its end.

    Args:
        scenario: The scenario.
        registry: The available plugins.
        seed: Overrides the scenario's seed.
        write_decision: Receives each line of the decision log.
        checks: Whether to check invariants.
        watch: Called after every attempt and before the clock moves. If it returns False, the
            simulation ends with a partial report.
        recorder: Records what happens to nodes and pods; None for no record.
        recording: Records what the scheduler observes and decides; None for no record.

    Raises:
        ConfigError: with all field errors of the scheduler's configuration.
        DecodeError: if a file of the scenario cannot be read.
        InvariantError: if an invariant is violated.
        PluginError: if a plugin raises.
    """
    gates = FeatureGates.of(scenario.scheduler.feature_gates)
    setup = SchedulerSetup(_configuration(scenario, gates), registry, gates, time.perf_counter)
    objects = _objects(scenario.objects)
    simulation: _Simulation | None = None

    async def main() -> TimelineReport:
        nonlocal simulation
        simulation = _Simulation(
            scenario,
            setup,
            RandomStreams(scenario.seed if seed is None else seed),
            DecisionLog(write_decision),
            recorder,
            recording,
            watch,
        )
        return await simulation.run(objects, checks=checks)

    def step() -> None:
        if simulation is not None:
            simulation.step()

    return run(main(), on_idle=step)


def _configuration(scenario: Scenario, gates: FeatureGates) -> Configuration:
    spec = scenario.scheduler
    if spec.configuration_file:
        return load_configuration(Path(spec.configuration_file), gates)
    if spec.configuration:
        return load_configuration(spec.configuration, gates)
    return default_configuration(gates)


def _objects(files: Iterable[str]) -> list[KubeObject]:
    skipped: Counter[str] = Counter()
    return [item for item, _ in load(files, skipped)]


class _Simulation(Observer):
    """One run, on the running event loop."""

    def __init__(
        self,
        scenario: Scenario,
        setup: SchedulerSetup,
        random_streams: RandomStreams,
        log: DecisionLog,
        recorder: PlaybackRecorder | None,
        recording: DecisionRecorder | None,
        watch: Watch | None,
    ) -> None:
        duration = scenario.duration
        report = scenario.report
        self._watch = watch
        self._checkers: Checkers | None = None
        self._end: asyncio.Task[None] | None = None
        self._failed: asyncio.Future[None] | None = None
        self._scenario = scenario
        self._random_streams = random_streams
        self._log = log
        self._recorder = recorder
        self._width_seconds = max(report.resolution or duration / _SERIES_BINS, _SHORTEST_SECONDS)
        self._check_seconds = max(report.check_every or duration / _CHECKS, _SHORTEST_SECONDS)
        self._world = World(random_streams, scenario.latencies, scenario.faults)
        self._extenders = SimulatedExtenders(
            scenario.scheduler.extenders,
            self._world.server,
            random_streams,
            scenario.faults.extender,
        )
        self._timeline = Timeline(self._width_seconds)
        self._scheduler, handlers = assemble(
            setup,
            self._world.api,
            random=random_streams.stream("scheduler"),
            observers=tuple(filter(None, (self, log, recorder, recording))),
            connect=self._extenders.connect,
            report_plugin_error=self._end_on_plugin_error,
        )
        self._handlers: EventHandlers | DecisionRecorder = handlers
        if recording is not None:
            recording.connect(handlers, self._scheduler)
            self._handlers = recording
        self._scheduler.records_events = False
        self._scheduler.queue.observers.append(self._timeline.moved)
        self._world.nodes.on_disrupted = self._disrupted
        self._script = Script(scenario, self._world)

    def _disrupted(self, pod: Pod, disruption: Disruption) -> None:
        now = self._scheduler.now()
        self._timeline.disrupted(disruption, now)
        if self._recorder is not None:
            self._recorder.disrupted(pod, disruption, now)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler.profiles

    # The loop: `Observer`.

    def decided(self, decision: Decision, now: float) -> None:
        self._timeline.decided(decision, now)
        self._call_watch()

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        self._timeline.decided(again.decision, again.started, again.pods)
        self._call_watch()

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        self._timeline.binding_failed(now)

    def step(self) -> None:
        """Check what has changed, before the clock moves."""
        if self._checkers is not None:
            self._checkers.step()
        self._call_watch()

    def _call_watch(self) -> None:
        """Call the watch, and end the run if it returns False."""
        if self._watch is not None and self._end is not None:
            timeline = self._timeline
            if not self._watch(self._scheduler.now(), timeline.attempts, timeline.bound):
                self._end.cancel()

    async def run(self, objects: list[KubeObject], *, checks: bool) -> TimelineReport:
        """Run to the end, or until the watch returns False; `objects` are there at the start."""
        loop = asyncio.get_running_loop()
        self._failed = failed = loop.create_future()
        ledger = PodLedger(self._world.server, self._is_ours, loop.time)
        ledger.add_reader(self._timeline)
        if self._recorder is not None:
            ledger.add_reader(self._recorder)
        checkers = Checkers(self._world, self._scheduler, ledger) if checks else None
        self._checkers = checkers
        self._script.prepare(objects)
        self._world.connect(self._handlers)
        self._script.start()
        tasks = [
            loop.create_task(self._scheduler.run(), name="scheduler"),
            loop.create_task(self._sample(), name="samples"),
        ]
        if checkers is not None:
            tasks.append(loop.create_task(self._check(checkers), name="checks"))
        end = loop.create_task(asyncio.sleep(self._scenario.duration), name="end")
        self._end = end
        # A task that ends before the simulation does has failed.
        await asyncio.wait([*tasks, end, failed], return_when=asyncio.FIRST_COMPLETED)
        for each in (failed, *tasks):
            if each.done():
                each.result()
        failed.cancel()
        if checkers is not None:
            checkers.check(loop.time())
        number = 0 if checkers is None else checkers.checks
        report = self._report(loop.time(), number, partial=end.cancelled())
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        return report

    def _end_on_plugin_error(self, error: PluginError) -> None:
        """End the run at a plugin's first error: decisions after it are not reliable."""
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _sample(self) -> None:
        while True:
            self._timeline.sample(self._scheduler.cache.nodes, self._scheduler.now())
            await asyncio.sleep(self._width_seconds)

    async def _check(self, checkers: Checkers) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            checkers.check(self._scheduler.now())

    def _report(self, now: float, checks: int, *, partial: bool) -> TimelineReport:
        timeline, api = self._timeline, self._world.api
        timeline.sample(self._scheduler.cache.nodes, now)
        timeline.end(now)
        return TimelineReport(
            scenario=self._scenario.name,
            seed=self._random_streams.seed,
            partial=partial,
            duration_seconds=now,
            totals=timeline.totals(),
            waits=timeline.waits(now),
            wait_histogram=timeline.wait_histogram(),
            resources=timeline.resources(),
            moves=timeline.moves(),
            requests=(
                *(
                    RequestCount(kind, sent, api.failures[kind])
                    for kind, sent in api.requests.items()
                ),
                *(
                    RequestCount(prefix, extender.requests, extender.failures)
                    for prefix, extender in self._extenders.connected.items()
                ),
            ),
            relists=sum(informer.relists for informer in self._world.informers.values()),
            checks=checks,
            decisions=self._log.lines,
            decision_digest=self._log.digest,
            series=timeline.series(),
        )
