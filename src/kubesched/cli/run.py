"""`kubesched run`: the scheduler of a cluster, beside kube-scheduler or instead of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from kubesched import __version__
from kubesched.cli.flags import (
    ADDRESS,
    DURATION,
    QUANTITY,
    DaemonCommand,
    comma_list,
    flag,
    go_name,
    shown_flags,
    switch,
)
from kubesched.cli.options import IntRange

_MAIN: Final = "Scheduler"
_ELECTION: Final = "Leader election"
_SERVING: Final = "Secure serving"
_ACCESS: Final = "Authentication and authorization"
_METRICS: Final = "Metrics"
_LOGS: Final = "Logs"
_DEPRECATED: Final = "Deprecated (without effect beside --config)"

_PATH: Final = click.Path(path_type=Path)
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - kube-scheduler's default, so that probes reach it
_LOOPBACK: Final = "127.0.0.1"


def _bind_address(ctx: click.Context, _parameter: click.Parameter, given: str | None) -> str:
    """Return the address to listen on: loopback for a dry run, else all."""
    if given is not None:
        return given
    return _LOOPBACK if ctx.params["dry_run"] else _EVERYWHERE


def _gates_shown(texts: Sequence[str]) -> str:
    """Return gates as upstream's flag shows them: with their component and a colon."""
    gates = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    return ",".join(sorted((gate if ":" in gate else f":{gate}" for gate in gates), key=_component))


def _component(gate: str) -> str:
    return gate.partition(":")[0]


def _print_version(ctx: click.Context, parameter: click.Parameter, value: str) -> None:
    # `--version=v1.2.3` sets the version that upstream reports; here it has no effect.
    if value in {"true", "raw"}:
        click.echo(f"kubesched, version {__version__}")
        ctx.exit()
    if value != "false" and not value.startswith("v"):
        raise click.BadParameter(f"{value!r} is not true, false, raw or v1.2.3", ctx, parameter)


@click.command(cls=DaemonCommand, context_settings={"token_normalize_func": go_name})
@flag(
    _MAIN,
    "--config",
    "config_file",
    type=_PATH,
    metavar="FILE",
    help="KubeSchedulerConfiguration (v1).",
)
@flag(
    _MAIN,
    "--master",
    default="",
    metavar="URL",
    help="Address of the API server, instead of the kubeconfig's.",
)
@flag(
    _MAIN,
    "--feature-gates",
    multiple=True,
    shown=_gates_shown,
    metavar="A=true,...",
    help="Feature gates that differ from the defaults of 1.36.",
)
@comma_list(
    _MAIN,
    "--emulated-version",
    metavar="VERSION",
    text="The version to emulate; only 1.36 is accepted.",
)
@comma_list(
    _MAIN,
    "--min-compatibility-version",
    metavar="VERSION",
    text="Accepted, from 1.33 to 1.36; without effect.",
)
@flag(
    _MAIN,
    "--plugin",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Add a plugin: module:Class or path/to/file.py:Class. It is enabled in all profiles at "
    "every extension point it implements, unless the configuration mentions it. Repeatable.",
)
@flag(
    _MAIN,
    "--dry-run",
    is_flag=True,
    help="Report decisions instead of executing them: nothing is written, and there is no leader "
    "election.",
)
@flag(
    _MAIN,
    "--record",
    type=_PATH,
    metavar="FILE",
    help="Record what the scheduler observes and decides, for `kubesched replay`; to FILE.partial "
    "until the end, compressed if its name ends in .gz.",
)
@flag(
    _MAIN,
    "--write-config-to",
    type=_PATH,
    metavar="FILE",
    help="Write the configuration with every default as YAML, and exit. `-` is stdout.",
)
@flag(
    _MAIN,
    "--pod-max-in-unschedulable-pods-duration",
    "max_in_unschedulable_seconds",
    type=DURATION,
    default="5m",
    show_default=True,
    metavar="D",
    help="After this time an unschedulable pod is retried without an event.",
)
@flag(
    _MAIN,
    "--seed",
    type=IntRange(min=0),
    metavar="N",
    help="Seed of the random source that breaks ties [default: drawn].",
)
@switch(
    _ELECTION,
    "--leader-elect",
    default=None,
    unset="true",
    text="Whether replicas elect a leader, which alone schedules.",
)
@flag(
    _ELECTION,
    "--leader-elect-lease-duration",
    unset="15s",
    type=DURATION,
    metavar="D",
    help="How long followers wait before they take over.",
)
@flag(
    _ELECTION,
    "--leader-elect-renew-deadline",
    unset="10s",
    type=DURATION,
    metavar="D",
    help="How long the leader tries to renew before it gives up.",
)
@flag(
    _ELECTION,
    "--leader-elect-retry-period",
    unset="2s",
    type=DURATION,
    metavar="D",
    help="The time between attempts.",
)
@flag(
    _ELECTION,
    "--leader-elect-resource-lock",
    unset="leases",
    metavar="KIND",
    help="Kind of the lock.",
)
@flag(
    _ELECTION,
    "--leader-elect-resource-name",
    unset="kube-scheduler",
    metavar="NAME",
    help="Name of the lock.",
)
@flag(
    _ELECTION,
    "--leader-elect-resource-namespace",
    unset="kube-system",
    metavar="NAME",
    help="Namespace of the lock.",
)
@flag(
    _SERVING,
    "--bind-address",
    type=ADDRESS,
    callback=_bind_address,
    metavar="IP",
    help="Where /healthz, /livez, /readyz, /metrics and /configz are served [default: "
    f"{_EVERYWHERE}; {_LOOPBACK} with --dry-run].",
)
@flag(
    _SERVING,
    "--secure-port",
    type=IntRange(0, 65535),
    default=10259,
    show_default=True,
    metavar="PORT",
    help="The port, over TLS; 0 serves nothing.",
)
@flag(
    _SERVING,
    "--cert-dir",
    default="",
    metavar="DIR",
    help="Directory of kube-scheduler.crt and kube-scheduler.key, which are created if missing.",
)
@flag(
    _SERVING,
    "--tls-cert-file",
    default="",
    metavar="FILE",
    help="Certificate [default: one generated at start-up].",
)
@flag(
    _SERVING,
    "--tls-private-key-file",
    default="",
    metavar="FILE",
    help="The certificate's key.",
)
@flag(
    _SERVING,
    "--tls-min-version",
    default="",
    metavar="VERSION",
    help="VersionTLS12 or VersionTLS13.",
)
@comma_list(
    _SERVING,
    "--tls-cipher-suites",
    metavar="A,B",
    text="Cipher suites of TLS 1.2.",
)
@flag(
    _SERVING,
    "--tls-sni-cert-key",
    multiple=True,
    shown=lambda pairs: f"[{';'.join(pairs)}]",
    metavar="CERT,KEY[:DOMAIN,...]",
    help="Accepted; all names get the same certificate.",
)
@comma_list(
    _SERVING,
    "--tls-curve-preferences",
    metavar="N,...",
    text="Accepted; OpenSSL chooses among its key exchanges.",
)
@switch(
    _SERVING,
    "--permit-port-sharing",
    default=False,
    text="Let other processes listen on the same address and port.",
)
@switch(
    _SERVING,
    "--permit-address-sharing",
    default=False,
    text="Accepted; addresses are always shared.",
)
@switch(
    _SERVING,
    "--disable-http2-serving",
    default=False,
    text="Accepted; HTTP/2 is never served.",
)
@flag(
    _SERVING,
    "--http2-max-streams-per-connection",
    type=IntRange(min=0),
    default=0,
    metavar="N",
    help="Accepted; HTTP/2 is never served.",
)
@flag(
    _ACCESS,
    "--authentication-kubeconfig",
    default="",
    metavar="FILE",
    help="For TokenReviews [default: the scheduler's own connection].",
)
@switch(
    _ACCESS,
    "--authentication-skip-lookup",
    default=False,
    text="Do not read the cluster's client CA from the API server.",
)
@switch(
    _ACCESS,
    "--authentication-tolerate-lookup-failure",
    default=True,
    text="Start even if the cluster's client CA cannot be read.",
)
@flag(
    _ACCESS,
    "--authentication-token-webhook-cache-ttl",
    type=DURATION,
    default="10s",
    show_default=True,
    metavar="D",
    help="How long token reviews are cached.",
)
@flag(
    _ACCESS,
    "--authorization-kubeconfig",
    default="",
    metavar="FILE",
    help="For SubjectAccessReviews [default: the scheduler's own connection].",
)
@flag(
    _ACCESS,
    "--authorization-webhook-cache-authorized-ttl",
    type=DURATION,
    default="10s",
    show_default=True,
    metavar="D",
    help="How long access reviews that allow a path are cached.",
)
@flag(
    _ACCESS,
    "--authorization-webhook-cache-unauthorized-ttl",
    type=DURATION,
    default="10s",
    show_default=True,
    metavar="D",
    help="How long access reviews that deny a path are cached.",
)
@comma_list(
    _ACCESS,
    "--authorization-always-allow-paths",
    default="/healthz,/readyz,/livez",
    metavar="PATH,...",
    text="Paths that need no authorization.",
)
@flag(
    _ACCESS,
    "--client-ca-file",
    default="",
    metavar="FILE",
    help="Certificate authorities of clients.",
)
@flag(
    _ACCESS,
    "--requestheader-client-ca-file",
    default="",
    metavar="FILE",
    help="Certificate authorities of authenticating proxies [default: the cluster's settings, and "
    "then the other --requestheader flags have no effect].",
)
@comma_list(
    _ACCESS,
    "--requestheader-allowed-names",
    metavar="NAME,...",
    text="Common names of authenticating proxies [default: any].",
)
@comma_list(
    _ACCESS,
    "--requestheader-username-headers",
    default="x-remote-user",
    metavar="HEADER,...",
    text="Headers with the user's name.",
)
@comma_list(
    _ACCESS,
    "--requestheader-uid-headers",
    metavar="HEADER,...",
    text="Headers with the user's uid.",
)
@comma_list(
    _ACCESS,
    "--requestheader-group-headers",
    default="x-remote-group",
    metavar="HEADER,...",
    text="Headers with the user's groups.",
)
@comma_list(
    _ACCESS,
    "--requestheader-extra-headers-prefix",
    default="x-remote-extra-",
    metavar="PREFIX,...",
    text="Prefixes of headers with extra fields of the user.",
)
@flag(
    _SERVING,
    "--decision-records",
    type=IntRange(min=0),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Number of decisions to keep for /debug/decisions, which `kubesched why --scheduler` "
    "reads; 0 keeps none.",
)
@flag(
    _METRICS,
    "--show-hidden-metrics-for-version",
    type=click.Choice(["", "1.35"]),
    default="",
    metavar="VERSION",
    help="Accepted; no metric is hidden.",
)
@comma_list(
    _METRICS,
    "--disabled-metrics",
    metavar="NAME,...",
    text="Full names of metrics to hide.",
)
@flag(
    _METRICS,
    "--allow-metric-labels",
    multiple=True,
    shown=lambda pairs: f"[{','.join(pairs)}]",
    metavar="NAME,LABEL=V,...",
    help="Values of a metric's label to show; others become `unexpected`. Repeatable.",
)
@flag(
    _METRICS,
    "--allow-metric-labels-manifest",
    default="",
    metavar="FILE",
    help="The same as YAML, such as `metric,label: v1,v2`.",
)
@flag(
    _LOGS,
    "-v",
    "--v",
    "verbosity",
    type=IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Log verbosity: 2 adds bindings, 3 attempts, 5 moves in the queue, 10 scores.",
)
@flag(
    _LOGS,
    "--vmodule",
    multiple=True,
    metavar="MODULE=N,...",
    help="Verbosity of single modules.",
)
@flag(
    _LOGS,
    "--logging-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of log lines.",
)
@flag(
    _LOGS,
    "--log-flush-frequency",
    type=DURATION,
    default="5s",
    metavar="D",
    help="Accepted; nothing is buffered.",
)
@switch(
    _LOGS,
    "--log-text-split-stream",
    default=False,
    text="Write errors to stderr and other lines to stdout, as text; needs LoggingAlphaOptions.",
)
@switch(
    _LOGS,
    "--log-json-split-stream",
    default=False,
    text="The same for JSON.",
)
@flag(
    _LOGS,
    "--log-text-info-buffer-size",
    type=QUANTITY,
    default="0",
    metavar="Q",
    help="Accepted with LoggingAlphaOptions; nothing is buffered.",
)
@flag(
    _LOGS,
    "--log-json-info-buffer-size",
    type=QUANTITY,
    default="0",
    metavar="Q",
    help="Accepted; nothing is buffered.",
)
@flag(
    _DEPRECATED,
    "--kubeconfig",
    metavar="FILE",
    help="Kubeconfig of the cluster.",
)
@flag(
    _DEPRECATED,
    "--kube-api-qps",
    unset="50",
    type=float,
    metavar="N",
    help="Requests per second to the API server.",
)
@flag(
    _DEPRECATED,
    "--kube-api-burst",
    unset="100",
    type=int,
    metavar="N",
    help="Burst of requests to the API server.",
)
@flag(
    _DEPRECATED,
    "--kube-api-content-type",
    default="application/vnd.kubernetes.protobuf",
    metavar="TYPE",
    help="Accepted; requests are JSON.",
)
@switch(
    _DEPRECATED,
    "--profiling",
    default=None,
    unset="true",
    text="Serve /debug/flags/v.",
)
@switch(
    _DEPRECATED,
    "--contention-profiling",
    default=None,
    unset="true",
    text="Accepted; there are no locks to profile.",
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
    """  # noqa: D301 - click reads the control character
    from kubesched.cli.run_process import run_process

    return run_process(flags, shown_flags(click.get_current_context()))
