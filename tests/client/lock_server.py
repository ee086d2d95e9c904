"""An API server of locks, with optimistic concurrency, and connections to it that fail."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from kubesched.api.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from kubesched.client.requests import Request

Plain = dict[str, Any]


class LockServer:
    """Objects by path.

    Attributes:
        objects: What is stored.
        history: Every accepted write of an object, as (time, path, object).
    """

    def __init__(self) -> None:
        self.objects: dict[str, Plain] = {}
        self.history: list[tuple[float, str, Plain]] = []
        self._version = 0

    def handle(self, request: Request) -> bytes:
        """Return the body of the answer.

        Raises:
            ApiError: As the API server refuses.
        """
        if request.method == "POST":
            return self._create(request)
        if request.path not in self.objects:
            raise NotFoundError(f'"{request.path}" not found')
        if request.method == "PUT":
            return self._update(request)
        return json.dumps(self.objects[request.path]).encode()

    def _create(self, request: Request) -> bytes:
        content = json.loads(request.body)
        path = f"{request.path}/{content['metadata']['name']}"
        if path in self.objects:
            raise AlreadyExistsError(f'"{path}" already exists')
        content["metadata"]["uid"] = f"uid-{path}"
        return self._store(path, content)

    def _update(self, request: Request) -> bytes:
        content = json.loads(request.body)
        version = content["metadata"].get("resourceVersion")
        if not version:
            raise ApiError(422, "Invalid", "metadata.resourceVersion: must be specified")
        if version != self.objects[request.path]["metadata"]["resourceVersion"]:
            raise ConflictError("the object has been modified")
        return self._store(request.path, content)

    def _store(self, path: str, content: Plain) -> bytes:
        self._version += 1
        content["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = content
        self.history.append((asyncio.get_running_loop().time(), path, content))
        return json.dumps(content).encode()


class FaultyRest:
    """One client's connection: a `Rest` that delays, loses or cuts requests.

    What has been sent arrives even if the client has given up waiting.

    Attributes:
        is_cut: Nothing arrives.
        is_stopped: Nothing is sent any more; what is under way arrives.
        fault_share: How many requests of all are refused, or lose their answer.
        delay_seconds_max: Of each direction.
        sent: Every request, with the time and the code of the answer; 0 without one.
    """

    def __init__(
        self, server: LockServer, random: random.Random, *, timeout_seconds: float = 5.0
    ) -> None:
        self.is_cut = False
        self.is_stopped = False
        self.fault_share = 0.0
        self.delay_seconds_max = 0.0
        self.sent: list[tuple[float, Request, int]] = []
        self._server = server
        self._random = random
        self._timeout_seconds = timeout_seconds
        self._under_way: list[asyncio.Task[bytes]] = []

    async def send(self, request: Request) -> bytes:
        """Send a request with the connection's faults."""
        if self.is_stopped:
            raise ApiError(0, "Unanswered", "the process is stopped")
        started = asyncio.get_running_loop().time()
        code = 0
        try:
            async with asyncio.timeout(self._timeout_seconds):
                delivery = asyncio.create_task(self._deliver(request))
                self._under_way.append(delivery)
                delivery.add_done_callback(self._arrived)
                answer = await asyncio.shield(delivery)
        except TimeoutError:
            raise ApiError(0, "Timeout", "no answer in time") from None
        except ApiError as error:
            code = error.code
            raise
        else:
            code = 201 if request.method == "POST" else 200
            return answer
        finally:
            self.sent.append((started, request, code))

    def _arrived(self, delivery: asyncio.Task[bytes]) -> None:
        self._under_way.remove(delivery)
        if not delivery.cancelled():
            # Read, as perhaps nobody waits for it any more.
            delivery.exception()

    async def _deliver(self, request: Request) -> bytes:
        random = self._random
        await self._travel()
        if random.random() < self.fault_share:
            code, reason = random.choice([(500, "InternalError"), (429, "TooManyRequests")])
            raise ApiError(code, reason, "refused by chance")
        if self.is_cut:
            await self._lost()
        body = self._server.handle(request)
        await self._travel()
        if self.is_cut or random.random() < self.fault_share:
            await self._lost()
        return body

    async def _travel(self) -> None:
        if self.delay_seconds_max:
            await asyncio.sleep(self._random.random() * self.delay_seconds_max)

    async def _lost(self) -> None:
        if self._random.random() < 0.5:
            raise ApiError(0, "Unanswered", "connection reset by peer")
        await asyncio.sleep(self._timeout_seconds + 1)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Electors watch nothing."""
        raise AssertionError("electors watch nothing")
