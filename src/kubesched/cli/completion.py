"""`kubesched completion` prints the script that completes words and names of pods in a shell."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

import click
import msgspec
from click.shell_completion import get_completion_class

from kubesched.cli.main import kubesched
from kubesched.client.connect import connect
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.requests import Request
from kubesched.inputs.live_cluster import live_target
from kubesched.inputs.sources import ClusterSource


def completion(shell: str) -> None:
    """Print the completion script for a shell."""
    found = get_completion_class(shell)
    assert found is not None, "click knows the shells of the choice"
    click.echo(found(kubesched, {}, "kubesched", "_KUBESCHED_COMPLETE").source())


# Names of pods.

_SECONDS_MAX: Final = 2.0
_PODS_MAX: Final = 500
_PENDING: Final = "spec.nodeName="


def complete_pod(ctx: click.Context, incomplete: str) -> list[str]:
    """Return pending pods whose names begin with the text; none without a readable cluster."""
    try:
        return _matching(ctx, incomplete)
    except Exception:  # noqa: BLE001 - a shell that completes has no place for errors
        return []


def _matching(ctx: click.Context, incomplete: str) -> list[str]:
    given = ctx.params
    source = ClusterSource(kubeconfig=given.get("kubeconfig"), context=given.get("context") or "")
    settings, _ = live_target(source)
    namespace, slash, _ = incomplete.rpartition("/")
    in_namespace = namespace or given.get("namespace") or settings.namespace or "default"
    names = asyncio.run(_pod_names(settings, in_namespace))
    prefix = f"{namespace}{slash}"
    return [prefix + name for name in names if (prefix + name).startswith(incomplete)]


async def _pod_names(settings: ConnectionSettings, namespace: str) -> list[str]:
    query = {"fieldSelector": _PENDING, "limit": str(_PODS_MAX)}
    request = Request(path=f"/api/v1/namespaces/{namespace}/pods", query=query)
    async with aclosing(connect(settings, qps=-1)) as rest, asyncio.timeout(_SECONDS_MAX):
        body = await rest.send(request)
    return [item["metadata"]["name"] for item in msgspec.json.decode(body)["items"]]
