"""Authorization of users by path."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubesched.api.errors import ApiError
from kubesched.app.access import Authorizer
from kubesched.app.reviews import ANONYMOUS, AccessError, AccessStatus, UserInfo
from tests.loops import in_real_time, on_virtual_time

from .fake_rest import FakeRest, access_reviews
from .port_records import reviews

ALICE = UserInfo("alice", "u1", ("system:authenticated",), {"team": ("a", "b")})


def authorizer(rest: FakeRest, allowed: float = 10, denied: float = 10) -> Authorizer:
    """Return an authorizer that keeps answers for some seconds; /livez is always allowed."""
    return Authorizer(["/livez"], access_reviews(rest, allowed, denied))


def test_reviews_equal_recorded_ones() -> None:
    """The requests for access reviews are kube-scheduler's."""
    for entry in reviews("subjectaccessreviews"):
        rest = FakeRest(entry["response"])
        spec = entry["body"]["spec"]
        user = UserInfo(spec["user"], spec.get("uid", ""), tuple(spec["groups"]))
        about = spec["nonResourceAttributes"]
        asked = authorizer(rest).authorize(user, about["verb"], about["path"])
        assert AccessStatus(entry["response"]["status"]["allowed"]) == asyncio.run(asked)
        request = rest.requests[0]
        assert (entry["method"], entry["path"]) == (request.method, request.path)
        assert entry["query"] == dict(request.query)
        assert entry["body"] == json.loads(request.body)


def test_reviews_have_the_users_extra_values() -> None:
    """The review has all keys and values of the user."""
    rest = FakeRest({"status": {"allowed": True}})
    asyncio.run(authorizer(rest).authorize(ALICE, "get", "/metrics"))
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
    rest = FakeRest({})
    authorizer = Authorizer(["/healthz", "/open*", "bare"], access_reviews(rest))
    assert is_allowed == asyncio.run(authorizer.authorize(ANONYMOUS, "get", path)).allowed
    assert (not is_allowed) == bool(rest.requests)


def test_a_star_must_end_a_path() -> None:
    """A star elsewhere is refused."""
    with pytest.raises(ValueError, match=r'only trailing \* allowed in "a\*b"'):
        Authorizer(["/a*b"], access_reviews(FakeRest({})))


@pytest.mark.parametrize(
    ("status", "moments", "asked"),
    [
        pytest.param({"allowed": True}, (0.0, 9.0, 19.0, 21.0), 2, id="allowed for 20 s"),
        pytest.param({"allowed": False}, (0.0, 4.0, 6.0, 10.0), 2, id="denied for 5 s"),
    ],
)
@on_virtual_time
async def test_answers_are_kept_for_a_while(
    status: dict[str, Any], moments: tuple[float, ...], asked: int
) -> None:
    """Each kind of answer has its own time."""
    rest = FakeRest({"status": status})
    asker = authorizer(rest, 20.0, 5.0)
    for moment in moments:
        await asyncio.sleep(moment - asyncio.get_running_loop().time())
        await asker.authorize(ALICE, "get", "/metrics")
    assert asked == len(rest.requests)


def test_reviews_that_fail() -> None:
    """A failed review is an error, not a denial."""
    refused = ApiError(0, "ConnectionRefused", "connection refused")
    asked = authorizer(FakeRest(refused)).authorize(ANONYMOUS, "get", "/metrics")
    with pytest.raises(AccessError, match="connection refused"):
        asyncio.run(asked)


def test_contradictions_are_errors() -> None:
    """Allowed and denied at once is neither."""
    rest = FakeRest({"status": {"allowed": True, "denied": True}})
    with pytest.raises(AccessError, match="both allow and deny"):
        asyncio.run(authorizer(rest).authorize(ALICE, "get", "/x"))


@in_real_time
async def test_masters_and_open_paths_are_never_asked_about() -> None:
    """The API server would allow it anyway."""
    rest = FakeRest({"status": {"allowed": False, "reason": "no rule"}})
    asker = authorizer(rest)
    root = UserInfo("root", groups=("system:masters",))
    found = [
        await asker.authorize(root, "get", "/metrics"),
        await asker.authorize(ANONYMOUS, "get", "/livez"),
        await asker.authorize(ANONYMOUS, "get", "/metrics"),
    ]
    assert [
        AccessStatus(allowed=True),
        AccessStatus(allowed=True),
        AccessStatus(reason="no rule"),
    ] == found
    assert 1 == len(rest.requests)
