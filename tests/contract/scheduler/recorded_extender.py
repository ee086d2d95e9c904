"""RecordedExtender answers a scheduler's requests with the recorded answers.

Differs:  where no answers were recorded, every node passes; the first answer is held back until
          the script lets it go.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from .in_process_connection import Plain

ADDRESS: Final = "http://<host>:<port>"


class Asked(NamedTuple):
    """A request.

    Attributes:
        path: Where it went, without the address.
        body: What was asked.
    """

    path: str
    body: Plain

    @property
    def pod(self) -> str:
        """The name of the pod of the request."""
        named: str = self.body.get("PodName") or self.body["Pod"]["metadata"]["name"]
        return named


class RecordedExtender:
    """A transport with recorded answers.

    Attributes:
        asked: The questions, in order.
    """

    def __init__(
        self,
        record: Plain,
        uid_of: Callable[[str], Awaitable[str]],
        bind: Callable[[Plain], Awaitable[None]],
    ) -> None:
        """Take the record; `uid_of` names a pod's uid here, `bind` carries a binding out."""
        self._exchanges: list[Plain] = list(record.get("extender_exchanges", ()))
        self._uid_of = uid_of
        self._uids = _uids_of_pods(self._exchanges)
        self._bind = bind
        self._has_answers = bool(self._exchanges)
        self._held = asyncio.Event()
        if not any("extender" in step for step in record["steps"]):
            self._held.set()
        self.asked: list[Asked] = []

    def release(self) -> None:
        """Return the answer that is held back."""
        self._held.set()

    def was_called(self, verb: str, pod: str) -> bool:
        """Whether there was a request about a pod, `namespace/name`."""
        name = pod.partition("/")[2]
        return any(asked.path.endswith(f"/{verb}") and asked.pod == name for asked in self.asked)

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """Return the recorded answer."""
        asked = Asked(url.removeprefix(ADDRESS), json.loads(body))
        self.asked.append(asked)
        await self._held.wait()
        if not self._has_answers:
            return 200, json.dumps({"NodeNames": asked.body["NodeNames"]}).encode()
        response = self._next(asked)["response"]
        if asked.path.endswith("/bind") and not response["body"]:
            await self._bind(asked.body)
        text = response.get("body_text")
        if text is None:
            text = json.dumps(response["body"])
        for placeholder, pod in self._uids.items():
            if placeholder in text:
                text = text.replace(placeholder, await self._uid_of(pod))
        return response["status"], text.encode()

    def _next(self, asked: Asked) -> Plain:
        """Remove and return the first exchange about the same."""
        for at, exchange in enumerate(self._exchanges):
            request = exchange["request"]
            if asked.path == request["path"] and asked.pod == Asked("", request["body"]).pod:
                return self._exchanges.pop(at)
        raise AssertionError(f"{asked.path} was not asked about {asked.pod} any more")


def _uids_of_pods(exchanges: list[Plain]) -> dict[str, str]:
    found: dict[str, str] = {}
    for exchange in exchanges:
        victims = exchange["request"]["body"].get("NodeNameToVictims") or {}
        pods = [pod for chosen in victims.values() for pod in chosen["Pods"]]
        found |= {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods}
    return found
