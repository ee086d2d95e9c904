"""The secure port as a whole, on loopback, with an API server that is a function."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path
from random import Random

import aiohttp
import pytest
from msgspec.structs import replace
from tests.app.certificates import NOW, Holder, signed
from tests.app.fake_rest import FakeRest
from tests.app.test_authentication import CLIENTS, DATA, PROXIES
from tests.app.test_endpoints import Page, answer_review

from kubesched.api.errors import ApiError
from kubesched.app.cluster_authentication import LookupFailedError
from kubesched.app.endpoints import Endpoints
from kubesched.app.health import scheduler_health
from kubesched.app.options import AccessOptions, ServingOptions
from kubesched.app.secure_port import Asked, Surroundings, secure_port
from kubesched.app.serving_certificates import ServingCertificateError, make_pair
from kubesched.app.serving_tls import ServingTlsError
from kubesched.client.requests import Request
from kubesched.client.tls import load_key_pair

SURROUNDINGS = Surroundings(lambda: NOW, Random(1), b"key")
ADMIN = {"Authorization": "Bearer admin"}
Asking = tuple[str, dict[str, str], Holder | None]


def answer(request: Request) -> object:
    """Be an API server with authorities, two users and no rules."""
    if request.method == "GET":
        return {"data": DATA}
    return answer_review(request)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> ServingOptions:
    """Return flags with a certificate that was made before."""
    folder = tmp_path_factory.mktemp("certs")
    pair = make_pair("127.0.0.1", NOW)
    (folder / "a.crt").write_bytes(pair.certificate)
    (folder / "a.key").write_bytes(pair.key)
    return ServingOptions(
        bind_address="127.0.0.1",
        tls_cert_file=str(folder / "a.crt"),
        tls_private_key_file=str(folder / "a.key"),
    )


def statuses(
    serving: ServingOptions, access: AccessOptions, rest: FakeRest | None, *asking: Asking
) -> list[int]:
    """Return what each request gets: path, headers, certificate."""

    async def main() -> list[int]:
        endpoints = Endpoints()
        endpoints.add_health(
            scheduler_health(
                leader_election=None, is_stopping=lambda: False, has_synced=lambda: True
            )
        )
        endpoints.add_metrics("/metrics", Page(), 0.0)
        asked = Asked(rest, rest)
        async with secure_port(serving, access, asked, endpoints, SURROUNDINGS, port=0) as opened:
            assert opened is not None
            url = f"https://localhost:{opened.port}"
            return [
                await _status(serving, url + path, headers, shown)
                for path, headers, shown in asking
            ]

    return asyncio.run(main())


async def _status(
    serving: ServingOptions, url: str, headers: dict[str, str], shown: Holder | None
) -> int:
    context = ssl.create_default_context(cafile=serving.tls_cert_file)
    if shown is not None:
        load_key_pair(context, shown.pem, shown.key_pem)
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(url, headers=headers) as response,
    ):
        return response.status


def test_everybody_gets_what_is_theirs(serving: ServingOptions) -> None:
    """Health for all; the rest by token, certificate, or a proxy's word."""
    root = signed(CLIENTS, "root", ("system:masters",))
    bob = signed(CLIENTS, "bob")
    proxy = signed(PROXIES, "proxy")
    for_root = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
    assert [200, 403, 401, 200, 403, 200, 200, 404] == statuses(
        serving,
        AccessOptions(),
        FakeRest(answer),
        ("/healthz", {}, None),
        ("/metrics", {}, None),
        ("/healthz", {"Authorization": "Bearer nobody"}, None),
        ("/metrics", ADMIN, None),
        ("/metrics", {}, bob),
        ("/metrics", {}, root),
        ("/metrics", for_root, proxy),
        ("/nosuch", {}, root),
    )


def test_a_file_of_authorities_replaces_the_clusters(
    serving: ServingOptions, tmp_path: Path
) -> None:
    """Clients of the file are known; proxies are still the cluster's."""
    file = tmp_path / "ca.crt"
    file.write_bytes(PROXIES.pem)
    root = signed(PROXIES, "proxy", ("system:masters",))
    stranger = signed(CLIENTS, "root", ("system:masters",))
    access = AccessOptions(client_ca_file=str(file))
    found = statuses(
        serving, access, FakeRest(answer), ("/metrics", {}, root), ("/metrics", {}, stranger)
    )
    assert [200, 401] == found
    alone = AccessOptions(client_ca_file=str(file), authentication_skip_lookup=True)
    rest = FakeRest(answer)
    assert [200] == statuses(serving, alone, rest, ("/metrics", {}, root))
    assert [] == rest.requests


def test_without_an_api_server_only_health_is_served(serving: ServingOptions) -> None:
    """Tokens are ignored, and nobody may ask for more."""
    asking: Sequence[Asking] = (("/livez", ADMIN, None), ("/metrics", ADMIN, None))
    assert [200, 403] == statuses(serving, AccessOptions(), None, *asking)


def test_authorities_that_cannot_be_read(
    serving: ServingOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """Tolerated with warnings, unless a flag says otherwise."""

    def refuse(_request: Request) -> object:
        raise ApiError(403, "Forbidden", "not for you")

    rest = FakeRest(refuse)
    assert [200] == statuses(serving, AccessOptions(), rest, ("/healthz", {}, None))
    assert 3 == caplog.text.count("WARNING")
    assert "authentication configuration: not for you" in caplog.text
    strict = AccessOptions(tolerate_lookup_failure=False)
    with pytest.raises(LookupFailedError, match="not for you"):
        statuses(serving, strict, rest)


def test_flags_that_are_no_good(serving: ServingOptions, tmp_path: Path) -> None:
    """Each fault is told before anything is served."""
    with pytest.raises(ServingTlsError, match="unknown tls version"):
        statuses(replace(serving, tls_min_version="TLS"), AccessOptions(), None)
    with pytest.raises(ServingCertificateError, match="unable to load client CA provider"):
        statuses(serving, AccessOptions(client_ca_file=str(tmp_path / "none")), None)
    with pytest.raises(ValueError, match="only trailing"):
        statuses(serving, AccessOptions(always_allow_paths=("/a*b",)), None)


def test_port_zero_serves_nothing() -> None:
    """The flag switches the port off, and no certificate is made."""

    async def main() -> None:
        serving = ServingOptions(secure_port=0, tls_cert_file="/nowhere")
        asked = Asked(None, None)
        async with secure_port(
            serving, AccessOptions(), asked, Endpoints(), SURROUNDINGS
        ) as opened:
            assert opened is None

    asyncio.run(main())
