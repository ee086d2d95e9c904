"""`kubesched run`: the scheduler of a cluster, beside kube-scheduler or in its place."""

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
    """Return where to listen; a dry run, as on a laptop, is nobody else's business."""
    if given is not None:
        return given
    return _LOOPBACK if ctx.params["dry_run"] else _EVERYWHERE


def _gates_shown(texts: Sequence[str]) -> str:
    """Return gates as upstream's flag shows them: each behind its component's name and a colon."""
    gates = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    return ",".join(sorted((gate if ":" in gate else f":{gate}" for gate in gates), key=_component))


def _component(gate: str) -> str:
    return gate.partition(":")[0]


def _print_version(ctx: click.Context, parameter: click.Parameter, value: str) -> None:
    # `--version=v1.2.3` sets what upstream reports; the version here is not for setting.
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
    text="The version whose behaviour is wanted; only 1.36 can be.",
)
@comma_list(
    _MAIN,
    "--min-compatibility-version",
    metavar="VERSION",
    text="Accepted, from 1.33 to 1.36; nothing depends on it.",
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
    help="Decide and report, but bind, evict and write nothing; there is no election.",
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
    help="After so long an unschedulable pod is tried again without an event.",
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
    text="Whether replicas agree on the one that works.",
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
    help="How long between attempts.",
)
@flag(
    _ELECTION,
    "--leader-elect-resource-lock",
    unset="leases",
    metavar="KIND",
    help="Kind of the lock.",
)
@switch(
    _ELECTION,
    "--leader-elect-allow-removed-locks",
    default=False,
    text="Allow the kinds that Kubernetes has removed: endpoints, configmaps, endpointsleases and "
    "configmapsleases.",
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
    help="Where kube-scheduler.crt and kube-scheduler.key are, or are written to.",
)
@flag(
    _SERVING,
    "--tls-cert-file",
    default="",
    metavar="FILE",
    help="Certificate [default: one made at start-up].",
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
    help="Accepted; one certificate is shown, whatever name a client asks for.",
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
    text="Let others listen on the same address and port.",
)
@switch(
    _SERVING,
    "--permit-address-sharing",
    default=False,
    text="Accepted; addresses are always shared, so nothing waits for sockets of before.",
)
@switch(
    _SERVING,
    "--disable-http2-serving",
    default=False,
    text="Accepted; HTTP/2 is not spoken.",
)
@flag(
    _SERVING,
    "--http2-max-streams-per-connection",
    type=IntRange(min=0),
    default=0,
    metavar="N",
    help="Accepted; HTTP/2 is not spoken.",
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
    help="How long a token's answer is kept.",
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
    help="How long it counts that somebody may ask for a path.",
)
@flag(
    _ACCESS,
    "--authorization-webhook-cache-unauthorized-ttl",
    type=DURATION,
    default="10s",
    show_default=True,
    metavar="D",
    help="How long it counts that somebody may not.",
)
@comma_list(
    _ACCESS,
    "--authorization-always-allow-paths",
    default="/healthz,/readyz,/livez",
    metavar="PATH,...",
    text="Paths that everybody may ask for.",
)
@flag(
    _ACCESS,
    "--client-ca-file",
    default="",
    metavar="FILE",
    help="Clients with a certificate signed by this are who it says.",
)
@flag(
    _ACCESS,
    "--requestheader-client-ca-file",
    default="",
    metavar="FILE",
    help="Proxies with a certificate signed by this may ask on others' behalf [default: as the "
    "cluster has it, and then the other flags of this kind do not count].",
)
@comma_list(
    _ACCESS,
    "--requestheader-allowed-names",
    metavar="NAME,...",
    text="Common names of such proxies [default: any].",
)
@comma_list(
    _ACCESS,
    "--requestheader-username-headers",
    default="x-remote-user",
    metavar="HEADER,...",
    text="Where they say who asks.",
)
@comma_list(
    _ACCESS,
    "--requestheader-uid-headers",
    metavar="HEADER,...",
    text="Where they say the user's uid.",
)
@comma_list(
    _ACCESS,
    "--requestheader-group-headers",
    default="x-remote-group",
    metavar="HEADER,...",
    text="Where they say the user's groups.",
)
@comma_list(
    _ACCESS,
    "--requestheader-extra-headers-prefix",
    default="x-remote-extra-",
    metavar="PREFIX,...",
    text="Begins headers that say more of the user.",
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
    text="Metrics to leave out, by their full names.",
)
@flag(
    _METRICS,
    "--allow-metric-labels",
    multiple=True,
    shown=lambda pairs: f"[{','.join(pairs)}]",
    metavar="NAME,LABEL=V,...",
    help="The values of a metric's label that are shown; others become `unexpected`. Repeatable.",
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
    help="How much is logged: 2 bindings, 3 attempts, 5 moves in the queue, 10 scores.",
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
    help="How lines are written.",
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
    help="Requests a second to the API server.",
)
@flag(
    _DEPRECATED,
    "--kube-api-burst",
    unset="100",
    type=int,
    metavar="N",
    help="Requests at once.",
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
    """Run as a cluster's scheduler, beside kube-scheduler or in its place.

    Pods that name one of the profiles in spec.schedulerName are placed. Replicas elect a leader;
    the others stand by. The flags are kube-scheduler's, and so are their defaults.

    \b
    Which cluster? The first of these that is given:
      clientConnection.kubeconfig of --config; without --config, --kubeconfig
      --master, without credentials
      the files listed in KUBECONFIG, merged as kubectl merges them
      the service account of the pod this runs in
    ~/.kube/config is read only where one of them names it.

    \b
    A second scheduler on the cluster of the current user:
      KUBECONFIG=~/.kube/config kubesched run --leader-elect=false --config my.yaml
    What would it do? Nothing is written:
      kubesched run --kubeconfig ~/.kube/config --dry-run
    """  # noqa: D301 - click reads the control character
    from kubesched.cli.run_process import run_process

    return run_process(flags, shown_flags(click.get_current_context()))
