"""`kubesched ui`: reads what is shown, serves it, opens the browser, ends at a signal."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

import click

from kubesched.answers.cluster import Cluster
from kubesched.apiserver.server import ApiServer
from kubesched.app.collector import tune_collector
from kubesched.app.signals import handled_signals
from kubesched.cli.errors import printable, write_warnings
from kubesched.cli.files import check_inputs
from kubesched.cli.flags import is_given
from kubesched.cli.streams import stdout
from kubesched.client.connect import new_event_loop
from kubesched.cluster.nodes import NodeTemplate
from kubesched.framework.registry import SchedulerSetup
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import FollowedCluster
from kubesched.inputs.loading import load_checked_scheduler
from kubesched.inputs.scenario_input import (
    is_scenario,
    read_scenario,
    with_scheduler,
    workload_warnings,
)
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.page.server import PageServer
from kubesched.page.shown import ShownCluster, ShownPlay, ShownSource
from kubesched.sandbox.access import SandboxAccess, write_private
from kubesched.sandbox.assembly import CAPACITY, Population, needs_alpha
from kubesched.sandbox.local_cluster import start_cluster
from kubesched.sandbox.pod_reports import PodLatencies

_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")


def ui(
    scheduler: SchedulerOptions,
    source: ClusterSource,
    sandbox_nodes: int | None,
    port: int,
    opens: bool,
) -> int:
    """Serve the page until a signal; return the exit code.

    With `sandbox_nodes`, a sandbox of so many nodes is shown instead of the source. Port 0 is a
    free one.
    """
    if sandbox_nodes is not None and (source.files or source.kubeconfig or source.context):
        raise UserError("--sandbox starts a cluster of its own; leave out files and contexts")
    check_inputs([*source.files, scheduler.config])
    seed = scheduler.seed if is_given("seed") else None
    setup = load_checked_scheduler(scheduler)
    with tempfile.TemporaryDirectory(prefix="kubesched-ui-") as name:
        page = _Ui(scheduler, source, setup, _saved(source, scheduler), seed, Path(name))
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(page.run(sandbox_nodes, port, opens=opens))


def _saved(source: ClusterSource, options: SchedulerOptions) -> Cluster | None:
    """Return the cluster of files, read before the loop runs; None for a scenario or no files."""
    if not source.files or (len(source.files) == 1 and is_scenario(source.files[0])):
        return None
    return Cluster.read(source, options, write_warnings)


@dataclass(slots=True)
class _Ui:
    """One run of `kubesched ui`; `seed` overrides that of a scenario."""

    options: SchedulerOptions
    source: ClusterSource
    scheduler: SchedulerSetup
    cluster: Cluster | None
    seed: int | None
    folder: Path
    stop: Callable[[], object] = lambda: None
    failure: BaseException | None = None

    async def run(self, sandbox_nodes: int | None, port: int, *, opens: bool) -> int:
        serving = asyncio.create_task(self._serve(sandbox_nodes, port, opens=opens))

        def stop() -> None:
            # A second time, the clean-up would be cancelled.
            if not serving.cancelling():
                serving.cancel()

        self.stop = stop
        with handled_signals(self.stop), suppress(asyncio.CancelledError):
            await serving
        if self.failure is not None:
            raise self.failure
        return 0

    async def _serve(self, sandbox_nodes: int | None, port: int, *, opens: bool) -> None:
        """Serve until cancelled."""
        async with AsyncExitStack() as opened:
            shown = await self._shown(sandbox_nodes, opened)
            tune_collector()
            server = PageServer(shown)
            await opened.enter_async_context(server.listening(port))
            click.echo(f"{printable(shown.title)}: {server.url}\nCtrl-C ends it.", file=stdout())
            if opens and _has_browser():
                self._open(server.url)
            await asyncio.Future()

    async def _shown(self, sandbox_nodes: int | None, opened: AsyncExitStack) -> ShownSource:
        files = self.source.files
        if self.cluster is not None:
            title = files[0].name if len(files) == 1 else f"{len(files)} files"
            return ShownCluster(self.cluster, title, self.scheduler, self.options)
        if files:
            return self._play(files[0], opened)
        source = self.source
        if sandbox_nodes is not None:
            source = await self._sandbox(sandbox_nodes, opened)
        followed = FollowedCluster(source)
        self._start(followed.run(), opened)
        await followed.wait_for_sync()
        return ShownCluster(followed, followed.name, self.scheduler, self.options)

    # Sources.

    def _play(self, file: Path, opened: AsyncExitStack) -> ShownPlay:
        play = with_scheduler(read_scenario(file), self.options).changed(self.seed, None)
        write_warnings(workload_warnings(play))
        shown = ShownPlay(play)
        opened.callback(shown.stop)
        self._start(shown.run(), opened)
        return shown

    async def _sandbox(self, nodes: int, opened: AsyncExitStack) -> ClusterSource:
        gates = self.scheduler.feature_gates
        access = SandboxAccess(self.folder)
        server = ApiServer(access.users(), has_alpha=needs_alpha(gates))
        kubeconfig = self.folder / "kubeconfig"
        template = NodeTemplate(CAPACITY)
        await start_cluster(
            server,
            access,
            Population(template.nodes(nodes), template.capacity, PodLatencies()),
            self.scheduler,
            kubeconfig,
            opened,
            self._fail,
        )
        click.echo(f"export KUBECONFIG={kubeconfig}", file=stdout())
        return ClusterSource(kubeconfig=kubeconfig)

    def _start(self, work: Coroutine[None, None, object], opened: AsyncExitStack) -> None:
        """Run something beside the server; if it fails, the page ends."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        opened.push_async_callback(_end, task)

    def _ended(self, task: asyncio.Task[object]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.stop()

    def _open(self, url: str) -> None:
        """Open the browser with a private file that redirects to the page."""
        file = self.folder / "open.html"
        write_private(
            file,
            f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={escape(url)}">'
            f'<a href="{escape(url)}">{escape(url)}</a>',
        )
        webbrowser.open(file.as_uri())


async def _end(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def _has_browser() -> bool:
    is_graphical = sys.platform in ("darwin", "win32") or any(map(os.environ.get, _DISPLAYS))
    return is_graphical and stdout().isatty()
