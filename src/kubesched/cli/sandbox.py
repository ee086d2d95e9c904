"""`kubesched sandbox`: start server, nodes, controllers and scheduler, then remove everything."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from kubesched.api.codec import Source, decode_object
from kubesched.api.quantity import QuantityError, canonical
from kubesched.api.tolerations import EFFECTS
from kubesched.apiserver.durable import DurableServer, JournalError
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.server import ApiServer
from kubesched.app.collector import tune_collector
from kubesched.cli.errors import write_errors
from kubesched.cli.sandbox_scheduler import SchedulerChild, configuration_text, read_document
from kubesched.cli.streams import stdout
from kubesched.cluster.nodes import NodeTemplate
from kubesched.config.feature_gates import FeatureGates
from kubesched.inputs.errors import UserError, cannot_listen
from kubesched.sandbox.access import HOST, SandboxAccess, check_ours, remove_own, write_private
from kubesched.sandbox.assembly import CAPACITY, Population, needs_alpha, populate
from kubesched.sandbox.pod_reports import PodLatencies

_EXIT_FAILED: Final = 1
_EXIT_NOT_FOUND: Final = 127
_EXIT_NOT_EXECUTABLE: Final = 126
_EXIT_SIGNAL: Final = 128


def sandbox(**flags: Any) -> int:
    """Run a cluster; return the exit code."""
    template = node_template(flags)
    gates = FeatureGates.parse(flags["feature_gates"])
    config = flags["config_file"]
    wanted = (
        {} if config is None else read_document("--config", config, "KubeSchedulerConfiguration")
    )
    _check_kubeconfig(flags)
    with tempfile.TemporaryDirectory(prefix="kubesched-sandbox-") as name:
        return asyncio.run(_Sandbox(flags, template, gates, wanted, Path(name)).run())


@dataclass(slots=True)
class _Sandbox:
    """One cluster; `has_failed` is whether an error ended it."""

    flags: dict[str, Any]
    template: NodeTemplate
    gates: FeatureGates
    wanted: Mapping[str, Any]
    folder: Path
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    terminated: bool = False
    has_failed: bool = False

    @property
    def kubeconfig(self) -> Path:
        given: Path | None = self.flags["kubeconfig"]
        return given or self.folder / "kubeconfig"

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end)
        # A terminal that is closed sends it; nohup ignores it.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._end)
        if not self.flags["command"]:
            loop.add_signal_handler(signal.SIGINT, self.stop.set)
        async with AsyncExitStack() as opened:
            data: Path | None = self.flags["data"]
            kept_in = None if data is None else Path(f"{data}-access")
            access = SandboxAccess(self.folder, kept_in=kept_in)
            server = self._server(access)
            opened.push_async_callback(server.stop)
            if kept_in is not None:
                access.keep(kept_in)
            await self._begin(server, access, opened)
            await self._start_scheduler(server, access, opened)
            tune_collector()
            return await self._serve(server)

    def _end(self) -> None:
        self.terminated = True
        self.stop.set()

    def _fail(self, why: str) -> None:
        if not self.has_failed:
            self.has_failed = True
            # A command may wait long for what will not happen now.
            write_errors([why])
            self.stop.set()

    # Beginning.

    def _server(self, access: SandboxAccess) -> ApiServer:
        file = self.flags["data"]
        has_alpha = needs_alpha(self.gates)
        if file is None:
            return ApiServer(access.users(), has_alpha=has_alpha)
        try:
            return DurableServer(
                file,
                access.users(),
                on_failure=lambda error: self._fail(str(error)),
                has_alpha=has_alpha,
            )
        except JournalError as error:
            raise UserError(f"--data: {error}") from None

    async def _begin(
        self, server: ApiServer, access: SandboxAccess, opened: AsyncExitStack
    ) -> None:
        flags = self.flags
        population = Population(
            self.template.nodes(flags["nodes"]),
            self.template.capacity,
            PodLatencies(flags["start_latency"], flags["stop_latency"], flags["run_time"]),
            renews_leases=flags["node_leases"],
        )
        await populate(server.registry, population, access.certificate, opened)
        # Another sandbox may have started meanwhile.
        _check_kubeconfig(flags)
        try:
            await server.start(HOST, flags["port"], access.tls)
        except OSError as error:
            raise cannot_listen(error, HOST, flags["port"]) from None
        text = access.kubeconfig(server.url, access.admin)
        write_private(self.kubeconfig, text)
        opened.callback(remove_own, self.kubeconfig, text)

    async def _start_scheduler(
        self, server: ApiServer, access: SandboxAccess, opened: AsyncExitStack
    ) -> None:
        if not self.flags["has_scheduler"]:
            return
        kubeconfig = self.folder / "scheduler.kubeconfig"
        config = self.folder / "scheduler.yaml"
        write_private(kubeconfig, access.kubeconfig(server.url, access.scheduler))
        write_private(config, configuration_text(self.wanted, kubeconfig))
        log = self.flags["scheduler_log"] or self.folder / "scheduler.log"
        written = self.flags["config_file"] or config
        flags = [f"--feature-gates={self.flags['feature_gates']}"]
        flags += [f"--plugin={text}" for text in self.flags["plugins"]]
        child = SchedulerChild(config, flags, log, written)
        await child.start()
        opened.push_async_callback(child.stop)
        watching = asyncio.create_task(self._watch(child))
        opened.callback(watching.cancel)

    async def _watch(self, child: SchedulerChild) -> None:
        self._fail(await child.failed())

    # Serving.

    async def _serve(self, server: ApiServer) -> int:
        if self.flags["command"]:
            code = await self._run_command()
        else:
            self._announce(server)
            await self.stop.wait()
            code = 0
        return code or (_EXIT_FAILED if self.has_failed else 0)

    def _announce(self, server: ApiServer) -> None:
        nodes = server.registry.store.count("nodes")
        lines = [f"A cluster with {nodes} nodes is running at {server.url}."]
        if isinstance(server, DurableServer):
            words = "goes on from" if server.is_restored else "is kept in"
            lines.append(f"It {words} {self.flags['data']}.")
        if not self.flags["has_scheduler"]:
            lines.append("No scheduler runs; pods stay pending until something binds them.")
        lines += [
            "",
            f"  export KUBECONFIG={self.kubeconfig.absolute()}",
            "  kubectl get nodes",
            "",
            "Ctrl-C ends it.",
        ]
        click.echo("\n".join(lines), file=stdout())

    async def _run_command(self) -> int:
        # The command gets Ctrl-C too, and decides what it means.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
        process = await self._started()
        ended = asyncio.create_task(process.wait())
        stopped = asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
            if self.terminated and process.returncode is None:
                process.terminate()
            code = await ended
        finally:
            stopped.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()
        return code if code >= 0 else _EXIT_SIGNAL - code

    async def _started(self) -> asyncio.subprocess.Process:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig.absolute())}
        name = self.flags["command"][0]
        try:
            return await asyncio.create_subprocess_exec(*self.flags["command"], env=environment)
        except FileNotFoundError:
            why = f"{name}: command not found"
            raise UserError(why, exit_code=_EXIT_NOT_FOUND) from None
        except OSError as error:
            why = f"{name}: cannot be run: {error.strerror}"
            raise UserError(why, exit_code=_EXIT_NOT_EXECUTABLE) from None


def _check_kubeconfig(flags: dict[str, Any]) -> None:
    if flags["kubeconfig"] is not None:
        check_ours(flags["kubeconfig"])


# The template of the nodes.

# The fields of a template that are used; empty for all. Others belong to one machine.
_TAKEN: Final = {
    "metadata": ("labels", "annotations"),
    "spec": (),
    "status": (
        "allocatable",
        "capacity",
        "declaredFeatures",
        "features",
        "images",
        "nodeInfo",
        "runtimeHandlers",
    ),
}


def node_template(flags: Mapping[str, Any]) -> NodeTemplate:
    """Return the template of the nodes; raises UserError if a flag or the file is invalid."""
    capacity = {
        **CAPACITY,
        "cpu": _quantity("--node-cpu", flags["node_cpu"]),
        "memory": _quantity("--node-memory", flags["node_memory"]),
        "pods": _quantity("--node-pods", flags["node_pods"]),
    }
    for name, amount in _pairs("--node-resource", flags["node_resources"]):
        capacity[name] = _quantity("--node-resource", amount)
    file = flags["node_template"]
    return NodeTemplate(
        capacity,
        dict(_pairs("--node-label", flags["node_labels"])),
        tuple(_taint(text) for text in flags["node_taints"]),
        flags["zones"],
        node={} if file is None else read_node(file),
    )


def _quantity(option: str, text: str) -> str:
    try:
        return canonical(text)
    except QuantityError:
        raise UserError(f"{option}: {text!r} is not a quantity; write 8, 500m or 32Gi") from None


def _pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UserError(f"{option}: {text!r} has no name and value; write NAME=VALUE")
        pairs.append((name, value))
    return pairs


def _taint(text: str) -> Plain:
    named, _, effect = text.rpartition(":")
    key, equals, value = named.partition("=")
    if not key or effect not in EFFECTS:
        effects = ", ".join(EFFECTS)
        raise UserError(
            f"--node-taint: {text!r}: write KEY=VALUE:EFFECT; EFFECT is one of {effects}"
        )
    return {"key": key, **({"value": value} if equals else {}), "effect": effect}


def read_node(file: Path) -> Plain:
    """Return the Node in a file, without the fields of one machine.

    Raises UserError if it is not a Node, DecodeError if a field has a value of another type.
    """
    node: Plain = read_document("--node-template", file, "Node")
    if (node.get("apiVersion", "v1"), node.get("kind", "Node")) != ("v1", "Node"):
        raise UserError(f"{file}: is a {node.get('kind')}; a template is a Node of v1")
    found: Plain = {}
    for part, fields in _TAKEN.items():
        whole = node.get(part) or {}
        if not isinstance(whole, dict):
            raise UserError(f"{file}: {part} is not an object")
        found[part] = {name: whole[name] for name in fields or whole if whole.get(name)}
    metadata = {**found["metadata"], "name": "template"}
    checked = {"apiVersion": "v1", "kind": "Node", **found, "metadata": metadata}
    decode_object(checked, Source(str(file), 0))
    return found
