"""Paths that name no resource: discovery, versions, health, OpenAPI.

Upstream: staging/src/k8s.io/apiserver/pkg/server (healthz, routes, v1.36)
Differs:  the server is healthy as long as it answers; its checks have no names but `ping`; the
          index of OpenAPI documents has a tag, where upstream says that it changed just now.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Final

from kubesched.apiserver.discovery import Discovery, aggregated_form, aggregated_type
from kubesched.apiserver.openapi import OpenApi
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.request import TEXT, Request, Response, json_response
from kubesched.apiserver.resources import Resources
from kubesched.apiserver.status import method_not_allowed, not_served

_HEALTH: Final = ("healthz", "livez", "readyz")
# Clients ask by a name that is no media type, and do not understand an answer that bears it.
_OPENAPI_V2_ASKED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_OPENAPI_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_VERSION: Final[Plain] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": f"{sys.platform}/python",
}


class NonResource:
    """Answers requests about the server itself."""

    def __init__(self, resources: Resources, address: Callable[[], str]) -> None:
        """Take what there is to tell.

        Args:
            resources: What is served.
            address: Returns host and port of the server.
        """
        self._discovery = Discovery(resources)
        self._openapi = OpenApi(resources)
        self._address = address

    def answer(self, request: Request) -> Response:
        """Return the answer to a request.

        Raises:
            StatusError: There is no such thing.
        """
        parts = tuple(part for part in request.path.split("/") if part)
        if not parts:
            return json_response(200, {"paths": ["/api", "/apis", "/healthz", "/version"]})
        first = parts[0]
        if first in _HEALTH:
            return _health(request, parts)
        if first == "openapi":
            return self._document(request, parts[1:])
        if first == "version" and len(parts) == 1:
            return json_response(200, _VERSION)
        if first in {"api", "apis"}:
            if request.method not in {"GET", "HEAD"}:
                raise method_not_allowed()
            return self._discover(request, parts)
        return page_not_found()

    def _document(self, request: Request, parts: tuple[str, ...]) -> Response:
        if parts == ("v2",):
            if _OPENAPI_V2_ASKED in request.accept or _OPENAPI_V2_PROTOBUF in request.accept:
                answer = Response(200, self._openapi.v2_protobuf(), _OPENAPI_V2_PROTOBUF)
            else:
                answer = json_response(200, self._openapi.v2_document())
            return _tagged(request, answer)
        if parts == ("v3",):
            return _tagged(request, Response(200, encode(self._openapi.v3_index()), TEXT))
        if parts[:1] == ("v3",):
            document = self._openapi.v3_document("/".join(parts[1:]))
            if document is not None:
                return _tagged(request, json_response(200, document))
            return Response(404, b"", "")
        return page_not_found()

    def _discover(self, request: Request, parts: tuple[str, ...]) -> Response:
        if len(parts) == 1:
            return self._roots(request, is_core=parts[0] == "api")
        if parts[0] == "api":
            return _found(self._discovery.group_version("", parts[1]))
        if self._discovery.group(parts[1]) is None:
            return page_not_found()
        if len(parts) == 2:
            return _found(self._discovery.group(parts[1]))
        return _found(self._discovery.group_version(parts[1], parts[2]))

    def _roots(self, request: Request, *, is_core: bool) -> Response:
        form = aggregated_form(request.accept)
        if form is not None:
            document = self._discovery.aggregated(form.version, is_core=is_core)
            return _tagged(request, Response(200, encode(document), aggregated_type(form)))
        if is_core:
            return json_response(200, self._discovery.versions(self._address()))
        return json_response(200, self._discovery.groups())


def _found(document: Plain | None) -> Response:
    if document is None:
        raise not_served()
    return json_response(200, document)


def _health(request: Request, parts: tuple[str, ...]) -> Response:
    if len(parts) == 1:
        if "verbose" in request.query:
            return Response(200, f"[+]ping ok\n{parts[0]} check passed\n".encode(), TEXT)
        return Response(200, b"ok", TEXT)
    if parts[1:] == ("ping",):
        return Response(200, b"ok", TEXT)
    return page_not_found()


def _tagged(request: Request, answer: Response) -> Response:
    """Return an answer with a tag, or without a body for a client that has seen it."""
    tag = f'"{hashlib.sha512(answer.body).hexdigest().upper()}"'
    headers = {"ETag": tag, "Vary": "Accept"}
    seen = [
        one.strip().removeprefix("W/")
        for one in request.headers.get("if-none-match", "").split(",")
    ]
    if tag in seen or "*" in seen:
        return Response(304, b"", "", headers)
    answer.headers = headers
    return answer


def page_not_found() -> Response:
    """Return the answer for a path that leads nowhere."""
    return Response(404, b"404 page not found\n", TEXT)
