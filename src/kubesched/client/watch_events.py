"""WatchDecoder decodes the lines of a watch and the pages of a list into typed objects.

Event and object are decoded in one pass. Only what that pass rejects (nulls, Statuses, bookmarks
without a spec) is decoded again by a slower way.

SharedParts stores equal parts of objects once, because pods come from few templates. It shares
nested values below `metadata`, `spec` and `status`, and strings with few distinct values. A pod's
spec is shared as a whole, except for node name and volumes. Conditions and container statuses are
shared one by one, and their lists if they have the same elements. Empty dicts are one.

Upstream: staging/src/k8s.io/client-go/rest/watch/decoder.go,
          staging/src/k8s.io/apimachinery/pkg/watch/streamwatcher.go (v1.36)
Invariants: sharing does not change the value of an object; objects of lists have kind and
            apiVersion, as those of watches do.
Differs:  upstream's objects share nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import force_setattr

from kubesched.api.codec import DecodeError, decode_object
from kubesched.api.core import PodSpec
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.scheme import Kind
from kubesched.client.errors import error_of_status

# A larger table is cleared; parts that are shared already stay shared.
_PARTS_MAX: Final = 16_384
_OBJECTS_BETWEEN_CHECKS: Final = 1024
_SECTIONS: Final = ("metadata", "spec", "status")
# Strings with few distinct values; others are nearly unique.
_WORDS: Final = frozenset(
    (
        *("namespace", "generate_name", "scheduler_name", "service_account_name", "node_name"),
        *("creation_timestamp", "start_time"),
        *("restart_policy", "priority_class_name", "runtime_class_name", "preemption_policy"),
        *("phase", "qos_class", "host_ip", "nominated_node_name", "storage_class_name"),
        *("volume_mode", "persistent_volume_reclaim_policy", "driver"),
    )
)
# Lists that are rarely equal as a whole; their elements are shared instead.
_PIECEMEAL: Final = frozenset(("conditions", "container_statuses", "init_container_statuses"))
_WORDS_OF_PIECES: Final = frozenset(
    ("type", "status", "reason", "message", "last_transition_time", "name", "image")
)
_SIMPLE: Final = frozenset((str, int, float, bool))

_EMPTY: Final[dict[str, Any]] = {}

_encode: Final = msgspec.json.Encoder().encode
_Table = dict[Any, Any]
_Tables = defaultdict[str, _Table]


class _Fields(NamedTuple):
    """The shared fields of a class.

    Attributes:
        texts: Strings.
        values: Values that are shared as a whole.
        pieces: Lists that are shared by element, and as a whole if all elements are.
        maps: The names of dicts. Most are empty, and each empty one takes 64 bytes.
    """

    texts: tuple[tuple[str, _Table], ...]
    values: tuple[tuple[str, _Table], ...]
    pieces: tuple[tuple[str, _Fields, _Table, _Table], ...]
    maps: tuple[str, ...]


class SharedParts:
    """Shares the parts of the objects of one class."""

    def __init__(self, type_: type[KubeObject]) -> None:
        hints = _hints_of(type_)
        self._tables: _Tables = defaultdict(dict)
        self._sections = tuple(
            (name, hints[name], _fields_of(hints[name], _WORDS, self._tables, name))
            for name in _SECTIONS
            if name in hints
        )
        self._pod_specs = self._tables["a pod's spec"]
        self._volumes = self._tables["a pod's volume"]
        self._node_names = self._tables["node_name"]
        self._until_check = _OBJECTS_BETWEEN_CHECKS

    def share(self, item: Any) -> None:
        """Replace parts of a freshly decoded object that is not in use yet."""
        for name, type_, fields in self._sections:
            section = getattr(item, name)
            if type_ is PodSpec:
                force_setattr(item, name, self._pod_spec(section, fields))
            else:
                _share(fields, section)
        self._until_check -= 1
        if not self._until_check:
            self._until_check = _OBJECTS_BETWEEN_CHECKS
            for table in self._tables.values():
                if len(table) > _PARTS_MAX:
                    table.clear()

    def _pod_spec(self, spec: PodSpec, fields: _Fields) -> PodSpec:
        node_name, volumes = spec.node_name, spec.volumes
        force_setattr(spec, "node_name", "")
        force_setattr(spec, "volumes", ())
        known: PodSpec = _stored(self._pod_specs, spec)
        if known is spec:
            _share(fields, spec)
        if not node_name and not volumes:
            return known
        own = copy(known)
        force_setattr(own, "node_name", self._node_names.setdefault(node_name, node_name))
        # Each by itself, because the name of the token volume differs per pod.
        shared = tuple([_stored(self._volumes, volume) for volume in volumes])
        force_setattr(own, "volumes", shared)
        return own


def _share(fields: _Fields, whole: Any) -> None:
    for name, table in fields.texts:
        if value := getattr(whole, name):
            force_setattr(whole, name, table.setdefault(value, value))
    for name, table in fields.values:
        if value := getattr(whole, name):
            force_setattr(whole, name, _stored(table, value))
    for name in fields.maps:
        if not getattr(whole, name):
            force_setattr(whole, name, _EMPTY)
    for name, of_pieces, table, lists in fields.pieces:
        if pieces := getattr(whole, name):
            pieces = tuple([_piece(of_pieces, table, each) for each in pieces])
            # Equal elements are mostly the same objects, so comparing takes no time.
            same = lists.setdefault(hash(tuple(map(id, pieces))), pieces)
            force_setattr(whole, name, same if same == pieces else pieces)


def _piece(fields: _Fields, table: _Table, piece: Any) -> Any:
    """Return an equal element that is stored already, or store this one."""
    # Pieces of plain values are their own keys, which takes half the time of an encoding.
    same = _stored(table, piece) if fields.values else table.setdefault(piece, piece)
    if same is piece:
        _share(fields, piece)
    return same


def _stored(table: _Table, value: Any) -> Any:
    """Return an equal value that is stored already, or store this one."""
    # The encoding itself would be as large as the value; hashes of different ones may be equal.
    same = table.setdefault(hash(_encode(value)), value)
    return same if same == value else value


def _fields_of(type_: Any, words: frozenset[str], tables: _Tables, place: str) -> _Fields:
    """Return the shared fields of a class."""
    hints = _hints_of(type_)
    texts: list[tuple[str, _Table]] = []
    values: list[tuple[str, _Table]] = []
    pieces: list[tuple[str, _Fields, _Table, _Table]] = []
    for name in type_.__struct_fields__:
        hint = hints[name]
        if name in _PIECEMEAL and get_origin(hint) is tuple:
            of_pieces = _fields_of(get_args(hint)[0], _WORDS_OF_PIECES, tables, f"{place}.{name}")
            both = tables[f"pieces of {place}.{name}"], tables[f"{place}.{name}"]
            pieces.append((name, of_pieces, *both))
        elif not _leaves(hint) <= _SIMPLE:
            # One table per field: values of different classes may have the same encoding.
            values.append((name, tables[f"{place}.{name}"]))
        elif name in words:
            texts.append((name, tables[name]))
    maps = tuple(name for name in type_.__struct_fields__ if get_origin(hints[name]) is dict)
    return _Fields(tuple(texts), tuple(values), tuple(pieces), maps)


@cache
def _hints_of(type_: Any) -> Mapping[str, Any]:
    """Return the types of a class's fields; to find them takes long."""
    return get_type_hints(type_)


def _leaves(hint: Any) -> set[Any]:
    """Return the types of a field, without None."""
    alternatives = get_args(hint) if get_origin(hint) not in (tuple, dict, None) else (hint,)
    return {part for part in alternatives if part is not type(None)}


# Events.

T = TypeVar("T")

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
_BOOKMARK: Final = "BOOKMARK"
_ERROR: Final = "ERROR"
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
# Larger pages are split into raw objects first, so that decoding can be interrupted.
_PAGE_BYTES_AT_ONCE: Final = 8 << 20


class WatchEvent(msgspec.Struct, Generic[T]):
    """A watch event; the type is `ADDED`, `MODIFIED` or `DELETED`."""

    type: str
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """The version up to which the watch is complete."""

    resource_version: str
    is_initial_events_end: bool


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The version of a list, and the token of its next page if there is one."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class ListPage(msgspec.Struct, Generic[T]):
    """A list or a page of one; without kind, version and items it is not a list."""

    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _OnlyMeta(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


_anything: Final = msgspec.json.Decoder(WatchEvent[msgspec.Raw])
_only_meta: Final = msgspec.json.Decoder(_OnlyMeta)
_raw_page: Final = msgspec.json.Decoder(ListPage[msgspec.Raw])


class WatchDecoder:
    """Decodes objects of one kind; equal parts are stored once."""

    def __init__(self, kind: Kind) -> None:
        self._kind_name = kind.kind
        self._api_version = kind.api_version
        self._parts = SharedParts(kind.type)
        # The class is known only at run time, so type checkers cannot follow.
        event_of: Any = WatchEvent
        page_of: Any = ListPage
        self._event: msgspec.json.Decoder[WatchEvent[KubeObject]]
        self._event = msgspec.json.Decoder(event_of[kind.type])
        self._page: msgspec.json.Decoder[ListPage[KubeObject]]
        self._page = msgspec.json.Decoder(page_of[kind.type])
        self._object: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind.type)

    def event(self, line: bytes) -> WatchEvent[KubeObject] | Bookmark:
        """Return the event of a line.

        Raises ApiError if the watch failed, or, with code 500, if the line cannot be decoded.
        """
        try:
            event = self._event.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return self._slow_event(line)
        word = event.type
        if word == _BOOKMARK:
            return _bookmark(event.object.metadata)
        if word == _ERROR:
            return self._slow_event(line)
        event.object = self._finished(event.object)
        return event

    def _slow_event(self, line: bytes) -> WatchEvent[KubeObject] | Bookmark:
        try:
            event = _anything.decode(line)
            if event.type == _ERROR:
                raise _refusal(event.object)
            if event.type == _BOOKMARK:
                return _bookmark(_only_meta.decode(event.object).metadata)
            return WatchEvent(event.type, self._finished(self._slow_object(event.object)))
        except (msgspec.DecodeError, DecodeError, RecursionError) as error:
            message = f"unable to decode an event from the watch stream: {error}"
            raise ApiError(500, "InternalError", message) from None

    def _slow_object(self, raw: msgspec.Raw) -> KubeObject:
        plain = msgspec.json.decode(raw)
        if not isinstance(plain, dict):
            raise msgspec.ValidationError("expected an object")
        # The items of a list have no kind.
        return decode_object(plain | {"apiVersion": self._api_version, "kind": self._kind_name})

    def page(self, body: bytes) -> ListPage[KubeObject] | ListPage[msgspec.Raw]:
        """Return a page of a list; the objects of large ones are not decoded yet.

        Raises ApiError with code 500 if it is not a list of this kind.
        """
        try:
            return self._page_of(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ApiError(500, "InternalError", f"unable to decode the list: {error}") from None

    def _page_of(self, body: bytes) -> ListPage[KubeObject] | ListPage[msgspec.Raw]:
        if len(body) > _PAGE_BYTES_AT_ONCE:
            return _raw_page.decode(body)
        try:
            page = self._page.decode(body)
        except msgspec.ValidationError:
            return _raw_page.decode(body)
        if page.items is None and not (page.kind or page.metadata.resource_version):
            raise msgspec.ValidationError("Object 'Kind' is missing")
        page.items = [self._finished(item) for item in page.items or ()]
        return page

    def item(self, raw: msgspec.Raw) -> KubeObject:
        """Return an object of a page; raises ApiError with code 500 if it cannot be decoded."""
        try:
            try:
                item: KubeObject = self._object.decode(raw)
            except msgspec.ValidationError:
                item = self._slow_object(raw)
        except (msgspec.DecodeError, DecodeError, RecursionError) as error:
            message = f"unable to decode an object of the list: {error}"
            raise ApiError(500, "InternalError", message) from None
        finished: KubeObject = self._finished(item)
        return finished

    def _finished(self, item: Any) -> Any:
        # The object is not in use yet, so it may be changed in place.
        force_setattr(item, "kind", self._kind_name)
        force_setattr(item, "api_version", self._api_version)
        self._parts.share(item)
        return item


def _bookmark(metadata: ObjectMeta) -> Bookmark:
    is_end = metadata.annotations.get(_INITIAL_EVENTS_END) == "true"
    return Bookmark(metadata.resource_version, is_end)


def _refusal(raw: msgspec.Raw) -> ApiError:
    error = error_of_status(raw)
    if error is None:
        message = (
            f"unexpected object in an error event: {bytes(raw)[:200].decode(errors='replace')}"
        )
        return ApiError(500, "InternalError", message)
    # A code of 0 would mean that there was no response.
    error.code = error.code or 500
    return error
