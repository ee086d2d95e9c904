"""The secure port on loopback: TLS, certificates of both sides, and headers as they go out."""

from __future__ import annotations

import asyncio
import io
import logging
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from yarl import URL

from kubesched.api.errors import SetupError
from kubesched.app.http_exchange import HttpRequest, HttpResponse, text_response
from kubesched.app.key_pair import KeyPair, make_pair
from kubesched.app.options import ServingOptions
from kubesched.app.secure_port import ask_for_certificates, serving_context, serving_pair
from kubesched.app.secure_serving import Handler, SecureServing
from kubesched.client.tls import load_key_pair
from tests.client.certificates import Holder, authority, signed
from tests.loops import in_real_time

CLIENTS = authority("client-ca")
PAIR = make_pair("127.0.0.1")


def certificates_of(pair: KeyPair) -> list[x509.Certificate]:
    """Return a pair's certificate and its authority."""
    return x509.load_pem_x509_certificates(pair.certificate)


def client_context(shown: Holder | None = None) -> ssl.SSLContext:
    """Return what a client believes and shows."""
    context = ssl.create_default_context(cadata=PAIR.certificate.decode())
    # The default since Python 3.13.
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if shown is not None:
        load_key_pair(context, shown.pem, shown.key_pem)
    return context


@asynccontextmanager
async def served(
    handler: Handler,
    *,
    authorities: str = "",
    shown: Holder | None = None,
    options: ServingOptions | None = None,
) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """Serve on loopback; yields a client's session, and the URL."""
    context = serving_context(PAIR, options or ServingOptions())
    ask_for_certificates(context, authorities)
    connector = aiohttp.TCPConnector(ssl=client_context(shown))
    async with (
        SecureServing(handler, context, "127.0.0.1", 0) as server,
        aiohttp.ClientSession(connector=connector) as session,
    ):
        yield session, f"https://localhost:{server.port}"


async def echo(request: HttpRequest) -> HttpResponse:
    """Say what was asked."""
    words = f"{request.method} {request.path} {request.target} {request.header('x-a')}"
    return text_response(f"{words} {request.body.decode()} {len(request.certificates)}")


@in_real_time
async def test_requests_arrive_whole_and_answers_are_never_cached() -> None:
    """Method, path decoded, target as sent, headers and body; and the headers of the answer."""
    async with served(echo) as (session, url):
        target = URL(f"{url}/a%20b?x=1&y=%2F", encoded=True)
        async with session.put(target, headers={"X-A": "1"}, data=b"body") as answer:
            text, headers = await answer.text(), dict(answer.headers)
    assert "PUT /a b /a%20b?x=1&y=%2F 1 body 0" == text
    assert "no-cache, private" == headers["Cache-Control"]
    assert "text/plain; charset=utf-8" == headers["Content-Type"]
    assert "nosniff" == headers["X-Content-Type-Options"]


@in_real_time
async def test_head_and_failures() -> None:
    """HEAD has no body; an answer that fails is a 500; a body too long is refused."""

    async def fail(request: HttpRequest) -> HttpResponse:
        if request.method == "HEAD":
            return text_response("ok")
        raise OSError("broken")

    found = []
    async with served(fail) as (session, url):
        for method, body in (("HEAD", b""), ("GET", b""), ("PUT", b"x" * (2**20 + 1))):
            async with session.request(method, url, data=io.BytesIO(body)) as answer:
                found.append((answer.status, await answer.read()))
    head, failed, too_long = found
    assert (200, b"") == head
    assert 500 == failed[0]
    assert 413 == too_long[0]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(
            [b"GET /a HTTP/1.1\r\nX-A: 1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"],
            ["200 GET /a /a 1  0", "200 GET /b /b   0"],
            id="two at once are answered in order",
        ),
        pytest.param(
            [b"PUT /a HT", b"TP/1.1\r\nContent-Le", b"ngth: 4\r\n\r\nbo", b"dy"],
            ["200 PUT /a /a  body 0"],
            id="in pieces",
        ),
        pytest.param(
            [
                b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"2\r\nab\r\n0\r\nX-A: 2\r\n\r\n",
            ],
            ["200 PUT /a /a  ab 0"],
            id="what follows the body is no header",
        ),
        pytest.param([b"GET / HTTP/1.0\r\n\r\n"], ["200 GET / /   0"], id="an older client"),
        pytest.param(
            [b"GET / HTTP/1.1\r\n\r\nnonsense\r\n\r\n"],
            ["200 GET / /   0", "400 400 Bad Request\n"],
            id="what is no HTTP ends the connection",
        ),
        pytest.param(
            [b"GET / HTTP/1.1\r\nX-A: " + b"a" * 70_000 + b"\r\n\r\n"],
            ["400 400 Bad Request\n"],
            id="a head that is too long",
        ),
        pytest.param(
            [b"GET / HTTP/1.1\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"],
            ["200 GET / /   0"],
            id="no other protocol",
        ),
    ],
)
@in_real_time
async def test_requests_as_they_come(sent: list[bytes], expected: list[str]) -> None:
    """Each is answered in its turn, however its bytes arrive."""
    found = []
    async with served(echo) as (_, url):
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("localhost", port, ssl=client_context())
        try:
            for part in sent:
                writer.write(part)
                await writer.drain()
            for _ in expected:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().split("content-length: ")[1].split()[0])
                body = (await reader.readexactly(length)).decode()
                found.append(f"{head.split()[1]} {body}")
        finally:
            writer.close()
    assert expected == found


@in_real_time
async def test_a_request_under_way_is_answered_when_the_port_closes() -> None:
    """The port waits for it, and takes no other."""
    arrived, may_go = asyncio.Event(), asyncio.Event()

    async def slow(_request: HttpRequest) -> HttpResponse:
        arrived.set()
        await may_go.wait()
        return text_response("done")

    connector = aiohttp.TCPConnector(ssl=client_context())
    async with aiohttp.ClientSession(connector=connector) as session:
        async with SecureServing(
            slow, serving_context(PAIR, ServingOptions()), "127.0.0.1", 0
        ) as server:
            url = f"https://localhost:{server.port}"
            asked = asyncio.ensure_future(session.get(url))
            await arrived.wait()
            asyncio.get_running_loop().call_soon(may_go.set)
        async with await asked as answer:
            assert "close" == answer.headers["Connection"]
            assert "done" == await answer.text()


@in_real_time
async def test_clients_may_show_a_certificate() -> None:
    """It is requested only if authorities are known, and reaches the handler."""
    bob = signed(CLIENTS, "bob")

    async def show(request: HttpRequest) -> HttpResponse:
        found = [x509.load_der_x509_certificate(der) for der in request.certificates]
        return text_response(" ".join(one.subject.rfc4514_string() for one in found))

    pem = CLIENTS.pem.decode()
    for authorities, shown, name in ((pem, bob, "CN=bob"), (pem, None, ""), ("", bob, "")):
        async with (
            served(show, authorities=authorities, shown=shown) as (session, url),
            session.get(url) as answer,
        ):
            assert name == await answer.text()


@in_real_time
async def test_a_client_that_begins_no_handshake_does_not_delay_the_end() -> None:
    """The port closes at once."""
    context = serving_context(PAIR, ServingOptions())
    async with asyncio.timeout(10):
        async with SecureServing(echo, context, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for _ in range(10):
                await asyncio.sleep(0)
        writer.close()


@in_real_time
async def test_versions_and_suites_can_be_chosen() -> None:
    """The client sees the version and suite of the flags."""
    newest = ServingOptions(tls_min_version="VersionTLS13")
    async with served(echo, options=newest) as (_, url):
        port = int(url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("localhost", port, ssl=client_context())
        try:
            assert "TLSv1.3" == writer.get_extra_info("cipher")[1]
        finally:
            writer.close()
            await writer.wait_closed()
    assert ssl.TLSVersion.TLSv1_3 == serving_context(PAIR, newest).minimum_version
    suites = ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",)
    context = serving_context(PAIR, ServingOptions(tls_cipher_suites=suites))
    names = [suite["name"] for suite in context.get_ciphers() if suite["protocol"] == "TLSv1.2"]
    assert ["ECDHE-RSA-AES256-GCM-SHA384"] == names
    assert ssl.TLSVersion.TLSv1_2 == context.minimum_version


def test_names_that_are_not_known() -> None:
    """The words are upstream's."""
    with pytest.raises(SetupError, match='unknown tls version "TLS1"'):
        serving_context(PAIR, ServingOptions(tls_min_version="TLS1"))
    with pytest.raises(SetupError, match="Cipher suite FOO not supported or doesn't exist"):
        serving_context(PAIR, ServingOptions(tls_cipher_suites=("FOO",)))


@pytest.mark.slow
def test_the_made_certificate_is_upstreams() -> None:
    """Names, life, usage and alternatives are those that kube-scheduler makes."""
    own, issuer = certificates_of(PAIR)
    number = int((own.not_valid_before_utc + timedelta(hours=1)).timestamp())
    assert f"CN=localhost@{number}" == own.subject.rfc4514_string()
    assert f"CN=localhost-ca@{number}" == own.issuer.rfc4514_string()
    own.verify_directly_issued_by(issuer)
    assert timedelta(days=365) == own.not_valid_after_utc - own.not_valid_before_utc
    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ["localhost"] == names.get_values_for_type(x509.DNSName)
    assert ["127.0.0.1"] == [str(one) for one in names.get_values_for_type(x509.IPAddress)]
    other = certificates_of(make_pair("10.0.0.7"))[0]
    names = other.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    expected = ["127.0.0.1", "10.0.0.7"]
    assert expected == [str(one) for one in names.get_values_for_type(x509.IPAddress)]


@pytest.mark.slow
def test_the_created_certificate_is_kept(tmp_path: Path) -> None:
    """It is written once, the key for this user alone, and read from then on."""
    options = ServingOptions(cert_dir=str(tmp_path / "certs"))
    made = serving_pair(options)
    assert made == serving_pair(options)
    key = tmp_path / "certs" / "kube-scheduler.key"
    assert 0o600 == key.stat().st_mode & 0o777
    key.unlink()
    with pytest.raises(SetupError, match=r"kube-scheduler\.key is missing"):
        serving_pair(options)


def test_given_files_count(tmp_path: Path) -> None:
    """Files that were named are read."""
    (tmp_path / "a.crt").write_bytes(PAIR.certificate)
    (tmp_path / "a.key").write_bytes(PAIR.key)
    options = ServingOptions(
        tls_cert_file=str(tmp_path / "a.crt"), tls_private_key_file=str(tmp_path / "a.key")
    )
    assert PAIR == serving_pair(options)


OTHER = make_pair("")


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        (b"no", PAIR.key, "any PEM data in certificate input"),
        (PAIR.certificate, b"no", "any PEM data in key input"),
        (PAIR.certificate, OTHER.key, "private key does not match public key"),
        (
            b"-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n",
            PAIR.key,
            "certificate or key cannot be parsed",
        ),
        (None, PAIR.key, "open .*a: no such file or directory"),
    ],
)
def test_invalid_certificate_files(
    certificate: bytes | None, key: bytes, words: str, tmp_path: Path
) -> None:
    """The message names the flags and is Go's, not OpenSSL's."""
    files = tmp_path / "a", tmp_path / "b"
    for file, text in zip(files, (certificate, key), strict=True):
        if text is not None:
            file.write_bytes(text)
    options = ServingOptions(tls_cert_file=str(files[0]), tls_private_key_file=str(files[1]))
    place = re.escape(f"(--tls-cert-file {files[0]}, --tls-private-key-file {files[1]})")
    expected = f"unable to load server certificate {place}: (tls: )?[^:]*{words}$"
    with pytest.raises(SetupError, match=expected):
        serving_context(serving_pair(options), options)


def test_certificate_without_key() -> None:
    """Neither flag is allowed alone."""
    for options in (ServingOptions(tls_cert_file="a"), ServingOptions(tls_private_key_file="a")):
        with pytest.raises(SetupError, match="missing filename for serving cert: --"):
            serving_pair(options)


@in_real_time
async def test_a_port_can_be_shared() -> None:
    """All listeners must allow it."""
    context = serving_context(PAIR, ServingOptions())
    async with (
        SecureServing(echo, context, "127.0.0.1", 0, shares_port=True) as first,
        SecureServing(echo, context, "127.0.0.1", first.port, shares_port=True) as second,
    ):
        assert first.port == second.port


@in_real_time
@pytest.mark.parametrize(("address", "shown"), [("127.0.0.1", "127.0.0.1"), ("::", "[::]")])
async def test_the_log_has_address_and_port(
    address: str, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a URL has them."""
    caplog.set_level(logging.INFO)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    async with SecureServing(echo, context, address, 0) as server:
        pass
    place = f"{shown}:{server.port}"
    assert [f"Serving securely on {place}", f"Stopped listening on {place}"] == caplog.messages


@in_real_time
async def test_a_taken_port_is_an_os_error() -> None:
    """Two cannot listen on one port."""
    context = serving_context(PAIR, ServingOptions())
    async with SecureServing(echo, context, "127.0.0.1", 0) as first:
        with pytest.raises(OSError, match="address"):
            async with SecureServing(echo, context, "127.0.0.1", first.port):
                pass
