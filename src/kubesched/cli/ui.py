"""`kubesched ui`: a page in the browser that shows a cluster, or a scenario as it is played."""

from __future__ import annotations

import click
from click.core import ParameterSource

from kubesched.cli.flags import cluster_options, scheduler_options, table_options
from kubesched.inputs.sources import ClusterSource, SchedulerOptions


@click.command()
@cluster_options
@table_options("ui")
@scheduler_options
def ui(
    scheduler: SchedulerOptions,
    source: ClusterSource,
    sandbox_nodes: int | None,
    port: int,
    opens: bool,
) -> int:
    """Show a cluster in the browser: nodes, what fills them, and why pods wait.

    Without FILES, the cluster is the live one of the current context, or of --context or
    --kubeconfig, and the page follows it. FILES hold a cluster that was saved, as for the other
    commands, or one scenario, which is simulated and can be played back with a time slider.

    The page shows every node on a map, pending pods by cause with changes that would help, and on
    demand why a pod is pending and how each node was filtered and scored.

    It is served on 127.0.0.1 only, and its data only to those who have the token in the printed
    address. It reads the cluster as the kubeconfig's user and changes nothing: there is no way to
    write through it. Ctrl-C ends it.

    \b
    Examples:
      kubesched ui
      kubesched ui --context production --port 8080 --no-open
      kubesched ui cluster.json.gz
      kubesched ui scenario.yaml
      kubesched ui --sandbox 100
    """
    from kubesched.cli.files import check_inputs
    from kubesched.cli.ui_run import run_ui
    from kubesched.inputs.errors import UserError

    if sandbox_nodes is not None and (source.files or source.kubeconfig or source.context):
        raise UserError("--sandbox starts a cluster of its own; leave out files and contexts")
    check_inputs([*source.files, scheduler.config])
    given = click.get_current_context().get_parameter_source("seed")
    seed = None if given is ParameterSource.DEFAULT else scheduler.seed
    return run_ui(scheduler, source, sandbox_nodes, seed, port, opens=opens)
