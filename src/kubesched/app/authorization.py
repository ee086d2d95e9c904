"""Authorizer decides who may request which path: fixed rules first, then the API server.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/authorization.go,
          staging/src/k8s.io/apiserver/pkg/authorization/path/path.go (v1.36)
Rejects:  everything that neither a fixed rule nor a SubjectAccessReview allows.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubesched.api.errors import SetupError
from kubesched.app.reviews import AccessError, AccessStatus, Reviews, UserInfo

_ALWAYS_ALLOWED_GROUP: Final = "system:masters"


class Authorizer:
    """Decides which user may request which path."""

    def __init__(self, open_paths: Sequence[str], reviews: Reviews[AccessStatus]) -> None:
        """Set up; everybody may request the open paths, where a trailing `*` matches any rest.

        Raises:
            SetupError: A path has a `*` that is not at its end.
        """
        for path in open_paths:
            if "*" in path[:-1]:
                raise SetupError(
                    "--authorization-always-allow-paths: only trailing * allowed in"
                    f' "{path.removeprefix("/")}"'
                )
        self._open_paths = tuple(path.removeprefix("/") for path in open_paths)
        self._reviews = reviews

    async def authorize(self, user: UserInfo, verb: str, path: str) -> AccessStatus:
        """Return whether the user may request the path with a verb, such as `get`.

        Raises:
            AccessError: The review failed, or both allows and denies.
        """
        if _ALWAYS_ALLOWED_GROUP in user.groups or self._is_open(path.removeprefix("/")):
            return AccessStatus(allowed=True)
        access = await self._reviews.ask(_spec(user, verb, path))
        if access.denied and access.allowed:
            raise AccessError("webhook subject access review returned both allow and deny response")
        return access

    def _is_open(self, path: str) -> bool:
        return any(
            path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
            for pattern in self._open_paths
        )


def _spec(user: UserInfo, verb: str, path: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"nonResourceAttributes": {"path": path, "verb": verb}}
    known = {"user": user.username, "groups": user.groups, "extra": user.extra, "uid": user.uid}
    return spec | {name: value for name, value in known.items() if value}
