"""Requests, their targets and options, and answers; independent of HTTP.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/{request,handlers} (RequestInfo, RequestScope),
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1 (CreateOptions, UpdateOptions,
          PatchOptions, validation, v1.36)
Rejects:  unknown validation modes, partial dry runs, managers with unprintable names.
Differs:  the parameter `timeout` is not read.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubesched.api.errors import ApiError
from kubesched.api.media_types import JSON
from kubesched.api.requirements import parse_int64
from kubesched.apiserver.plain import encode
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import FieldErrors, bad_request, failure, invalid_kind
from kubesched.cluster.store import Key

_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_BODY_METHODS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class User(msgspec.Struct, frozen=True):
    """The user of a request; members of `system:masters` may do everything."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


class ApiRequest(msgspec.Struct, frozen=True):
    """One request.

    Attributes:
        query: Of each parameter, all values.
        headers: By name in lower case.
        warnings: Texts for the user, in the order in which they were added.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: User = ANONYMOUS
    warnings: list[str] = []

    def parameter(self, name: str) -> str:
        """Return the first value of a parameter, "" if it is missing."""
        values = self.query.get(name)
        return values[0] if values else ""

    def number(self, name: str) -> int | None:
        """Return a parameter that is an int64, None if it is missing; raises StatusError."""
        text = self.parameter(name)
        number = parse_int64(text)
        if text and number is None:
            problem = "value out of range" if _NUMBER.fullmatch(text) else "invalid syntax"
            raise bad_request(f'strconv.ParseInt: parsing "{text}": {problem}')
        return number

    def flag(self, name: str) -> bool:
        """Return whether a parameter is given and is neither `false` nor `0`."""
        values = self.query.get(name)
        return bool(values and values[0].lower() not in ("0", "false"))

    @property
    def accept(self) -> str:
        """The media types that the client takes; "" for any."""
        return self.headers.get("accept", "")

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters; "" if not given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def manager(self) -> str:
        """The manager of the fields that this request writes."""
        named = self.parameter("fieldManager")
        return named or self.headers.get("user-agent", "").partition("/")[0] or "unknown"


class Response(msgspec.Struct):
    """One answer: `body` is all of it, or `stream` yields its parts as they come."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    stream: AsyncGenerator[bytes] | None = None


def json_response(status: int, value: object) -> Response:
    """Return an answer with a JSON body."""
    return Response(status, encode(value))


def refused(error: ApiError) -> Response:
    """Return the answer of a refused request."""
    headers = {}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(int(error.retry_after_seconds))
    return Response(error.code, encode(failure(error)), headers=headers)


class Target(msgspec.Struct, frozen=True):
    """The target of a path under `/api` or `/apis`; parts that it does not have are "".

    Attributes:
        verb: What is to be done: `get`, `list`, `watch`, `create`, `deletecollection`, ...
        rest: Parts of the path behind the subresource.
        is_old_watch: Whether it goes through the older path `.../watch/...`.
    """

    verb: str
    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    is_old_watch: bool = False


def target_of(request: ApiRequest) -> Target | None:
    """Return what a path names, None for paths that name no resource."""
    parts: list[str] = [part for part in request.path.split("/") if part]
    if len(parts) < 3 or parts[0] not in {"api", "apis"}:
        return None
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    is_old_watch = rest[0] in {"watch", "proxy"} and len(rest) > 1
    if is_old_watch:
        del rest[0]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        # The subresources of a namespace are where other paths have resources.
        if len(rest) > 2 and rest[2] not in {"status", "finalize"}:
            rest = rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    verb = _verb(request, name, is_old_watch=is_old_watch)
    if verb in {"list", "watch"} and not name:
        name = _selected_name(request)
    return Target(
        verb, group, version, plural, namespace, name, subresource, tuple(rest[3:]), is_old_watch
    )


def _verb(request: ApiRequest, name: str, *, is_old_watch: bool) -> str:
    if request.method in {"GET", "HEAD"}:
        if is_old_watch:
            return "watch"
        if name:
            return "get"
        return "watch" if request.flag("watch") else "list"
    verb = _BODY_METHODS.get(request.method, request.method.lower())
    return "deletecollection" if verb == "delete" and not name else verb


def _selected_name(request: ApiRequest) -> str:
    """Return the name that a field selector asks for, "" if none: permissions may be by name."""
    for term in request.parameter("fieldSelector").split(","):
        key, equals, value = term.partition("=")
        if equals and key == "metadata.name":
            return value.removeprefix("=")
    return ""


# Writes.

APPLY_TYPE: Final = "application/apply-patch+yaml"
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_MANAGER_MAX: Final = 128


class Operation(NamedTuple):
    """One request about a resource.

    The namespace is "" where there is none, and the name where only the object has it.
    """

    request: ApiRequest
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def kind(self) -> Resource:
        """What bodies are: the resource, or its subresource."""
        return self.resource.subresource(self.subresource) or self.resource

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        return Key(self.resource.storage_kind, self.namespace, self.name)

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is stored."""
        return "dryRun" in self.request.query

    @property
    def validation(self) -> str:
        """What happens to unknown fields: `Ignore`, `Strict` or `Warn`."""
        return self.request.parameter("fieldValidation") or "Warn"


def check_options(request: ApiRequest) -> None:
    """Raise StatusError if the options of a write are invalid."""
    verb = _BODY_METHODS.get(request.method, "delete")
    if verb != "delete" and (errors := _option_errors(request)):
        raise invalid_kind("meta.k8s.io", f"{verb.title()}Options", "", errors)


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
