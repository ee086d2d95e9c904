from __future__ import annotations

import pytest

from kubesched.client.http_connection import DisconnectedError
from kubesched.client.rest import RequestRetries


def test_ten_retries() -> None:
    """There are eleven requests, with the waits of Retry-After."""
    retries = RequestRetries("POST")
    assert [3.0] * 10 == [retries.after_answer(503, "3") for _ in range(10)]
    assert retries.after_answer(503, "3") is None
    assert 10 == retries.count


@pytest.mark.parametrize(
    ("code", "header"), [(503, ""), (429, "soon"), (404, "1"), (409, "1"), (200, "1")]
)
def test_final_responses(code: int, header: str) -> None:
    """Other responses are not followed by a retry."""
    assert RequestRetries("GET").after_answer(code, header) is None


def test_broken_connections() -> None:
    """A GET is repeated at once, then after a second each, ten times in all; others never."""
    retries = RequestRetries("GET")
    broken = DisconnectedError("EOF")
    assert [0.0, *[1.0] * 9, None] == [retries.after_failure(broken) for _ in range(11)]
    assert RequestRetries("PUT").after_failure(broken) is None
    assert RequestRetries("GET").after_failure(TimeoutError()) is None
