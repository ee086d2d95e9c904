"""Lists: their options, and the objects that these select, in pages; watches have the same options.

Upstream: staging/src/k8s.io/apiserver/pkg/storage (SelectionPredicate), storage/cacher (GetList),
          etcd3/store.go, staging/src/k8s.io/apimachinery/pkg/fields,
          apis/meta/internalversion (ListOptions, validation), pkg/apis/*/*/conversion.go
          (AddFieldLabelConversionFunc), pkg/registry/*/*/strategy.go (v1.36)
Rejects:  with 400: malformed selectors and numbers, fields that a kind does not offer, continue
          tokens that this server did not issue; with 410: versions that are no longer kept; with
          422: options that exclude each other.
Differs:  a list with a limit of 1 that selects an object by its name may have a continue token.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from kubesched.api.errors import GoneError
from kubesched.api.json_syntax import JsonSyntaxError
from kubesched.api.requirements import (
    CompiledSelector,
    SelectorError,
    parse_field_selector,
    parse_selector,
)
from kubesched.apiserver.plain import Plain, decode, encode, get
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import (
    FieldErrors,
    StatusError,
    bad_request,
    expired,
    internal,
    invalid_kind,
)
from kubesched.apiserver.stored_object import StoredObject, sort_key
from kubesched.apiserver.values import ValueType
from kubesched.cluster.store import Store

# Selections.


class Selection(NamedTuple):
    """A predicate on objects of a resource; without `fields`, only on their labels."""

    resource: Resource
    labels: CompiledSelector
    fields: Callable[[Plain], bool] | None

    @property
    def is_everything(self) -> bool:
        """Whether all objects are selected."""
        return self.labels.is_empty and self.fields is None

    def matches(self, stored: StoredObject) -> bool:
        """Return whether an object is selected."""
        if not self.labels.matches(stored.plain["metadata"].get("labels") or {}):
            return False
        return self.fields is None or self.fields(stored.form(self.resource))


# Fields.

Getter: TypeAlias = Callable[[Plain], str]


def fields_selected(resource: Resource, text: str) -> Callable[[Plain], bool]:
    """Compile a field selector to a predicate; raises ApiError for fields that are not offered."""
    try:
        requirements = parse_field_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    getters = [(_getter(resource, one.field), one) for one in requirements]
    return lambda value: all((read(value) == one.value) is one.is_equal for read, one in getters)


def _getter(resource: Resource, field: str) -> Getter:
    """Return a function that reads a field as Go prints it; missing ones are empty, false or 0."""
    offered = resource.selectable
    is_for_all_kinds = field == "metadata.name" or (
        field == "metadata.namespace" and (resource.is_namespaced or not offered)
    )
    if not is_for_all_kinds and field not in offered:
        if offered or resource.definition:
            raise bad_request(f"field label not supported: {field}")
        raise bad_request(
            f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if field in _GETTERS:
        return _GETTERS[field]
    path = _RENAMED.get(field, field).split(".")
    zero = _zero(resource.type, path)

    def read(value: Plain) -> str:
        found = get(value, *path)
        found = zero if found is None else found
        return str(found).lower() if isinstance(found, bool) else str(found)

    return read


def _zero(value_type: ValueType | None, path: Sequence[str]) -> Any:
    for name in path:
        value_type = None if value_type is None else value_type.child(name)
    zero = None if value_type is None else value_type.zero()
    return "" if zero is None else zero


def _event_source(event: Plain) -> str:
    return str(get(event, "source", "component") or event.get("reportingComponent") or "")


_RENAMED: Final[Mapping[str, str]] = {
    "spec.host": "spec.nodeName",
    "status.successful": "status.succeeded",
}
_GETTERS: Final[Mapping[str, Getter]] = {
    "source": _event_source,
    # The API offers this field for selection, but its value is always empty.
    "status.podIPs": lambda _pod: "",
}


# Options.

EXACT: Final = "Exact"
NOT_OLDER_THAN: Final = "NotOlderThan"
_MATCH: Final = "resourceVersionMatch"
_VERSION: Final = re.compile(r"[0-9]+", re.ASCII)
_UINT64_MAX: Final = 2**64 - 1


class ListOptions(msgspec.Struct, frozen=True):
    """Options of a list or a watch.

    Attributes:
        resource_version: As it was sent; "" for the newest.
        match: `Exact` or `NotOlderThan`; "" if not given.
        limit: How many objects a page has; 0 for all.
        timeout_seconds: When a watch ends; None if the client does not care.
        sends_initial_events: Whether a watch starts with the existing objects; None if not given.
    """

    selection: Selection
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout_seconds: int | None = None
    allows_bookmarks: bool = False
    sends_initial_events: bool | None = None


def list_options(request: ApiRequest, resource: Resource, *, is_watch: bool) -> ListOptions:
    """Return the options of a request; raises StatusError if they are invalid.

    Only the first error is reported. Numbers are read first, then labels, then options that exclude
    each other, and fields last.
    """
    fields = request.parameter("fieldSelector")
    limit, timeout_seconds = request.number("limit"), request.number("timeoutSeconds")
    try:
        labels = parse_selector(request.parameter("labelSelector"))
    except SelectorError as error:
        raise bad_request(str(error)) from None
    if errors := _option_errors(request, is_watch=is_watch):
        raise invalid_kind("meta.k8s.io", "ListOptions", "", errors)
    selected = fields_selected(resource, fields) if fields else None
    is_initial_given = "sendInitialEvents" in request.query
    return ListOptions(
        selection=Selection(resource, labels, selected),
        resource_version=request.parameter("resourceVersion"),
        match=request.parameter(_MATCH),
        limit=max(0, limit or 0),
        continue_token=request.parameter("continue"),
        timeout_seconds=timeout_seconds,
        allows_bookmarks=request.flag("allowWatchBookmarks"),
        sends_initial_events=request.flag("sendInitialEvents") if is_initial_given else None,
    )


def _option_errors(request: ApiRequest, *, is_watch: bool) -> FieldErrors:
    errors = FieldErrors()
    match, version = request.parameter(_MATCH), request.parameter("resourceVersion")
    is_initial_given = "sendInitialEvents" in request.query
    if is_initial_given and not is_watch:
        errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    elif is_initial_given and match != NOT_OLDER_THAN:
        errors.forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to {NOT_OLDER_THAN}")
    if not match:
        return errors
    if is_watch and not is_initial_given:
        detail = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
        errors.forbidden(_MATCH, detail)
    if not is_watch and not version:
        errors.forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided")
    if request.parameter("continue"):
        errors.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")
    if is_watch and match != NOT_OLDER_THAN:
        errors.not_supported(_MATCH, match, (NOT_OLDER_THAN,))
    elif match not in {EXACT, NOT_OLDER_THAN}:
        errors.not_supported(_MATCH, match, (EXACT, NOT_OLDER_THAN, ""))
    if not is_watch and match == EXACT and version == "0":
        errors.forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')
    return errors


def version_of_object(text: str) -> int:
    """Return the version in a text, 0 for none; raises StatusError unless it has 64 bits."""
    problem = ""
    if text and not _VERSION.fullmatch(text):
        problem = "invalid syntax"
    elif int(text or 0) > _UINT64_MAX:
        problem = "value out of range"
    if problem:
        raise internal(f'strconv.ParseUint: parsing "{text}": {problem}')
    return int(text or 0)


def exact_version(text: str) -> int:
    """Return the version of a get or a watch, 0 for any; raises StatusError if it is malformed."""
    try:
        return version_of_object(text)
    except StatusError as error:
        raise internal(f'resourceVersion: Invalid value: "{text}": {error}') from None


def list_version(text: str) -> int:
    """Return the version of a list, 0 for any; raises StatusError if it is malformed."""
    try:
        return exact_version(text)
    except StatusError as error:
        raise bad_request(f"invalid resource version: {error}") from None


def is_version(text: str) -> bool:
    """Return whether a text is the version of an object; neither "0" nor a word is."""
    try:
        return version_of_object(text) > 0
    except StatusError:
        return False


# Lists.

# How long a list waits for a version that has not come yet.
_WAIT_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.05
_TOO_OLD: Final = "The resourceVersion for the provided list is too old."


class ObjectList(msgspec.Struct, frozen=True):
    """A page of a list, and how many objects come after it; None if that is not known."""

    items: tuple[StoredObject, ...]
    version: int
    continue_token: str = ""
    remaining: int | None = None

    def metadata(self) -> Plain:
        """Return the list's metadata as it is sent."""
        metadata: Plain = {"resourceVersion": str(self.version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining:
            metadata["remainingItemCount"] = self.remaining
        return metadata


async def list_objects(
    store: Store[StoredObject], resource: Resource, namespace: str, options: ListOptions
) -> ObjectList:
    """Return a page of the objects of a resource, in all namespaces for "".

    Raises StatusError if the version is gone, or was not reached before the timeout.
    """
    version, limit, page = 0, options.limit, None
    if options.continue_token:
        page = page_of(options.continue_token)
        if options.resource_version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        version = 0 if page.version == ANY_VERSION else page.version
    else:
        wanted = list_version(options.resource_version)
        await _wait_for(store, wanted)
        if wanted and (options.match == EXACT or (limit and not options.match)):
            version = wanted
        elif options.resource_version:
            # As upstream: a list that need not be the newest comes from a cache without a limit.
            limit = 0
    kind, space = resource.storage_kind, namespace or None
    try:
        found = store.list_at(kind, version, space) if version else store.list(kind, space)
    except GoneError:
        raise too_old(page) if page else expired(_TOO_OLD) from None
    # Without a namespace, the order is by namespace, then name.
    ordered = sorted(found, key=sort_key)
    prefix = f"{namespace}/" if namespace else ""
    if page is not None:
        ordered = [one for one in ordered if sort_key(one) >= prefix + page.start]
    return _cut(ordered, prefix, version or store.version, options.selection, limit)


async def _wait_for(store: Store[StoredObject], version: int) -> None:
    waited = 0.0
    while store.version < version:
        if waited >= _WAIT_SECONDS:
            raise _too_large(version, store.version)
        await asyncio.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS


def _too_large(version: int, current: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _cut(
    ordered: list[StoredObject], prefix: str, version: int, selection: Selection, limit: int
) -> ObjectList:
    """Return the first page of a list whose keys have a prefix; with a limit of 0, all of it."""
    matching = (at for at, one in enumerate(ordered) if selection.matches(one))
    positions = list(islice(matching, limit or None))
    page = tuple(ordered[at] for at in positions)
    remaining = len(ordered) - positions[-1] - 1 if limit and len(page) == limit else 0
    if not remaining:
        return ObjectList(page, version)
    next_start = sort_key(page[-1]).removeprefix(prefix) + "\0"
    token = token_of(Page(version, next_start))
    return ObjectList(page, version, token, remaining if selection.is_everything else None)


# Pages.

_ENCODING: Final = "meta.k8s.io/v1"
# The version of a token that continues with the current objects.
ANY_VERSION: Final = -1
_PAGE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Page(msgspec.Struct, frozen=True):
    """Where a page begins: the version of its list, -1 for the newest, and its first key.

    The key is without the prefix that all keys of the list share.
    """

    version: int
    start: str


def token_of(page: Page) -> str:
    """Return the token of a page."""
    fields: dict[str, str | int] = {"v": _ENCODING, "rv": page.version, "start": page.start}
    return base64.urlsafe_b64encode(encode(fields)).decode().rstrip("=")


def page_of(token: str) -> Page:
    """Return the page of a token; raises StatusError if this server did not issue it."""
    padding = "=" * (-len(token) % 4)
    try:
        text = base64.b64decode(token + padding, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("illegal base64 data at input byte 0") from None
    try:
        fields = decode(text)
    except JsonSyntaxError as error:
        raise _malformed(str(error)) from None
    if not isinstance(fields, dict) or fields.get("v") != _ENCODING:
        raise _malformed("server does not recognize this encoded version")
    version, start = fields.get("rv"), fields.get("start")
    if not isinstance(version, int) or version == 0:
        raise _malformed(f"incorrect encoded start resourceVersion (version {_ENCODING})")
    if not isinstance(start, str) or not start:
        raise _malformed(f"encoded start key empty (version {_ENCODING})")
    return Page(version, start)


def _malformed(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def too_old(page: Page) -> StatusError:
    """Return the error for a page whose version is gone, with a token to continue with."""
    token = token_of(Page(ANY_VERSION, page.start))
    return expired(_PAGE_TOO_OLD, {"continue": token})
