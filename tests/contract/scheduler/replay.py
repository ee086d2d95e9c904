"""Replay plays a recorded scenario's script against our scheduler, on virtual time.

The script's requests go to an `ObjectServer`; the schedulers it starts are assembled as in
production, over informers and a recording API.

Invariants: what is sent is what the scheduler would send to an API server.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import msgspec

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.loop import Scheduler
from kubesched.simulator.informer import Informer, is_unfinished
from kubesched.simulator.object_server import NODES, PODS, ObjectServer

from .completing import completed
from .recorded_extender import ADDRESS, RecordedExtender
from .recording_api import RecordingApi, Sent
from .requests_on_objects import ObjectRequests, Plain, plain

WATCH_SECONDS: Final = 0.001
PAUSE_SECONDS: Final = 0.15
POLL_SECONDS: Final = 0.03
_START_SECONDS: Final = 0.05
_WAIT_SECONDS_MAX: Final = 60.0
_KINDS: Final = (
    NODES,
    "namespaces",
    "services",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "poddisruptionbudgets.policy",
    PODS,
)


class Replayed(msgspec.Struct):
    """What came of it.

    Attributes:
        sent: The schedulers' requests.
        pods: Every change of every pod: the kind of change, and the pod after it.
        final: All objects at the end of the script, before the last scheduler stops; by kind.
        uids: Of the objects: uid -> what it belongs to.
    """

    sent: list[Sent]
    pods: list[tuple[str, Plain]]
    final: dict[str, list[Plain]]
    uids: dict[str, str]


class _Running(msgspec.Struct):
    """A scheduler that runs."""

    scheduler: Scheduler
    api: RecordingApi
    informers: list[Informer]
    task: asyncio.Task[None]

    async def stop(self) -> None:
        """Stop hearing and deciding; what is under way ends."""
        for informer in self.informers:
            informer.lose(_FOR_EVER_SECONDS, expired=False)
        self.scheduler.stop()
        await self.task
        await self.scheduler.drain()
        await self.api.drain()


_FOR_EVER_SECONDS: Final = 1e6


class Replay:
    """One run, on the running event loop.

    Attributes:
        extender: Answers for the test bed's extender.
    """

    def __init__(self, record: Plain) -> None:
        self._record = record
        self._server = ObjectServer(asyncio.get_running_loop().time, taints_new_nodes=True)
        self._requests = ObjectRequests(self._server, completed)
        self._watch = self._server.store.watch(PODS, 1)
        self._sent: list[Sent] = []
        self._done = 0
        self._running: dict[str, _Running] = {}
        self._final: dict[str, list[Plain]] = {}
        self._uids: dict[str, str] = {}
        self.extender = RecordedExtender(record, self._uid_of, self._bind)

    async def run(self) -> Replayed:
        """Play the script; return what came of it."""
        for step in self._record["steps"]:
            await self._play(step)
            self._done += 1
        self._final = self._final or self._objects()
        for running in self._running.values():
            await running.stop()
        changes = [(str(change.type), plain(change.value)) for change in self._watch.read()]
        for _, pod in changes:
            self._note_uid(pod)
        return Replayed(self._sent, changes, self._final, self._uids)

    async def _play(self, step: Plain) -> None:
        if "request" in step:
            self._request(**step["request"])
            if self._running:
                await asyncio.sleep(PAUSE_SECONDS)
        elif step.get("scheduler") == "start":
            await self._start(step["id"], step["config"])
        elif step.get("scheduler") == "signal":
            self._final = self._objects()
            await self._running.pop(step["id"]).stop()
        elif "wait" in step:
            await self._wait(step["wait"])
        elif "extender" in step:
            self.extender.let_go()
        else:
            await asyncio.sleep(step.get("wait_seconds", 0.0))

    def _request(
        self, method: str, path: str, body: Plain | None = None, **_headers: object
    ) -> None:
        self._requests.send(method, path, body)

    async def _start(self, name: str, configuration: Plain) -> None:
        await asyncio.sleep(_START_SECONDS)
        gates = FeatureGates()
        api = RecordingApi(self._requests, self._sent, lambda: self._done)
        text = msgspec.json.encode(configuration).replace(b"<extender>", ADDRESS.encode())
        scheduler, handlers = assemble(
            load_configuration(text, gates),
            in_tree_registry(),
            gates,
            api,
            random=Random(0),
            connect=lambda _: self.extender,
        )
        for profile in scheduler.profiles.values():
            vars(profile)["volume_writer"] = api
        informers = [
            Informer(self._server.store, kind, handlers, lambda: WATCH_SECONDS, is_unfinished)
            for kind in _KINDS
        ]
        for informer in informers:
            informer.start()
        task = asyncio.ensure_future(scheduler.run())
        self._running[name] = _Running(scheduler, api, informers, task)

    async def _wait(self, wanted: Plain) -> None:
        waited = 0.0
        while not self._is_true(wanted):
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            assert waited < _WAIT_SECONDS_MAX, f"waited in vain for {wanted}"
        if "scheduler_ready" in wanted:
            await asyncio.sleep(PAUSE_SECONDS)

    def _is_true(self, wanted: Plain) -> bool:
        if "extender_called" in wanted:
            return self.extender.was_called(wanted["extender_called"], wanted["pod"])
        if "event" in wanted:
            return self._has_event(**wanted["event"])
        if "pod" in wanted:
            namespace, _, name = wanted["pod"].partition("/")
            pod = self._requests.find(f"/api/v1/namespaces/{namespace}/pods/{name}")
            return pod is not None and _is_pod_so(pod, wanted)
        if "persistentvolume" in wanted:
            volume = self._requests.find(f"/api/v1/persistentvolumes/{wanted['persistentvolume']}")
            return volume is not None and "claimRef" in volume["spec"]
        return "scheduler_ready" in wanted

    def _has_event(self, reason: str, object: str, count: int) -> bool:  # noqa: A002 - recorded so
        found = [
            sent
            for sent in self._sent
            if sent.body.get("reason") == reason and sent.body["regarding"]["name"] == object
        ]
        return len(found) >= count

    # The objects.

    def _objects(self) -> dict[str, list[Plain]]:
        found: dict[str, list[Plain]] = {}
        for kind in _KINDS:
            items = [plain(item) for item in self._server.store.list(kind).items]
            for item in items:
                self._note_uid(item)
            found[kind.partition(".")[0]] = items
        return found

    def _note_uid(self, item: Plain) -> None:
        metadata = item["metadata"]
        self._uids[metadata["uid"]] = f"{item['kind']} {metadata['name']}"

    def _bind(self, body: Plain) -> None:
        """Bind as an extender that binds does."""
        self._server.bind(body["PodNamespace"], body["PodName"], body["PodUID"], body["Node"])

    def _uid_of(self, pod_name: str) -> str:
        pod = self._requests.find(f"/api/v1/namespaces/default/pods/{pod_name}")
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


async def replay(record: Plain) -> tuple[Replayed, RecordedExtender]:
    """Play a recorded scenario; return what came of it."""
    played = Replay(record)
    return await played.run(), played.extender
