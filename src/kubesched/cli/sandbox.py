"""`kubesched sandbox`: a cluster on this machine, of any size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from kubesched.cli.flags import TIME_TAKEN, SectionedCommand, comma_separated, flag
from kubesched.cli.options import IntRange

_CLUSTER: Final = "Cluster"
_NODES: Final = "Nodes"
_PODS: Final = "Pods"
_SCHEDULER: Final = "Scheduler"

_PATH: Final = click.Path(path_type=Path)


def _zones(
    ctx: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    zones = comma_separated(ctx, parameter, values)
    if values and not zones:
        raise click.BadParameter("it has no names; write a,b,c", ctx, parameter)
    return zones


@click.command(cls=SectionedCommand, context_settings={"allow_interspersed_args": False})
@flag(
    _CLUSTER,
    "--port",
    type=IntRange(0, 65535),
    default=0,
    metavar="P",
    help="Port of the API server on 127.0.0.1 [default: a free one].",
)
@flag(
    _CLUSTER,
    "--kubeconfig",
    type=_PATH,
    metavar="FILE",
    help="Where to write the kubeconfig, which is removed at the end [default: a temporary file].",
)
@flag(
    _CLUSTER,
    "--data",
    type=_PATH,
    metavar="FILE",
    help="SQLite file for all objects; an existing one is continued. Acknowledged writes survive a "
    "crash [default: in memory].",
)
@flag(
    _NODES,
    "--nodes",
    type=IntRange(0, 100_000),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of nodes; existing ones count.",
)
@flag(_NODES, "--node-cpu", default="8", show_default=True, metavar="Q", help="CPUs of each node.")
@flag(
    _NODES,
    "--node-memory",
    default="32Gi",
    show_default=True,
    metavar="Q",
    help="Memory of each node.",
)
@flag(
    _NODES,
    "--node-pods",
    default="110",
    show_default=True,
    metavar="Q",
    help="Maximum number of pods on each node.",
)
@flag(
    _NODES,
    "--node-resource",
    "node_resources",
    multiple=True,
    metavar="NAME=Q",
    help="Another resource of each node, such as example.com/gpu=8. Repeatable.",
)
@flag(
    _NODES,
    "--node-label",
    "node_labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="A label of each node. Repeatable.",
)
@flag(
    _NODES,
    "--node-taint",
    "node_taints",
    multiple=True,
    metavar="KEY=VALUE:EFFECT",
    help="A taint of each node; without =VALUE its value is empty. Repeatable.",
)
@flag(
    _NODES,
    "--zones",
    multiple=True,
    callback=_zones,
    metavar="A,B,C",
    help="Zones, assigned to nodes in turn.",
)
@flag(
    _NODES,
    "--node-template",
    type=_PATH,
    metavar="FILE",
    help="A Node in YAML or JSON as a template; its fields override the other flags.",
)
@flag(
    _NODES,
    "--node-leases",
    is_flag=True,
    help="Let nodes renew their leases every ten seconds, as kubelets do.",
)
@flag(
    _PODS,
    "--start-latency",
    type=TIME_TAKEN,
    default="1s",
    show_default=True,
    metavar="D",
    help="Time from binding to running, ± 50 %.",
)
@flag(
    _PODS,
    "--stop-latency",
    type=TIME_TAKEN,
    default="1s",
    show_default=True,
    metavar="D",
    help="Time to stop a deleted pod, ± 50 %; at most its grace period.",
)
@flag(
    _PODS,
    "--run-time",
    type=TIME_TAKEN,
    default="10s",
    show_default=True,
    metavar="D",
    help="How long pods with restartPolicy Never or OnFailure run, as those of Jobs. The "
    "annotations sandbox/run-seconds and sandbox/exit-code override it for one pod.",
)
@flag(
    _SCHEDULER,
    "--scheduler/--no-scheduler",
    "has_scheduler",
    default=True,
    help="Whether to run `kubesched run` as the scheduler.",
)
@flag(
    _SCHEDULER,
    "--config",
    "config_file",
    type=_PATH,
    metavar="FILE",
    help="Its KubeSchedulerConfiguration (v1); connection and leader election are replaced.",
)
@flag(
    _SCHEDULER,
    "--feature-gates",
    multiple=True,
    metavar="A=true,...",
    help="Its feature gates. With GenericWorkload the API server serves PodGroups, with "
    "DRADeviceTaintRules it serves DeviceTaintRules.",
)
@flag(
    _SCHEDULER,
    "--plugin",
    "plugins",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Add a plugin, as for `kubesched run`. Repeatable.",
)
@flag(
    _SCHEDULER,
    "--scheduler-log",
    type=_PATH,
    metavar="FILE",
    help="Append the scheduler's log to this file.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def sandbox(**flags: Any) -> int:
    """Run a cluster on this machine: an API server, fake nodes, and the scheduler.

    Nodes and pods exist only as objects: nodes are ready, bound pods run, end and stop after set
    times, but nothing is executed. Controllers create the pods of Deployments, DaemonSets and Jobs.
    The API server listens on 127.0.0.1 only; clients need the token in the kubeconfig.

    It runs until Ctrl-C, or until COMMAND ends, which gets KUBECONFIG and whose exit code it
    returns. At the end everything is removed, except the file of --data.

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
      kubesched sandbox --data cluster.sqlite --kubeconfig cluster.kubeconfig
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.sandbox_run import run_sandbox

    return run_sandbox(flags)
