"""A reflector sends kube-scheduler's requests, and recovers from errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import chain, pairwise
from random import Random
from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError, GoneError, TooManyRequestsError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import kind_of
from kubesched.client.errors import CONNECTION_REFUSED
from kubesched.client.reflector import Listed, Reflector, WatchFailure
from kubesched.client.requests import UNFINISHED_PODS, Request
from kubesched.client.watch_events import WatchEvent
from kubesched.simulator.virtual_loop import run

PODS = kind_of(Pod)
EXPIRED = GoneError("too old resource version: 5 (9)")
REFUSED = ApiError(0, "ConnectionRefused", "connection refused")
BROKEN = ApiError(0, "Unanswered", "connection reset by peer")
BUSY = TooManyRequestsError("try again later")
TOO_LARGE = ApiError(504, "Timeout", "Timeout: Too large resource version: 9, current: 3")
UNSUPPORTED = ApiError(422, "Invalid", "sendInitialEvents is forbidden")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")

Step = ApiError | list[object]


def pod(name: str, version: int) -> dict[str, Any]:
    """Return a pod as a server writes it."""
    return {"metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)}}


def event(word: str, name: str, version: int) -> dict[str, Any]:
    """Return the event of a line of a watch."""
    return {"type": word, "object": pod(name, version)}


def bookmark(version: int, *, is_end: bool = False) -> dict[str, Any]:
    """Return a bookmark's line."""
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if is_end else {}
    metadata = {"resourceVersion": str(version), **annotations}
    return {"type": "BOOKMARK", "object": {"metadata": metadata}}


def failure(code: int, reason: str) -> dict[str, Any]:
    """Return an error event's line."""
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return {"type": "ERROR", "object": status}


class Script:
    """A server that answers in the order of a script, then never again.

    A step is a refusal, the events of a stream (numbers are seconds to wait, an error breaks the
    connection), or the pages of a list.

    Attributes:
        asked: When what was asked, the lengths of watches left out.
    """

    def __init__(self, *steps: object) -> None:
        self._steps = list(steps)
        self.asked: list[tuple[float, dict[str, str]]] = []
        self.done = asyncio.Event()

    async def _next(self, request: Request) -> Any:
        query = dict(request.query)
        assert [*query] == sorted(query)
        assert "/api/v1/pods" == request.path
        if "watch" in query:
            assert 300 <= int(query.pop("timeoutSeconds")) < 600
        now = asyncio.get_running_loop().time()
        self.asked.append((round(now, 2), query))
        if not self._steps:
            self.done.set()
            await asyncio.Event().wait()
        step = self._steps.pop(0)
        if isinstance(step, ApiError):
            raise step
        return step

    async def send(self, request: Request) -> bytes:
        """Answer with a page: its version, the names of its objects and a token."""
        version, names, token = await self._next(request)
        metadata = {"resourceVersion": version, "continue": token}
        items = [pod(name, 1) for name in names]
        return json.dumps({"metadata": metadata, "items": items}).encode()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Answer with a stream."""
        lines = _lines(await self._next(request))
        try:
            yield lines
        finally:
            await lines.aclose()


async def _lines(events: list[object]) -> Any:
    for said in events:
        if isinstance(said, ApiError):
            raise said
        if isinstance(said, int | float):
            await asyncio.sleep(said)
        else:
            yield json.dumps(said).encode()


class Sink:
    """Records the calls of a reflector."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def replace(self, items: Listed) -> None:
        """Record the names."""
        self.calls.append(" ".join(("all:", *chain.from_iterable(items.values()))))

    def apply(self, event: WatchEvent[KubeObject]) -> None:
        """Record the event."""
        self.calls.append(f"{event.type} {event.object.metadata.name}")


class Steady(Random):
    """A random source that always returns zero."""

    def random(self) -> float:
        """Return zero."""
        return 0.0


class Played:
    """What a reflector did with a script."""

    def __init__(
        self,
        asked: list[tuple[float, dict[str, str]]],
        calls: list[str],
        failure: WatchFailure,
    ) -> None:
        self.asked = asked
        self.calls = calls
        self.failure = failure

    @property
    def in_short(self) -> list[str]:
        """Return the requests in short: time, kind of request, and version."""
        return [f"{at:g} {_short(query)}" for at, query in self.asked]


def _short(query: dict[str, str]) -> str:
    if "sendInitialEvents" in query:
        words = "initial"
    elif "watch" in query:
        words = "watch"
    else:
        words = " ".join(
            ("list", *(query[name] for name in ("limit", "continue") if name in query))
        )
    return f"{words} from {query['resourceVersion']}" if "resourceVersion" in query else words


def play(*steps: object, field_selector: str = "") -> Played:
    """Run a reflector until it has sent all requests of a script."""

    async def main() -> Played:
        script, sink = Script(*steps), Sink()
        reflector = Reflector(script, PODS, sink, Steady(), field_selector)
        task = asyncio.create_task(reflector.run())
        await script.done.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return Played(script.asked, sink.calls, reflector.failure)

    return run(main())


END = bookmark(5, is_end=True)


def test_initial_events_are_asked_for_as_recorded() -> None:
    """The query is the one in the records of kube-scheduler's start."""
    recorded = {
        "allowWatchBookmarks": "true",
        "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
        "resourceVersionMatch": "NotOlderThan",
        "sendInitialEvents": "true",
        "watch": "true",
    }
    assert [(0, recorded)] == play(field_selector=UNFINISHED_PODS).asked


def test_lists_and_watches_are_asked_for_as_recorded() -> None:
    """The queries are those of the records with a server that cannot stream initial events."""
    selector = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    played = play(UNSUPPORTED, ("3", ["a"], ""), field_selector=UNFINISHED_PODS)
    assert {**selector, "limit": "500", "resourceVersion": "0"} == played.asked[1][1]
    watch = {**selector, "allowWatchBookmarks": "true", "resourceVersion": "3", "watch": "true"}
    assert watch == played.asked[2][1]


def test_streaming_list() -> None:
    """After the bookmark the stream is a watch."""
    played = play(
        [event("ADDED", "b", 4), event("ADDED", "a", 2), END, event("MODIFIED", "a", 6), 9],
    )
    assert ["all: b a", "MODIFIED a"] == played.calls
    assert ["0 initial", "9 watch from 6"] == played.in_short


def test_changes_among_initial_events() -> None:
    """Changes before the bookmark are part of the list."""
    played = play(
        [event("ADDED", "a", 2), event("ADDED", "b", 3), event("DELETED", "a", 4), END, 2],
    )
    assert ["all: b"] == played.calls


def test_watches_continue() -> None:
    """A watch that ended is continued at once, from the last event or bookmark."""
    played = play(
        [END, event("ADDED", "a", 7), 320],
        [bookmark(8), 3, BROKEN],
        [3, event("DELETED", "a", 9)],
    )
    expected = ["0 initial", "320 watch from 7", "323 watch from 8", "326 watch from 9"]
    assert expected == played.in_short
    assert ["all:", "ADDED a", "DELETED a"] == played.calls


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            (REFUSED, BUSY, BUSY, [END, 2]),
            ["0 initial", "0.8 initial", "2.4 initial", "5.6 initial", "7.6 watch from 5"],
            id="an overwhelmed server is asked again after a pause",
        ),
        pytest.param(
            ([END, 2], EXPIRED, [END, 2], [failure(410, "Expired")], TOO_LARGE, [END, 2]),
            [
                *("0 initial", "2 watch from 5", "2.8 initial from 5", "4.8 watch from 5"),
                *("6.4 initial from 5", "6.4 initial", "8.4 watch from 5"),
            ],
            id="a version that the server does not have is given up at once",
        ),
        pytest.param(
            ([event("ADDED", "a", 1), 2], [event("ADDED", "a", 1), BROKEN], [END, 2]),
            ["0 initial", "2 initial", "2 initial", "4 watch from 5"],
            id="initial events that end too early are asked for again",
        ),
        pytest.param(
            ([], ("3", [], "")),
            ["0 initial", "0 list 500 from 0", "0 watch from 3"],
            id="an empty stream is not a list",
        ),
        pytest.param(
            (FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN),
            [
                *("0 initial", "0 list 500 from 0", "0.8 initial", "0.8 list 500 from 0"),
                "2.4 initial",
            ],
            id="a server that refuses is asked again after a pause",
        ),
    ],
)
def test_failed_streaming_lists(steps: tuple[Step, ...], expected: list[str]) -> None:
    """The next request and its delay depend on the error."""
    assert expected == play(*steps).in_short


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            (("3", ["a", "b"], "t"), ("3", ["c"], "")),
            ["list 500 from 0", "list 500 t", "watch from 3"],
            id="pages",
        ),
        pytest.param(
            (EXPIRED, ("4", ["a"], "")),
            ["list 500 from 0", "list 500", "watch from 4"],
            id="the newest objects if the version is gone",
        ),
        pytest.param(
            (("3", ["a"], "t"), EXPIRED, ("4", ["b"], "")),
            ["list 500 from 0", "list 500 t", "list from 0", "watch from 4"],
            id="everything at once if the list is forgotten while it is read",
        ),
        pytest.param(
            (("3", [], ""), [9, failure(410, "Gone")], UNSUPPORTED, TOO_LARGE, ("5", [], "")),
            [
                *("list 500 from 0", "watch from 3", "initial from 3", "list from 3", "list"),
                "watch from 5",
            ],
            id="a specific version comes in one piece",
        ),
        pytest.param(
            (("3", [], ""), FORBIDDEN, UNSUPPORTED, EXPIRED, BUSY, UNSUPPORTED, ("5", [], "")),
            [
                *("list 500 from 0", "watch from 3", "initial from 3", "list from 3", "list"),
                *("initial", "list 500", "watch from 5"),
            ],
            id="that a version is gone is remembered until a list succeeds",
        ),
    ],
)
def test_lists_after_failed_streaming_lists(steps: tuple[object, ...], expected: list[str]) -> None:
    """The version and the pages of the request depend on the error."""
    asked = [line.partition(" ")[2] for line in play(UNSUPPORTED, *steps).in_short]
    assert ["initial", *expected] == asked


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            (REFUSED, REFUSED, BUSY, [1]),
            ["2.8 watch from 5", "4.4 watch from 5", "7.6 watch from 5", "8.6 watch from 5"],
            id="an overwhelmed server is asked again after a pause, without a list",
        ),
        pytest.param(
            ([failure(429, "TooManyRequests")], [1]),
            ["2.8 watch from 5", "3.8 watch from 5"],
            id="the same if it says so in the stream",
        ),
        pytest.param(
            ([3, failure(500, "InternalError")],),
            ["5.8 initial from 5"],
            id="an internal error means to list again",
        ),
        pytest.param((FORBIDDEN,), ["2.8 initial from 5"], id="a refusal means to list again"),
        pytest.param(([],), ["2.8 initial from 5"], id="a very short watch does, too"),
        pytest.param((BROKEN,), ["2.8 initial from 5"], id="one that broke at once is one"),
        pytest.param(([1],), ["3 watch from 5"], id="a second without events is long enough"),
        pytest.param(([bookmark(6)],), ["2 watch from 6"], id="a bookmark is an event"),
        pytest.param(
            ([{"type": "ADDED", "object": {"metadata": 3}}],),
            ["2.8 initial from 5"],
            id="what cannot be read means to list again",
        ),
    ],
)
def test_failed_watches(steps: tuple[Step, ...], expected: list[str]) -> None:
    """The next request and its delay depend on the error."""
    assert expected == play([END, 2], *steps).in_short[2:]


def test_versions_of_initial_events() -> None:
    """A watch without a version sends all objects first, in any order of versions."""
    played = play(
        *(UNSUPPORTED, ("", [], "")),
        [event("ADDED", "b", 9), 2, BROKEN],
        [event("ADDED", "b", 9), event("MODIFIED", "c", 12), event("ADDED", "d", 13), 2],
    )
    assert ["0 watch", "2 watch", "4 watch from 13"] == played.in_short[2:]


def test_pauses_begin_anew_after_two_minutes() -> None:
    """Pauses are doubled up to half a minute, until two minutes have passed since they began."""
    played = play(*[REFUSED] * 12)
    times = [at for at, _ in played.asked]
    pauses = [round(after - before, 1) for before, after in pairwise(times)]
    assert [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0, 0.8, 1.6, 3.2] == pauses


def test_streams_without_an_end() -> None:
    """A stream is closed half a minute after the timeout of the watch."""
    played = play([END, 100_000])
    assert ["0 initial", "330 watch from 5"] == played.in_short


def test_the_last_failure_is_known() -> None:
    """It is kept until the next complete list."""
    refused = ApiError(403, "Forbidden", "no")
    assert WatchFailure(403, "no") == play([END, 2], [], refused, refused).failure
    assert WatchFailure() == play(refused, refused, [END, 2]).failure


def test_a_watch_that_cannot_be_opened_again_is_a_failure() -> None:
    """Until one is opened: the server may be away for long."""
    away = ApiError(0, CONNECTION_REFUSED, "away")
    assert WatchFailure(0, "away") == play([END, 2], away, away, away).failure
    assert WatchFailure() == play([END, 2], away, [END, 100_000]).failure
