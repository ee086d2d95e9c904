"""SchedulerProcess runs a scheduler on an API server, from its options to its exit code.

    connection ─▶ informers ─▶ event handlers ─▶ scheduler loop ─▶ writes ─▶ connection
                    (always)                       (while it leads)

Informers run from the start, so that a replica that takes over has a warm cache. A new leader
starts the loop. A leader that loses the lease exits, because its work may still be under way.

Upstream: cmd/kube-scheduler/app/server.go (v1.36)
Differs:  on SIGTERM, writes under way may finish before the lock is released; pods that wait for
          permission, volumes or devices have half a second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError
from kubesched.api.volume import ObjectReference
from kubesched.app.debugger import log_cache
from kubesched.app.decision_ring import (
    DECISIONS,
    DecisionQuery,
    DecisionRing,
    decision_page,
    queue_state,
)
from kubesched.app.dry_run import DryRunClient
from kubesched.app.election import Election
from kubesched.app.endpoints import Endpoints, configz, flagz, scheduler_health
from kubesched.app.environment import REAL_ENVIRONMENT, Connections, Environment
from kubesched.app.logs import Logs
from kubesched.app.metrics.pages import Pages
from kubesched.app.options import Options
from kubesched.app.scheduler_informers import report_failures, scheduler_informers
from kubesched.app.secure_port import SecurePort
from kubesched.cache.cache import PodLister
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.informers import Informers
from kubesched.config.types import Configuration
from kubesched.explain.decision_records import DecisionRecords
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.scheduler.api_client import ApiClient
from kubesched.scheduler.assembly import NO_WRITERS, assemble, queue_options
from kubesched.scheduler.decision_recorder import DecisionRecorder
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.extenders import Connect as ConnectExtender
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.scheduling_log import log_move

EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1

_DRAIN_SECONDS_MAX: Final = 10.0
_PREPARE_SECONDS_MAX: Final = 0.5
# A server that answers in 100 ms gets 2,500 writes a second; each takes some 10 KiB of memory.
_WRITES_AT_ONCE: Final = 256

log = logging.getLogger(__name__)

Report = Callable[[dict[str, Any]], None]


class SchedulerProcess:
    """One replica.

    Attributes:
        is_synced: Whether the cache has received the first list of every kind.
        is_stopping: Whether the process is shutting down.
        scheduler: The scheduler; None before `run`.
    """

    def __init__(
        self,
        options: Options,
        configuration: Configuration,
        registry: Registry,
        settings: ConnectionSettings,
        *,
        report: Report | None = None,
        logs: Logs | None = None,
        flags: Mapping[str, str] | None = None,
        recorder: DecisionRecorder | None = None,
        environment: Environment = REAL_ENVIRONMENT,
    ) -> None:
        """Set up; nothing is sent yet; raises ConfigError.

        With `--dry-run`, `report` gets what would be written. `logs` are the loggers whose
        verbosity the secure port can change, `flags` are names and values for /flagz. `recorder`
        records what is observed and decided.
        """
        self._options = options
        self._configuration = configuration
        self._registry = registry
        self._settings = settings
        self._report = report
        self._logs = logs
        self._flags = flags or {}
        self._recorder = recorder
        self._environment = environment
        self._connections: Connections
        self._main_loop: asyncio.AbstractEventLoop
        self._stop = asyncio.Event()
        self._lost = asyncio.Event()
        self._ended_as_asked = False
        self.metrics = Pages(
            options.feature_gates,
            clock=environment.monotonic,
            draw=environment.new_random().random,
            exposure=options.exposure,
        )
        self._port: SecurePort | None = None
        self._ring: DecisionRing | None = None
        if options.decision_records and options.serving.secure_port:
            self._ring = DecisionRing(options.decision_records, environment.now_ns)
        self._informers: Informers | None = None
        self.is_synced = False
        self.is_stopping = False
        self.scheduler: Scheduler | None = None
        self.election: Election | None = None
        if configuration.leader_election.leader_elect and not options.dry_run:
            self.election = Election(
                settings,
                configuration.client_connection,
                configuration.leader_election,
                environment=environment,
                record_event=self._record_election,
                observer=self.metrics.requests,
                allow_removed_locks=options.allow_removed_locks,
            )
            self.metrics.election = self.election.elector.statistics
        if options.serving.secure_port:
            self._port = SecurePort(options.serving, options.access, settings, self._endpoints())

    @property
    def is_lost(self) -> bool:
        """Whether another replica may lead by now."""
        return self._lost.is_set()

    def stop(self) -> None:
        """Shut down: try no new pod, finish writes under way, release the lock."""
        self.is_stopping = True
        self._stop.set()

    async def run(self) -> int:
        """Run until stopped; return the exit code."""
        async with AsyncExitStack() as opened:
            # Signals are handled first and longest: anything below may be slow to open or close.
            opened.enter_context(self._environment.signals(self.stop, self._show_cache))
            self._main_loop = asyncio.get_running_loop()
            self._connections = connections = Connections(
                self._settings,
                self._configuration.client_connection,
                self._check_leadership,
                self.metrics.requests,
                self._environment,
            )
            if not await self._unless_over(connections.open(opened)):
                return self._end_without_leading()
            connect = await opened.enter_async_context(self._environment.extenders())
            api = connections.api if self._report is None else DryRunClient(self._report)
            scheduler, handlers = self._assemble(api, connect)
            self.scheduler = scheduler
            scheduler.queue.observers += (log_move,)
            if self._report is not None:
                scheduler.bind_through_api_only()
            if self._recorder is not None:
                self._recorder.connect(handlers, scheduler)
            self._informers = informers = scheduler_informers(
                connections.rest,
                self._recorder or handlers,
                scheduler,
                self._options.feature_gates,
                self._environment.new_random(),
            )
            if self._port is not None:
                await self._port.open(opened)
            return await self._run(scheduler, informers)

    def _endpoints(self) -> Endpoints:
        endpoints = Endpoints()
        election = self.election
        endpoints.add_health(
            scheduler_health(
                leader_election=None if election is None else election.elector.health_error,
                is_stopping=lambda: self.is_stopping,
                has_synced=lambda: self.is_synced,
                observe=self.metrics.health.observe,
            )
        )
        configuration = configz(self._configuration)
        endpoints.add("/configz", lambda _request: configuration)
        endpoints.add_metrics("/metrics", self.metrics.metrics, time.time())
        endpoints.add_metrics("/metrics/slis", self.metrics.slis, time.time())
        resources = self.metrics.resources(self._pods)
        endpoints.add_metrics("/metrics/resources", resources, is_shown=self._leads)
        if self._configuration.enable_profiling and self._logs is not None:
            endpoints.add_debugging(self._logs.set_verbosity)
        if self._ring is not None:
            read = partial(self._decisions, self._ring)
            endpoints.add(DECISIONS, lambda request: decision_page(request, read), is_listed=False)
        if self._options.feature_gates.enabled("ComponentFlagz"):
            endpoints.add("/flagz", lambda request: flagz(request, self._flags))
        if self._options.feature_gates.enabled("ComponentStatusz"):
            now_ns = self._environment.now_ns
            endpoints.add_statusz(lambda: datetime.fromtimestamp(now_ns() / 1e9, UTC))
        return endpoints

    def _decisions(self, ring: DecisionRing, query: DecisionQuery) -> DecisionRecords:
        queue = None
        if query.pod and self.scheduler is not None:
            now_ns = self._environment.now_ns()
            queue = queue_state(self.scheduler, query.pod, now_ns)
        return DecisionRecords(
            leads=self._leads(),
            capacity=ring.capacity,
            recorded=ring.recorded,
            records=ring.newest(query),
            queue=queue,
        )

    def _show_cache(self) -> None:
        if self.scheduler is None or self._informers is None:
            return
        kinds = self._informers.by_name
        nodes = [item.metadata.name for item in kinds["nodes"].items]
        pods = [item.metadata.uid for item in kinds["pods"].items]
        log_cache(nodes, pods, self.scheduler.cache, self.scheduler.queue)

    def _pods(self) -> Iterable[Pod]:
        return () if self.scheduler is None else self.scheduler.pods.all()

    def _leads(self) -> bool:
        return self.election is None or self.election.may_act()

    def _record_election(self, about: ObjectReference, words: str) -> None:
        """Write an event of the lock; called in the election's thread."""
        if self.is_stopping:
            # Upstream's process exits before it could write that it has stopped leading.
            return
        component = self._configuration.profiles[0].scheduler_name
        record = self._connections.recorder.record_election
        self._main_loop.call_soon_threadsafe(record, about, words, component)

    def _check_leadership(self) -> None:
        """Raise ApiError if the lease may have expired: then nothing is written."""
        if not self._leads():
            raise ApiError(0, "NotLeader", "this replica does not lead any more")

    def _assemble(
        self, api: ApiClient, connect: ConnectExtender
    ) -> tuple[Scheduler, EventHandlers]:
        setup = SchedulerSetup(
            self._configuration,
            self._registry,
            self._options.feature_gates,
            self._environment.monotonic,
        )
        seed = self._options.seed
        ahead_seconds = self._environment.now_ns() / 1e9 - asyncio.get_running_loop().time()
        options = replace(
            queue_options(setup),
            max_in_unschedulable_pods_seconds=self._options.max_in_unschedulable_seconds,
            wall_clock_ahead_seconds=round(ahead_seconds % 1.0 * 1024) / 1024,
        )
        pods = PodLister()
        writers = NO_WRITERS if self._report is not None else self._connections.writers(pods)
        return assemble(
            setup,
            api,
            random=self._environment.new_random() if seed is None else Random(seed),  # noqa: S311 - ties
            options=options,
            connect=connect,
            observers=tuple(filter(None, (self._ring, self._recorder))),
            instruments=self.metrics.scheduler,
            pods=pods,
            writers=writers,
            writes_at_once=_WRITES_AT_ONCE,
        )

    # Phases.

    async def _run(self, scheduler: Scheduler, informers: Informers) -> int:
        following = asyncio.ensure_future(informers.run())
        reporting = asyncio.ensure_future(report_failures(informers, self._settings.server))
        try:
            if not await self._unless_over(informers.wait_for_sync(), following):
                return self._end_without_leading()
            self._settle()
            return await self._lead(scheduler, following)
        finally:
            following.cancel()
            reporting.cancel()
            await asyncio.gather(following, reporting, return_exceptions=True)

    def _settle(self) -> None:
        self.is_synced = True
        if self._recorder is not None:
            self._recorder.synced()
        self._environment.settle_memory()
        log.info("Caches are synced")

    async def _lead(self, scheduler: Scheduler, following: asyncio.Future[None]) -> int:
        if self.election is None:
            await self._unless_over(scheduler.run(), following)
            await self._finish_writes(scheduler)
            code = self._end_without_leading()
            if code != EXIT_DONE:
                log.error("command failed: finished without leader elect")
            return code
        scheduler.may_decide = self.election.may_act
        started = asyncio.Event()
        self.election.start(started.set, self._stopped_leading)
        try:
            if await self._unless_over(started.wait(), following):
                await self._unless_over(scheduler.run(), following)
            if self.is_stopping:
                await self._finish_writes(scheduler)
        finally:
            await self.election.stop()
        if self._ended_as_asked:
            log.info("Requested to terminate, exiting")
            return EXIT_DONE
        log.error("Leaderelection lost")
        return EXIT_FAILED

    async def _finish_writes(self, scheduler: Scheduler) -> None:
        """Wait for writes under way, for a limited time, and not for preparations."""
        await scheduler.end_preparations(_PREPARE_SECONDS_MAX)
        try:
            async with asyncio.timeout(_DRAIN_SECONDS_MAX):
                await scheduler.drain()
                await self._connections.drain()
        except TimeoutError:
            seconds = _DRAIN_SECONDS_MAX
            log.warning("Gave up waiting for writes under way after %s seconds", seconds)

    def _end_without_leading(self) -> int:
        # Without an election upstream exits with an error; a dry run has no counterpart there.
        may_end = self.election is not None or self._options.dry_run
        if may_end and self.is_stopping:
            log.info("Requested to terminate, exiting")
            return EXIT_DONE
        return EXIT_FAILED

    def _stopped_leading(self) -> None:
        if not self.is_lost:
            self._ended_as_asked = self.is_stopping
            self._lost.set()

    async def _unless_over(
        self, work: Coroutine[Any, Any, object], *following: asyncio.Future[None]
    ) -> bool:
        """Await work until it ends or the process must end; return whether the work ended.

        Raises what the work or the informers raise.
        """
        task = asyncio.ensure_future(work)
        ends = [asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(self._lost.wait())]
        awaited: list[asyncio.Future[Any]] = [task, *following, *ends]
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            for informers in following:
                if informers.done():
                    informers.result()
            return task.done() and not task.cancelled() and task.exception() is None
        finally:
            for other in (task, *ends):
                other.cancel()
            outcome, *_ = await asyncio.gather(task, *ends, return_exceptions=True)
            if isinstance(outcome, Exception):
                raise outcome
