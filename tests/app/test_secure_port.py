"""The secure port as a whole, on loopback, with an API server that is a function."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from kubesched.api.errors import ApiError, SetupError
from kubesched.app.access import LookupFailedError
from kubesched.app.endpoints import Endpoints, scheduler_health
from kubesched.app.key_pair import KeyPair, make_pair
from kubesched.app.options import AccessOptions, ProxyOptions, ServingOptions
from kubesched.app.secure_port import SecurePort
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.requests import Request
from kubesched.client.tls import load_key_pair
from tests.client.certificates import NOW, Holder, signed
from tests.client.scripted_server import free_port
from tests.loops import in_real_time

from .fake_rest import FakeRest
from .test_access_authentication import CLIENTS, DATA, PROXIES
from .test_endpoints import Page, answer_review

NOWHERE = ConnectionSettings(server="https://nowhere")
ADMIN = {"Authorization": "Bearer admin"}
Asking = tuple[str, dict[str, str], Holder | None]


class OpenRest(FakeRest):
    """A connection that is closed at the end.

    Attributes:
        closed: Whether it was.
    """

    closed = False

    async def aclose(self) -> None:
        """Close it."""
        self.closed = True


def answer(request: Request) -> object:
    """Be an API server with authorities, two users and no rules."""
    if request.method == "GET":
        return {"data": DATA}
    return answer_review(request)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> ServingOptions:
    """Return flags with a certificate that was made before."""
    folder = tmp_path_factory.mktemp("certs")
    pair = make_pair("127.0.0.1")
    (folder / "a.crt").write_bytes(pair.certificate)
    (folder / "a.key").write_bytes(pair.key)
    return ServingOptions(
        bind_address="127.0.0.1",
        tls_cert_file=str(folder / "a.crt"),
        tls_private_key_file=str(folder / "a.key"),
    )


def statuses(
    serving: ServingOptions, access: AccessOptions, rest: OpenRest, *asking: Asking
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
        port = free_port()
        flags = replace(serving, secure_port=port)
        with patch("kubesched.app.secure_port.connect", lambda _settings, **_limits: rest):
            async with AsyncExitStack() as opened:
                await SecurePort(flags, access, NOWHERE, endpoints).open(opened)
                url = f"https://localhost:{port}"
                return [await _status(serving, url, one) for one in asking]

    found = asyncio.run(main())
    assert rest.closed
    return found


async def _status(serving: ServingOptions, url: str, asking: Asking) -> int:
    path, headers, shown = asking
    context = ssl.create_default_context(cafile=serving.tls_cert_file)
    if shown is not None:
        load_key_pair(context, shown.pem, shown.key_pem)
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(url + path, headers=headers) as response,
    ):
        return response.status


def test_access(serving: ServingOptions) -> None:
    """Health is for all; the rest needs a token, a certificate, or the headers of a proxy."""
    root = signed(CLIENTS, "root", ("system:masters",))
    bob = signed(CLIENTS, "bob")
    proxy = signed(PROXIES, "proxy")
    for_root = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
    assert [200, 403, 401, 200, 403, 200, 200, 404] == statuses(
        serving,
        AccessOptions(),
        OpenRest(answer),
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
    """Clients of the file are known, whatever its comments; proxies are still the cluster's."""
    file = tmp_path / "ca.crt"
    file.write_bytes("# Főtanúsítvány\n".encode() + PROXIES.pem)
    root = signed(PROXIES, "proxy", ("system:masters",))
    stranger = signed(CLIENTS, "root", ("system:masters",))
    access = AccessOptions(client_ca_file=str(file))
    found = statuses(
        serving, access, OpenRest(answer), ("/metrics", {}, root), ("/metrics", {}, stranger)
    )
    assert [200, 401] == found
    alone = AccessOptions(client_ca_file=str(file), authentication_skip_lookup=True)
    rest = OpenRest(answer)
    assert [200] == statuses(serving, alone, rest, ("/metrics", {}, root))
    assert [] == rest.requests


def test_flags_name_proxies_and_their_headers(serving: ServingOptions, tmp_path: Path) -> None:
    """The cluster's proxies do not count then; certificates of clients still do."""
    file = tmp_path / "ca.crt"
    file.write_bytes(CLIENTS.pem)
    proxies = ProxyOptions(
        client_ca_file=str(file),
        allowed_names=("front",),
        username_headers=("x-who",),
        group_headers=("x-team",),
    )
    front, other = signed(CLIENTS, "front"), signed(CLIENTS, "other")
    as_root = {"X-Who": "root", "X-Team": "system:masters"}
    by_default = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
    clusters = signed(PROXIES, "front")
    assert [200, 403, 403, 401] == statuses(
        serving,
        AccessOptions(proxies=proxies),
        OpenRest(answer),
        ("/metrics", as_root, front),
        ("/metrics", by_default, front),
        ("/metrics", as_root, other),
        ("/metrics", as_root, clusters),
    )


def test_authorities_that_cannot_be_read(
    serving: ServingOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure is logged as a warning, unless a flag makes it fatal."""
    rest = OpenRest(ApiError(403, "Forbidden", "not for you"))
    assert [200] == statuses(serving, AccessOptions(), rest, ("/healthz", {}, None))
    assert "authentication configuration: not for you" in caplog.text
    strict = AccessOptions(tolerate_lookup_failure=False)
    with pytest.raises(LookupFailedError, match="not for you"):
        statuses(serving, strict, rest)


def _rsa_pair() -> KeyPair:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(1))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    builder = builder.add_extension(names, critical=False)
    return KeyPair(
        builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


@in_real_time
async def test_a_replaced_certificate_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New connections get it once the files were looked at again, whatever the type of its key."""
    monkeypatch.setattr("kubesched.app.secure_port._LOOK_SECONDS", 0.0)
    pair, newer, rest = make_pair("127.0.0.1"), _rsa_pair(), OpenRest(answer)
    file, key = tmp_path / "kube-scheduler.crt", tmp_path / "kube-scheduler.key"
    file.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    flags = ServingOptions(
        bind_address="127.0.0.1", secure_port=free_port(), cert_dir=str(tmp_path)
    )
    address = "127.0.0.1", flags.secure_port
    endpoints = Endpoints()
    endpoints.add_metrics("/metrics", Page(), 0.0)
    with patch("kubesched.app.secure_port.connect", lambda _settings, **_limits: rest):
        async with AsyncExitStack() as opened:
            await SecurePort(flags, AccessOptions(), NOWHERE, endpoints).open(opened)
            before = served = await asyncio.to_thread(ssl.get_server_certificate, address)
            file.write_bytes(newer.certificate)
            key.write_bytes(newer.key)
            while served == before:
                served = await asyncio.to_thread(ssl.get_server_certificate, address)
            assert served == newer.certificate.decode()
            root = signed(CLIENTS, "root", ("system:masters",))
            url = f"https://localhost:{flags.secure_port}"
            trusting = replace(flags, tls_cert_file=str(file))
            assert 200 == await _status(trusting, url, ("/metrics", {}, root))


def test_invalid_flags(serving: ServingOptions, tmp_path: Path) -> None:
    """Each error is reported before the port opens."""
    with pytest.raises(SetupError, match="unknown tls version"):
        statuses(replace(serving, tls_min_version="TLS"), AccessOptions(), OpenRest(answer))
    (tmp_path / "ca").write_text("garbage")
    for name, words in (("none", "open .*: no such file"), ("ca", "data does not contain any")):
        file = str(tmp_path / name)
        with pytest.raises(SetupError, match=f"^--client-ca-file {file}: {words}"):
            statuses(serving, AccessOptions(client_ca_file=file), OpenRest(answer))
    for access in (
        AccessOptions(authentication_kubeconfig="/no"),
        AccessOptions(authorization_kubeconfig="/no"),
    ):
        words = r"^--(auth\w+)-kubeconfig /no: failed to get delegated \1 kubeconfig: stat /no: "
        with pytest.raises(SetupError, match=words):
            statuses(serving, access, OpenRest(answer))
    with pytest.raises(SetupError, match="only trailing"):
        statuses(serving, AccessOptions(always_allow_paths=("/a*b",)), OpenRest(answer))
