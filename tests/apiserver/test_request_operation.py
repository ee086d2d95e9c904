"""Options of writes."""

from __future__ import annotations

import pytest

from kubesched.apiserver.request import ApiRequest, Operation, check_options
from kubesched.apiserver.resources import RESOURCES
from kubesched.apiserver.status import StatusError

PODS = RESOURCES.find("", "v1", "pods")


@pytest.mark.parametrize(
    ("method", "query", "media_type", "message"),
    [
        pytest.param(
            "POST",
            {"dryRun": ("Some",)},
            "",
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: '
            'supported values: "All"',
            id="dry-run",
        ),
        pytest.param(
            "PUT",
            {"fieldValidation": ("Sometimes",)},
            "",
            'UpdateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: '
            '"Sometimes": supported values: "", "Ignore", "Strict", "Warn"',
            id="field-validation",
        ),
        pytest.param(
            "PATCH",
            {},
            "application/apply-patch+yaml",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required '
            "for apply patch",
            id="apply-without-manager",
        ),
        pytest.param(
            "PATCH",
            {"force": ("true",)},
            "application/merge-patch+json",
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
            "non-apply patch",
            id="force-without-apply",
        ),
        pytest.param(
            "PUT", {"fieldManager": ("x" * 129,)}, "", "may not be more than 128", id="long-manager"
        ),
        pytest.param(
            "PUT",
            {"fieldManager": ("a\n",)},
            "",
            "invalid character at position 1",
            id="unprintable",
        ),
    ],
)
def test_refused(
    method: str, query: dict[str, tuple[str, ...]], media_type: str, message: str
) -> None:
    """Options that make no sense are refused before anything is read."""
    with pytest.raises(StatusError) as caught:
        check_options(ApiRequest(method, "/", query, {"content-type": media_type}))
    assert caught.value.code == 422
    assert message in caught.value.message


def test_operation() -> None:
    """What is asked for is what is done."""
    assert PODS is not None
    request = ApiRequest("POST", "/", {"dryRun": ("All",)}, {"user-agent": "a/1"})
    check_options(request)
    operation = Operation(request, PODS, "n", "p", "status")
    assert (True, "Warn", "a") == (
        operation.is_dry_run,
        operation.validation,
        operation.request.manager,
    )
