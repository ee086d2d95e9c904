"""Who may do what: fixed rules for the users that a scheduler's stage needs.

Upstream: plugin/pkg/auth/authorizer/rbac (bootstrappolicy, v1.36)
Differs:  the rules are those of the default roles; roles that are stored give nobody anything,
          since the stage has no users but those it is started with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubesched.apiserver.field_errors import FieldErrors, invalid_kind
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.request import Request, Target, User
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, details_of

_MASTERS: Final = "system:masters"
_AUTHENTICATED: Final = "system:authenticated"
SCHEDULER: Final = "system:kube-scheduler"


class Attributes(msgspec.Struct, frozen=True):
    """What somebody wants to do.

    Attributes:
        user: Who.
        verb: Such as `get`.
        group: Of the resource.
        resource: Its plural name; "" if a path is asked for.
        subresource: "" for the object itself.
        namespace: "" for none or all.
        name: "" for none in particular.
        path: Where no resource is asked for.
    """

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class _Rule(NamedTuple):
    """Verbs that are allowed on resources, perhaps only on objects of some names."""

    verbs: frozenset[str]
    resources: frozenset[str]
    names: tuple[str, ...] = ()


def _rule(verbs: str, resources: str, *names: str) -> _Rule:
    return _Rule(frozenset(verbs.split()), frozenset(resources.split()), names)


class _Grant(NamedTuple):
    """Rules that one binding gives.

    Attributes:
        binding: As upstream names it in the reason, with its kind.
        role: The same.
        rules: What may be done.
        namespace: Where; "" for everywhere.
    """

    binding: str
    role: str
    rules: tuple[_Rule, ...]
    namespace: str = ""


_READ: Final = "get list watch"
_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_LEASES: Final = "leases.coordination.k8s.io"
_CANDIDATES: Final = "leasecandidates.coordination.k8s.io"
_SCHEDULER_GRANTS: Final = (
    _Grant(
        'ClusterRoleBinding "system:kube-scheduler"',
        'ClusterRole "system:kube-scheduler"',
        (
            _rule("create patch update", "events events.events.k8s.io"),
            _rule("create", _LEASES),
            _rule("get list update watch", _LEASES, "kube-scheduler"),
            _rule(f"create delete deletecollection {_READ} update patch", _CANDIDATES),
            _rule(_READ, "nodes replicationcontrollers services namespaces"),
            _rule(f"delete {_READ}", "pods"),
            _rule("create", "bindings pods/binding"),
            _rule("update patch", "pods/status"),
            _rule("update", "pods/finalizers"),
            _rule(_READ, "replicasets.apps replicasets.extensions statefulsets.apps"),
            _rule(_READ, "poddisruptionbudgets.policy persistentvolumeclaims persistentvolumes"),
            _rule("create", "tokenreviews.authentication.k8s.io"),
            _rule("create", "subjectaccessreviews.authorization.k8s.io"),
            _rule(_READ, "csinodes.storage.k8s.io csidrivers.storage.k8s.io"),
            _rule(_READ, "csistoragecapacities.storage.k8s.io volumeattachments.storage.k8s.io"),
            _rule(_READ, "deviceclasses.resource.k8s.io resourceslices.resource.k8s.io"),
            _rule(_READ, "devicetaintrules.resource.k8s.io"),
            _rule(f"{_READ} update patch", f"{_CLAIMS} {_CLAIMS}/status"),
            _rule("create delete", _CLAIMS),
            _rule("update patch", f"{_CLAIMS}/binding"),
            _rule(_READ, "podgroups.scheduling.k8s.io workloads.scheduling.k8s.io"),
            _rule("update patch", "podgroups.scheduling.k8s.io/status"),
        ),
    ),
    _Grant(
        'ClusterRoleBinding "system:volume-scheduler"',
        'ClusterRole "system:volume-scheduler"',
        (
            _rule(f"{_READ} update patch", "persistentvolumes persistentvolumeclaims"),
            _rule(_READ, "storageclasses.storage.k8s.io"),
        ),
    ),
    _Grant(
        'RoleBinding "system::extension-apiserver-authentication-reader/kube-system"',
        'Role "extension-apiserver-authentication-reader"',
        (_rule(_READ, "configmaps", "extension-apiserver-authentication"),),
        "kube-system",
    ),
    _Grant(
        'RoleBinding "system::leader-locking-kube-scheduler/kube-system"',
        'Role "system::leader-locking-kube-scheduler"',
        (_rule("create get list update watch", f"{_LEASES} {_CANDIDATES}"),),
        "kube-system",
    ),
)
_SELF_REVIEWS: Final = (
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
)
_PUBLIC_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY_PATHS: Final = ("/api", "/apis", "/openapi")


class Decision(msgspec.Struct, frozen=True):
    """Whether somebody may, and which rule says so; "" if it needs no saying."""

    is_allowed: bool
    reason: str = ""


_NO: Final = Decision(is_allowed=False)
_YES: Final = Decision(is_allowed=True)


def attributes_of(request: Request, target: Target | None) -> Attributes:
    """Return what a request asks permission for."""
    if target is None:
        return Attributes(request.user, request.method.lower(), path=request.path)
    return Attributes(
        request.user,
        target.verb,
        target.group,
        target.plural,
        target.subresource,
        target.namespace,
        target.name,
    )


def impersonation(user: User, name: str) -> Attributes:
    """Return what somebody asks permission for who speaks for another user."""
    return Attributes(user, "impersonate", resource="users", name=name)


def decide(wanted: Attributes) -> Decision:
    """Return whether somebody may do something."""
    if _MASTERS in wanted.user.groups:
        return _YES
    if not wanted.resource:
        return _decide_path(wanted)
    if _is_self_review(wanted):
        return Decision(
            is_allowed=True,
            reason='RBAC: allowed by ClusterRoleBinding "system:basic-user" of ClusterRole '
            f'"system:basic-user" to Group "{_AUTHENTICATED}"',
        )
    if wanted.user.name == SCHEDULER:
        return _decide_by(_SCHEDULER_GRANTS, wanted)
    return _NO


def _is_self_review(wanted: Attributes) -> bool:
    return (
        wanted.verb == "create"
        and (wanted.group, wanted.resource) in _SELF_REVIEWS
        and (_AUTHENTICATED in wanted.user.groups)
    )


def _decide_path(wanted: Attributes) -> Decision:
    if wanted.verb not in {"get", "head"}:
        return _NO
    if wanted.path in _PUBLIC_PATHS:
        return _YES
    first = "/" + wanted.path.removeprefix("/").partition("/")[0]
    return _YES if first in _DISCOVERY_PATHS and _AUTHENTICATED in wanted.user.groups else _NO


def _decide_by(grants: Sequence[_Grant], wanted: Attributes) -> Decision:
    for grant in grants:
        if grant.namespace not in {"", wanted.namespace}:
            continue
        if any(_matches(rule, wanted) for rule in grant.rules):
            reason = (
                f'RBAC: allowed by {grant.binding} of {grant.role} to User "{wanted.user.name}"'
            )
            return Decision(is_allowed=True, reason=reason)
    return _NO


def _matches(rule: _Rule, wanted: Attributes) -> bool:
    resource = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    if wanted.subresource:
        resource = f"{resource}/{wanted.subresource}"
    return (
        wanted.verb in rule.verbs
        and resource in rule.resources
        and (not rule.names or wanted.name in rule.names)
    )


def refusal(wanted: Attributes) -> StatusError:
    """Return the error for somebody who may not."""
    user = wanted.user.name
    if not wanted.resource:
        message = f'forbidden: User "{user}" cannot {wanted.verb} path "{wanted.path}"'
        return StatusError(403, "Forbidden", message, {})
    resource = wanted.resource
    if wanted.subresource:
        resource = f"{resource}/{wanted.subresource}"
    place = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    qualified = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    subject = f'{qualified} "{wanted.name}"' if wanted.name else qualified
    message = (
        f'{subject} is forbidden: User "{user}" cannot {wanted.verb} resource "{resource}" '
        f'in API group "{wanted.group}" {place}'
    )
    return StatusError(
        403, "Forbidden", message, details_of(wanted.group, wanted.resource, wanted.name)
    )


# Reviews: who somebody is, and what somebody may do.

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
    errors = FieldErrors()
    about = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name)]
    if not about:
        errors.invalid("spec.resourceAttributes", None, _ONE_OF)
    elif len(about) > 1:
        detail = f"cannot be specified in combination with {about[0]}"
        errors.invalid("spec.nonResourceAttributes", "", detail)
    if not is_self and not spec.get("user") and not spec.get("groups"):
        errors.invalid("spec.user", "", "at least one of user or group must be specified")
    if errors:
        raise invalid_kind(resource.group, "", "", errors)


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
