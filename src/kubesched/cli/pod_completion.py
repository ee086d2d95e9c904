"""Completes the names of pods in a shell, from the live cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from kubesched.client.connection_settings import ConnectionSettings

_SECONDS_MAX: Final = 2.0
_PODS_MAX: Final = 500
_PENDING: Final = "spec.nodeName="


def complete_pod(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the pending pods whose names begin so; nothing if the cluster does not answer."""
    try:
        return _matching(ctx, incomplete)
    except Exception:  # noqa: BLE001 - a shell that completes has no place for errors
        return []


def _matching(ctx: click.Context, incomplete: str) -> list[str]:
    import asyncio

    from kubesched.inputs.live_cluster import live_target
    from kubesched.inputs.sources import ClusterSource

    given = ctx.params
    source = ClusterSource(
        files=(), kubeconfig=given.get("kubeconfig"), context=given.get("context") or ""
    )
    settings, _ = live_target(source)
    namespace, slash, _ = incomplete.rpartition("/")
    in_namespace = namespace or given.get("namespace") or settings.namespace or "default"
    names = asyncio.run(_pod_names(settings, in_namespace))
    prefix = f"{namespace}{slash}"
    return [prefix + name for name in names if (prefix + name).startswith(incomplete)]


async def _pod_names(settings: ConnectionSettings, namespace: str) -> list[str]:
    import asyncio

    import msgspec

    from kubesched.client.connect import connect
    from kubesched.client.requests import Request

    rest = connect(settings, qps=-1)
    query = (("fieldSelector", _PENDING), ("limit", str(_PODS_MAX)))
    try:
        async with asyncio.timeout(_SECONDS_MAX):
            body = await rest.send(
                Request(path=f"/api/v1/namespaces/{namespace}/pods", query=query)
            )
    finally:
        await rest.aclose()
    return [item["metadata"]["name"] for item in msgspec.json.decode(body)["items"]]
