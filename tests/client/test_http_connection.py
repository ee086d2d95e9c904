from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.client.http_connection import HttpConnection
from tests.loops import in_real_time

from .wire import Wire

REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class _Said(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    body: bytes


class _Answer(NamedTuple):
    """An answer, and how it is written."""

    said: _Said
    is_chunked: bool
    pieces: int
    interim: int

    def written(self) -> bytes:
        body = self.said.body
        lines = [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"] * self.interim
        lines.append(b"HTTP/1.1 %d Word\r\n" % self.said.status)
        lines += [b"%s: %s\r\n" % (name.title(), text) for name, text in self.said.headers.items()]
        if not self.is_chunked:
            return b"".join([*lines, b"Content-Length: %d\r\n\r\n" % len(body), body])
        size = max(1, -(-len(body) // self.pieces))
        cut = [body[at : at + size] for at in range(0, len(body), size)]
        chunks = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in cut]
        return b"".join([*lines, b"Transfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n"])


_headers = st.dictionaries(
    st.sampled_from([b"audit-id", b"retry-after", b"content-type", b"x"]),
    st.sampled_from([b"", b"1", b"application/json; charset=utf-8"]),
)
_answers = st.builds(
    _Answer,
    st.builds(_Said, st.sampled_from([200, 201, 404, 429, 500]), _headers, st.binary(max_size=40)),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 1),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(_answers, min_size=1, max_size=3), st.data())
@in_real_time
async def test_responses_do_not_depend_on_chunks(
    answers: list[_Answer], data: st.DataObject
) -> None:
    """Responses are the same for every framing and every division into chunks."""
    connection = HttpConnection()
    wire = Wire(connection)
    heard = []
    for answer in answers:
        asking = asyncio.ensure_future(connection.ask(REQUEST))
        await asyncio.sleep(0)
        text = answer.written()
        cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=5))
        for a, b in pairwise([0, *sorted(cuts), len(text)]):
            if a < b:
                assert not connection.is_reusable
                wire.deliver(text[a:b])
            if data.draw(st.booleans()):
                await asyncio.sleep(0)
        status = await asking
        framing = {b"content-length", b"transfer-encoding"}
        said = {k: v for k, v in connection.headers.items() if k not in framing}
        heard.append(_Said(status, said, await connection.read_all()))
        assert connection.is_reusable
    assert REQUEST * len(answers) == wire.written
    assert [answer.said for answer in answers] == heard


def _asked(*chunks: bytes, error: Exception | None = None, is_cut: bool = False) -> list[object]:
    """Return what came of an answer: its status, the parts of its body, and what was raised."""

    async def main() -> list[object]:
        connection = HttpConnection()
        wire = Wire(connection)
        asking = asyncio.ensure_future(connection.ask(REQUEST))
        await asyncio.sleep(0)
        for chunk in chunks:
            wire.deliver(chunk)
        if is_cut:
            wire.hang_up(error)
        came: list[object] = []
        try:
            came.append(await asking)
            while part := await connection.read():
                came.append(part)
        except OSError as raised:
            came.append(type(raised))
        came.append(connection.is_reusable)
        return came

    return asyncio.run(main())


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    """As in HTTP/1.0; after a connection error the body is unfinished."""
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    assert [200, b"ab", False] == _asked(head, b"a", b"b", is_cut=True)
    broken = _asked(head, b"a", is_cut=True, error=ConnectionResetError(104, "reset"))
    assert [200, b"a", OSError, False] == broken


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(b"", [ConnectionResetError, False], id="nothing"),
        pytest.param(b"HTTP/1.1 200 O", [ConnectionResetError, False], id="in the head"),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n",
            [ConnectionResetError, False],
            id="interim",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
            [200, b"abc", OSError, False],
            id="in the body",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            [200, b"abc", OSError, False],
            id="before the last chunk",
        ),
    ],
)
def test_cut_responses(sent: bytes, expected: list[object]) -> None:
    """Without a response it is a broken connection; the part before the cut is delivered."""
    assert expected == _asked(*[sent] if sent else [], is_cut=True)


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ],
)
def test_invalid_responses(sent: bytes) -> None:
    """Another protocol, or none, closes the connection."""
    assert [OSError, False] == _asked(sent)


@pytest.mark.parametrize(
    ("head", "is_reusable"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
    ],
)
def test_servers_say_whether_they_keep_a_connection(head: bytes, is_reusable: bool) -> None:
    """Connections that the server is about to close are not used again."""
    assert [200, b"a", is_reusable] == _asked(head + b"Content-Length: 1\r\n\r\na")


@in_real_time
async def test_unread_bodies() -> None:
    """A reader that leaves after the end of a response leaves a clean connection."""
    connection = HttpConnection()
    wire = Wire(connection)
    for body in (b"first", b"again"):
        asking = asyncio.ensure_future(connection.ask(REQUEST))
        await asyncio.sleep(0)
        wire.deliver(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body)
        await asking
        assert connection.is_reusable
    assert b"again" == await connection.read_all()


@in_real_time
async def test_unexpected_data() -> None:
    """A connection with data outside of a response is not used again."""
    connection = HttpConnection()
    wire = Wire(connection)
    assert connection.is_reusable
    wire.deliver(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
    assert not connection.is_reusable


@in_real_time
async def test_slow_readers() -> None:
    """Reading pauses at one MiB that was not read, and continues later."""
    piece = bytes(400_000)
    connection = HttpConnection()
    wire = Wire(connection)
    asking = asyncio.ensure_future(connection.ask(REQUEST))
    await asyncio.sleep(0)
    wire.deliver(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    await asking
    seen = []
    for _ in range(3):
        wire.deliver(b"%x\r\n%s\r\n" % (len(piece), piece))
        seen.append((0, wire.wants_more))
    seen.append((len(await connection.read()), wire.wants_more))
    assert [(0, True), (0, True), (0, False), (1_200_000, True)] == seen
