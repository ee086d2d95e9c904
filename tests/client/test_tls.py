from __future__ import annotations

import asyncio
import ssl
import tempfile
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from kubesched.api.errors import ApiError, SetupError
from kubesched.client.connection_settings import ConnectionSettings, TlsSettings
from kubesched.client.credentials import Credential, Credentials
from kubesched.client.requests import Request
from kubesched.client.rest import HttpRestClient
from kubesched.client.tls import CertificateFiles, load_key_pair, tls_context
from tests.loops import in_real_time

from .certificates import Holder, authority, server_context, signed
from .scripted_server import ReceivedRequest, serving

_AUTHORITY = authority()
_SERVER = signed(_AUTHORITY, "server", usage=None, hosts=("127.0.0.1", "kube.example"))
_CLIENT = signed(_AUTHORITY, "me")


def _server_context() -> ssl.SSLContext:
    context = server_context(_SERVER)
    context.load_verify_locations(cadata=_AUTHORITY.pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


async def _name_the_client(
    request: web.BaseRequest, received: list[ReceivedRequest]
) -> web.StreamResponse:
    shown = request.get_extra_info("peercert") or {}
    name = dict(entry[0] for entry in shown.get("subject", ())).get("commonName", "nobody")
    return web.Response(text=name)


def _ask(settings: TlsSettings) -> bytes:
    async def main() -> bytes:
        async with serving(_name_the_client, _server_context()) as server:
            whole = ConnectionSettings(server=server.url, tls=settings)
            rest = HttpRestClient(whole)
            try:
                return await rest.send(Request(path="/"))
            finally:
                await rest.aclose()

    return asyncio.run(main())


def test_server_is_recognised_by_its_authority() -> None:
    """A certificate of the named authority for the server's address is good."""
    assert b"nobody" == _ask(TlsSettings(ca_pem=_AUTHORITY.pem))


def test_comments_of_a_bundle_may_have_any_characters() -> None:
    """As in Mozilla's list: only the certificates count."""
    assert b"nobody" == _ask(TlsSettings(ca_pem="# Főtanúsítvány\n".encode() + _AUTHORITY.pem))


def test_client_shows_its_certificate(tmp_path: Path) -> None:
    """It may be in memory or in files."""
    memory = TlsSettings(
        ca_pem=_AUTHORITY.pem, certificate_pem=_CLIENT.pem, key_pem=_CLIENT.key_pem
    )
    assert b"me" == _ask(memory)
    for name, pem in (("ca", _AUTHORITY.pem), ("c", _CLIENT.pem), ("k", _CLIENT.key_pem)):
        (tmp_path / name).write_bytes(pem)
    files = TlsSettings(
        ca_file=str(tmp_path / "ca"),
        certificate_file=str(tmp_path / "c"),
        key_file=str(tmp_path / "k"),
    )
    assert b"me" == _ask(files)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(TlsSettings(), id="authorities of the system"),
        pytest.param(TlsSettings(ca_pem=authority("other").pem), id="another authority"),
        pytest.param(
            TlsSettings(ca_pem=_AUTHORITY.pem, server_name="other.example"), id="another name"
        ),
    ],
)
def test_servers_with_other_certificates_get_no_request(settings: TlsSettings) -> None:
    """A certificate that does not fit ends the handshake."""
    with pytest.raises(ApiError, match="certificate verify failed") as caught:
        _ask(settings)
    assert (0, "Unanswered") == (caught.value.code, caught.value.reason)


def test_name_may_be_another() -> None:
    """tls-server-name is looked for instead of the address."""
    settings = TlsSettings(ca_pem=_AUTHORITY.pem, server_name="kube.example")
    assert b"nobody" == _ask(settings)


def test_insecure_connections() -> None:
    """With insecure-skip-tls-verify any certificate is accepted."""
    assert b"nobody" == _ask(TlsSettings(is_insecure=True))


@in_real_time
async def test_plugin_certificate_is_shown_and_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new certificate of a plugin closes the connections that showed the old one.

    It is still shown after the authorities were replaced.
    """
    monkeypatch.setattr("kubesched.client.tls._CHECK_PERIOD_SECONDS", 0.0)
    file = tmp_path / "ca"
    file.write_bytes(_AUTHORITY.pem)
    shown = [signed(_AUTHORITY, "first"), signed(_AUTHORITY, "second")]

    class Plugin(Credentials):
        async def get(self) -> Credential:
            return Credential("", shown[0].pem, shown[0].key_pem)

        async def renew(self, refused: Credential) -> Credential:
            return await self.get()

    async with serving(_name_the_client, _server_context()) as server:
        settings = ConnectionSettings(server=server.url, tls=TlsSettings(ca_file=str(file)))
        rest = HttpRestClient(settings, credentials=Plugin())
        names = [await rest.send(Request(path="/")) for _ in range(2)]
        del shown[0]
        names.append(await rest.send(Request(path="/")))
        file.write_bytes(_AUTHORITY.pem + authority("later").pem)
        names.append(await rest.send(Request(path="/")))
        await rest.aclose()
    assert [b"first", b"first", b"second", b"second"] == names


def _write(directory: Path, pair: Holder) -> TlsSettings:
    (directory / "c").write_bytes(pair.pem)
    (directory / "k").write_bytes(pair.key_pem)
    return TlsSettings(certificate_file=str(directory / "c"), key_file=str(directory / "k"))


def test_certificate_files_are_looked_at_again(tmp_path: Path) -> None:
    """Every five minutes; what does not fit is not used."""
    now = [0.0]
    settings = _write(tmp_path, _CLIENT)
    files = CertificateFiles(settings, lambda: now[0])
    _write(tmp_path, signed(_AUTHORITY, "newer"))
    assert not files.renew()
    now[0] = 301.0
    assert files.renew()
    now[0] = 602.0
    assert not files.renew()
    (tmp_path / "c").write_bytes(_CLIENT.pem)
    now[0] = 903.0
    assert not files.renew()
    (tmp_path / "c").unlink()
    now[0] = 1204.0
    assert not files.renew()


@pytest.mark.parametrize("former", ["former", "authority"])
@in_real_time
async def test_replaced_authorities_are_trusted(
    former: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a server is reached after its authority was changed, also to one of the same name."""
    monkeypatch.setattr("kubesched.client.tls._CHECK_PERIOD_SECONDS", 0.0)
    file = tmp_path / "ca"
    file.write_bytes(authority(former).pem)
    async with serving(_name_the_client, _server_context()) as server:
        settings = ConnectionSettings(server=server.url, tls=TlsSettings(ca_file=str(file)))
        rest = HttpRestClient(settings)
        with pytest.raises(ApiError, match="certificate verify failed"):
            await rest.send(Request(path="/"))
        file.write_bytes(_AUTHORITY.pem)
        assert b"nobody" == await rest.send(Request(path="/"))
        file.write_bytes(authority("former").pem)
        with pytest.raises(ApiError, match="certificate verify failed"):
            await rest.send(Request(path="/"))
        await rest.aclose()


@in_real_time
async def test_key_of_another_certificate() -> None:
    """The context keeps its old certificate."""
    settings = TlsSettings(
        ca_pem=_AUTHORITY.pem, certificate_pem=_CLIENT.pem, key_pem=_CLIENT.key_pem
    )
    context = tls_context(settings)
    with pytest.raises(OSError, match="private key does not match public key"):
        load_key_pair(context, signed(_AUTHORITY, "newer").pem, _CLIENT.key_pem)
    async with serving(_name_the_client, _server_context()) as server:
        connector = aiohttp.TCPConnector(ssl=context)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(server.url) as answer,
        ):
            assert b"me" == await answer.read()


def test_keys_in_memory_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key material is removed from disk after success and failure."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_key_pair(context, _CLIENT.pem, _CLIENT.key_pem)
    with pytest.raises(OSError, match="private key does not match public key"):
        load_key_pair(context, _CLIENT.pem, _SERVER.key_pem)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            TlsSettings(ca_pem=_AUTHORITY.pem, is_insecure=True),
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        (TlsSettings(ca_file="/nowhere/ca"), "unable to load root certificates from /nowhere/ca"),
        (
            TlsSettings(ca_pem=b"no"),
            "from certificate-authority-data: unable to parse bytes as PEM block",
        ),
        (
            TlsSettings(certificate_pem=_CLIENT.pem),
            "client-key-data or client-key must be specified",
        ),
        (
            TlsSettings(certificate_pem=_CLIENT.pem, key_pem=_SERVER.key_pem),
            "unable to load the client certificate of client-certificate-data",
        ),
    ],
)
def test_unusable_settings_are_refused(settings: TlsSettings, problem: str) -> None:
    """The message names the file or field."""
    with pytest.raises(SetupError, match=problem):
        tls_context(settings)
