"""A live cluster for commands: the embedded API server, in a thread, and its kubeconfig."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kubesched.api.scheme import find_kind
from kubesched.apiserver.request import ApiRequest, User
from kubesched.apiserver.server import ADMIN, ApiServer
from kubesched.client.requests import path_of

from .cluster import Json

TOKEN = "live-token"  # noqa: S105 - of a server that ends with the test


@contextmanager
def live(
    directory: Path,
    objects: Sequence[Json],
    *,
    user: User = ADMIN,
    tls: ssl.SSLContext | None = None,
    authority: bytes = b"",
) -> Iterator[Path]:
    """Serve a cluster; yields a kubeconfig whose context is `dev`, in namespace `shop`."""
    server = ApiServer({TOKEN: user})

    async def begin() -> None:
        await server.start(tls=tls)
        for item in objects:
            await create(server, item)

    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()

    def serve() -> None:
        # It cancels what is left at the end, such as TLS handshakes that clients abandoned.
        with runner:
            loop.run_forever()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(begin(), loop).result()
        yield write_kubeconfig(directory / "kubeconfig", server.url, authority=authority)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def create(server: ApiServer, item: Json) -> None:
    """Create an object, with its status."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace", "")
    if namespace:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await _send(server, "POST", "/api/v1/namespaces", space, may_exist=True)
    version = item["apiVersion"]
    kind = find_kind(version, item["kind"])
    if kind is None:
        # Such as a Secret, which kubesched does not read.
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        place = f"/namespaces/{namespace}" if namespace else ""
        await _send(server, "POST", f"{root}{place}/{item['kind'].lower()}s", item)
        return
    await _send(server, "POST", path_of(kind, namespace), item)
    path = path_of(kind, namespace, metadata["name"])
    if item["kind"] == "Node":
        # Admission has tainted it as not ready.
        taints = item["spec"].get("taints")
        await _send(server, "PATCH", path, {"spec": {"taints": taints}})
    if item.get("status"):
        await _send(server, "PATCH", f"{path}/status", {"status": item["status"]})


async def _send(
    server: ApiServer, method: str, path: str, body: Json, *, may_exist: bool = False
) -> None:
    form = "application/merge-patch+json" if method == "PATCH" else "application/json"
    text = json.dumps(body).encode()
    answer = await server.handle(ApiRequest(method, path, {}, {"content-type": form}, text, ADMIN))
    assert answer.status < 300 or (may_exist and answer.status == 409), answer.body


def write_kubeconfig(
    file: Path,
    url: str,
    *,
    token: str = TOKEN,
    authority: bytes = b"",
    user: Mapping[str, object] | None = None,
) -> Path:
    """Write a kubeconfig with one context."""
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    content = {
        "current-context": "dev",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {"token": token}}],
        "contexts": [
            {"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}
        ],
    }
    file.write_text(json.dumps(content))
    return file
