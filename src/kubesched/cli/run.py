"""`kubesched run`: the scheduler of a cluster, beside kube-scheduler or instead of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from kubesched import __version__
from kubesched.cli.flags import DaemonCommand, go_name, shown_flags, table_flags

_EVERYWHERE: Final = "0.0.0.0"
_LOOPBACK: Final = "127.0.0.1"


def _bind_address(ctx: click.Context, _parameter: click.Parameter, given: str | None) -> str:
    """Return the address to listen on: loopback for a dry run, else all."""
    if given is not None:
        return given
    return _LOOPBACK if ctx.params["dry_run"] else _EVERYWHERE


def _gates_shown(texts: Sequence[str]) -> str:
    """Return gates as upstream's flag shows them: with their component and a colon."""
    gates = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    shown = (gate if ":" in gate else f":{gate}" for gate in gates)
    return ",".join(sorted(shown, key=lambda gate: gate.partition(":")[0]))


def _print_version(ctx: click.Context, parameter: click.Parameter, value: str) -> None:
    # `--version=v1.2.3` sets the version that upstream reports; here it has no effect.
    if value in {"true", "raw"}:
        click.echo(f"kubesched, version {__version__}")
        ctx.exit()
    if value != "false" and not value.startswith("v"):
        raise click.BadParameter(f"{value!r} is not true, false, raw or v1.2.3", ctx, parameter)


@click.command(cls=DaemonCommand, context_settings={"token_normalize_func": go_name})
@table_flags(
    "run",
    bind_address={"callback": _bind_address},
    feature_gates={"shown": _gates_shown},
    tls_sni_cert_key={"shown": lambda pairs: f"[{';'.join(pairs)}]"},
    allow_metric_labels={"shown": lambda pairs: f"[{','.join(pairs)}]"},
)
@click.option(
    "--version",
    is_flag=False,
    flag_value="true",
    default="false",
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    metavar="",
    help="Show the version and exit.",
)
def run(**flags: Any) -> int | None:
    """Run as a cluster's scheduler, beside kube-scheduler or instead of it.

    It schedules pods whose spec.schedulerName is one of the profiles. Replicas elect a leader; the
    others stand by. Flags and defaults are those of kube-scheduler.

    \b
    The cluster is the first of these that is given:
      clientConnection.kubeconfig of --config; without --config, --kubeconfig
      --master, without credentials
      the files listed in KUBECONFIG, merged as kubectl merges them
      the service account of the pod this runs in
    ~/.kube/config is read only if one of them names it.

    \b
    A second scheduler on the cluster of the current user:
      KUBECONFIG=~/.kube/config kubesched run --leader-elect=false --config my.yaml
    What it would do, without writing anything:
      kubesched run --kubeconfig ~/.kube/config --dry-run
    """
    from kubesched.cli.run_process import run_process

    return run_process(flags, shown_flags(click.get_current_context()))
