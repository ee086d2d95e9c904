"""Operation is a request to write, with its options.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers (RequestScope), apis/meta/v1
          (CreateOptions, UpdateOptions, PatchOptions), apis/meta/v1/validation (v1.36)
Rejects:  unknown validation modes, partial dry runs, managers with unprintable names.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubesched.apiserver.request import ApiRequest, Target
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import FieldErrors, invalid_kind

APPLY_TYPE: Final = "application/apply-patch+yaml"
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_MANAGER_MAX: Final = 128
_OPTIONS_KINDS: Final = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
}


class Operation(msgspec.Struct):
    """One request to write; `validation` is `Ignore`, `Strict` or `Warn` about unknown fields.

    The namespace is "" where there is none, and the name where only the object has it.
    """

    request: ApiRequest
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_dry_run: bool = False
    validation: str = "Warn"

    @property
    def warnings(self) -> list[str]:
        """Warnings for the user, in order; they are sent even if the request is refused."""
        return self.request.warnings

    @property
    def manager(self) -> str:
        """The manager of the fields that are written."""
        return self.request.manager


def operation_of(request: ApiRequest, target: Target, resource: Resource) -> Operation:
    """Return the operation of a request; raises StatusError if its options are invalid."""
    errors = _option_errors(request)
    if errors:
        kind = _OPTIONS_KINDS.get(target.verb, "UpdateOptions")
        raise invalid_kind("meta.k8s.io", kind, "", errors)
    return Operation(
        request,
        resource,
        target.namespace if resource.is_namespaced else "",
        target.name,
        target.subresource,
        is_dry_run="dryRun" in request.query,
        validation=request.parameter("fieldValidation") or "Warn",
    )


def _option_errors(request: ApiRequest) -> FieldErrors:
    errors = FieldErrors()
    is_apply = request.method == "PATCH" and request.content_type == APPLY_TYPE
    manager = request.parameter("fieldManager")
    if request.method == "PATCH" and not is_apply and "force" in request.query:
        errors.forbidden("force", "may not be specified for non-apply patch")
    if is_apply and not manager:
        errors.required("fieldManager", "is required for apply patch")
    if len(manager) > _MANAGER_MAX:
        errors.too_long("fieldManager", _MANAGER_MAX)
    elif not manager.isprintable():
        at = next(index for index, letter in enumerate(manager) if not letter.isprintable())
        detail = f"should only contain printable characters (invalid character at position {at})"
        errors.invalid("fieldManager", manager, detail)
    check_dry_run(request.query.get("dryRun", ()), errors)
    validation = request.parameter("fieldValidation")
    if validation not in _VALIDATIONS:
        errors.not_supported("fieldValidation", validation, _VALIDATIONS)
    return errors


def check_dry_run(values: Sequence[str], errors: FieldErrors) -> None:
    """Add field errors for the stages of a dry run."""
    if any(value != "All" for value in values):
        errors.not_supported("dryRun", values, ("All",))
