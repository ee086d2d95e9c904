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
    "token",
    [
        pytest.param("garbage", id="no JSON"),
        pytest.param("!!", id="no base64"),
        *(
            pytest.param(base64.urlsafe_b64encode(text).decode(), id=text.decode())
            for text in (
                b"[]",
                b'{"v":"v9","rv":1,"start":"a"}',
                b'{"v":"meta.k8s.io/v1","start":"a"}',
                b'{"v":"meta.k8s.io/v1","rv":"5","start":"a"}',
                b'{"v":"meta.k8s.io/v1","rv":0,"start":"a"}',
                b'{"v":"meta.k8s.io/v1","rv":5}',
                b'{"v":"meta.k8s.io/v1","rv":5,"start":""}',
            )
        ),
    ],
)
def test_invalid_tokens(token: str) -> None:
    """They are refused with 400."""
    with pytest.raises(StatusError) as caught:
        page_of(token)
    assert 400 == caught.value.code
    assert "invalid continue token: continue key is not valid" == caught.value.message


def test_expired_page() -> None:
    """The error has a token for the same place at any version."""
    error = too_old(Page(7, "a\0"))
    assert Page(ANY_VERSION, "a\0") == page_of(error.metadata["continue"])
    assert (410, "Expired") == (error.code, error.reason)
