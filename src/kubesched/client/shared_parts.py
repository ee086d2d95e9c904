"""SharedParts stores equal parts of decoded objects once, because pods come from few templates.

It shares nested values below `metadata`, `spec` and `status`, and strings with few distinct values.
A pod's spec is shared as a whole, except for node name and volumes. Conditions and container
statuses are shared one by one.

Upstream: none; objects share nothing there.
Invariants: sharing does not change the value of an object.
Differs:  the module has no counterpart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from copy import copy
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import force_setattr

from kubesched.api.meta import KubeStruct
from kubesched.api.pod import PodSpec
from kubesched.api.volume import Volume

# A larger table is cleared; parts that are shared already stay shared.
_PARTS_MAX: Final = 16_384
_OBJECTS_BETWEEN_CHECKS: Final = 1024
_SECTIONS: Final = ("metadata", "spec", "status")
# Strings with few distinct values; others are nearly unique.
_WORDS: Final = frozenset(
    (
        *("namespace", "generate_name", "scheduler_name", "service_account_name", "node_name"),
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

_encode: Final = msgspec.json.Encoder().encode
_Keep = Callable[[Any, Any], Any]
_Tables = defaultdict[str, dict[Any, Any]]


class _Fields(NamedTuple):
    """The shared fields of a class: strings, values, and lists shared by element."""

    texts: tuple[tuple[str, _Keep], ...]
    values: tuple[tuple[str, _Keep], ...]
    pieces: tuple[tuple[str, _Fields, dict[Any, Any]], ...]


class SharedParts:
    """Shares the parts of the objects of one class."""

    def __init__(self, type_: type[KubeStruct]) -> None:
        hints = get_type_hints(type_)
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
            self._check()

    def _pod_spec(self, spec: PodSpec, fields: _Fields) -> PodSpec:
        node_name, volumes = spec.node_name, spec.volumes
        own = copy(spec)
        force_setattr(own, "node_name", "")
        force_setattr(own, "volumes", ())
        key = _encode(own)
        known: PodSpec | None = self._pod_specs.get(key)
        if known is None:
            _share(fields, own)
            self._pod_specs[key] = known = own
        if not node_name and not volumes:
            return known
        own = copy(known)
        force_setattr(own, "node_name", self._node_names.setdefault(node_name, node_name))
        force_setattr(own, "volumes", self._shared_volumes(volumes))
        return own

    def _shared_volumes(self, volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
        """Share volumes one by one: the name of the token volume differs per pod."""
        keep = self._volumes.setdefault
        return tuple([keep(_encode(volume), volume) for volume in volumes])

    def _check(self) -> None:
        self._until_check = _OBJECTS_BETWEEN_CHECKS
        for table in self._tables.values():
            if len(table) > _PARTS_MAX:
                table.clear()


def _share(fields: _Fields, whole: Any) -> None:
    for name, keep in fields.texts:
        if value := getattr(whole, name):
            force_setattr(whole, name, keep(value, value))
    for name, keep in fields.values:
        if value := getattr(whole, name):
            force_setattr(whole, name, keep(_encode(value), value))
    for name, of_pieces, known in fields.pieces:
        if pieces := getattr(whole, name):
            force_setattr(whole, name, tuple([_piece(of_pieces, known, each) for each in pieces]))


def _piece(fields: _Fields, known: dict[Any, Any], piece: Any) -> Any:
    """Return an equal element that is stored already, or store this one."""
    key = _encode(piece)
    same = known.get(key)
    if same is None:
        _share(fields, piece)
        known[key] = same = piece
    return same


def _fields_of(type_: Any, words: frozenset[str], tables: _Tables, place: str) -> _Fields:
    """Return the shared fields of a class."""
    hints = get_type_hints(type_)
    texts: list[tuple[str, _Keep]] = []
    values: list[tuple[str, _Keep]] = []
    pieces: list[tuple[str, _Fields, dict[Any, Any]]] = []
    for name in type_.__struct_fields__:
        hint = hints[name]
        if name in _PIECEMEAL and get_origin(hint) is tuple:
            of_pieces = _fields_of(get_args(hint)[0], _WORDS_OF_PIECES, tables, f"{place}.{name}")
            pieces.append((name, of_pieces, tables[f"pieces of {place}.{name}"]))
        elif not _leaves(hint) <= _SIMPLE:
            # One table per field: values of different classes may have the same encoding.
            values.append((name, tables[f"{place}.{name}"].setdefault))
        elif name in words:
            texts.append((name, tables[name].setdefault))
    return _Fields(tuple(texts), tuple(values), tuple(pieces))


def _leaves(hint: Any) -> set[Any]:
    """Return the types of a field, without None."""
    alternatives = get_args(hint) if get_origin(hint) not in (tuple, dict, None) else (hint,)
    return {part for part in alternatives if part is not type(None)}
