"""Tokens of users, authorization by the stored RBAC roles and bindings, and reviews of both.

Upstream: plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation,
          pkg/registry/resource/utils.go, pkg/registry/core/serviceaccount/storage/token.go (v1.36)
Reads:    ClusterRoleBinding, ClusterRole, RoleBinding and Role objects
Differs:  a refusal to grant rights lists actions, not rules. Tokens of service accounts are random
          texts that end with the server; audiences and bound objects do not matter. Drivers need no
          right of their own to write `status.devices` of a ResourceClaim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Final, NamedTuple

import msgspec

from kubesched.api.times import second_time
from kubesched.api.well_known import RBAC_GROUP
from kubesched.apiserver.formats import between
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.request import ANONYMOUS, ApiRequest, Target, User
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import (
    FieldErrors,
    StatusError,
    details_of,
    forbidden,
    invalid_kind,
    not_found,
)
from kubesched.apiserver.stored_object import StoredObjects
from kubesched.apiserver.times import Clock, after

_MASTERS: Final = "system:masters"
_AUTHENTICATED: Final = "system:authenticated"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
KINDS: Final = tuple(
    f"{plural}.{RBAC_GROUP}"
    for plural in ("clusterrolebindings", "clusterroles", "rolebindings", "roles")
)
"""Where roles and bindings are stored."""
# An aggregated role may get any rules later.
_EVERYTHING: Final[tuple[Plain, ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_REMEMBERED_MAX: Final = 1000
SCHEDULER: Final = "system:kube-scheduler"


class Attributes(msgspec.Struct, frozen=True):
    """An action that a user requests: on a resource, by its plural name, or on another path.

    The namespace is "" for none or all, the name for none in particular.
    """

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        """Return verb and resource, or verb and path, such as `get pods/log`."""
        resource = "/".join(filter(None, (self.resource, self.subresource)))
        qualified = f"{resource}.{self.group}" if self.group else resource
        return " ".join(filter(None, (self.verb, qualified or self.path, self.name)))


class Decision(msgspec.Struct, frozen=True):
    """Whether an action is allowed, and by which binding, or else which roles are missing."""

    is_allowed: bool
    reason: str = ""


class _Grant(NamedTuple):
    """The rules that one binding grants a user, None if its role is missing, and why."""

    rules: list[Plain] | None
    reason: str


class StoredRoles:
    """Decides by the roles that are stored."""

    def __init__(self, lookup: StoredObjects, version: Callable[[], object] = object) -> None:
        """Set up; `version` returns another value after each change of one of `KINDS`."""
        self._lookup = lookup
        self._version = version
        self._seen: object = None
        self._known: dict[tuple[User, str], list[_Grant]] = {}

    def decide(self, wanted: Attributes) -> Decision:
        """Return whether an action is allowed."""
        if _MASTERS in wanted.user.groups:
            return Decision(is_allowed=True)
        missing = []
        for rules, reason in self._remembered(wanted.user, wanted.namespace):
            if rules is None:
                missing.append(reason)
            elif any(_allows(rule, wanted) for rule in rules):
                return Decision(is_allowed=True, reason=f"RBAC: {reason}")
        reasons = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
        return Decision(is_allowed=False, reason=f"RBAC: {reasons}" if missing else "")

    def check(self, wanted: Attributes) -> None:
        """Raise StatusError if an action is not allowed."""
        decision = self.decide(wanted)
        if not decision.is_allowed:
            raise refusal(wanted, decision.reason)

    def check_grants(self, user: User, resource: Resource, old: Plain | None, new: Plain) -> None:
        """Raise StatusError if a role or a binding grants rights that its writer does not have.

        The verb `escalate` on a role allows any rules, `bind` on a role any binding of it.
        """
        is_binding = resource.kind.endswith("Binding")
        fields = ("roleRef", "subjects") if is_binding else ("rules", "aggregationRule")
        is_same = old is not None and all(old.get(name) == new.get(name) for name in fields)
        if resource.group != RBAC_GROUP or is_same:
            return
        namespace, name = new["metadata"].get("namespace", ""), new["metadata"].get("name", "")
        verb, kinds, role_name, role = "escalate", resource.plural, name, new
        if is_binding:
            verb, kinds = "bind", f"{new['roleRef']['kind'].lower()}s"
            role_name = new["roleRef"]["name"]
        wanted = Attributes(user, verb, RBAC_GROUP, kinds, "", namespace, role_name)
        if self.decide(wanted).is_allowed:
            return
        if is_binding:
            space = namespace if kinds == "roles" else ""
            found = self._lookup.get(f"{kinds}.{RBAC_GROUP}", space, role_name)
            if found is None:
                raise not_found(Resource(kinds, "", RBAC_GROUP), role_name)
            role = found
        rules = [*(role.get("rules") or ()), *(_EVERYTHING if role.get("aggregationRule") else ())]
        actions = [one for rule in rules for one in _actions(rule, user, namespace)]
        missing = dict.fromkeys(str(one) for one in actions if not self.decide(one).is_allowed)
        if missing:
            why = (
                f'user "{user.name}" cannot grant rights that it does not have: '
                f"{', '.join(missing)}; it needs these rights, or the verb {verb} on {kinds}"
            )
            raise forbidden(resource, name, why)

    def check_claim(self, user: User, verb: str, old: Plain, new: Plain) -> None:
        """Raise StatusError if a user binds or frees a ResourceClaim and may not do that."""
        before, after = (one.get("status") or {} for one in (old, new))
        is_bound = any(
            before.get(name) != after.get(name) for name in ("allocation", "reservedFor")
        )
        wanted = Attributes(user, verb, "resource.k8s.io", "resourceclaims", "binding")
        if is_bound and not self.decide(wanted).is_allowed:
            errors = FieldErrors()
            errors.forbidden("status.allocation", f'"{user.name}" lacks the right to {wanted}')
            raise invalid_kind(wanted.group, "ResourceClaim", new["metadata"]["name"], errors)

    def rules(self, user: User, namespace: str) -> list[Plain]:
        """Return all rules that apply to a user in a namespace."""
        return [rule for rules, _ in self._grants(user, namespace) for rule in rules or ()]

    def _remembered(self, user: User, namespace: str) -> list[_Grant]:
        version = self._version()
        if version != self._seen or len(self._known) > _REMEMBERED_MAX:
            self._seen = version
            self._known.clear()
        key = (user, namespace)
        if key not in self._known:
            self._known[key] = list(self._grants(user, namespace))
        return self._known[key]

    def _grants(self, user: User, namespace: str) -> Iterator[_Grant]:
        for kind, space in (("ClusterRoleBinding", ""), ("RoleBinding", namespace)):
            if kind == "RoleBinding" and not space:
                continue
            for binding in self._lookup.items(f"{kind.lower()}s.{RBAC_GROUP}", space):
                subject = next(
                    (one for one in binding.get("subjects") or () if _includes(one, user, space)),
                    None,
                )
                if subject is not None:
                    yield self._grant(kind, binding, subject, space)

    def _grant(self, kind: str, binding: Plain, subject: Plain, namespace: str) -> _Grant:
        role_kind, role_name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        space = namespace if role_kind == "Role" else ""
        role = self._lookup.get(f"{role_kind.lower()}s.{RBAC_GROUP}", space, role_name)
        if role is None:
            return _Grant(None, f'{role_kind.lower()}.{RBAC_GROUP} "{role_name}" not found')
        place = f"/{namespace}" if namespace else ""
        name, who = binding["metadata"]["name"], subject["name"]
        if subject["kind"] == "ServiceAccount":
            who = f"{who}/{subject.get('namespace') or namespace}"
        reason = (
            f'allowed by {kind} "{name}{place}" of {role_kind} "{role_name}" '
            f'to {subject["kind"]} "{who}"'
        )
        return _Grant(role.get("rules") or [], reason)


def _includes(subject: Plain, user: User, namespace: str) -> bool:
    """Return whether a subject of a binding, in a namespace or in none, includes a user."""
    kind, name = subject["kind"], subject["name"]
    if kind == "ServiceAccount":
        space = subject.get("namespace") or namespace
        return user.name == f"{_SERVICE_ACCOUNT}{space}:{name}"
    return bool(name in user.groups if kind == "Group" else name == user.name)


def _allows(rule: Plain, wanted: Attributes) -> bool:
    if not _has(rule, "verbs", wanted.verb):
        return False
    if not wanted.resource:
        urls = rule.get("nonResourceURLs") or ()
        return any(
            wanted.path.startswith(url[:-1]) if url.endswith("*") else wanted.path == url
            for url in urls
        )
    resources = [wanted.resource]
    if wanted.subresource:
        resources = [f"{one}/{wanted.subresource}" for one in (wanted.resource, "*")]
    names = rule.get("resourceNames")
    return (
        _has(rule, "apiGroups", wanted.group)
        and _has(rule, "resources", *resources)
        and (not names or wanted.name in names)
    )


def _actions(rule: Plain, user: User, namespace: str) -> Iterator[Attributes]:
    for verb in rule.get("verbs") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield Attributes(user, verb, path=url)
        for group, resource, name in product(
            rule.get("apiGroups") or (),
            rule.get("resources") or (),
            rule.get("resourceNames") or ("",),
        ):
            plural, _, subresource = resource.partition("/")
            yield Attributes(user, verb, group, plural, subresource, namespace, name)


def _has(rule: Plain, field: str, *words: str) -> bool:
    """Return whether a field of a rule lists one of the words, or everything."""
    return not {"*", *words}.isdisjoint(rule.get(field) or ())


def attributes_of(request: ApiRequest, target: Target | None) -> Attributes:
    """Return the action that a request needs permission for."""
    if target is None:
        return Attributes(request.user, request.method.lower(), path=request.path)
    names = target.plural, target.subresource, target.namespace, target.name
    return Attributes(request.user, target.verb, target.group, *names)


def impersonated(headers: Mapping[str, str], user: User, roles: StoredRoles) -> User:
    """Return the user that a request impersonates, or the sender if it impersonates nobody.

    Names of headers are in lower case. Raises StatusError if `roles` do not allow it.
    """
    name, uid = headers.get("impersonate-user", ""), headers.get("impersonate-uid", "")
    groups = [one.strip() for one in headers.get("impersonate-group", "").split(",") if one]
    if not name:
        return user
    asked = Attributes(user, "impersonate", resource="users", name=name)
    space, _, own = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if name.startswith(_SERVICE_ACCOUNT) and own:
        asked = Attributes(
            user, "impersonate", resource="serviceaccounts", namespace=space, name=own
        )
        groups = groups or [*_groups_of_account(space)]
    roles.check(asked)
    for group in groups if "impersonate-group" in headers else ():
        roles.check(Attributes(user, "impersonate", resource="groups", name=group))
    if uid:
        roles.check(Attributes(user, "impersonate", "authentication.k8s.io", "uids", name=uid))
    [unauthenticated] = ANONYMOUS.groups
    usual = unauthenticated if name == ANONYMOUS.name else _AUTHENTICATED
    if _AUTHENTICATED not in groups and unauthenticated not in groups:
        groups.append(usual)
    return User(name, tuple(groups), uid)


def refusal(wanted: Attributes, reason: str = "") -> StatusError:
    """Return the error for an action that is not allowed."""
    user, why = wanted.user.name, f": {reason}" if reason else ""
    if not wanted.resource:
        message = f'forbidden: User "{user}" cannot {wanted.verb} path "{wanted.path}"{why}'
        return StatusError(403, "Forbidden", message, {})
    resource = "/".join(filter(None, (wanted.resource, wanted.subresource)))
    place = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    qualified = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    subject = f'{qualified} "{wanted.name}"' if wanted.name else qualified
    message = (
        f'{subject} is forbidden: User "{user}" cannot {wanted.verb} resource "{resource}" '
        f'in API group "{wanted.group}" {place}{why}'
    )
    return StatusError(
        403, "Forbidden", message, details_of(wanted.group, wanted.resource, wanted.name)
    )


# Tokens.

_SECONDS_MIN: Final = 600
_SECONDS_MAX: Final = 2**32


class _AccountToken(NamedTuple):
    namespace: str
    name: str
    user: User
    end: datetime


class Tokens:
    """The tokens that the server knows: those it starts with, and those of service accounts."""

    def __init__(self, users: Mapping[str, User], lookup: StoredObjects, clock: Clock) -> None:
        """Set up; users are by token."""
        self._users = users
        self._lookup = lookup
        self.clock = clock
        self._of_accounts: dict[str, _AccountToken] = {}

    def user_of(self, token: str) -> User | None:
        """Return the user of a token; None if it is unknown or expired, or its account is gone."""
        found = self._of_accounts.get(token)
        if found is None:
            return self._users.get(token)
        account = self._lookup.get("serviceaccounts", found.namespace, found.name)
        is_there = account is not None and account["metadata"]["uid"] == found.user.uid
        return found.user if is_there and self.clock.now() < found.end else None

    def issue(self, account: Plain, asked: Plain) -> Plain:
        """Return a TokenRequest with a token for an account; raises StatusError if refused."""
        spec, metadata = asked["spec"], account["metadata"]
        seconds, errors = spec["expirationSeconds"], FieldErrors()
        if not _SECONDS_MIN <= seconds <= _SECONDS_MAX:
            detail = between(_SECONDS_MIN, _SECONDS_MAX)
            errors.invalid("spec.expirationSeconds", seconds, detail)
            raise invalid_kind("authentication.k8s.io", "TokenRequest", "", errors)
        now = self.clock.now()
        namespace, name = metadata["namespace"], metadata["name"]
        groups = (*_groups_of_account(namespace), _AUTHENTICATED)
        user = User(f"{_SERVICE_ACCOUNT}{namespace}:{name}", groups, metadata["uid"])
        token, end = self.clock.secret(), after(now, seconds)
        valid = {text: one for text, one in self._of_accounts.items() if now < one.end}
        self._of_accounts = {**valid, token: _AccountToken(namespace, name, user, end)}
        kept = {"namespace": namespace, "name": name, "creationTimestamp": second_time(now)}
        return {
            **asked,
            "metadata": {**asked["metadata"], **kept},
            "spec": {**spec, "audiences": spec["audiences"] or ["https://kubernetes.default.svc"]},
            "status": {"token": token, "expirationTimestamp": second_time(end)},
        }


def _groups_of_account(namespace: str) -> tuple[str, str]:
    return _SERVICE_ACCOUNTS, f"{_SERVICE_ACCOUNTS}:{namespace}"


# Reviews of users and of access.

_ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def review(
    tokens: Tokens, roles: StoredRoles, resource: Resource, user: User, asked: Plain
) -> Plain:
    """Return a review with its answer; raises StatusError without a question or a user."""
    spec, metadata = asked.get("spec") or {}, dict(asked.get("metadata") or {})
    answered = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    match resource.plural:
        case "selfsubjectreviews":
            metadata["creationTimestamp"] = tokens.clock.timestamp()
            return {**answered, "status": {"userInfo": _info(user)}}
        case "tokenreviews":
            status = _token_status(tokens.user_of(spec.get("token", "")))
        case "selfsubjectrulesreviews":
            status = _rules_status(roles.rules(user, spec.get("namespace", "")))
        case "selfsubjectaccessreviews":
            status = _access_status(roles, resource, user, spec)
        case _:
            status = _access_status(roles, resource, None, spec)
    return {**answered, "spec": spec, "status": status}


def _token_status(user: User | None) -> Plain:
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _info(user)}


def _rules_status(rules: list[Plain]) -> Plain:
    of_paths = [rule for rule in rules if rule.get("nonResourceURLs")]
    return {
        "resourceRules": [rule for rule in rules if rule not in of_paths],
        "nonResourceRules": of_paths,
        "incomplete": False,
    }


def _access_status(roles: StoredRoles, resource: Resource, user: User | None, spec: Plain) -> Plain:
    """Return whether a user, or that of the review, may do what it asks about."""
    given = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name)]
    errors = FieldErrors()
    if not given:
        errors.invalid("spec.resourceAttributes", None, _ONE_OF)
    elif len(given) > 1:
        detail = f"cannot be specified in combination with {given[0]}"
        errors.invalid("spec.nonResourceAttributes", "", detail)
    if user is None and not spec.get("user") and not spec.get("groups"):
        errors.invalid("spec.user", "", "at least one of user or group must be specified")
    if errors:
        raise invalid_kind(resource.group, "", "", errors)
    who = user or User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
    names = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
    about = [spec[given[0]].get(name, "") for name in names]
    decision = roles.decide(Attributes(who, *about))
    reason = {"reason": decision.reason} if decision.reason else {}
    return {"allowed": decision.is_allowed, **reason}


def _info(user: User) -> Plain:
    info: Plain = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    return info
