"""Access lets a request through to its answer: who asks, and may they?

Upstream: cmd/kube-scheduler/app/server.go, buildHandlerChain,
          staging/src/k8s.io/apiserver/pkg/endpoints/filters (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kubesched.app.authentication import Authenticator
from kubesched.app.authorization import AuthorizationError, Authorizer
from kubesched.app.http_exchange import HttpAnswer, HttpRequest
from kubesched.app.refusals import forbidden, internal_error, unauthorized
from kubesched.app.token_reviews import AuthenticationError
from kubesched.framework.structured_log import V4, write

log: Final = logging.getLogger(__name__)


class Access:
    """Stands before the endpoints."""

    def __init__(
        self,
        authenticator: Authenticator,
        authorizer: Authorizer,
        answer: Callable[[HttpRequest], HttpAnswer],
    ) -> None:
        """Set up.

        Args:
            authenticator: Says who asks.
            authorizer: Says whether they may.
            answer: Answers those who may.
        """
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._answer = answer

    async def handle(self, request: HttpRequest) -> HttpAnswer:
        """Return the answer, or the refusal."""
        try:
            user = await self._authenticator.authenticate(request)
        except AuthenticationError as error:
            write(log, logging.ERROR, "Unable to authenticate the request", err=str(error))
            return unauthorized(request)
        try:
            verdict = await self._authorizer.authorize(user, request)
        except AuthorizationError as error:
            return internal_error(request, str(error))
        if not verdict.is_allowed:
            write(log, V4, "Forbidden", URI=request.target, reason=verdict.reason)
            return forbidden(request, user.name, verdict.reason)
        return self._answer(request)
