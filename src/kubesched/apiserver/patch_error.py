"""PatchError says why a patch cannot be applied.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import json
from typing import Final

from kubesched.apiserver.plain import Plain

__all__ = ["PatchError", "bad_patch", "failed_patch", "rejected_patch", "unfit_patch"]

_REJECTED: Final = "the server rejected our request due to an error in our request"


class PatchError(Exception):
    """A patch cannot be applied.

    Attributes:
        status_code: Of the HTTP answer.
        reason: Kubernetes' word for it; "" if there is none.
        message: For people.
        details: Of the Status object; None if it has none.
    """

    def __init__(
        self, status_code: int, reason: str, message: str, details: Plain | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.reason = reason
        self.message = message
        self.details = details


def bad_patch(message: str) -> PatchError:
    """Return the error for a patch that cannot be read."""
    return PatchError(400, "BadRequest", message)


def failed_patch(message: str) -> PatchError:
    """Return the error for a patch that upstream stumbles over."""
    return PatchError(500, "", message)


def rejected_patch() -> PatchError:
    """Return the error for a patch that does not apply to the object; it does not say why."""
    return PatchError(422, "Invalid", _REJECTED, {})


def unfit_patch(shown: str, fault: str) -> PatchError:
    """Return the error for a patch whose result is no object of the kind.

    Args:
        shown: The patch or the result, as text.
        fault: What is wrong with it.
    """
    cause = f"Invalid value: {json.dumps(shown, ensure_ascii=False)}: {fault}"
    details = {"causes": [{"reason": "FieldValueInvalid", "message": cause, "field": "patch"}]}
    return PatchError(422, "Invalid", f' "" is invalid: patch: {cause}', details)
