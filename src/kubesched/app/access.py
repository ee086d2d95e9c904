"""Access to the secure port: who a client is, and which paths it may request.

Users are identified by proxy headers, client certificate or bearer token. Fixed rules decide what
they may request, or else the API server.

The authorities that the cluster's API server trusts are in the ConfigMap
kube-system/extension-apiserver-authentication.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go,
          staging/src/k8s.io/apiserver/pkg/authentication/request/headerrequest,
          staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go,
          staging/src/k8s.io/apiserver/pkg/server/options/authentication.go,
          staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates,
          staging/src/k8s.io/apiserver/pkg/server/options/authorization.go,
          staging/src/k8s.io/apiserver/pkg/authorization/path/path.go (v1.36)
Rejects:  invalid credentials, unless others in the same request are valid; everything that neither
          a fixed rule nor a SubjectAccessReview allows.
Differs:  the handshake fails for a certificate of an unknown authority, where upstream tries the
          token next; intermediate certificates need Python 3.13. Tokens in the protocol header of
          websockets are ignored; no endpoint is a websocket. The ConfigMap is read every minute;
          upstream watches it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from kubesched.api.errors import ApiError, NotFoundError, SetupError
from kubesched.app.http_exchange import (
    HttpRequest,
    HttpResponse,
    forbidden,
    internal_error,
    unauthorized,
)
from kubesched.app.options import ProxyOptions
from kubesched.app.reviews import (
    ANONYMOUS,
    AccessError,
    AccessStatus,
    Reviews,
    TokenStatus,
    UserInfo,
    as_authenticated,
)
from kubesched.client.requests import Request, Rest
from kubesched.client.tls import trust
from kubesched.framework.structured_log import V4, write

if TYPE_CHECKING:
    from kubesched.app.client_certificates import ClientCertificate

log: Final = logging.getLogger(__name__)

# The user of a request.


class Authorities(msgspec.Struct, frozen=True):
    """Authorities of clients and of authenticating proxies, as PEM; "" without any.

    `headers` has the names of these proxies, and the headers that identify users.
    """

    client: str = ""
    proxies: str = ""
    headers: ProxyOptions = ProxyOptions()

    @property
    def pem(self) -> str:
        """All authorities as PEM, "" without any."""
        return "\n".join(filter(None, (self.client, self.proxies)))


class Authenticator:
    """Identifies the user of a request."""

    def __init__(
        self, authorities: Callable[[], Authorities], tokens: Reviews[TokenStatus]
    ) -> None:
        self._authorities = authorities
        self._tokens = tokens

    async def authenticate(self, request: HttpRequest) -> UserInfo:
        """Return the user, `ANONYMOUS` without credentials; raises AccessError if none is valid."""
        problems: list[str] = []
        for authenticate in (self._by_proxy, self._by_certificate, self._by_token):
            try:
                user = await authenticate(request)
            except AccessError as error:
                problems.append(str(error))
                continue
            if user is not None:
                return as_authenticated(user)
        if problems:
            raise AccessError(", ".join(problems))
        return ANONYMOUS

    async def _by_proxy(self, request: HttpRequest) -> UserInfo | None:
        known = self._authorities()
        if not request.certificates or not known.proxies:
            return None
        name = self._verified(request, known.proxies).common_name
        allowed = known.headers.allowed_names
        if allowed and name not in allowed:
            raise AccessError(f"x509: subject with cn={name} is not in the allowed list")
        return _user_of_headers(request, known.headers)

    async def _by_certificate(self, request: HttpRequest) -> UserInfo | None:
        client = self._authorities().client
        if not request.certificates or not client:
            return None
        return self._verified(request, client).user()

    async def _by_token(self, request: HttpRequest) -> UserInfo | None:
        token = bearer_token(request.header("Authorization"))
        if not token:
            return None
        status = await self._tokens.ask({"token": token})
        if not status.authenticated:
            raise AccessError(status.error or "invalid bearer token")
        return status.user

    def _verified(self, request: HttpRequest, authorities: str) -> ClientCertificate:
        # Imported on first use: most processes never see a client certificate.
        from kubesched.app.client_certificates import verify  # noqa: PLC0415

        return verify(request.certificates, authorities)


def _user_of_headers(request: HttpRequest, headers: ProxyOptions) -> UserInfo | None:
    """Return the user that a proxy names, None without a user name."""
    name = _first(request, headers.username_headers)
    if not name:
        return None
    groups = tuple(
        value
        for header in headers.group_headers
        for value in request.header_values(header)
        if value
    )
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in headers.extra_headers_prefix:
        for header, value in request.headers:
            if header.lower().startswith(prefix.lower()):
                key = unquote(header[len(prefix) :].lower())
                extra[key] = (*extra.get(key, ()), value)
    return UserInfo(name, _first(request, headers.uid_headers), groups, extra)


def _first(request: HttpRequest, headers: Sequence[str]) -> str:
    values = (request.header(header) for header in headers)
    return next((value for value in values if value), "")


def bearer_token(header: str) -> str:
    """Return the bearer token of an Authorization header, "" without one."""
    scheme, *rest = header.strip().split(" ", 2)
    return rest[0] if rest and scheme.lower() == "bearer" else ""


# The permissions of a user.

_ALWAYS_ALLOWED_GROUP: Final = "system:masters"


class Authorizer:
    """Decides which user may request which path."""

    def __init__(self, open_paths: Sequence[str], reviews: Reviews[AccessStatus]) -> None:
        """Set up; everybody may request the open paths, where a trailing `*` matches any rest.

        Raises SetupError for a path with a `*` that is not at its end.
        """
        for path in open_paths:
            if "*" in path[:-1]:
                raise SetupError(
                    "--authorization-always-allow-paths: only trailing * allowed in"
                    f' "{path.removeprefix("/")}"'
                )
        self._open_paths = tuple(path.removeprefix("/") for path in open_paths)
        self._reviews = reviews

    async def authorize(self, user: UserInfo, verb: str, path: str) -> AccessStatus:
        """Return whether the user may request the path with a verb, such as `get`.

        Raises AccessError if the review failed, or both allows and denies.
        """
        if _ALWAYS_ALLOWED_GROUP in user.groups or self._is_open(path.removeprefix("/")):
            return AccessStatus(allowed=True)
        access = await self._reviews.ask(_spec(user, verb, path))
        if access.denied and access.allowed:
            raise AccessError("webhook subject access review returned both allow and deny response")
        return access

    def _is_open(self, path: str) -> bool:
        return any(
            path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
            for pattern in self._open_paths
        )


def _spec(user: UserInfo, verb: str, path: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"nonResourceAttributes": {"path": path, "verb": verb}}
    known = {"user": user.username, "groups": user.groups, "extra": user.extra, "uid": user.uid}
    return spec | {name: value for name, value in known.items() if value}


def with_access(
    authenticator: Authenticator,
    authorizer: Authorizer,
    answer: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]],
) -> Callable[[HttpRequest], Coroutine[Any, Any, HttpResponse]]:
    """Return a function that authenticates and authorizes a request before `answer` gets it.

    It refuses a request with 401 or 403, or with 500 if authorization fails.
    """

    async def handle(request: HttpRequest) -> HttpResponse:
        try:
            user = await authenticator.authenticate(request)
        except AccessError as error:
            write(log, logging.ERROR, "Unable to authenticate the request", err=str(error))
            return unauthorized(request)
        try:
            access = await authorizer.authorize(user, request.method.lower(), request.path)
        except AccessError as error:
            return internal_error(request, str(error))
        if not access.allowed:
            write(log, V4, "Forbidden", URI=request.target, reason=access.reason)
            return forbidden(request, user.username, access.reason)
        given = answer(request)
        return given if isinstance(given, HttpResponse) else await given

    return handle


# What the cluster's API servers accept.

_NAME: Final = "extension-apiserver-authentication"
_PATH: Final = f"/api/v1/namespaces/kube-system/configmaps/{_NAME}"
_PERIOD_SECONDS: Final = 60.0


class LookupFailedError(SetupError):
    """The cluster's authorities could not be read."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


_config_maps: Final = msgspec.json.Decoder(_ConfigMap)
_texts: Final = msgspec.json.Decoder(tuple[str, ...])


def check_bundle(pem: str) -> None:
    """Raise ValueError if a PEM text has no certificates, or one that cannot be parsed."""
    if "-----BEGIN CERTIFICATE" not in pem:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates")
    try:
        trust(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pem.encode())
    except (ssl.SSLError, ValueError):
        raise ValueError("a certificate in it cannot be parsed") from None


def authorities_of(data: Mapping[str, str]) -> Authorities:
    """Return the authorities of a ConfigMap's data; raises ValueError if they cannot be parsed."""
    client = data.get("client-ca-file", "")
    proxies = data.get("requestheader-client-ca-file", "")
    for pem in filter(None, (proxies, client)):
        check_bundle(pem)

    def texts(name: str) -> tuple[str, ...]:
        value = data.get(f"requestheader-{name}", "")
        return _texts.decode(value) if value else ()

    headers = ProxyOptions(
        allowed_names=texts("allowed-names"),
        username_headers=texts("username-headers"),
        uid_headers=texts("uid-headers"),
        group_headers=texts("group-headers"),
        extra_headers_prefix=texts("extra-headers-prefix"),
    )
    return Authorities(client, proxies, headers)


class ClusterAuthentication:
    """The authorities of files, or else those of the cluster as last read."""

    def __init__(
        self, rest: Rest, files: Authorities, on_change: Callable[[Authorities], None]
    ) -> None:
        """Set up; `on_change` is called with new authorities of the cluster."""
        self._cluster = Authorities()
        self._rest = rest
        self._files = files
        self._on_change = on_change
        self._data: Mapping[str, str] | None = None

    @property
    def authorities(self) -> Authorities:
        """The trusted authorities; files replace those of clients and of proxies separately."""
        files, cluster = self._files, self._cluster
        proxies = files if files.proxies else cluster
        return Authorities(files.client or cluster.client, proxies.proxies, proxies.headers)

    async def refresh(self) -> None:
        """Read the ConfigMap once; if it does not exist, nothing changes.

        Raises LookupFailedError if the request failed, or the data is invalid.
        """
        try:
            body = await self._rest.send(Request(path=_PATH))
            data = _config_maps.decode(body).data or {}
            if data == self._data:
                return
            self._cluster = authorities_of(data)
        except NotFoundError:
            return
        except (ApiError, ValueError, msgspec.MsgspecError) as error:
            raise LookupFailedError(str(error)) from None
        self._data = data
        self._on_change(self._cluster)

    async def run(self) -> None:
        """Read the ConfigMap every minute, until cancelled."""
        while True:
            await asyncio.sleep(_PERIOD_SECONDS)
            try:
                await self.refresh()
            except LookupFailedError as error:
                log.warning("Unable to get configmap/%s in kube-system: %s", _NAME, error)
