"""Options of writes."""

from __future__ import annotations

import pytest

from kubesched.apiserver.request import ApiRequest, Target, operation_of
from kubesched.apiserver.resources import RESOURCES
from kubesched.apiserver.status import StatusError

PODS = RESOURCES.find("", "v1", "pods")
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


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
    assert PODS is not None
    request = ApiRequest(method, "/", query, {"content-type": media_type})
    with pytest.raises(StatusError) as caught:
        operation_of(request, Target(VERBS[method], "", "v1", "pods", "default"), PODS)
    assert caught.value.code == 422
    assert message in caught.value.message


def test_operation() -> None:
    """What is asked for is what is done."""
    assert PODS is not None
    request = ApiRequest("POST", "/", {"dryRun": ("All",)}, {"user-agent": "a/1"})
    operation = operation_of(request, Target("create", "", "v1", "pods", "n", "p", "status"), PODS)
    assert ("n", "p", "status", True, "Warn", "a") == (
        operation.namespace,
        operation.name,
        operation.subresource,
        operation.is_dry_run,
        operation.validation,
        operation.request.manager,
    )
