"""Reviews: who somebody is, and what somebody may do.

Upstream: pkg/registry/{authentication,authorization}, pkg/apis/authorization/validation (v1.36)
Rejects:  questions about nobody, or about neither a resource nor a path.
Differs:  a review of all rules of a user is answered with none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.apiserver.authorization import Attributes, decide
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.request import User
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import cause, invalid

_ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


class Reviewer:
    """Answers reviews from the users and the rules of the server."""

    def __init__(self, users: Mapping[str, User], timestamp: Callable[[], str]) -> None:
        """Take what is known.

        Args:
            users: By token.
            timestamp: Returns the present.
        """
        self._users = users
        self._timestamp = timestamp

    def review(self, resource: Resource, user: User, asked: Plain) -> Plain:
        """Return a review with its answer.

        Raises:
            StatusError: It asks nothing, or about nobody.
        """
        answered: Plain = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": dict(asked.get("metadata") or {}),
        }
        spec = asked.get("spec") or {}
        if resource.plural == "selfsubjectreviews":
            answered["metadata"]["creationTimestamp"] = self._timestamp()
            return {**answered, "status": {"userInfo": _info(user)}}
        answered["spec"] = spec
        if resource.plural == "tokenreviews":
            return {**answered, "status": self._token_status(spec)}
        if resource.plural == "selfsubjectrulesreviews":
            rules = {"resourceRules": [], "nonResourceRules": [], "incomplete": True}
            return {**answered, "status": rules}
        is_self = resource.plural == "selfsubjectaccessreviews"
        _check_access(resource, spec, is_self=is_self)
        return {**answered, "status": _access_status(user if is_self else _user_of(spec), spec)}

    def _token_status(self, spec: Plain) -> Plain:
        user = self._users.get(spec.get("token", ""))
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": _info(user)}


def _info(user: User) -> Plain:
    info: Plain = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    return info


def _user_of(spec: Plain) -> User:
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))


def _check_access(resource: Resource, spec: Plain, *, is_self: bool) -> None:
    faults = []
    about = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name)]
    if not about:
        message = f"Invalid value: null: {_ONE_OF}"
        faults.append(cause("FieldValueInvalid", "spec.resourceAttributes", message))
    elif len(about) > 1:
        message = f'Invalid value: "": cannot be specified in combination with {about[0]}'
        faults.append(cause("FieldValueInvalid", "spec.nonResourceAttributes", message))
    if not is_self and not spec.get("user") and not spec.get("groups"):
        message = 'Invalid value: "": at least one of user or group must be specified'
        faults.append(cause("FieldValueInvalid", "spec.user", message))
    if faults:
        raise invalid(resource.group, "", "", faults)


def _access_status(user: User, spec: Plain) -> Plain:
    about = spec.get("resourceAttributes")
    if about:
        wanted = Attributes(
            user,
            about.get("verb", ""),
            about.get("group", ""),
            about.get("resource", ""),
            about.get("subresource", ""),
            about.get("namespace", ""),
            about.get("name", ""),
        )
    else:
        path = spec["nonResourceAttributes"]
        wanted = Attributes(user, path.get("verb", ""), path=path.get("path", ""))
    decision = decide(wanted)
    status: Plain = {"allowed": decision.is_allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status
