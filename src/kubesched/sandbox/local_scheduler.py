"""The scheduler of `kubesched run` on the current event loop, for sandboxes within a process.

It handles no signals, serves no port and has no rate limit. Settings of the whole process, such as
those of the garbage collector, stay as they are.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

from msgspec.structs import replace

from kubesched.app.environment import Environment
from kubesched.app.options import Options, ServingOptions
from kubesched.app.process import SchedulerProcess
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.inputs.loading import SchedulerSetup

QPS: Final = 100_000
_ENVIRONMENT: Final = Environment(
    settle_memory=lambda: None, signals=lambda _stop, _debug: nullcontext()
)


def local_scheduler(setup: SchedulerSetup, settings: ConnectionSettings) -> SchedulerProcess:
    """Return a scheduler to be run on the current loop; nothing is sent yet.

    Args:
        setup: Its configuration and plugins.
        settings: How it connects.
    """
    wanted = setup.configuration
    configuration = replace(
        wanted,
        client_connection=replace(wanted.client_connection, qps=float(QPS), burst=QPS),
        leader_election=replace(wanted.leader_election, leader_elect=False),
    )
    options = Options(feature_gates=setup.feature_gates, serving=ServingOptions(secure_port=0))
    return SchedulerProcess(
        options, configuration, setup.registry, settings, environment=_ENVIRONMENT
    )
