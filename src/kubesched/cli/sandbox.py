"""`kubesched sandbox`: a cluster on this machine, of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from kubesched.cli.flags import SectionedCommand, comma_separated, table_flags


def _zones(
    ctx: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    zones = comma_separated(ctx, parameter, values)
    if values and not zones:
        raise click.BadParameter("it has no names; write a,b,c", ctx, parameter)
    return zones


@click.command(cls=SectionedCommand, context_settings={"allow_interspersed_args": False})
@table_flags("sandbox", zones={"callback": _zones})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def sandbox(**flags: Any) -> int:
    """Run a cluster on this machine: an API server, fake nodes, and the scheduler.

    Nodes and pods exist only as objects: nodes are ready, bound pods run, end and stop after set
    times, but nothing is executed. Controllers create the pods of Deployments, DaemonSets and Jobs.
    The API server listens on 127.0.0.1 only; clients need the token in the kubeconfig.

    The sandbox runs until Ctrl-C, or until COMMAND ends. COMMAND gets KUBECONFIG, and its exit code
    is returned. At the end everything is removed, except the file of --data and FILE-access, which
    keeps token and certificate.

    \b
    Three nodes:
      kubesched sandbox
      export KUBECONFIG=...       (as it prints)
      kubectl create deployment web --image=web --replicas=5
    A thousand nodes in three zones, each with eight GPUs:
      kubesched sandbox --nodes 1000 --zones a,b,c --node-resource example.com/gpu=8
    A test against a cluster of its own:
      kubesched sandbox --nodes 10 -- ./test.sh
    A cluster that survives restarts:
      kubesched sandbox --data cluster.sqlite --port 6443 --kubeconfig cluster.kubeconfig
    """
    from kubesched.cli.sandbox_run import run_sandbox

    return run_sandbox(flags)
