"""ListOptions says what a list or a watch asks for.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion (ListOptions, validation,
          v1.36)
Rejects:  numbers that are none, selectors that do not parse, combinations that make no sense.
Differs:  nothing.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kubesched.api.requirements import SelectorError
from kubesched.api.selector_syntax import parse_selector
from kubesched.apiserver.field_errors import FieldErrors, invalid_kind
from kubesched.apiserver.request import Request
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.selection import Selection
from kubesched.apiserver.status import bad_request, internal

EXACT: Final = "Exact"
NOT_OLDER_THAN: Final = "NotOlderThan"
_MATCH: Final = "resourceVersionMatch"
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_VERSION: Final = re.compile(r"[0-9]+", re.ASCII)
_UINT64_MAX: Final = 2**64 - 1
_INT64_MAX: Final = 2**63 - 1


class ListOptions(msgspec.Struct, frozen=True):
    """What a list or a watch asks for.

    Attributes:
        selection: Which objects.
        resource_version: As it was sent; "" for the newest.
        match: How exact the version is meant; "" if it is not said.
        limit: How many objects a page has; 0 for all.
        continue_token: Where the page begins; "" for the first.
        timeout_seconds: When a watch ends; None if the client does not care.
        allows_bookmarks: Whether a watch may get bookmarks.
        sends_initial_events: Whether a watch shows first what is there; None if it is not said.
    """

    selection: Selection
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout_seconds: int | None = None
    allows_bookmarks: bool = False
    sends_initial_events: bool | None = None


def list_options(request: Request, resource: Resource, *, is_watch: bool) -> ListOptions:
    """Return what a request asks for.

    Raises:
        StatusError: It makes no sense.
    """
    timeout = request.parameter("timeoutSeconds")
    options = ListOptions(
        selection=_selection(request, resource),
        resource_version=request.parameter("resourceVersion"),
        match=request.parameter(_MATCH),
        limit=max(0, _number(request.parameter("limit") or "0")),
        continue_token=request.parameter("continue"),
        timeout_seconds=_number(timeout) if timeout else None,
        allows_bookmarks=request.flag("allowWatchBookmarks"),
        sends_initial_events=(
            request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
        ),
    )
    errors = _option_errors(options, is_watch=is_watch)
    if errors:
        raise invalid_kind("meta.k8s.io", "ListOptions", "", errors)
    return options


def _selection(request: Request, resource: Resource) -> Selection:
    labels = request.parameter("labelSelector")
    try:
        selector = parse_selector(labels) if labels else None
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return Selection.of(resource, selector, request.parameter("fieldSelector"))


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def _option_errors(options: ListOptions, *, is_watch: bool) -> FieldErrors:
    errors = FieldErrors()
    match, sends_initial = options.match, options.sends_initial_events
    if sends_initial is not None and not is_watch:
        errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    elif sends_initial is not None and match != NOT_OLDER_THAN:
        detail = f"sendInitialEvents requires setting {_MATCH} to {NOT_OLDER_THAN}"
        errors.forbidden(_MATCH, detail)
    if not match:
        return errors
    if is_watch and sends_initial is None:
        detail = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
        errors.forbidden(_MATCH, detail)
    if not is_watch and not options.resource_version:
        detail = f"{_MATCH} is forbidden unless resourceVersion is provided"
        errors.forbidden(_MATCH, detail)
    if options.continue_token:
        errors.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")
    if is_watch and match != NOT_OLDER_THAN:
        errors.not_supported(_MATCH, match, (NOT_OLDER_THAN,))
    elif match not in {EXACT, NOT_OLDER_THAN}:
        errors.not_supported(_MATCH, match, (EXACT, NOT_OLDER_THAN, ""))
    if not is_watch and match == EXACT and options.resource_version == "0":
        detail = f'{_MATCH} "exact" is forbidden for resourceVersion "0"'
        errors.forbidden(_MATCH, detail)
    return errors


def version_error(text: str) -> str | None:
    """Return what is wrong with a resource version, None if nothing is."""
    if not text or (_VERSION.fullmatch(text) and int(text) <= _UINT64_MAX):
        return None
    what = "value out of range" if _VERSION.fullmatch(text) else "invalid syntax"
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {what}'


def list_version(options: ListOptions) -> int:
    """Return the version that a list asks for; 0 for none in particular.

    Raises:
        StatusError: It is no number.
    """
    error = version_error(options.resource_version)
    if error is not None:
        raise bad_request(f"invalid resource version: {error}")
    return int(options.resource_version or "0")


def exact_version(text: str) -> int:
    """Return the version that a get or a watch asks for; 0 for none in particular.

    Raises:
        StatusError: It is no number.
    """
    error = version_error(text)
    if error is not None:
        raise internal(error)
    return int(text or "0")


def is_version(text: str) -> bool:
    """Whether an object that carries this has a version; neither "0" nor a word is one."""
    return _VERSION.fullmatch(text) is not None and 0 < int(text) <= _UINT64_MAX


def version_of_object(text: str) -> int:
    """Return the version that an object carries; 0 for none.

    Raises:
        StatusError: It is no number.
    """
    if text and not _VERSION.fullmatch(text):
        raise internal(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text or "0")
