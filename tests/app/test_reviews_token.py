"""Tokens by TokenReview: requests, cached answers and failures."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubesched.api.errors import ApiError
from kubesched.app.reviews import AccessError, UserInfo
from kubesched.client.requests import Request
from tests.loops import in_real_time, on_virtual_time

from .fake_rest import FakeRest, token_reviews
from .port_records import reviews


def test_reviews_equal_recorded_ones() -> None:
    """Requests are kube-scheduler's, and responses give the same user."""
    for entry in reviews("tokenreviews"):
        rest = FakeRest(entry["response"])
        status = entry["response"]["status"]
        asked = token_reviews(rest).ask(entry["body"]["spec"])
        found = asyncio.run(asked)
        if status.get("authenticated"):
            user = status["user"]
            assert UserInfo(user["username"], user["uid"], tuple(user["groups"])) == found.user
        else:
            assert (False, status["error"]) == (found.authenticated, found.error)
        request = rest.requests[0]
        assert (entry["method"], entry["path"]) == (request.method, request.path)
        assert entry["body"] == json.loads(request.body)


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        pytest.param({"authenticated": True, "user": {"username": "u"}}, 2, id="known"),
        pytest.param({"authenticated": False}, 2, id="unknown"),
        pytest.param({"authenticated": False, "error": "bad"}, 4, id="the server could not tell"),
    ],
)
@on_virtual_time
async def test_answers_are_cached(status: dict[str, Any], asked: int) -> None:
    """Known and unknown tokens are reviewed again after some time; errors at once."""
    rest = FakeRest({"status": status})
    tokens = token_reviews(rest)
    for moment in (0.0, 9.0, 10.5, 11.0):
        await asyncio.sleep(moment - asyncio.get_running_loop().time())
        await asyncio.gather(tokens.ask({"token": "t"}), return_exceptions=True)
    assert asked == len(rest.requests)


@in_real_time
async def test_one_question_serves_all_who_wait_for_it() -> None:
    """Requests with one token at one time are one review."""
    rest = FakeRest({"status": {"authenticated": True}})
    tokens = token_reviews(rest)
    await asyncio.gather(*(tokens.ask({"token": "t"}) for _ in range(5)))
    assert 1 == len(rest.requests)


@on_virtual_time
async def test_transient_failures_are_tried_again() -> None:
    """Five attempts with growing pauses; then the last failure counts, and is not kept."""
    rest = FakeRest(ApiError(500, "InternalError", "oh"))
    with pytest.raises(AccessError, match="oh"):
        await token_reviews(rest).ask({"token": "t"})
    seconds = asyncio.get_running_loop().time()
    assert 5 == len(rest.requests)
    shortest = 0.5 + 0.75 + 1.125 + 1.6875
    assert shortest <= seconds <= shortest * 1.2


def test_other_failures_are_final() -> None:
    """A refused review is not repeated."""
    rest = FakeRest(ApiError(403, "Forbidden", "no"))
    with pytest.raises(AccessError, match="no"):
        asyncio.run(token_reviews(rest).ask({"token": "t"}))
    assert 1 == len(rest.requests)


class _SilentRest(FakeRest):
    """Never answers."""

    async def send(self, request: Request) -> bytes:
        """Wait for ever."""
        await asyncio.sleep(1e6)
        raise AssertionError(request)


@on_virtual_time
async def test_server_that_does_not_answer() -> None:
    """The review fails after ten seconds, and the error says why."""
    with pytest.raises(AccessError, match=r"^context deadline exceeded$"):
        await token_reviews(_SilentRest({})).ask({"token": "t"})
    assert 10 == round(asyncio.get_running_loop().time())
