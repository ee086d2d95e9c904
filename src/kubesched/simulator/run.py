"""Runs a scenario on virtual time: the production scheduler in a simulated world.

    report = simulate(load_scenario(Path("scenario.yaml")), in_tree_registry())

Invariants: the same scenario, seed and registry give the same report and the same decision log,
            byte for byte; a line of the log depends on virtual time and on decisions alone.
Differs:  a scheduling cycle takes no time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kubesched.api.codec import Skipped
from kubesched.api.core import Pod
from kubesched.api.decode import load
from kubesched.api.meta import KubeObject
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.config.types import Configuration, ExtenderConfiguration
from kubesched.framework.plugin_error import PluginError
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.framework.status import Status
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, Failed, Placed, Rejected, RejectedAgain
from kubesched.scheduler.decision_recorder import DecisionRecorder
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.extenders import ExtenderTransport
from kubesched.scheduler.observer import Observer
from kubesched.simulator.faults import RandomStreams
from kubesched.simulator.livelock_guard import LivelockGuard
from kubesched.simulator.playback import PlaybackRecorder
from kubesched.simulator.pod_ledger import Checkers, PodLedger
from kubesched.simulator.scenario import ExtenderSpec, Scenario
from kubesched.simulator.script import Script
from kubesched.simulator.simulated_extender import SimulatedExtender
from kubesched.simulator.timeline import Timeline
from kubesched.simulator.timeline_report import RequestCount, TimelineReport
from kubesched.simulator.virtual_loop import run
from kubesched.simulator.world import World

_SECONDS_DIGITS: Final = 6
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
    skipped = Skipped()
    objects = [item for item, _ in load(scenario.objects, skipped)]
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
            checks=checks,
        )
        return await simulation.run(objects)

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


# The simulation.


class _Simulation(Observer):
    """One run, on the running event loop."""

    _end: asyncio.Task[None]

    def __init__(
        self,
        scenario: Scenario,
        setup: SchedulerSetup,
        random_streams: RandomStreams,
        log: DecisionLog,
        recorder: PlaybackRecorder | None,
        recording: DecisionRecorder | None,
        watch: Watch | None,
        *,
        checks: bool,
    ) -> None:
        loop = asyncio.get_running_loop()
        duration, report = scenario.duration, scenario.report
        self._scenario = scenario
        self._random_streams = random_streams
        self._log = log
        self._watch = watch
        self._width_seconds = max(report.resolution or duration / _SERIES_BINS, _SHORTEST_SECONDS)
        self._check_seconds = max(report.check_every or duration / _CHECKS, _SHORTEST_SECONDS)
        self._failed: asyncio.Future[None] = loop.create_future()
        self._world = World(random_streams, scenario.latencies, scenario.faults)
        self._extenders: dict[str, SimulatedExtender] = {}
        self._timeline = Timeline(self._width_seconds)
        self._scheduler, handlers = assemble(
            setup,
            self._world.api,
            random=random_streams.stream("scheduler"),
            observers=tuple(filter(None, (self._timeline, self, log, recorder, recording))),
            connect=self._connect_extender,
            report_plugin_error=self._end_on_plugin_error,
        )
        self._handlers: EventHandlers | DecisionRecorder = handlers
        if recording is not None:
            recording.connect(handlers, self._scheduler)
            self._handlers = recording
        LivelockGuard(self._scheduler)
        self._scheduler.records_events = False
        self._scheduler.queue.observers.append(self._timeline.moved)
        ledger = PodLedger(self._world.server, self._is_ours)
        ledger.readers += filter(None, (self._timeline, recorder))
        self._world.nodes.on_disrupted = ledger.disrupted
        self._checkers = Checkers(self._world, self._scheduler, ledger) if checks else None
        self._script = Script(scenario, self._world)

    def _connect_extender(self, configuration: ExtenderConfiguration) -> ExtenderTransport:
        """Return the transport to an extender, as the scenario describes it."""
        prefix = configuration.url_prefix
        specs = {spec.url_prefix: spec for spec in self._scenario.scheduler.extenders}
        spec = specs.get(prefix) or ExtenderSpec(prefix)
        faults = self._scenario.faults.extender
        found = self._extenders[prefix] = SimulatedExtender(
            configuration, spec, self._world.server, self._random_streams, faults
        )
        return found

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler.profiles

    # The loop: `Observer`.

    def decided(self, decision: Decision, started: float) -> None:
        self._call_watch()

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        self._call_watch()

    def step(self) -> None:
        """Check what has changed, before the clock moves."""
        if self._checkers is not None:
            self._checkers.step()
        self._call_watch()

    def _call_watch(self) -> None:
        """Call the watch, and end the run if it returns False."""
        timeline = self._timeline
        if self._watch is not None and not self._watch(
            self._scheduler.now(), timeline.attempts, timeline.pods_bound
        ):
            self._end.cancel()

    async def run(self, objects: list[KubeObject]) -> TimelineReport:
        """Run to the end, or until the watch returns False; `objects` are there at the start."""
        loop = asyncio.get_running_loop()
        self._script.prepare(objects)
        self._world.connect(self._handlers)
        self._script.start()
        tasks = [
            loop.create_task(self._scheduler.run(), name="scheduler"),
            loop.create_task(self._sample(), name="samples"),
        ]
        if self._checkers is not None:
            tasks.append(loop.create_task(self._check(self._checkers), name="checks"))
        self._end = loop.create_task(asyncio.sleep(self._scenario.duration), name="end")
        # A task that ends before the simulation does has failed.
        await asyncio.wait([*tasks, self._end, self._failed], return_when=asyncio.FIRST_COMPLETED)
        for each in (self._failed, *tasks):
            if each.done():
                each.result()
        self._failed.cancel()
        if self._checkers is not None:
            self._checkers.check(loop.time())
        report = self._report(loop.time())
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        return report

    def _end_on_plugin_error(self, error: PluginError) -> None:
        """End the run at a plugin's first error: decisions after it are not reliable."""
        if not self._failed.done():
            self._failed.set_exception(error)

    async def _sample(self) -> None:
        while True:
            self._timeline.sample(self._scheduler.cache.nodes, self._scheduler.now())
            await asyncio.sleep(self._width_seconds)

    async def _check(self, checkers: Checkers) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            checkers.check(self._scheduler.now())

    def _report(self, now: float) -> TimelineReport:
        timeline, api = self._timeline, self._world.api
        timeline.sample(self._scheduler.cache.nodes, now)
        timeline.end(now)
        return TimelineReport(
            scenario=self._scenario.name,
            seed=self._random_streams.seed,
            partial=self._end.cancelled(),
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
                    for prefix, extender in self._extenders.items()
                ),
            ),
            relists=sum(informer.relists for informer in self._world.informers.values()),
            checks=0 if self._checkers is None else self._checkers.checks,
            decisions=self._log.lines,
            decision_digest=self._log.digest,
            series=timeline.series(),
        )


# The decision log.


class DecisionLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A line of the log; fields that do not apply are omitted.

    Attributes:
        at: Virtual seconds.
        what: `placed`, `rejected`, `failed`, `bound` or `bindingFailed`.
        pod: `namespace/name`.
        followers: How many equal pods behind it the line is about, too.
        node: The chosen or nominated node.
        feasible: Number of feasible nodes.
        message: The reason of a rejection or failure.
        victims: The pods to evict.
    """

    at: float
    what: str
    pod: str
    node: str = ""
    feasible: int = 0
    message: str = ""
    victims: tuple[str, ...] = ()
    followers: int = 0


class DecisionLog(Observer):
    """Writes each decision and action as a line of JSON, and counts the lines."""

    def __init__(self, write: Callable[[bytes], object] | None = None) -> None:
        """Start an empty log; `write` receives each line, None computes the digest only."""
        self.lines = 0
        self._write = write
        self._hash = hashlib.sha256()
        self._encode = msgspec.json.Encoder().encode

    @property
    def digest(self) -> str:
        """SHA-256 of all lines so far, in hexadecimal."""
        return self._hash.hexdigest()

    def decided(self, decision: Decision, started: float) -> None:
        """Log a decision."""
        at, key = round(started, _SECONDS_DIGITS), decision.pod.key
        match decision:
            case Placed(node_name=node_name, feasible=feasible):
                self._put(DecisionLine(at, "placed", key, node_name, feasible))
            case Rejected(message=message):
                node_name = decision.nominated_node_name or ""
                victims = tuple(victim.key for victim in decision.victims)
                self._put(DecisionLine(at, "rejected", key, node_name, 0, message, victims))
            case Failed(message=message):
                self._put(DecisionLine(at, "failed", key, message=message))

    def rejected_again(self, again: RejectedAgain, now: float) -> None:
        """Log that equal pods were rejected as before, in one line."""
        at, decision = round(again.started, _SECONDS_DIGITS), again.decision
        key, message, followers = decision.pod.key, decision.message, again.pods - 1
        self._put(DecisionLine(at, "rejected", key, message=message, followers=followers))

    def bound(self, assumed: Assumed, now: float) -> None:
        """Log that a pod was bound."""
        at, key = round(now, _SECONDS_DIGITS), assumed.pod.key
        self._put(DecisionLine(at, "bound", key, assumed.pod.node_name))

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """Log a failed binding."""
        at, key = round(now, _SECONDS_DIGITS), assumed.pod.key
        node_name, message = assumed.pod.node_name, status.message
        self._put(DecisionLine(at, "bindingFailed", key, node_name, message=message))

    def _put(self, line: DecisionLine) -> None:
        written = self._encode(line) + b"\n"
        self.lines += 1
        self._hash.update(written)
        if self._write is not None:
            self._write(written)
