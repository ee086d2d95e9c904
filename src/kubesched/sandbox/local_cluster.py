"""A sandbox on the current event loop, with its scheduler, inside a process.

The scheduler is that of `kubesched run`, but handles no signals, serves no port and has no rate
limit. Settings of the whole process, such as those of the garbage collector, stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kubesched.apiserver.server import ApiServer
from kubesched.app.environment import Environment
from kubesched.app.options import Options, ServingOptions
from kubesched.app.process import SchedulerProcess
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.framework.registry import SchedulerSetup
from kubesched.sandbox.access import HOST, SandboxAccess, write_private
from kubesched.sandbox.assembly import Population, populate

_QPS: Final = 100_000
_ENVIRONMENT: Final = Environment(
    settle_memory=lambda: None, signals=lambda _stop, _debug: nullcontext()
)

log = logging.getLogger(__name__)


async def start_cluster(
    server: ApiServer,
    access: SandboxAccess,
    population: Population,
    setup: SchedulerSetup | None,
    kubeconfig: Path,
    opened: AsyncExitStack,
    on_failure: Callable[[Exception], object],
) -> None:
    """Start a cluster, which runs on the current loop until the stack closes.

    The server does not listen yet; without `setup` there is no scheduler. The administrator's
    kubeconfig is written to `kubeconfig`. `on_failure` is called when the scheduler fails. Raises
    UserError if the API server refuses a node.
    """
    opened.push_async_callback(server.stop)
    await populate(server.registry, population, access.certificate, opened)
    await server.start(HOST, 0, access.tls)
    write_private(kubeconfig, access.kubeconfig(server.url, access.admin))
    if setup is None:
        return
    scheduler = _local_scheduler(setup, access.settings(server.url, access.scheduler))

    async def schedule() -> None:
        try:
            await scheduler.run()
        except Exception as error:  # reported to the caller
            log.exception("The scheduler failed")
            on_failure(error)

    scheduling = asyncio.create_task(schedule())
    opened.push_async_callback(asyncio.wait, (scheduling,))
    opened.callback(scheduling.cancel)


def _local_scheduler(setup: SchedulerSetup, settings: ConnectionSettings) -> SchedulerProcess:
    """Return a scheduler to be run on the current loop; nothing is sent yet."""
    wanted = setup.configuration
    configuration = replace(
        wanted,
        client_connection=replace(wanted.client_connection, qps=float(_QPS), burst=_QPS),
        leader_election=replace(wanted.leader_election, leader_elect=False),
    )
    options = Options(feature_gates=setup.feature_gates, serving=ServingOptions(secure_port=0))
    return SchedulerProcess(
        options, configuration, setup.registry, settings, environment=_ENVIRONMENT
    )
