from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.errors import ApiError, NotFoundError, TooManyRequestsError
from kubesched.api.media_types import JSON_PATCH
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.credentials import Credential, Credentials, bearer
from kubesched.client.requests import Request, RequestObserver
from kubesched.client.rest import HttpRestClient, TokenBucket, lines_of
from tests.loops import in_real_time

from .scripted_server import Answer, ReceivedRequest, ScriptedServer, serving

STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": 'pods "p" not found',
    "reason": "NotFound",
    "details": {"name": "p", "kind": "pods"},
    "code": 404,
}


class Observed(RequestObserver):
    """An observer that records its calls without the times."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """Keep the verb."""
        self.told.append(("rate_limited", verb))

    def attempted(self, code: str, method: str, host: str, *, is_retry: bool) -> None:
        """Keep the code and whether it was the first attempt."""
        self.told.append(("attempted", code, method, "again" if is_retry else "first"))

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Keep the sizes."""
        self.told.append(("finished", verb, str(request_bytes), str(response_bytes)))


class Renewable(Credentials):
    """Credentials whose token number grows when they are renewed, up to a last one."""

    def __init__(self, last: int) -> None:
        self.number = 0
        self.last = last

    async def get(self) -> Credential:
        """Return the present token."""
        return bearer(f"t{self.number}")

    async def renew(self, refused: Credential) -> Credential:
        """Return the next token, or the last again."""
        self.number = min(self.last, self.number + 1)
        return await self.get()


@asynccontextmanager
async def _talking(
    answer: Answer, path: str = "", **options: object
) -> AsyncIterator[tuple[HttpRestClient, ScriptedServer]]:
    """Connect a client to a server."""
    async with serving(answer) as server:
        settings = ConnectionSettings(server=f"{server.url}{path}")
        rest = HttpRestClient(settings, **options)  # type: ignore[arg-type] # the tests' own
        try:
            yield rest, server
        finally:
            await rest.aclose()


def _answering(*answers: web.Response) -> Answer:
    """Answer the n-th request with the n-th answer, later ones with the last."""

    async def answer(
        request: web.BaseRequest, received: list[ReceivedRequest]
    ) -> web.StreamResponse:
        chosen = answers[min(len(received), len(answers)) - 1]
        return web.Response(status=chosen.status, body=chosen.body, headers=chosen.headers.copy())

    return answer


OK = web.Response(text="{}", content_type="application/json")


def _refusing(status: int, **headers: str) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=status, text="no", headers=named)


@in_real_time
async def test_request() -> None:
    """Method, path, query, body and headers are sent, without compression and cookies."""
    async with _talking(_answering(OK), headers=(("User-Agent", "me"),)) as (rest, server):
        body = await rest.send(
            Request(
                method="PATCH",
                path="/api/v1/x y/é",
                query={"b": "1 2", "a": "x=y,z!=w"},
                body=b"[]",
                content_type=JSON_PATCH,
            )
        )
        assert b"{}" == body
        (received,) = server.received
        assert ("PATCH", "/api/v1/x%20y/%C3%A9") == (received.method, received.path)
        assert (("a", "x=y,z!=w"), ("b", "1 2")) == received.query
        assert b"[]" == received.body
        assert {
            "host": server.url.removeprefix("http://"),
            "accept": "application/json",
            "user-agent": "me",
            "content-type": JSON_PATCH,
            "content-length": "2",
        } == received.headers


@in_real_time
async def test_timeout_in_the_query() -> None:
    """A client with a timeout adds it to the query, as upstream."""
    async with _talking(_answering(OK), timeout_seconds=5.0) as (rest, server):
        await rest.send(Request(path="/a"))
        await rest.send(Request(path="/a", query={"timeout": "1h", "b": "c"}))
        await rest.send(Request(path="/a", timeout_seconds=90.5))
        assert [
            (("timeout", "5s"),),
            (("b", "c"), ("timeout", "5s")),
            (("timeout", "1m30.5s"),),
        ] == [received.query for received in server.received]


@in_real_time
async def test_refusal_is_an_error_of_its_class() -> None:
    """A Status becomes the error's class, code, reason and message."""
    async with _talking(_answering(web.json_response(STATUS, status=404))) as (rest, server):
        with pytest.raises(NotFoundError) as caught:
            await rest.send(Request(path="/x"))
        assert (404, "NotFound", 'pods "p" not found') == (
            caught.value.code,
            caught.value.reason,
            caught.value.message,
        )
        assert 1 == len(server.received)


@pytest.mark.parametrize("status", [429, 500, 503, 504])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@in_real_time
async def test_retry_after(status: int, method: str) -> None:
    """A response with Retry-After is followed by the same request, for any method."""
    observed = Observed()
    refusal = _refusing(status, Retry_After="0")
    async with _talking(_answering(refusal, refusal, OK), observer=observed) as (rest, server):
        body = b"" if method == "GET" else b"{1}"
        assert b"{}" == await rest.send(Request(method=method, path="/x", body=body))
        assert [body] * 3 == [received.body for received in server.received]
        assert [
            ("attempted", str(status), method, "first"),
            ("attempted", str(status), method, "again"),
            ("attempted", "200", method, "again"),
            ("finished", method, str(len(body)), "2"),
        ] == observed.told


@in_real_time
async def test_gives_up_after_ten_retries() -> None:
    """The last of eleven responses is raised."""
    async with _talking(_answering(_refusing(429, Retry_After="0"))) as (rest, server):
        with pytest.raises(TooManyRequestsError) as caught:
            await rest.send(Request(path="/x"))
        assert 11 == len(server.received)
        assert 0.0 == caught.value.retry_after_seconds


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(_refusing(500), id="no header"),
        pytest.param(_refusing(503, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT"), id="a date"),
        pytest.param(_refusing(404, Retry_After="0"), id="404"),
        pytest.param(_refusing(409, Retry_After="0"), id="409"),
        pytest.param(_refusing(301, Location="/y"), id="redirect"),
    ],
)
@in_real_time
async def test_other_errors_are_final(refusal: web.Response) -> None:
    """Without Retry-After in seconds, or with another status, nothing is repeated."""
    async with _talking(_answering(refusal)) as (rest, server):
        with pytest.raises(ApiError) as caught:
            await rest.send(Request(path="/x"))
        assert refusal.status == caught.value.code
        assert 1 == len(server.received)


def _breaking(times: int) -> Answer:
    async def answer(
        request: web.BaseRequest, received: list[ReceivedRequest]
    ) -> web.StreamResponse:
        if len(received) <= times:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(text="{}")

    return answer


@in_real_time
async def test_broken_get_is_repeated() -> None:
    """A GET whose connection breaks is sent again."""
    async with _talking(_breaking(1)) as (rest, server):
        assert b"{}" == await rest.send(Request(path="/x"))
        assert 2 == len(server.received)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@in_real_time
async def test_broken_write_is_not_repeated(method: str) -> None:
    """A write may have been carried out, so it is not sent again."""

    async def answer(request: web.BaseRequest, _: object) -> web.StreamResponse:
        if request.method == method:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(text="{}")

    async with _talking(answer) as (rest, server):
        await rest.send(Request(path="/x"))
        with pytest.raises(ApiError) as caught:
            await rest.send(Request(method=method, path="/x", body=b"{}"))
        assert (0, "Unanswered") == (caught.value.code, caught.value.reason)
        assert not caught.value.is_transient
        assert ["GET", method] == [received.method for received in server.received]


@pytest.mark.parametrize("query", [{}, {"a": "b"}])
@in_real_time
async def test_server_with_a_path(query: dict[str, str]) -> None:
    """The path in the server's URL comes before all paths."""
    async with _talking(_answering(OK), "/k8s/one") as (rest, server):
        await rest.send(Request(path="/api/x y", query=query))
    asked = [(one.path, dict(one.query)) for one in server.received]
    assert [("/k8s/one/api/x%20y", query)] == asked


@in_real_time
async def test_refused_connection() -> None:
    """The error has code 0 and the reason ConnectionRefused."""
    async with serving(_answering(OK)) as server:
        url = server.url
    rest = HttpRestClient(ConnectionSettings(server=url))
    with pytest.raises(ApiError) as caught:
        await rest.send(Request(path="/x"))
    assert (0, "ConnectionRefused") == (caught.value.code, caught.value.reason)
    assert f'GET "{url}/x"' in caught.value.message
    await rest.aclose()


@in_real_time
async def test_slow_answer_times_out() -> None:
    """The request's own limit holds, and counts as an attempt without an answer."""
    observed = Observed()

    async def answer(request: web.BaseRequest, _: object) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async with _talking(answer, observer=observed) as (rest, _):
        with pytest.raises(ApiError) as caught:
            await rest.send(Request(path="/x", timeout_seconds=0.02))
        assert (0, "Timeout") == (caught.value.code, caught.value.reason)
        assert [
            ("attempted", "<error>", "GET", "first"),
            ("finished", "GET", "0", "0"),
        ] == observed.told


@in_real_time
async def test_a_server_that_hangs_ends_requests_and_no_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests without a limit of their own end, too; streams last as long as they are read."""
    monkeypatch.setattr("kubesched.client.rest._ANSWER_SECONDS_MAX", 0.02)
    monkeypatch.setattr("kubesched.client.http_connection._EXPIRING_SECONDS", 0.01)
    hanging = asyncio.Event()

    async def answer(request: web.BaseRequest, _: object) -> web.StreamResponse:
        response = web.StreamResponse()
        if request.method == "GET":
            await response.prepare(request)
            await response.write(b"first\n")
        await hanging.wait()
        await response.write(b"last\n")
        return response

    async with _talking(answer) as (rest, _), rest.stream(Request(path="/x")) as lines:
        assert b"first" == await anext(lines)
        with pytest.raises(ApiError) as caught:
            await rest.send(Request(method="POST", path="/x"))
        assert (0, "Timeout") == (caught.value.code, caught.value.reason)
        hanging.set()
        assert b"last" == await anext(lines)


@in_real_time
async def test_unauthorized_renews_once() -> None:
    """A 401 is answered with newer credentials, once."""

    async def answer(request: web.BaseRequest, _: object) -> web.StreamResponse:
        good = request.headers["Authorization"] == "Bearer t1"
        return web.Response(text="{}", status=200 if good else 401)

    async with _talking(answer, credentials=Renewable(1)) as (rest, server):
        assert b"{}" == await rest.send(Request(path="/x"))
        assert ["Bearer t0", "Bearer t1"] == [a.headers["authorization"] for a in server.received]


@pytest.mark.parametrize(("last", "attempts"), [(0, 1), (5, 2)])
@in_real_time
async def test_unauthorized_is_final_when_nothing_newer_helps(last: int, attempts: int) -> None:
    """The same credentials are not sent twice, and newer ones only once."""
    async with _talking(_answering(_refusing(401)), credentials=Renewable(last)) as (rest, server):
        with pytest.raises(ApiError) as caught:
            await rest.send(Request(path="/x"))
        assert (401, "Unauthorized") == (caught.value.code, caught.value.reason)
        assert attempts == len(server.received)


@in_real_time
async def test_requests_are_limited_and_streams_are_not() -> None:
    """Each request takes a token, a retry another one; a stream takes none at first."""
    observed = Observed()
    bucket = TokenBucket(0.001, 5)
    refusal = _refusing(429, Retry_After="0")
    async with _talking(_answering(refusal, OK), observer=observed, limiter=bucket) as (rest, _):
        await rest.send(Request(path="/x"))
        async with rest.stream(Request(path="/x")) as lines:
            assert [b"{}"] == [line async for line in lines]
        names = [told[0] for told in observed.told]
        assert [
            *("rate_limited", "attempted", "rate_limited", "attempted", "finished"),
            "attempted",
        ] == names
        assert [0, 0, 0] == [await bucket.wait() for _ in range(3)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(bucket.wait(), 0.0)


def _streaming(*chunks: bytes, is_cut: bool = False) -> Answer:
    async def answer(request: web.BaseRequest, _: object) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if is_cut:
            assert request.transport is not None
            request.transport.close()
        return response

    return answer


@in_real_time
async def test_streams_lines_of_any_length() -> None:
    """Lines arrive whole, however long they are and however they were cut."""
    long = json.dumps({"x": "y" * 3_000_000}).encode()
    chunks = (b"a\nb", b"c\n", long[:1000], long[1000:] + b"\nd", b"\n")
    request = Request(path="/x", query={"watch": "true"})
    async with _talking(_streaming(*chunks)) as (rest, _), rest.stream(request) as lines:
        assert [b"a", b"bc", long, b"d"] == [line async for line in lines]


@in_real_time
async def test_cut_stream_raises() -> None:
    """A connection that breaks while reading is an error after the lines that came."""
    async with _talking(_streaming(b"a\n", b"b", is_cut=True)) as (rest, _):
        seen = []
        with pytest.raises(ApiError) as caught:  # noqa: PT012 - the whole reading
            async with rest.stream(Request(path="/x")) as lines:
                async for line in lines:
                    seen.append(line)  # noqa: PERF401 - what came before the break counts
        assert [b"a"] == seen
        assert (0, "Unanswered") == (caught.value.code, caught.value.reason)


@in_real_time
async def test_leaving_a_stream_closes_it() -> None:
    """Leaving a stream early closes its connection, and the next request works."""

    async def answer(
        request: web.BaseRequest, received: list[ReceivedRequest]
    ) -> web.StreamResponse:
        if len(received) == 2:
            return web.Response(text="{}")
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"a\n")
        await asyncio.sleep(30)
        return response

    async with _talking(answer) as (rest, _):
        async with rest.stream(Request(path="/x")) as lines:
            async for line in lines:
                assert b"a" == line
                break
        assert b"{}" == await rest.send(Request(path="/x"))


@in_real_time
async def test_stream_refusal_raises_on_entering() -> None:
    """A refused stream raises as a request does, after the same retries."""
    gone = web.json_response(STATUS, status=404)
    async with _talking(_answering(_refusing(503, Retry_After="0"), gone)) as (rest, server):
        with pytest.raises(NotFoundError):
            async with rest.stream(Request(path="/x")):
                raise AssertionError("a refused stream was entered")
        assert 2 == len(server.received)


@in_real_time
async def test_cancelled_request_leaves_a_working_connection() -> None:
    """Giving up a request harms no other one."""

    async def answer(request: web.BaseRequest, _: object) -> web.StreamResponse:
        if request.path == "/slow":
            await asyncio.sleep(30)
        return web.Response(text="{}")

    async with _talking(answer) as (rest, _):
        slow = asyncio.create_task(rest.send(Request(path="/slow")))
        quick = asyncio.create_task(rest.send(Request(path="/x")))
        assert b"{}" == await quick
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert b"{}" == await rest.send(Request(path="/x"))


@in_real_time
async def test_requests_after_closing() -> None:
    """They fail as if the server were down; closing twice is allowed."""
    async with _talking(_answering(OK)) as (rest, _):
        await rest.aclose()
        with pytest.raises(ApiError) as caught:
            await rest.send(Request(path="/x"))
        assert 0 == caught.value.code


# Permission to write.

WRITE = Request(method="POST", path="/x", body=b"{}")


class _Leadership:
    """Permits until it is lost."""

    def __init__(self) -> None:
        self.is_lost = False

    def check(self) -> None:
        if self.is_lost:
            raise ApiError(0, "NotLeader", "another replica leads")


@in_real_time
async def test_writes_need_permission() -> None:
    """Without it nothing is written, also on open connections; reads work."""
    leadership = _Leadership()
    async with _talking(_answering(OK), permit=leadership.check) as (rest, server):
        await rest.send(WRITE)
        leadership.is_lost = True
        with pytest.raises(ApiError, match="another replica leads"):
            await rest.send(WRITE)
        await rest.send(Request(path="/x"))
        leadership.is_lost = False
        await rest.send(WRITE)
        assert ["POST", "GET", "POST"] == [received.method for received in server.received]


@in_real_time
async def test_permission_is_asked_after_waiting_for_a_connection() -> None:
    """A write that waited for one of the connections is held back if it is too late by then."""
    leadership = _Leadership()
    release = asyncio.Event()
    all_busy = asyncio.Event()

    async def slow(_request: web.BaseRequest, received: list[ReceivedRequest]) -> web.Response:
        if len(received) == 64:
            all_busy.set()
        await release.wait()
        return web.Response(body=b"{}")

    async with _talking(slow, permit=leadership.check) as (rest, server):
        writes = [asyncio.ensure_future(rest.send(WRITE)) for _ in range(70)]
        await all_busy.wait()
        leadership.is_lost = True
        release.set()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        refused = sum(isinstance(outcome, ApiError) for outcome in outcomes)
        assert (64, 6) == (len(server.received), refused)


# Lines.


async def _lines(chunks: list[bytes]) -> list[bytes]:
    left = [*chunks, b""]

    async def read() -> bytes:
        return left.pop(0)

    return [line async for line in lines_of(read)]


@settings(max_examples=40)
@given(
    st.lists(st.binary(min_size=0, max_size=8).map(lambda b: b.replace(b"\r", b"\n"))), st.data()
)
def test_lines_do_not_depend_on_chunks(lines: list[bytes], data: st.DataObject) -> None:
    """Lines are the same for every division of a text into chunks."""
    text = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edges = [0, *cuts, len(text)]
    chunks = [text[a:b] for a, b in pairwise(edges) if a < b]
    expected = [line for line in text.split(b"\n") if line]
    assert expected == asyncio.run(_lines(chunks))


@in_real_time
async def test_a_refusal_is_quoted_though_the_connection_breaks() -> None:
    """As a server for TLS answers plain HTTP: it closes without reading the request."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request")
        await writer.drain()
        # Closing with unread bytes, or at once, resets the connection.
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = HttpRestClient(ConnectionSettings(server=f"http://127.0.0.1:{port}"))
        with pytest.raises(ApiError, match="400 Bad Request: Client sent an HTTP request"):
            await client.send(Request(method="GET", path="/api"))
        await client.aclose()
