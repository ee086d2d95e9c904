"""Which form a client gets."""

from __future__ import annotations

import pytest

from kubesched.apiserver.presentation import negotiate
from kubesched.apiserver.status import StatusError

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        pytest.param("", "", id="none"),
        pytest.param("*/*", "", id="any"),
        pytest.param("application/json, */*", "", id="kubectl"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", "", id="protobuf"),
        pytest.param(f"{TABLE},application/json", "Table", id="table"),
        pytest.param("text/html,application/json;q=0.5", "", id="worse-but-offered"),
        pytest.param(f"{TABLE};q=0.5,application/json", "", id="better-first"),
        pytest.param(
            "application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/json", "", id="fallback"
        ),
    ],
)
def test_negotiate(header: str, kind: str) -> None:
    """The best of what is offered is served."""
    assert kind == negotiate(header).kind


@pytest.mark.parametrize(
    ("header", "message"),
    [
        pytest.param("text/html", "406: Not Acceptable", id="html"),
        pytest.param("application/*", "406: Not Acceptable", id="half-a-star"),
        pytest.param(
            "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
            "only the following media types are accepted",
            id="unknown-form",
        ),
        pytest.param(
            "application/json;as=Table;v=v2;g=meta.k8s.io",
            "only the following media types are accepted",
            id="unknown-version",
        ),
    ],
)
def test_no_acceptable_media_type(header: str, message: str) -> None:
    """The error lists the supported media types."""
    with pytest.raises(StatusError) as caught:
        negotiate(header)
    assert caught.value.code == 406
    assert caught.value.message.startswith(message)
