"""RecordingApi is the simulated API server for a scheduler, with a line per request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod
from kubesched.api.errors import ApiError
from kubesched.api.scheduling import PodGroup
from kubesched.simulator.faults import NO_FAULTS, Latencies, RandomStreams
from kubesched.simulator.object_server import ObjectServer
from kubesched.simulator.simulated_api import SimulatedApi

from .recorder import Recorder, name_of

_APART_SECONDS: Final = 1e-5
_AT_ONCE: Final = Latencies(request=0)


class Trouble(msgspec.Struct):
    """The failure or delay of requests.

    Attributes:
        verb: Of requests: `bind`, `status`, `delete`.
        pod: The pod; "" for any.
        error: The refusal; None if they are only slow.
        seconds: How long they take.
        times: How many more requests fare so.
    """

    verb: str
    pod: str = ""
    error: ApiError | None = None
    seconds: float = 0.0
    times: int = 1_000
    _used: int = 0

    def delay(self) -> float:
        """Return the delay of one more request; no two are equal."""
        self._used += 1
        return self.seconds and self.seconds + self._used * _APART_SECONDS


class RecordingApi(SimulatedApi):
    """Writes a line per request, and refuses those that the transcript names.

    Attributes:
        troubles: The injected failures; the first that matches counts.
    """

    def __init__(self, server: ObjectServer, recorder: Recorder) -> None:
        super().__init__(server, RandomStreams(0), _AT_ONCE, NO_FAULTS)
        self.troubles: list[Trouble] = []
        self._server_of_names = server
        self._recorder = recorder

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Assign the pod to the node."""
        line = f"bind {name_of(pod)} to {node_name}"
        request = super().bind
        await self._send("bind", pod, line, lambda: request(pod, node_name))

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Set condition and nomination."""
        parts: list[str] = []
        if condition is not None:
            state = f"{condition.type}={condition.status} {condition.reason}"
            message = self._recorder.message(name_of(pod), condition.message)
            parts.append(f"{state} {message}")
        if nominated_node_name is not None:
            parts.append(self._nomination(pod, nominated_node_name))
        request = super().patch_pod_status
        line = f"patch {name_of(pod)}: {', '.join(parts)}"
        await self._send("status", pod, line, lambda: request(pod, condition, nominated_node_name))

    def _nomination(self, pod: Pod, node_name: str) -> str:
        metadata = pod.metadata
        known = self._server_of_names.pod(metadata.namespace, metadata.name)
        before = "" if known is None else known.status.nominated_node_name
        if before == node_name:
            return f"nomination {before or '-'} stays"
        return f"nomination {before or '-'} becomes {node_name or '-'}"

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Set the group's condition."""
        state = f"{condition.type}={condition.status} {condition.reason}"
        line = f'patch group {group.metadata.name} {state} "{condition.message}"'
        self._recorder.write("api", line)
        await super().patch_pod_group_status(group, condition)

    async def delete_pod(self, pod: Pod) -> None:
        """Start deleting the pod."""
        request = super().delete_pod
        await self._send("delete", pod, f"delete {name_of(pod)}", lambda: request(pod))

    def record_event(self, event: EventRecord) -> None:
        """Write the event."""
        related = f" because of {name_of(event.related)}" if event.related else ""
        name = name_of(event.regarding)
        line = f"{name}: {event.type} {event.reason}/{event.action}{related}"
        self._recorder.write("event", f"{line} {self._recorder.message(name, event.note)}")

    async def _send(
        self, verb: str, pod: Pod, line: str, request: Callable[[], Awaitable[None]]
    ) -> None:
        self._recorder.write("api", line)
        trouble = self._trouble(verb, name_of(pod))
        try:
            if trouble is not None:
                await asyncio.sleep(trouble.delay())
                if trouble.error is not None:
                    raise trouble.error
            await request()
        except ApiError as error:
            self._recorder.write("api", f"refused: {error}")
            raise

    def _trouble(self, verb: str, pod: str) -> Trouble | None:
        for trouble in self.troubles:
            if trouble.verb == verb and trouble.pod in ("", pod) and trouble.times:
                trouble.times -= 1
                return trouble
        return None
