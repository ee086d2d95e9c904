"""ApiServer: the part of kube-apiserver that a scheduler, its controllers and kubectl need.

It answers in the process, for tests and sandboxes, and over HTTP on a loopback address.

Upstream: cmd/kube-apiserver, staging/src/k8s.io/apiserver/pkg/server,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters (v1.36)
Invariants: a request is answered completely before the next one changes anything; a slow watcher
            delays only itself.
Differs:  no etcd, no audit, no priority and fairness; users and tokens are given at the start. Flow
          schemas and most roles that every cluster has are left out. HTTP/1.1; answers are not
          compressed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from random import Random, SystemRandom
from typing import Any, Final

import msgspec
from aiohttp import web

from kubesched.api.errors import ApiError
from kubesched.api.media_types import JSON, YAML
from kubesched.api.yaml_syntax import dump, load_documents
from kubesched.apiserver import defaults
from kubesched.apiserver.authorization import (
    KINDS,
    StoredRoles,
    Tokens,
    attributes_of,
    impersonated,
)
from kubesched.apiserver.discovery import discover, page_not_found
from kubesched.apiserver.handler import Handler
from kubesched.apiserver.plain import Plain, decode, deep_copy, without
from kubesched.apiserver.presentation import prefers_yaml
from kubesched.apiserver.registry import ObjectRegistry
from kubesched.apiserver.request import (
    ANONYMOUS,
    ApiRequest,
    Operation,
    Response,
    User,
    refused,
    target_of,
)
from kubesched.apiserver.resources import Resources
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.stored_object import StoredObject, stamp
from kubesched.apiserver.times import Clock
from kubesched.apiserver.warnings import sendable
from kubesched.cluster.store import Store

log = logging.getLogger(__name__)
ADMIN: Final = User("admin", ("system:masters", "system:authenticated"))


class ApiServer:
    """A server of the Kubernetes API; other code of the process uses its registry of objects."""

    def __init__(
        self,
        tokens: Mapping[str, User] | None = None,
        *,
        anonymous: User = ANONYMOUS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        random: Random | None = None,
        has_alpha: bool = False,
    ) -> None:
        """Prepare a server with the objects that every cluster has.

        Args:
            tokens: Users by token.
            anonymous: The user of requests without a token; `ADMIN` for no access control.
            now: Returns the current time, with time zone UTC.
            random: Draws identities and names; None for the system's.
            has_alpha: Whether alpha versions are served.
        """
        clock = Clock(now, random or SystemRandom())
        store: Store[StoredObject] = Store(stamp)
        self.registry = ObjectRegistry(store, Resources(has_alpha=has_alpha), clock)
        self._scheme = "http"
        self._front = HttpFront(self.handle, self.user_of)
        self._anonymous = anonymous
        self._roles = StoredRoles(
            self.registry.lookup, lambda: tuple(map(store.newest_change, KINDS))
        )
        self._tokens = Tokens(dict(tokens or {}), self.registry.lookup, clock)
        self._handler = Handler(self.registry, self._tokens, self._roles)
        fill(self.registry)
        # Watches cannot start before this point.
        self.registry.store.compact_all()

    @property
    def url(self) -> str:
        """Where it listens; "" while it does not."""
        return f"{self._scheme}://{self._front.address}" if self._front.address else ""

    async def start(
        self, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        """Start to serve HTTP on one of the machine's own addresses; port 0 is any that is free.

        Without TLS it is plain HTTP, over which kubectl sends no token. Raises OSError if nothing
        can listen there.
        """
        self._scheme = "http" if tls is None else "https"
        await self._front.start(host, port, tls)

    async def stop(self) -> None:
        """End all watches and stop listening; stopping twice is fine."""
        await self._front.stop()

    def user_of(self, headers: Mapping[str, str]) -> User:
        """Return the user of a request by its headers, whose names are in lower case.

        Raises StatusError if its token is unknown, or if it may not impersonate whom it names.
        """
        return impersonated(headers, self._bearer(headers.get("authorization", "")), self._roles)

    def _bearer(self, authorization: str) -> User:
        if not authorization:
            return self._anonymous
        scheme, _, token = authorization.partition(" ")
        user = self._tokens.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return user

    async def handle(self, request: ApiRequest) -> Response:
        """Return the answer to a request, which may be an error."""
        request = msgspec.structs.replace(request, warnings=[])
        try:
            answer = await self._answer(request)
        except ApiError as error:
            answer = refused(error)
        except Exception as error:  # one bad request must not end the server
            log.exception("%s %s failed", request.method, request.path)
            answer = refused(StatusError(500, "InternalError", f"Internal error occurred: {error}"))
        answer.warnings = sendable(request.warnings)
        if answer.content_type == JSON and answer.body and prefers_yaml(request.accept):
            answer.body = dump(decode(answer.body)).encode()
            answer.content_type = YAML
        return answer

    async def _answer(self, request: ApiRequest) -> Response:
        target = target_of(request)
        self._roles.check(attributes_of(request, target))
        if target is None:
            return discover(request, self.registry.resources, self._front.address)
        if target.group not in self.registry.resources.groups:
            return page_not_found()
        return await self._handler.handle(request, target)


# What every cluster has.

_SERVER: Final = User("system:apiserver", ("system:masters",))


@cache
def _objects() -> Sequence[Plain]:
    text = files(__package__).joinpath("every_cluster.yaml").read_text(encoding="utf-8")
    objects: list[Plain] = []
    for one in next(document for _, document in load_documents(text)):
        objects.append(one)
        if "rules" in one:
            one["rules"] = list(_flat(one["rules"]))
        if (subjects := one.pop("grantedTo", None)) is not None:
            role = {"kind": one["kind"], "name": one["metadata"]["name"]}
            binding = {"kind": f"{one['kind']}Binding", "roleRef": role, "subjects": subjects}
            objects.append(without(one, "rules") | binding)
    return objects


def _flat(rules: Sequence[Any]) -> Iterator[Plain]:
    """Yield rules, and those in lists among them, which are those of another role."""
    for rule in rules:
        yield from _flat(rule) if isinstance(rule, list) else (rule,)


def fill(registry: ObjectRegistry) -> None:
    """Create the objects that every cluster has, if they are missing."""
    for obj in _objects():
        resource = registry.resources.find_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None, f"{obj['kind']} is always served"
        metadata = obj["metadata"]
        request = ApiRequest("POST", "", headers={"user-agent": "kube-apiserver"}, user=_SERVER)
        operation = Operation(request, resource, metadata.get("namespace", ""), metadata["name"])
        if registry.store.find(operation.key) is None:
            registry.create(operation, defaults.with_defaults(resource, deep_copy(obj)))


# HTTP.

_BODY_MAX: Final = 3 * 1024 * 1024
_BROWSERS: Final = ("curl", "Wget", "Mozilla/5.0")
_STOP_SECONDS: Final = 1.0
# asyncio accepts a connection in one turn of its loop, opens a transport in the next, calls the
# protocol in the one after, and starts the handler of a stream after that.
_ACCEPT_TURNS: Final = 4


async def close_listener(listener: asyncio.Server) -> None:
    """Close a listener when the connections that it has accepted are with their handlers.

    asyncio loses a connection whose listener is closed before its transport is opened, so that the
    client would never see it end.
    """
    for one in listener.sockets:
        asyncio.get_running_loop().remove_reader(one)
    for _ in range(_ACCEPT_TURNS):
        await asyncio.sleep(0)
    listener.close()


class HttpFront:
    """Listens for a server at `address`, host and port; "" while it does not."""

    def __init__(
        self,
        answer: Callable[[ApiRequest], Awaitable[Response]],
        user_of: Callable[[Mapping[str, str]], User],
    ) -> None:
        """Set up; nothing happens before `start`.

        `answer` raises nothing; `user_of` returns the user of a request with these headers, or
        raises an ApiError.
        """
        self.address = ""
        self._answer = answer
        self._user_of = user_of
        self._serving: tuple[asyncio.Server, web.Server] | None = None
        self._streaming: dict[asyncio.Task[object], None] = {}

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen, on any free port for 0; raises OSError if nothing can listen there."""
        connections = web.Server(self._handle, access_log=None)
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(connections, host, port, ssl=tls)
        self._serving = listener, connections
        found = listener.sockets[0].getsockname()
        self.address = f"{found[0]}:{found[1]}"

    async def stop(self) -> None:
        """End all watches, and listen no more; stopping twice is fine."""
        serving, self._serving = self._serving, None
        if serving is not None:
            listener, connections = serving
            await close_listener(listener)
            for task in tuple(self._streaming):
                task.cancel()
            transports = [connection.transport for connection in connections.connections]
            connections.pre_shutdown()
            await connections.shutdown(_STOP_SECONDS)
            # Over TLS, closing waits for the client to agree.
            for transport in transports:
                if transport is not None:
                    transport.abort()
            await asyncio.sleep(0)
            self.address = ""

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            request = await self._read(incoming)
        except ApiError as error:
            return _plain(refused(error), b"")
        answer = await self._answer(request)
        if answer.stream is not None:
            return await self._stream(incoming, answer)
        return _plain(answer, _shown(request, answer))

    async def _read(self, incoming: web.BaseRequest) -> ApiRequest:
        lines = incoming.headers
        # One header may come in several lines.
        headers = {name.lower(): ",".join(lines.getall(name)) for name in lines}
        user = self._user_of(headers)
        body = await _body_of(incoming) if incoming.body_exists else b""
        query: dict[str, tuple[str, ...]] = {}
        if incoming.query_string:
            query = {name: tuple(incoming.query.getall(name)) for name in incoming.query}
        return ApiRequest(incoming.method, incoming.path, query, headers, body, user)

    async def _stream(self, incoming: web.BaseRequest, answer: Response) -> web.StreamResponse:
        outgoing = web.StreamResponse(status=answer.status, headers=_headers(answer))
        outgoing.enable_chunked_encoding()
        assert answer.stream is not None, "asked before"
        task = asyncio.current_task()
        assert task is not None, "handlers run in tasks"
        self._streaming[task] = None
        try:
            async with contextlib.aclosing(answer.stream) as lines:
                # A write fails once the client has disconnected.
                with contextlib.suppress(ConnectionResetError):
                    await outgoing.prepare(incoming)
                    async for line in lines:
                        await outgoing.write(line)
                    await outgoing.write_eof()
        finally:
            self._streaming.pop(task, None)
        return outgoing


async def _body_of(incoming: web.BaseRequest) -> bytes:
    if (incoming.content_length or 0) > _BODY_MAX:
        raise _too_large()
    parts, size = [], 0
    async for part in incoming.content.iter_any():
        size += len(part)
        if size > _BODY_MAX:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_large() -> StatusError:
    message = f"Request entity too large: limit is {_BODY_MAX}"
    return StatusError(413, "RequestEntityTooLarge", message)


def _headers(answer: Response) -> list[tuple[str, str]]:
    headers = list(answer.headers.items())
    if answer.content_type:
        headers.append(("Content-Type", answer.content_type))
    headers.append(("Cache-Control", "no-cache, private"))
    for text in answer.warnings:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        headers.append(("Warning", f'299 - "{quoted}"'))
    return headers


def _plain(answer: Response, body: bytes) -> web.Response:
    return web.Response(body=body or answer.body, status=answer.status, headers=_headers(answer))


def _shown(request: ApiRequest, answer: Response) -> bytes:
    """Return the body, indented if the client wants that."""
    if "pretty" in request.query:
        is_pretty = request.flag("pretty")
    else:
        is_pretty = request.headers.get("user-agent", "").startswith(_BROWSERS)
    if not is_pretty or answer.content_type != JSON:
        return answer.body
    return msgspec.json.format(answer.body, indent=2)
