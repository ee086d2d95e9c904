"""Continue tokens."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.listing import ANY_VERSION, Page, page_of, token_of, too_old
from kubesched.apiserver.status import StatusError

PAGES = st.builds(Page, st.integers(1, 2**53), st.text(min_size=1))


@given(PAGES)
def test_tokens_round_trip(page: Page) -> None:
    """A continue token decodes to its page."""
    assert page == page_of(token_of(page))


@pytest.mark.parametrize(
    ("token", "why"),
    [
        pytest.param(
            "garbage",
            "invalid character '\\u0081' looking for beginning of value",
            id="no-json",
        ),
        pytest.param("!!", "illegal base64 data at input byte 0", id="no-base64"),
        pytest.param(
            base64.urlsafe_b64encode(b'{"v":"v9","rv":1,"start":"a"}').decode(),
            "server does not recognize this encoded version",
            id="version",
        ),
        pytest.param(
            base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","start":"a"}').decode(),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            id="no-resource-version",
        ),
        pytest.param(
            base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":5}').decode(),
            "encoded start key empty (version meta.k8s.io/v1)",
            id="no-start",
        ),
    ],
)
def test_invalid_tokens(token: str, why: str) -> None:
    """The message has the reason."""
    with pytest.raises(StatusError) as caught:
        page_of(token)
    assert caught.value.code == 400
    assert f"invalid continue token: continue key is not valid: {why}" == caught.value.message


def test_expired_page() -> None:
    """The error has a token for the same place at any version."""
    error = too_old(Page(7, "a\0"))
    assert Page(ANY_VERSION, "a\0") == page_of(error.metadata["continue"])
    assert (410, "Expired") == (error.code, error.reason)
