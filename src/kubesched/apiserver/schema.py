"""Schema tells the fields of every kind that is served, and how patches merge them.

Upstream: api/openapi-spec/v3, staging/src/k8s.io/api/*/*/types.go (v1.36)
Differs:  of JSON schemas in custom resource definitions only the outermost fields are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

__all__ = ["Field", "Form", "Schema", "Shape", "Struct", "schema"]

_NOTE: Final = re.compile(r'(map|merge)\(([^)]*)\)|="([^"]*)"|(\w+)')
_SCALARS: Final = frozenset(
    (
        "any",
        "bool",
        "bytes",
        "double",
        "int32",
        "int64",
        "intOrString",
        "microTime",
        "quantity",
        "string",
        "time",
    )
)


class Form(Enum):
    """What kind of value a shape describes."""

    LIST = "list"
    MAP = "map"
    SCALAR = "scalar"
    STRUCT = "struct"


class Shape(msgspec.Struct, frozen=True):
    """What a value looks like.

    Attributes:
        form: List, map, struct or scalar.
        name: Of a struct or of a scalar; "" for lists and maps.
        element: Of a list or of a map; None for the others.
    """

    form: Form
    name: str = ""
    element: Shape | None = None


class Field(msgspec.Struct, frozen=True):
    """One field of a struct, and how patches treat it.

    Attributes:
        name: As in JSON.
        shape: Of its value.
        is_required: Whether objects need it.
        list_keys: What tells entries of the list apart for server-side apply; () if nothing.
        is_set: Whether server-side apply owns each entry of the list.
        is_atomic: Whether server-side apply owns the whole value; None if the value's type says.
        is_merged: Whether strategic merge patches merge the list.
        merge_key: What tells entries of a merged list apart; "" for lists of scalars.
        is_replaced: Whether strategic merge patches replace the object.
        default: What stands for it when it is absent as a key of a list entry; None if nothing.
        is_always: Whether it is there even in objects that say nothing.
    """

    name: str
    shape: Shape
    is_required: bool = False
    list_keys: tuple[str, ...] = ()
    is_set: bool = False
    is_atomic: bool | None = None
    is_merged: bool = False
    merge_key: str = ""
    is_replaced: bool = False
    default: str | None = None
    is_always: bool = False


class Struct(msgspec.Struct, frozen=True):
    """A type of objects.

    Attributes:
        name: Group, version and Go's name, such as `core.v1.PodSpec`.
        fields: By name.
        is_atomic: Whether server-side apply owns it as a whole.
    """

    name: str
    fields: Mapping[str, Field]
    is_atomic: bool = False

    @property
    def go_name(self) -> str:
        """Its name without group and version, such as `PodSpec`."""
        return self.name.rpartition(".")[2]


class Schema:
    """The structs of all kinds that are served."""

    def __init__(self, text: str) -> None:
        self._kinds: dict[tuple[str, str], str] = {}
        self._first_of_kind: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}
        self._flags: dict[str, str] = {}
        self._structs: dict[str, Struct] = {}
        self._read(text)

    def _read(self, text: str) -> None:
        fields: list[str] = []
        for line in text.splitlines():
            if line.startswith("  "):
                fields.append(line)
            elif " = " in line and not line.startswith("#"):
                served, _, name = line.partition(" = ")
                api_version, _, kind = served.partition(" ")
                self._kinds[api_version, kind] = name
                self._first_of_kind.setdefault(kind, name)
            elif line and not line.startswith("#"):
                name, _, flag = line.partition(" ")
                fields = self._lines[name] = []
                self._flags[name] = flag

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Yield apiVersion and kind of everything that is known."""
        yield from self._kinds

    def struct_of(self, api_version: str, kind: str) -> Struct | None:
        """Return the struct of a kind, None if it is not known.

        Args:
            api_version: Group and version; "" for any.
            kind: As in objects.
        """
        name = self._kinds.get((api_version, kind)) or (
            "" if api_version else self._first_of_kind.get(kind, "")
        )
        return self.struct(name) if name else None

    def struct(self, name: str) -> Struct:
        """Return the struct of a name, such as `core.v1.PodSpec`.

        Raises:
            KeyError: There is none.
        """
        found = self._structs.get(name)
        if found is None:
            fields = {one.name: one for one in map(_field, self._lines[name])}
            found = Struct(name, fields, is_atomic=self._flags[name] == "atomic")
            self._structs[name] = found
        return found


def _shape(text: str) -> Shape:
    if text.startswith("[]"):
        return Shape(Form.LIST, element=_shape(text[2:]))
    if text.startswith("{}"):
        return Shape(Form.MAP, element=_shape(text[2:]))
    return Shape(Form.SCALAR if text in _SCALARS else Form.STRUCT, text)


def _field(line: str) -> Field:
    name, shape, *rest = line.split(maxsplit=2)
    notes: dict[str, Any] = {}
    for match in _NOTE.finditer("".join(rest)):
        called, argument, default, flag = match.groups()
        if called == "map":
            notes["list_keys"] = tuple(argument.split(","))
        elif called == "merge":
            notes |= {"is_merged": True, "merge_key": argument}
        elif flag:
            notes |= _FLAGS[flag]
        else:
            notes["default"] = default
    return Field(name.removesuffix("!"), _shape(shape), name.endswith("!"), **notes)


_FLAGS: Final[Mapping[str, Mapping[str, bool]]] = {
    "always": {"is_always": True},
    "atomic": {"is_atomic": True},
    "granular": {"is_atomic": False},
    "merge": {"is_merged": True},
    "replace": {"is_replaced": True},
    "retainKeys": {},
    "set": {"is_set": True},
}


@cache
def schema() -> Schema:
    """Return the schema of everything that is served."""
    return Schema(files(__package__).joinpath("api_types.txt").read_text(encoding="utf-8"))
