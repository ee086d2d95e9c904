"""Harness: an API server, replicas behind networks of their own, and pods."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.server import ADMIN

from .faulty_front import FaultyFront
from .history import History
from .recording_server import RecordingServer, RequestFaults
from .replica import Lease, Replica, write_configuration, write_kubeconfig

_POLL_SECONDS: Final = 0.02
_REPLACE_SECONDS: Final = 0.1


class Harness:
    """A cluster without kubelets, and its schedulers.

    Attributes:
        history: What the server did.
        request_faults: The failures that the server injects into replicas' requests.
        replicas: All replicas, also those that have ended.
    """

    def __init__(self, directory: Path, lease: Lease | None, random: Random) -> None:
        """Set up; the random source chooses the requests that fail."""
        self._directory = directory
        self._lease = lease
        self.history = History()
        self.request_faults = RequestFaults(random)
        self.replicas: list[Replica] = []
        self._server: RecordingServer | None = None
        self._port = 0
        self._names = (f"replica-{number}" for number in itertools.count(1))
        self._supervisors: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.start_server()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._supervisors:
            task.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        await asyncio.gather(*(replica.end() for replica in self.replicas), return_exceptions=True)
        await self.stop_server()

    # The server.

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self._port}"

    async def start_server(self) -> None:
        """Start the server with its last objects."""
        server = RecordingServer(self._directory / "objects.db", self.history, self.request_faults)
        await server.start(port=self._port)
        self._port = int(server.url.rpartition(":")[2])
        self._server = server

    @property
    def has_server(self) -> bool:
        """Whether the server is running."""
        return self._server is not None

    async def stop_server(self) -> None:
        """Stop the server."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    def break_connections(self) -> None:
        """Reset all connections to the server."""
        for replica in self.replicas:
            if replica.front is not None:
                replica.front.reset()

    async def ask(self, method: str, path: str, body: bytes) -> int:
        """Send a request as administrator; return the status code, 0 without a server."""
        if self._server is None:
            return 0
        headers = {"content-type": "application/json"}
        answer = await self._server.handle(ApiRequest(method, path, {}, headers, body, ADMIN))
        return answer.status

    # Replicas.

    async def start_replica(self, *flags: str) -> Replica:
        """Start another replica."""
        name = next(self._names)
        front = FaultyFront(self.url)
        await front.start()
        replica = Replica(name, front, self._directory / f"{name}.log")
        kubeconfig = write_kubeconfig(self._directory / f"{name}.kubeconfig", front.url, name)
        configuration = write_configuration(
            self._directory / f"{name}.yaml", kubeconfig, self._lease
        )
        self.replicas.append(replica)
        await replica.start(configuration, *flags)
        return replica

    async def keep_replicas(self, count: int) -> None:
        """Start so many replicas, and replace each that ends, as a cluster does."""
        for _ in range(count):
            replica = await self.start_replica()
            self._supervisors.append(asyncio.ensure_future(self._supervise(replica)))

    async def _supervise(self, replica: Replica) -> None:
        while True:
            await replica.wait()
            assert replica.front is not None, "all have one here"
            await replica.front.stop()
            await asyncio.sleep(_REPLACE_SECONDS)
            replica = await self.start_replica()

    async def stop_replicas(self) -> list[Replica]:
        """Stop all replicas; return those that ran."""
        for task in self._supervisors:
            task.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        self._supervisors.clear()
        running = self.running
        await asyncio.gather(*(replica.end(signal.SIGTERM) for replica in running))
        return running

    @property
    def running(self) -> list[Replica]:
        """The running replicas."""
        return [replica for replica in self.replicas if replica.is_running]

    @property
    def leader(self) -> Replica | None:
        """The running replica that holds the lease."""
        return next((one for one in self.running if one.name == self.history.holder), None)

    @property
    def follower(self) -> Replica | None:
        """A running replica that does not hold it."""
        return next((one for one in self.running if one.name != self.history.holder), None)


async def until(is_so: Callable[[], bool], seconds_max: float, what: str) -> None:
    """Wait for a condition.

    Raises:
        AssertionError: The condition did not hold in time.
    """
    deadline = time.monotonic() + seconds_max
    while not is_so():
        assert time.monotonic() < deadline, f"after {seconds_max:g} s not yet: {what}"
        await asyncio.sleep(_POLL_SECONDS)
