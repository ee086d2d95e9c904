"""Say what keeps a plain object from being an object of its kind, as Go's converter says it.

Strategic merge patches go through that converter, not through a JSON decoder. It stops at the
first fault; fields that are not known are no fault.

Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/converter.go (v1.36)
Differs:  of several faults the first by field name is told. Numbers that are too large for their
          field are a fault; upstream lets them overflow.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched.apiserver.go_values import go_kind
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import (
    ListType,
    MapType,
    ObjectType,
    Scalar,
    ValueType,
    type_of_object,
)

__all__ = ["first_fault"]

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_JSON_WORDS: Final = {dict: "object", list: "array", str: "string", bool: "bool"}
_GO_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "float64": (int, float),
    "int32": (int, float),
    "int64": (int, float),
    "string": (str,),
}
_INT_LIMITS: Final = {"int32": 1 << 31, "int64": 1 << 63}
_QUANTITY_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class _Misfit(NamedTuple):
    """A value that is not of its type."""

    value: Any
    type: ValueType


def first_fault(api_version: str, kind: str, value: Plain) -> str | None:
    """Return why a value is no object of a kind, None if it is one.

    Kinds that are not known have no faults.
    """
    object_type = type_of_object(api_version, kind)
    misfit = next(_field_misfits(value, object_type), None) if object_type else None
    return _fault(misfit) if misfit else None


def _field_misfits(value: Plain, object_type: ObjectType) -> Iterator[_Misfit]:
    for name in sorted(value):
        field = object_type.fields.get(name)
        if field is not None:
            yield from _misfits(value[name], field.type)


def _misfits(value: Any, value_type: ValueType) -> Iterator[_Misfit]:
    if value is None:
        return
    if isinstance(value_type, Scalar):
        if not _is_scalar(value, value_type.form):
            yield _Misfit(value, value_type)
    elif isinstance(value, dict) and isinstance(value_type, ObjectType):
        yield from _field_misfits(value, value_type)
    elif isinstance(value, dict) and isinstance(value_type, MapType):
        for name in sorted(value):
            yield from _misfits(value[name], value_type.element)
    elif isinstance(value, list) and isinstance(value_type, ListType):
        for child in value:
            yield from _misfits(child, value_type.element)
    else:
        yield _Misfit(value, value_type)


def _is_scalar(value: Any, name: str) -> bool:
    if name in _GO_SCALARS:
        return _is_go_scalar(value, name)
    return _SPECIAL_CHECKS[name](value)


def _is_go_scalar(value: Any, name: str) -> bool:
    allowed = _GO_SCALARS[name]
    if (isinstance(value, bool) and bool not in allowed) or not isinstance(value, allowed):
        return False
    limit = _INT_LIMITS.get(name)
    if limit is None or not isinstance(value, int | float):
        return True
    return value == int(value) and -limit <= value < limit


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        parse_quantity(value if isinstance(value, str | int) else str(value))
    except QuantityError:
        return False
    return True


def _is_bytes(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def _is_int_or_string(value: Any) -> bool:
    return isinstance(value, str) or _is_go_scalar(value, "int32")


_SPECIAL_CHECKS: Final = {
    "any": lambda _value: True,
    "bytes": _is_bytes,
    "intOrString": _is_int_or_string,
    "microTime": _is_time,
    "quantity": _is_quantity,
    "time": _is_time,
}


def _fault(misfit: _Misfit) -> str:
    kind, value_type = go_kind(misfit.value), misfit.type
    if isinstance(value_type, ObjectType):
        return f"cannot restore struct from: {kind}"
    if not isinstance(value_type, Scalar):
        return f"cannot restore {'map' if isinstance(value_type, MapType) else 'slice'} from {kind}"
    form = value_type.form
    if form not in _GO_SCALARS:
        return _special_fault(misfit.value, form)
    is_number = kind in ("int64", "float64") and form not in ("bool", "string")
    if is_number or (kind, form) == ("int64", "string"):
        return f"cannot convert {kind} to {value_type.go_name}"
    return f"unrecognized type: {form}"


def _special_fault(value: Any, name: str) -> str:
    if name == "quantity":
        return _quantity_fault(value)
    if isinstance(value, str) and name == "bytes":
        return "error decoding from json: illegal base64 data"
    if isinstance(value, str):
        return f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse'
    if name == "bytes":
        return f"cannot restore slice from {go_kind(value)}"
    word = _JSON_WORDS.get(type(value), "number")
    go_name = "intstr.IntOrString" if name == "intOrString" else "string"
    return f"json: cannot unmarshal {word} into Go value of type {go_name}"


def _quantity_fault(value: Any) -> str:
    try:
        parse_quantity(value if isinstance(value, str | int) else str(value))
    except QuantityError as error:
        return str(error).partition(": ")[2]
    return _QUANTITY_FORM
