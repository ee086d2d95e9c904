"""Authentication by certificates, proxies and tokens, and by several of them at once."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubesched.api.errors import ApiError, NotFoundError
from kubesched.app.access import (
    Authenticator,
    Authorities,
    ClusterAuthentication,
    LookupFailedError,
    authorities_of,
    bearer_token,
)
from kubesched.app.http_exchange import HttpRequest
from kubesched.app.reviews import ANONYMOUS, AccessError, UserInfo
from kubesched.client.requests import Request
from tests.client.certificates import Holder, authority, signed
from tests.loops import on_virtual_time

from .fake_rest import FakeRest, token_reviews

CLIENTS = authority("client-ca")
PROXIES = authority("front-ca")
STRANGERS = authority("client-ca")
DATA = {
    "client-ca-file": CLIENTS.pem.decode(),
    "requestheader-client-ca-file": PROXIES.pem.decode(),
    "requestheader-allowed-names": '["proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
TOKENS = {"good": {"username": "admin", "groups": ["system:masters"]}}


def review(request: Request) -> dict[str, Any]:
    """Know one token."""
    user = TOKENS.get(json.loads(request.body)["spec"]["token"])
    if user is None:
        return {"status": {"error": "invalid bearer token"}}
    return {"status": {"authenticated": True, "user": user}}


def authenticate(
    *headers: tuple[str, str], shown: Holder | None = None, authorities: Authorities | None = None
) -> UserInfo:
    """Return the user of a request."""
    tokens = token_reviews(FakeRest(review))
    known = authorities_of(DATA) if authorities is None else authorities
    authenticator = Authenticator(lambda: known, tokens)
    certificates = () if shown is None else (shown.der,)
    request = HttpRequest(path="/", headers=headers, certificates=certificates)
    return asyncio.run(authenticator.authenticate(request))


def test_a_certificate_names_its_holder() -> None:
    """Name, organizations, and the fingerprint as what else is known."""
    bob = signed(CLIENTS, "bob", ("dev", "ops"))
    fingerprint = f"X509SHA256={sha256(bob.der).hexdigest()}"
    extra = {"authentication.kubernetes.io/credential-id": (fingerprint,)}
    expected = UserInfo("bob", "", ("dev", "ops", "system:authenticated"), extra)
    assert expected == authenticate(shown=bob)


def test_a_certificate_may_hold_a_uid() -> None:
    """One uid counts; more are refused."""
    assert "u7" == authenticate(shown=signed(CLIENTS, "bob", uids=("u7",))).uid
    with pytest.raises(AccessError, match="expected 1 UID"):
        authenticate(shown=signed(CLIENTS, "bob", uids=("a", "b")))


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(signed(STRANGERS, "bob"), id="signed by a stranger of the same name"),
        pytest.param(signed(CLIENTS, "bob", life=timedelta(days=-1)), id="out of date"),
        pytest.param(
            signed(CLIENTS, "bob", usage=ExtendedKeyUsageOID.SERVER_AUTH), id="for servers"
        ),
        pytest.param(signed(signed(CLIENTS, "bob"), "carol"), id="signed by a mere client"),
    ],
)
def test_invalid_certificates(shown: Holder) -> None:
    """They are refused, unless the request has a valid token too."""
    with pytest.raises(AccessError):
        authenticate(shown=shown)
    assert "admin" == authenticate(("Authorization", "Bearer good"), shown=shown).username


def test_a_certificate_without_key_usage() -> None:
    """It is valid for clients."""
    assert "bob" == authenticate(shown=signed(CLIENTS, "bob", usage=None)).username


def test_a_certificate_without_common_name() -> None:
    """It identifies no user and no proxy; the token is tried next."""
    nameless = signed(CLIENTS, "", ("dev",))
    known = Authorities(CLIENTS.pem.decode())
    assert ANONYMOUS == authenticate(shown=nameless, authorities=known)
    with pytest.raises(AccessError):
        authenticate(shown=nameless)


def test_proxy_headers() -> None:
    """A proxy with the right certificate names the user in headers."""
    proxy = signed(PROXIES, "proxy")
    user = authenticate(
        ("X-Remote-User", "carol"),
        ("x-remote-group", "g1"),
        ("X-Remote-Group", "g2"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Extra-Acme.Com%2fTeam", "red"),
        shown=proxy,
    )
    extra = {"acme.com/team": ("red",)}
    assert UserInfo("carol", "7", ("g1", "g2", "system:authenticated"), extra) == user


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        pytest.param("other", (("X-Remote-User", "carol"),), id="name is not allowed"),
        pytest.param("proxy", (), id="says nobody's name, and is no client"),
    ],
)
def test_proxies_that_are_not_allowed(name: str, headers: tuple[tuple[str, str], ...]) -> None:
    """Their certificate is then that of an unknown client."""
    with pytest.raises(AccessError):
        authenticate(*headers, shown=signed(PROXIES, name))


def test_headers_without_a_proxy_are_ignored() -> None:
    """Any client could send these headers."""
    assert ANONYMOUS == authenticate(("X-Remote-User", "root"))
    user = authenticate(("X-Remote-User", "root"), ("Authorization", "Bearer good"))
    assert UserInfo("admin", "", ("system:masters", "system:authenticated")) == user


@pytest.mark.parametrize(
    ("header", "token"),
    [
        pytest.param("Bearer abc", "abc", id="plain"),
        pytest.param("  bEaReR abc  ", "abc", id="case and space around"),
        pytest.param("Bearer abc def", "abc", id="what follows is ignored"),
        pytest.param("Bearer  abc", "", id="two spaces"),
        pytest.param("Bearer", "", id="no token"),
        pytest.param("Basic abc", "", id="another scheme"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_tokens_in_headers(header: str, token: str) -> None:
    """The token is the word after the scheme."""
    assert token == bearer_token(header)


def test_unknown_tokens_are_refused() -> None:
    """A client with an unknown token is not anonymous."""
    with pytest.raises(AccessError, match="invalid bearer token"):
        authenticate(("Authorization", "Bearer bad"))


@on_virtual_time
async def test_the_configmap_is_read_again() -> None:
    """Each change is reported once; after a failure the last authorities are kept."""
    answers: list[object] = [
        {"data": DATA},
        {"data": DATA},
        {"data": {"client-ca-file": "no certificate"}},
        ApiError(500, "InternalError", "oh"),
        {"data": {"client-ca-file": STRANGERS.pem.decode()}},
        asyncio.CancelledError(),
    ]
    changes: list[Authorities] = []

    def answer(request: Request) -> object:
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        assert path == request.path
        return answers.pop(0)

    cluster = ClusterAuthentication(FakeRest(answer), Authorities(), changes.append)
    await cluster.refresh()
    assert CLIENTS.pem.decode() == cluster.authorities.client
    with pytest.raises(asyncio.CancelledError):
        await cluster.run()
    assert STRANGERS.pem.decode() == cluster.authorities.client
    assert 2 == len(changes)
    assert (CLIENTS.pem + b"\n" + PROXIES.pem).decode() == changes[0].pem


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(NotFoundError("none"), nullcontext(), id="small servers have none"),
        pytest.param(
            ApiError(403, "Forbidden", "not you"),
            pytest.raises(LookupFailedError, match="not you"),
            id="a refusal is a failure",
        ),
    ],
)
def test_without_a_configmap_nothing_is_known(
    answer: ApiError, expected: AbstractContextManager[object]
) -> None:
    """The authorities stay those of files."""
    files = Authorities(STRANGERS.pem.decode())
    changes: list[Authorities] = []
    cluster = ClusterAuthentication(FakeRest(answer), files, changes.append)
    with expected:
        asyncio.run(cluster.refresh())
    assert (files, []) == (cluster.authorities, changes)


def test_a_file_names_authorities_of_clients_alone() -> None:
    """Proxies are not believed then."""
    known = Authorities(CLIENTS.pem.decode())
    assert "bob" == authenticate(shown=signed(CLIENTS, "bob"), authorities=known).username
    with pytest.raises(AccessError):
        authenticate(("X-Remote-User", "x"), shown=signed(PROXIES, "proxy"), authorities=known)
