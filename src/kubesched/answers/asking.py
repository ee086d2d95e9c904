"""Asks a question of a cluster in a trial, in which the production scheduler decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubesched.answers.trial_cluster import QuestionError, TrialCluster
from kubesched.config.field_errors import ConfigError
from kubesched.inputs.cluster_input import ClusterInput
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import SchedulerSetup, in_file
from kubesched.inputs.sources import SchedulerOptions
from kubesched.simulator import virtual_loop
from kubesched.simulator.rehearsal import Rehearsal

T = TypeVar("T")


def run_trial(
    scheduler: SchedulerSetup,
    options: SchedulerOptions,
    given: ClusterInput,
    ask: Callable[[TrialCluster], Awaitable[T]],
) -> T:
    """Return the answer to a question about a cluster.

    Args:
        scheduler: The scheduler.
        options: Its options.
        given: The cluster.
        ask: Asks the question of the cluster, which is loaded and not yet settled.

    Raises:
        UserError: A plugin cannot be built, with one line per error and the configuration's file;
            or the question cannot be asked of the cluster.
        PluginError: A plugin raised.
    """

    async def main() -> T:
        rehearsal = Rehearsal(*scheduler, seed=options.seed)
        rehearsal.load(given.objects)
        for kind in given.complete:
            rehearsal.scheduler.cache.declare_complete(kind)
        return await ask(TrialCluster(rehearsal, options.profile))

    try:
        return virtual_loop.run(main())
    except ConfigError as error:
        raise in_file(error, options.config) from error
    except QuestionError as error:
        raise UserError(str(error)) from error
