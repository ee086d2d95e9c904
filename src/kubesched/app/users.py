"""UserInfo is an authenticated user: name, groups and extra fields.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/user, .../group (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"


class UserInfo(msgspec.Struct, frozen=True):
    """A user.

    Attributes:
        name: Such as `system:serviceaccount:monitoring:prometheus`.
        uid: "" if unknown.
        groups: In the authenticator's order.
        extra: Extra fields; each with its values.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANONYMOUS: Final = UserInfo("system:anonymous", groups=(UNAUTHENTICATED,))


def as_authenticated(user: UserInfo) -> UserInfo:
    """Return the user in the group system:authenticated, unless anonymous."""
    if user.name == ANONYMOUS.name or {AUTHENTICATED, UNAUTHENTICATED} & set(user.groups):
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))
