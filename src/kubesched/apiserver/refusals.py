"""Refusals are answers that say why there is no better one.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from kubesched.api.errors import ApiError
from kubesched.apiserver.plain import encode
from kubesched.apiserver.request import Response
from kubesched.apiserver.status import failure


def refused(error: ApiError) -> Response:
    """Return the answer that says why a request was refused."""
    headers = {}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(int(error.retry_after_seconds))
    return Response(error.code, encode(failure(error)), headers=headers)
