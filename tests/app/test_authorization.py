"""Authorization of users by path."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from random import Random
from typing import Any

import pytest

from kubesched.api.errors import ApiError
from kubesched.app.authorization import (
    AllowedPaths,
    AuthorizationError,
    Authorizer,
    SubjectAccessReviews,
    Verdict,
)
from kubesched.app.http_exchange import HttpRequest
from kubesched.app.reviews import ANONYMOUS, ReviewRetries, UserInfo
from kubesched.client.requests import Request

from .fake_rest import Clock, FakeRest
from .port_records import reviews

ALICE = UserInfo("alice", "u1", ("system:authenticated",), (("team", ("a", "b")),))


def access_reviews(rest: FakeRest, clock: Clock, **seconds: float) -> SubjectAccessReviews:
    """Return reviews on a clock by hand."""
    return SubjectAccessReviews(ReviewRetries(rest, Random(1), clock.sleep), clock, **seconds)


def _always(answer: dict[str, Any], _request: Request) -> dict[str, Any]:
    return answer


def test_reviews_equal_recorded_ones() -> None:
    """The requests for access reviews are kube-scheduler's."""
    for entry in reviews("subjectaccessreviews"):
        rest = FakeRest(partial(_always, entry["response"]))
        spec = entry["body"]["spec"]
        user = UserInfo(spec["user"], spec.get("uid", ""), tuple(spec["groups"]))
        about = spec["nonResourceAttributes"]
        asked = access_reviews(rest, Clock()).authorize(user, about["verb"], about["path"])
        assert Verdict(entry["response"]["status"]["allowed"]) == asyncio.run(asked)
        request = rest.requests[0]
        assert (entry["method"], entry["path"]) == (request.method, request.path)
        assert entry["query"] == dict(request.query)
        assert entry["body"] == json.loads(request.body)


def test_reviews_have_the_users_extra_values() -> None:
    """The review has all keys and values of the user."""
    rest = FakeRest(lambda _request: {"status": {"allowed": True}})
    asyncio.run(access_reviews(rest, Clock()).authorize(ALICE, "get", "/metrics"))
    expected = {
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        "user": "alice",
        "uid": "u1",
        "groups": ["system:authenticated"],
        "extra": {"team": ["a", "b"]},
    }
    assert expected == json.loads(rest.requests[0].body)["spec"]


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        pytest.param("/healthz", True, id="exact"),
        pytest.param("/healthz/ping", False, id="below an exact one"),
        pytest.param("/open", True, id="prefix itself"),
        pytest.param("/open/and/below", True, id="below a prefix"),
        pytest.param("/bare", True, id="without slash in the flag"),
        pytest.param("/", False, id="root"),
    ],
)
def test_paths_that_everybody_may_ask_for(path: str, is_allowed: bool) -> None:
    """Paths count whole, or as prefixes with a star; the first slash does not count."""
    assert is_allowed == (path in AllowedPaths(["/healthz", "/open*", "bare"]))


def test_a_star_must_end_a_path() -> None:
    """A star elsewhere is refused."""
    with pytest.raises(ValueError, match=r'only trailing \* allowed in "a\*b"'):
        AllowedPaths(["/a*b"])


@pytest.mark.parametrize(
    ("status", "moments", "asked"),
    [
        pytest.param({"allowed": True}, (0.0, 9.0, 19.0, 21.0), 2, id="allowed for 20 s"),
        pytest.param({"allowed": False}, (0.0, 4.0, 6.0, 10.0), 2, id="denied for 5 s"),
    ],
)
def test_answers_are_kept_for_a_while(
    status: dict[str, Any], moments: tuple[float, ...], asked: int
) -> None:
    """Each kind of answer has its own time."""
    clock = Clock()
    rest = FakeRest(lambda _request: {"status": status})
    asker = access_reviews(rest, clock, keep_allowed_seconds=20.0, keep_denied_seconds=5.0)

    async def main() -> None:
        for moment in moments:
            clock.seconds = moment
            await asker.authorize(ALICE, "get", "/metrics")

    asyncio.run(main())
    assert asked == len(rest.requests)


def test_long_requests_are_not_cached() -> None:
    """Clients cannot fill the memory with long paths."""
    rest = FakeRest(lambda _request: {"status": {"allowed": False}})
    asker = access_reviews(rest, Clock())

    async def main() -> None:
        for _ in range(2):
            await asker.authorize(ALICE, "get", "/" + "x" * 10_000)

    asyncio.run(main())
    assert 2 == len(rest.requests)


def test_reviews_that_fail() -> None:
    """A server that fails is an error; without a server the access is denied."""

    def fail(_request: Request) -> None:
        raise ApiError(0, "ConnectionRefused", "nobody there")

    request = HttpRequest(path="/metrics")
    asker = Authorizer(AllowedPaths([]), access_reviews(FakeRest(fail), Clock()))
    with pytest.raises(AuthorizationError, match="nobody there"):
        asyncio.run(asker.authorize(ANONYMOUS, request))
    alone = Authorizer(AllowedPaths([]), None)
    assert Verdict(is_allowed=False) == asyncio.run(alone.authorize(ANONYMOUS, request))


def test_contradictions_are_errors() -> None:
    """Allowed and denied at once is neither."""
    rest = FakeRest(lambda _request: {"status": {"allowed": True, "denied": True}})
    with pytest.raises(AuthorizationError, match="both allow and deny"):
        asyncio.run(access_reviews(rest, Clock()).authorize(ALICE, "get", "/x"))


def test_masters_and_open_paths_are_never_asked_about() -> None:
    """The API server would allow it anyway."""
    rest = FakeRest(lambda _request: {"status": {"allowed": False, "reason": "no rule"}})
    authorizer = Authorizer(AllowedPaths(["/livez"]), access_reviews(rest, Clock()))

    async def main() -> list[Verdict]:
        root = UserInfo("root", groups=("system:masters",))
        return [
            await authorizer.authorize(root, HttpRequest(path="/metrics")),
            await authorizer.authorize(ANONYMOUS, HttpRequest(path="/livez")),
            await authorizer.authorize(ANONYMOUS, HttpRequest(path="/metrics", method="POST")),
        ]

    assert [Verdict(True), Verdict(True), Verdict(False, "no rule")] == asyncio.run(main())
    assert 1 == len(rest.requests)
    assert "post" == json.loads(rest.requests[0].body)["spec"]["nonResourceAttributes"]["verb"]
