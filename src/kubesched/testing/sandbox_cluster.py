"""SandboxCluster is a Kubernetes cluster in the process of a test.

    from kubesched.testing import SandboxCluster

    with SandboxCluster(nodes=3) as cluster:
        pods = kubernetes.client.CoreV1Api(cluster.client())

API server, fake nodes, controllers and scheduler run on an event loop in one thread. Nothing is
executed: nodes and pods exist only as objects, as in `kubesched sandbox`.

Invariants: after `stop` no thread, socket or file is left.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from kubesched.api.codec import encode_json
from kubesched.api.core import Node
from kubesched.api.media_types import JSON
from kubesched.apiserver.plain import Plain, decode, encode
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.server import ADMIN, ApiServer
from kubesched.client.connect import new_event_loop
from kubesched.client.errors import error_of_answer
from kubesched.cluster.nodes import NodeTemplate
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import API_VERSION, KIND
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import SchedulerSetup
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import in_file, load_checked_scheduler
from kubesched.inputs.sources import SchedulerOptions
from kubesched.sandbox.access import HOST, SandboxAccess
from kubesched.sandbox.assembly import CAPACITY, Population, needs_alpha
from kubesched.sandbox.local_cluster import start_cluster
from kubesched.sandbox.pod_reports import PodLatencies

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

T = TypeVar("T")

# A condition may also depend on what is not in the cluster.
_LOOK_AGAIN_SECONDS: Final = 0.05
_PODS_SHOWN: Final = 5


class SandboxCluster:
    """A cluster; it runs from `start` to `stop`, or within a `with` statement."""

    def __init__(
        self,
        *,
        nodes: int | Iterable[Node | Mapping[str, Any]] = 3,
        scheduler: bool = True,
        controllers: bool = True,
        start_latency: float = 0.0,
        stop_latency: float = 0.0,
        run_time: float = 10.0,
        config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        plugins: Iterable[str | type[Plugin]] = (),
        feature_gates: str = "",
        tls: bool = False,
    ) -> None:
        """Set up; nothing runs yet.

        Args:
            nodes: How many nodes with 8 CPUs and 32 GiB, or the nodes themselves.
            scheduler: Whether a scheduler runs; without it pods stay pending.
            controllers: Whether controllers create the pods of Deployments and other workloads,
                and delete what belongs to deleted objects.
            start_latency: Seconds from a pod's binding until it runs, ± 50 %.
            stop_latency: Seconds until a deleted pod is gone, ± 50 %; at most its grace period.
            run_time: Seconds that pods with restartPolicy Never or OnFailure run.
            config: The scheduler's KubeSchedulerConfiguration: a file, or its content.
            plugins: Plugins of the scheduler, besides those of Kubernetes: classes, or
                `module:Class` or `file.py:Class`.
            feature_gates: As `A=true,B=false`.
            tls: Whether to serve over TLS; kubectl sends no token without it.

        Raises:
            UserError: The configuration, a plugin or a feature gate is invalid.
        """
        with in_file(None):
            self._gates = FeatureGates.parse(feature_gates)
        self._setup = _setup_of(config, plugins, feature_gates) if scheduler else None
        self._population = Population(
            _nodes_of(nodes),
            CAPACITY,
            PodLatencies(start_latency, stop_latency, run_time),
            has_controllers=controllers,
        )
        self._has_tls = tls
        self._run: _Run | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start; returns when the API server answers. Raises UserError if it refuses a node."""
        if self._run is not None:
            raise RuntimeError("the cluster is running already")
        self._run = _Run(self._population, self._setup, self._gates, has_tls=self._has_tls)

    def stop(self) -> None:
        """Stop everything; stopping twice is fine."""
        run, self._run = self._run, None
        if run is not None:
            run.opened.close()

    @property
    def url(self) -> str:
        """The URL of the API server, on 127.0.0.1."""
        return self._running.server.url

    @property
    def token(self) -> str:
        """The bearer token of the administrator; there is no access without one."""
        return self._running.access.admin

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that only this user can read; it is removed by `stop`."""
        return self._running.folder / "kubeconfig"

    @property
    def kubeconfig_dict(self) -> dict[str, Any]:
        """The content of the kubeconfig."""
        return self._running.access.kubeconfig_dict(self.url, self.token)

    def client(self) -> ApiClient:
        """Return a `kubernetes.client.ApiClient` of the official client; `stop` closes it.

        Raises ImportError if the package is not installed.
        """
        run = self._running
        try:
            from kubernetes.client import ApiClient, Configuration  # noqa: PLC0415 - optional
        except ImportError:
            raise ImportError(
                "Kubernetes' Python client is not installed; run: pip install kubernetes"
            ) from None
        configuration = Configuration()
        configuration.host = self.url
        configuration.api_key = {"authorization": f"Bearer {self.token}"}
        configuration.no_proxy = HOST
        if self._has_tls:
            configuration.ssl_ca_cert = str(run.folder / "certificate.pem")
        client = ApiClient(configuration)
        run.opened.callback(client.rest_client.pool_manager.clear)
        run.opened.callback(client.close)
        return client

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object, as `kubectl create` does; return it as the server keeps it.

        Args:
            manifest: Of any kind that the server has; without a namespace it goes to `default`.

        Raises:
            ApiError: The API server refuses it.
            UserError: The API server has no such kind.
        """
        run = self._running
        return run.call(_created(run.server, manifest))

    def wait_for(self, condition: Callable[[], T], timeout: float = 10.0) -> T:
        """Wait until a condition holds; return its first value that is true.

        Args:
            condition: Called without arguments, again after every change in the cluster.
            timeout: In seconds.

        Raises:
            TimeoutError: It does not become true before the timeout.
            RuntimeError: The scheduler has failed.
        """
        run = self._running
        until = time.monotonic() + timeout
        while True:
            run.changed.clear()
            value = condition()
            if value:
                return value
            if run.failure is not None:
                raise RuntimeError("the scheduler failed") from run.failure
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(_too_late(timeout, run.call(_pods(run.server))))
            run.changed.wait(min(left, _LOOK_AGAIN_SECONDS))

    @property
    def _running(self) -> _Run:
        if self._run is None:
            raise RuntimeError("the cluster is not running; use it in a `with`, or call start()")
        return self._run


class _Run:
    """One run of a cluster: its thread, and what has to be removed at its end."""

    def __init__(
        self,
        population: Population,
        setup: SchedulerSetup | None,
        gates: FeatureGates,
        *,
        has_tls: bool,
    ) -> None:
        self.opened = ExitStack()
        self.folder = Path(
            self.opened.enter_context(tempfile.TemporaryDirectory(prefix="kubesched-cluster-"))
        )
        self.access = SandboxAccess(self.folder, has_tls=has_tls)
        self.server = ApiServer(self.access.users(), has_alpha=needs_alpha(gates))
        self.changed = threading.Event()
        self.server.registry.store.on_write.append(lambda _: self.changed.set())
        self._population = population
        self._setup = setup
        self.failure: Exception | None = None
        self._started: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event
        # A test that forgets to stop it can still end.
        thread = threading.Thread(target=self._serve, name="kubesched-cluster", daemon=True)
        thread.start()
        self.opened.callback(thread.join)
        try:
            self._started.result()
        except Exception:
            self.opened.close()
            raise
        self.opened.callback(self._loop.call_soon_threadsafe, self._ended.set)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, run in the cluster's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _serve(self) -> None:
        """Run the cluster in its thread."""
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        try:
            async with AsyncExitStack() as opened:
                await start_cluster(
                    self.server,
                    self.access,
                    self._population,
                    self._setup,
                    self.folder / "kubeconfig",
                    opened,
                    self._failed,
                )
                self._started.set_result(None)
                await self._ended.wait()
        except Exception as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    def _failed(self, error: Exception) -> None:
        self.failure = error


async def _created(server: ApiServer, manifest: Mapping[str, Any]) -> Plain:
    version, kind = manifest.get("apiVersion", ""), manifest.get("kind", "")
    resource = server.registry.resources.find_kind(version, kind)
    if resource is None:
        raise UserError(
            f"{kind or 'an object without kind'} of {version or 'no apiVersion'}: the API "
            "server has no such kind; create its CustomResourceDefinition first"
        )
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = (manifest.get("metadata") or {}).get("namespace") or "default"
    place = f"/namespaces/{namespace}" if resource.is_namespaced else ""
    headers = {"content-type": JSON, "user-agent": "kubesched.testing"}
    path = f"{root}{place}/{resource.plural}"
    answer = await server.handle(
        ApiRequest("POST", path, headers=headers, body=encode(manifest), user=ADMIN)
    )
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise error_of_answer(answer.status, answer.body, method="POST")
    created: Plain = decode(answer.body)
    return created


async def _pods(server: ApiServer) -> list[Plain]:
    return [one.plain for one in server.registry.store.list("pods")]


def _too_late(timeout: float, pods: Iterable[Plain]) -> str:
    """Return an error message with the pods that do not run, as they may be the reason."""
    waiting = [text for text in map(_state_of, pods) if text]
    lines = waiting[:_PODS_SHOWN]
    if len(waiting) > _PODS_SHOWN:
        lines.append(f"and {len(waiting) - _PODS_SHOWN} other pods that do not run")
    return "\n  ".join((f"the condition does not hold after {timeout:g} s", *lines))


def _state_of(pod: Plain) -> str:
    """Return why a pod is pending, "" if it is not."""
    status = pod.get("status", {})
    if status.get("phase") not in {None, "Pending"}:
        return ""
    found = [one for one in status.get("conditions", ()) if one["type"] == "PodScheduled"]
    why = "".join(f": {one['message']}" for one in found if one.get("message"))
    return f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']} is pending{why}"


def _setup_of(
    config: str | os.PathLike[str] | Mapping[str, Any] | None,
    plugins: Iterable[str | type[Plugin]],
    feature_gates: str,
) -> SchedulerSetup:
    options = SchedulerOptions(feature_gates=feature_gates, plugins=tuple(plugins))
    inline = None
    if isinstance(config, Mapping):
        inline = {"apiVersion": API_VERSION, "kind": KIND, **config}
    elif config is not None:
        options = replace(options, config=Path(config))
    return load_checked_scheduler(options, inline)


def _nodes_of(nodes: int | Iterable[Node | Mapping[str, Any]]) -> list[Plain]:
    if isinstance(nodes, int):
        return NodeTemplate(CAPACITY).nodes(nodes)
    return [
        decode(encode_json(one)) if isinstance(one, Node) else {"metadata": {}, **one}
        for one in nodes
    ]
