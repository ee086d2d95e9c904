"""PageServer serves a live page on loopback, to readers that have its token.

    server = PageServer(source)
    async with server.listening(port):
        print(server.url)

| path | answer |
|---|---|
| `/` | the page without data |
| `/documents` | the title and the documents that it shows, with an ETag |
| `/why`, `/explain` | about the pod `?pod=namespace/name` |
| `/top` | requests by `?group=` |

Rejects:  requests whose Host is not loopback, against DNS rebinding; requests for data without the
          token.
Invariants: nothing can be written; answers are not stored, and not readable for other sites.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.answers.cluster import Cluster
from kubesched.answers.top import TopGroup
from kubesched.explain.document import Document
from kubesched.framework.plugin_error import PluginError
from kubesched.inputs.errors import UserError, cannot_listen
from kubesched.page.render import content_security_policy, render
from kubesched.page.shown import ShownSource

HOST: Final = "127.0.0.1"
_NAMES: Final = (HOST, "localhost", "[::1]")
_TOKEN_BYTES: Final = 32
_BODY_BYTES_MAX: Final = 1024


class PageServer:
    """A page and the answers that it requests.

    Attributes:
        token: What a reader has to send, as `Authorization: Bearer`.
        url: The address with the token; empty before it listens.
    """

    def __init__(self, source: ShownSource) -> None:
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.url = ""
        self._source = source
        self._page = render((), "kubesched", live=True).encode()
        self.application = web.Application(
            middlewares=(self._guarded,), client_max_size=_BODY_BYTES_MAX
        )
        self.application.on_response_prepare.append(_protect)
        handlers = {"/": self._index, "/documents": self._documents}
        handlers |= dict.fromkeys(_QUESTIONS, self._answer)
        for path, handler in handlers.items():
            self.application.router.add_get(path, handler, allow_head=False)

    @asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[None]:
        """Listen on loopback within an `async with`; port 0 is a free one.

        Raises UserError if the port cannot be used.
        """
        runner = web.AppRunner(self.application, access_log=None, shutdown_timeout=0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, HOST, port)
            try:
                await site.start()
            except OSError as error:
                raise cannot_listen(error, HOST, port) from None
            bound: int = runner.addresses[0][1]
            # Browsers do not send the part after #, so it is in no log.
            self.url = f"http://{HOST}:{bound}/#token={self.token}"
            yield
        finally:
            await runner.cleanup()

    # Before every answer.

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        name = request.host.rpartition(":")[0] or request.host
        if name not in _NAMES:
            return _problem(403, "this page is served for 127.0.0.1 and localhost only")
        if request.path != "/" and not self._has_token(request):
            return _problem(
                401, "the token is missing or wrong; open the address that kubesched ui printed"
            )
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _problem(error.status, error.reason.lower())
        except UserError as error:
            return _problem(422, "; ".join(error.messages))
        except PluginError as error:
            return _problem(500, str(error))

    def _has_token(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme == "Bearer" and hmac.compare_digest(token.encode(), self.token.encode())

    # Answers.

    async def _index(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._page, content_type="text/html", charset="utf-8")

    async def _documents(self, request: web.Request) -> web.Response:
        sent = await self._source.documents()
        tag = f'"{sent.tag}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        return _json(sent.body, {"ETag": tag})

    async def _answer(self, request: web.Request) -> web.Response:
        question = _QUESTIONS[request.path]
        answer = await self._source.ask(lambda cluster: question(cluster, request.query))
        return _json(msgspec.json.encode(answer.to_dict()))


_QUESTIONS: Final[Mapping[str, Callable[[Cluster, Mapping[str, str]], Document]]] = {
    "/why": lambda cluster, query: cluster.why(_pod(query)),
    "/explain": lambda cluster, query: cluster.explain(_pod(query)),
    "/top": lambda cluster, query: cluster.top(query.get("group", TopGroup.NODES)),
}


def _pod(query: Mapping[str, str]) -> str:
    pod = query.get("pod", "")
    if not pod:
        raise UserError("pod: name one, as namespace/name")
    return pod


def _json(body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers=headers)


def _problem(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that keep other sites and caches out."""
    policy = content_security_policy(live=True) if request.path == "/" else "default-src 'none'"
    response.headers.update(
        {
            "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "Server": "kubesched",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
    )
