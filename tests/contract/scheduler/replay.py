"""Replay runs a recorded scenario's script against our scheduler, on virtual time.

The script's requests go to the embedded API server; the schedulers it starts are whole processes,
from connections to exit codes, only without sockets and threads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime, timedelta
from random import Random
from typing import Final

import msgspec

from kubesched.apiserver.request import ApiRequest, Response, refused
from kubesched.apiserver.server import ADMIN, ApiServer
from kubesched.apiserver.status import StatusError
from kubesched.app.environment import Environment
from kubesched.app.options import Options, ServingOptions
from kubesched.app.process import SchedulerProcess
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.config.load import load_configuration
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.extenders import Connect as ConnectExtender
from tests.contract.placeholders import EPOCH

from .in_process_connection import Network, Plain, Sent
from .recorded_extender import ADDRESS, RecordedExtender

PAUSE_SECONDS: Final = 0.15
POLL_SECONDS: Final = 0.03
_START_SECONDS: Final = 0.05
_WAIT_SECONDS_MAX: Final = 60.0
_PODS: Final = "/api/v1/pods"
_LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_FINAL: Final = {
    "pods": _PODS,
    "events": "/apis/events.k8s.io/v1/events",
    "nodes": "/api/v1/nodes",
    "leases": "/apis/coordination.k8s.io/v1/leases",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
    "persistentvolumes": "/api/v1/persistentvolumes",
    "persistentvolumeclaims": "/api/v1/persistentvolumeclaims",
}


class Replayed(msgspec.Struct):
    """The result of a replay.

    Attributes:
        sent: The schedulers' requests.
        pods: Every change of every pod: the kind of change, and the pod after it.
        leases: The same of leases, with the moment in seconds.
        final: All objects at the end of the script, before the last scheduler stops; by kind.
        begins: When each step began, in seconds.
        exits: By the scheduler's id: its exit code, and when it came.
    """

    sent: list[Sent]
    pods: list[tuple[str, Plain]] = []
    leases: list[tuple[float, Plain]] = []
    final: dict[str, list[Plain]] = {}
    begins: list[float] = []
    exits: dict[str, tuple[int, float]] = {}


class _Running(msgspec.Struct):
    """A running scheduler."""

    process: SchedulerProcess
    network: Network
    task: asyncio.Task[int]


class Replay:
    """One run, on the running event loop.

    Attributes:
        extender: Answers for the test bed's extender.
    """

    def __init__(self, record: Plain, seed: int = 0) -> None:
        self._record = record
        self._random = Random(seed)
        self._now = asyncio.get_running_loop().time
        self._server = ApiServer(now=self._time_of_day, random=Random(1))
        self._refuses_initial_events = record["name"] == "startup-no-watchlist"
        self._replayed = Replayed([])
        self._done = 0
        self._running: dict[str, _Running] = {}
        self._killed: list[asyncio.Task[int]] = []
        self._leader = ""
        self._has_started = False
        self.extender = RecordedExtender(record, self._uid_of, self._bind)

    def _time_of_day(self) -> datetime:
        return EPOCH + timedelta(seconds=self._now())

    async def run(self) -> Replayed:
        """Run the script; return the result."""
        watching = [
            asyncio.ensure_future(self._watch(_PODS, self._note_pod)),
            asyncio.ensure_future(self._watch(_LEASE.rpartition("/")[0], self._note_lease)),
        ]
        await asyncio.sleep(0)
        for step in self._record["steps"]:
            self._replayed.begins.append(self._now())
            await self._play(step)
            self._done += 1
        replayed = self._replayed
        replayed.final = await self._objects()
        for name in list(self._running):
            await self._stop(name)
        await asyncio.gather(*self._killed, return_exceptions=True)
        for task in watching:
            task.cancel()
        await asyncio.wait(watching)
        return replayed

    # Steps.

    async def _play(self, step: Plain) -> None:
        if "request" in step:
            await self._request(step)
        elif "scheduler" in step:
            await getattr(self, f"_scheduler_{step['scheduler']}")(step)
        elif "wait" in step:
            await self._wait(step["wait"])
        elif "extender" in step:
            self.extender.release()
        elif "api_server" in step:
            for running in self._running.values():
                running.network.cut()
        else:
            await asyncio.sleep(step.get("wait_seconds", 0.0))

    async def _request(self, step: Plain) -> None:
        answer = await self._ask(**step["request"])
        assert step["status"] == answer.status, (step, answer.body)
        if self._running:
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(
        self, method: str, path: str, body: Plain | None = None, headers: Plain | None = None
    ) -> Response:
        """Send a request of the script."""
        content = b"" if body is None else json.dumps(body).encode()
        request = ApiRequest(method, path, {}, headers or {}, content, ADMIN)
        return await self._server.handle(request)

    async def _find(self, path: str) -> Plain | None:
        answer = await self._ask("GET", path)
        found: Plain = json.loads(answer.body)
        return found if answer.status == 200 else None

    async def _scheduler_start(self, step: Plain) -> None:
        await asyncio.sleep(_START_SECONDS)
        self._has_started = True
        options = Options(serving=ServingOptions(secure_port=0))
        text = msgspec.json.encode(step["config"]).replace(b"<extender>", ADDRESS.encode())
        network = Network(self._answer, self._replayed.sent, lambda: self._done)
        process = SchedulerProcess(
            options,
            load_configuration(text, options.feature_gates),
            in_tree_registry(),
            ConnectionSettings(server="http://in-process"),
            environment=self._environment(network),
        )
        task = asyncio.ensure_future(process.run())
        self._running[step["id"]] = _Running(process, network, task)

    def _environment(self, network: Network) -> Environment:
        return Environment(
            connect=network.connect,
            extenders=self._extenders,
            now_ns=lambda: int(self._time_of_day().timestamp() * 1e6) * 1000,
            monotonic=self._now,
            new_random=lambda: Random(self._random.getrandbits(64)),
            host_name="<hostname>",
            has_threads=False,
            settle_memory=lambda: None,
            # The virtual loop has no signals; the script calls `stop`.
            signals=lambda _stop, _debug: nullcontext(),
        )

    async def _answer(self, request: ApiRequest) -> Response:
        """Answer the scheduler; in one scenario a proxy refuses streams of initial events."""
        if self._refuses_initial_events and "sendInitialEvents" in request.query:
            message = "sendInitialEvents is forbidden for watch"
            return refused(StatusError(422, "Invalid", message))
        return await self._server.handle(request)

    async def _scheduler_signal(self, step: Plain) -> None:
        # The script lets things settle before it ends a scenario.
        await asyncio.sleep(step["t"] - self._record["steps"][self._done - 1]["t"])
        running = self._running[step["id"]]
        if step["signal"] == "SIGKILL":
            running.network.cut()
            running.task.cancel()
            self._killed.append(self._running.pop(step["id"]).task)
        else:
            running.process.stop()

    async def _scheduler_exited(self, step: Plain) -> None:
        name = step["id"]
        if name in self._running:
            code = await self._running.pop(name).task
            self._replayed.exits[name] = (code, self._now())

    async def _stop(self, name: str) -> None:
        running = self._running.pop(name)
        running.process.stop()
        await running.task

    # Waiting.

    async def _wait(self, wanted: Plain) -> None:
        waited = 0.0
        while not await self._is_true(wanted):
            for running in self._running.values():
                if running.task.done():
                    running.task.result()
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            assert waited < _WAIT_SECONDS_MAX, f"waited in vain for {wanted}"
        if "scheduler_ready" in wanted:
            await asyncio.sleep(PAUSE_SECONDS)

    async def _is_true(self, wanted: Plain) -> bool:
        if "scheduler_ready" in wanted:
            return self._running[wanted["scheduler_ready"]].process.is_synced
        if "extender_called" in wanted:
            return self.extender.was_called(wanted["extender_called"], wanted["pod"])
        if "event" in wanted:
            return self._has_event(**wanted["event"])
        if "leader" in wanted:
            return await self._has_new_leader()
        if "pod" in wanted:
            namespace, _, name = wanted["pod"].partition("/")
            pod = await self._find(f"/api/v1/namespaces/{namespace}/pods/{name}")
            return pod is not None and _is_pod_so(pod, wanted)
        volume = await self._find(f"/api/v1/persistentvolumes/{wanted['persistentvolume']}")
        return volume is not None and "claimRef" in volume["spec"]

    async def _has_new_leader(self) -> bool:
        lease = await self._find(_LEASE)
        holder = lease["spec"].get("holderIdentity", "") if lease is not None else ""
        is_new = "<hostname>" in holder and holder != self._leader
        if is_new:
            self._leader = holder
        return is_new

    def _has_event(self, reason: str, object: str, count: int) -> bool:  # noqa: A002 - recorded so
        found = [
            sent
            for sent in self._replayed.sent
            if sent.body.get("reason") == reason and sent.body["regarding"]["name"] == object
        ]
        return len(found) >= count

    # The objects.

    async def _objects(self) -> dict[str, list[Plain]]:
        found = {kind: await self._find(path) for kind, path in _FINAL.items()}
        return {kind: items["items"] for kind, items in found.items() if items and items["items"]}

    async def _watch(self, path: str, note: Callable[[str, Plain], None]) -> None:
        query = {"watch": ("true",), "timeoutSeconds": ("100000",)}
        answer = await self._server.handle(ApiRequest("GET", path, query, user=ADMIN))
        assert answer.stream is not None
        async for lines in answer.stream:
            for line in lines.splitlines():
                event = json.loads(line)
                note(event["type"], event["object"])

    def _note_pod(self, kind: str, pod: Plain) -> None:
        self._replayed.pods.append((kind, pod))

    def _note_lease(self, _kind: str, lease: Plain) -> None:
        # What was there before the first scheduler is not recorded either.
        if self._has_started:
            self._replayed.leases.append((self._now(), lease))

    # The extender.

    @asynccontextmanager
    async def _extenders(self) -> AsyncIterator[ConnectExtender]:
        yield lambda _configuration: self.extender

    async def _bind(self, body: Plain) -> None:
        """Bind a pod, as an extender with a bind verb does."""
        binding = {
            "metadata": {"name": body["PodName"], "uid": body["PodUID"]},
            "target": {"kind": "Node", "name": body["Node"]},
        }
        path = f"/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding"
        answer = await self._ask("POST", path, binding)
        assert answer.status == 201, answer.body

    async def _uid_of(self, pod_name: str) -> str:
        pod = await self._find(f"/api/v1/namespaces/default/pods/{pod_name}")
        assert pod is not None, pod_name
        uid: str = pod["metadata"]["uid"]
        return uid


def _is_pod_so(pod: Plain, wanted: Plain) -> bool:
    if wanted.get("bound"):
        return bool(pod["spec"].get("nodeName"))
    if wanted.get("nominated"):
        return bool(pod["status"].get("nominatedNodeName"))
    if wanted.get("deleting"):
        return "deletionTimestamp" in pod["metadata"]
    part = wanted.get("message_contains", "")
    return any(
        condition.items() >= wanted["condition"].items() and part in condition.get("message", "")
        for condition in pod["status"].get("conditions", ())
    )


async def replay(record: Plain, seed: int = 0) -> tuple[Replayed, RecordedExtender]:
    """Run a recorded scenario; return the result."""
    played = Replay(record, seed)
    return await played.run(), played.extender
