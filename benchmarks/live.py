"""Measures the CPU time of the scheduler's process per pod, on a live API server.

A sandbox runs as users run it: the API server with fake kubelets in one process, the scheduler in
another, connected by TLS. `python -m benchmarks.live` prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from benchmarks.process_figures import cpu_seconds, peak_rss_mib
from kubesched.client.connect import find_settings
from kubesched.client.tls import tls_context

NODES: Final = 1_000
PODS: Final = 10_000
_CREATORS: Final = 16
_START_SECONDS_MAX: Final = 300.0
_QUIET_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.5
_STUCK_SECONDS: Final = 60.0
_PODS_PATH: Final = "/api/v1/namespaces/default/pods"
_UNBOUND: Final = "/api/v1/pods?fieldSelector=spec.nodeName%3D"
_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class LiveRun(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        nodes: Number of nodes.
        pods: Number of created pods.
        bound: Number of bound pods; fewer than `pods` is an error.
        seconds: From the first pod's creation to the last binding.
        pods_per_second: Bound pods per second of that time.
        cpu_ms_per_pod: User and system time of the scheduler's process.
        rss_mib: Peak memory of the scheduler's process.
        server_rss_mib: Peak memory of the process of API server and kubelets.
    """

    nodes: int
    pods: int
    bound: int
    seconds: float
    pods_per_second: float
    cpu_ms_per_pod: float
    rss_mib: int
    server_rss_mib: int


class _Cluster:
    """A running sandbox and a connection to it."""

    def __init__(self, session: aiohttp.ClientSession, url: str, sandbox: int) -> None:
        self._session = session
        self._url = url
        self.sandbox = sandbox

    @property
    def scheduler(self) -> int:
        """The process id of the scheduler; 0 before it has started."""
        children = Path(f"/proc/{self.sandbox}/task/{self.sandbox}/children").read_text()
        return int(children.split()[0]) if children else 0

    async def get(self, path: str, accept: str = "application/json") -> Any:
        headers = {"accept": accept}
        async with self._session.get(self._url + path, headers=headers) as answer:
            answer.raise_for_status()
            return await answer.json()

    async def create(self, pod: bytes) -> None:
        async with self._session.post(self._url + _PODS_PATH, data=pod) as answer:
            answer.raise_for_status()
            await answer.read()

    async def unbound(self) -> int:
        """Return the number of pods without a node."""
        # With a field selector, a page does not tell how many objects follow.
        return len((await self.get(_UNBOUND, _NAMES_ONLY))["items"])


def _pod(number: int) -> bytes:
    """Return the pod of upstream's SchedulingBasic."""
    resources = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "ports": [{"containerPort": 80}],
        "resources": resources,
    }
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": f"pod-{number}", "labels": {"app": f"app-{number % 10}"}},
        "spec": {"containers": [container]},
    }
    return json.dumps(pod).encode()


@asynccontextmanager
async def _sandbox(nodes: int, folder: Path) -> AsyncIterator[_Cluster]:
    kubeconfig = folder / "kubeconfig"
    words = ["sandbox", "--nodes", str(nodes), "--node-cpu", "32", "--node-memory", "256Gi"]
    words += ["--kubeconfig", str(kubeconfig), "--scheduler-log", str(folder / "scheduler.log")]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubesched", *words), stdout=sys.stderr
    )
    try:
        async with asyncio.timeout(_START_SECONDS_MAX):
            while not kubeconfig.exists():
                assert process.returncode is None, "the sandbox has ended"
                await asyncio.sleep(_POLL_SECONDS)
        settings = find_settings(kubeconfig=str(kubeconfig))
        token = settings.user.token
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        connector = aiohttp.TCPConnector(ssl=tls_context(settings.tls))
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            yield _Cluster(session, settings.server, process.pid)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.wait()


def _has_synced(log: Path) -> bool:
    return log.exists() and "Caches are synced" in log.read_text()


async def _until_ready(cluster: _Cluster, nodes: int, log: Path) -> None:
    async with asyncio.timeout(_START_SECONDS_MAX):
        while True:
            found = await cluster.get("/api/v1/nodes?limit=1")
            count = len(found["items"]) + (found["metadata"].get("remainingItemCount") or 0)
            if count >= nodes and _has_synced(log):
                break
            await asyncio.sleep(_POLL_SECONDS)
    await asyncio.sleep(_QUIET_SECONDS)


async def _create_all(cluster: _Cluster, pods: int) -> None:
    numbers = iter(range(pods))

    async def create_some() -> None:
        for number in numbers:
            await cluster.create(_pod(number))

    async with asyncio.TaskGroup() as group:
        for _ in range(_CREATORS):
            group.create_task(create_some())


async def _bound(cluster: _Cluster) -> int:
    """Wait until all pods have nodes or progress stops; return how many have none."""
    unbound, seen_at = -1, time.perf_counter()
    while True:
        found = await cluster.unbound()
        if found != unbound:
            unbound, seen_at = found, time.perf_counter()
        if not found or time.perf_counter() - seen_at > _STUCK_SECONDS:
            return found
        await asyncio.sleep(_POLL_SECONDS)


async def _measure(nodes: int, pods: int, folder: Path) -> LiveRun:
    async with _sandbox(nodes, folder) as cluster:
        await _until_ready(cluster, nodes, folder / "scheduler.log")
        scheduler = cluster.scheduler
        cpu, began = cpu_seconds(scheduler), time.perf_counter()
        await _create_all(cluster, pods)
        unbound = await _bound(cluster)
        seconds = time.perf_counter() - began
        # Kubelets and events lag behind and cost the scheduler time, too.
        settled = -1.0
        while (cost := cpu_seconds(scheduler) - cpu) > settled + 0.05:
            settled = cost
            await asyncio.sleep(_QUIET_SECONDS)
        return LiveRun(
            nodes=nodes,
            pods=pods,
            bound=pods - unbound,
            seconds=round(seconds, 1),
            pods_per_second=round(pods / seconds, 1),
            cpu_ms_per_pod=round(1000 * cost / pods, 3),
            rss_mib=peak_rss_mib(scheduler),
            server_rss_mib=peak_rss_mib(cluster.sandbox),
        )


def measure_live(nodes: int = NODES, pods: int = PODS) -> LiveRun:
    """Bind this number of pods in a sandbox."""
    with tempfile.TemporaryDirectory(prefix="kubesched-live-") as folder:
        return asyncio.run(_measure(nodes, pods, Path(folder)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    options = parser.parse_args(arguments)
    found = measure_live(options.nodes, options.pods)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
