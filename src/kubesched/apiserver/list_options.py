"""The options of lists and watches: selections by labels and fields, versions, limits.

Upstream: staging/src/k8s.io/apiserver/pkg/storage (SelectionPredicate),
          staging/src/k8s.io/apimachinery/pkg/fields, pkg/apis/*/*/conversion.go
          (AddFieldLabelConversionFunc), pkg/registry/*/*/strategy.go,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion (ListOptions, validation)
          (v1.36)
Rejects:  with 400: malformed selectors and numbers, fields that a kind does not offer; with 422:
          options that exclude each other.
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kubesched.api.integers import is_int64
from kubesched.api.requirements import CompiledSelector, SelectorError
from kubesched.api.selector_syntax import parse_field_selector, parse_selector
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import FieldErrors, bad_request, internal, invalid_kind
from kubesched.apiserver.stored_object import StoredObject
from kubesched.apiserver.values import ValueType

# Selections.


class Selection:
    """A predicate on objects of a resource, which may select everything."""

    def __init__(
        self,
        resource: Resource,
        labels: CompiledSelector | None = None,
        fields: Callable[[Plain], bool] | None = None,
    ) -> None:
        self._resource = resource
        self._labels = None if labels is None or labels.is_empty else labels
        self._fields = fields
        self.is_everything = self._labels is None and fields is None

    def matches(self, stored: StoredObject) -> bool:
        """Return whether an object is selected."""
        if self._labels is not None:
            labels = stored.plain["metadata"].get("labels") or {}
            if not self._labels.matches(labels):
                return False
        return self._fields is None or self._fields(stored.form(self._resource))


# Fields.

Getter: TypeAlias = Callable[[Plain], str]


def fields_selected(resource: Resource, text: str) -> Callable[[Plain], bool]:
    """Compile a field selector to a predicate on plain objects in the version of the resource.

    Raises:
        ApiError: The text is no selector, or names a field that the resource does not offer.
    """
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
        if offered:
            raise bad_request(f"field label not supported: {field}")
        raise bad_request(
            f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if field in _GETTERS:
        return _GETTERS[field]
    path = _RENAMED.get(field, field).split(".")
    zero = _zero(resource.type, path)

    def read(value: Plain) -> str:
        found = get(value, *path) or zero
        return str(found).lower() if isinstance(found, bool) else str(found)

    return read


def _zero(value_type: ValueType | None, path: Sequence[str]) -> Any:
    for name in path:
        value_type = None if value_type is None else value_type.child(name)
    return "" if value_type is None else value_type.zero()


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
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_VERSION: Final = re.compile(r"[0-9]+", re.ASCII)
_UINT64_MAX: Final = 2**64 - 1


class ListOptions(msgspec.Struct, frozen=True):
    """Options of a list or a watch.

    Attributes:
        selection: Which objects.
        resource_version: As it was sent; "" for the newest.
        match: `Exact` or `NotOlderThan`; "" if not given.
        limit: How many objects a page has; 0 for all.
        continue_token: Where the page begins; "" for the first.
        timeout_seconds: When a watch ends; None if the client does not care.
        allows_bookmarks: Whether a watch may get bookmarks.
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
    timeout, fields = request.parameter("timeoutSeconds"), request.parameter("fieldSelector")
    limit = max(0, _number(request.parameter("limit") or "0"))
    timeout_seconds = _number(timeout) if timeout else None
    labels = _labels_selected(request.parameter("labelSelector"))
    options = ListOptions(
        selection=Selection(resource, labels),
        resource_version=request.parameter("resourceVersion"),
        match=request.parameter(_MATCH),
        limit=limit,
        continue_token=request.parameter("continue"),
        timeout_seconds=timeout_seconds,
        allows_bookmarks=request.flag("allowWatchBookmarks"),
        sends_initial_events=(
            request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
        ),
    )
    errors = _option_errors(options, is_watch=is_watch)
    if errors:
        raise invalid_kind("meta.k8s.io", "ListOptions", "", errors)
    if not fields:
        return options
    selection = Selection(resource, labels, fields_selected(resource, fields))
    return msgspec.structs.replace(options, selection=selection)


def _labels_selected(text: str) -> CompiledSelector | None:
    try:
        return parse_selector(text) if text else None
    except SelectorError as error:
        raise bad_request(str(error)) from None


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if not is_int64(number):
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


def _version(text: str) -> int | None:
    """Return the version in a text, 0 for none; None if it is not a number of 64 bits."""
    if not text:
        return 0
    return int(text) if _VERSION.fullmatch(text) and int(text) <= _UINT64_MAX else None


def _parse_error(text: str) -> str:
    what = "value out of range" if _VERSION.fullmatch(text) else "invalid syntax"
    return f'strconv.ParseUint: parsing "{text}": {what}'


def list_version(options: ListOptions) -> int:
    """Return the requested version of a list, 0 for any; raises StatusError if it is malformed."""
    text = options.resource_version
    found = _version(text)
    if found is None:
        why = f'resourceVersion: Invalid value: "{text}": {_parse_error(text)}'
        raise bad_request(f"invalid resource version: {why}")
    return found


def exact_version(text: str) -> int:
    """Return the requested version of a get or a watch, 0 for any.

    Raises:
        StatusError: It is not a number.
    """
    found = _version(text)
    if found is None:
        raise internal(f'resourceVersion: Invalid value: "{text}": {_parse_error(text)}')
    return found


def version_of_object(text: str) -> int:
    """Return the version of an object, 0 for none; raises StatusError if it is not a number."""
    found = _version(text)
    if found is None:
        raise internal(_parse_error(text))
    return found


def is_version(text: str) -> bool:
    """Return whether a text is the version of an object; neither "0" nor a word is."""
    return bool(_version(text))
