"""Fields, types of values, and how scalar values are read.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1, pkg/api/resource, sigs.k8s.io/json
          (v1.36)
Differs:  an error about a malformed time does not name the position.
"""

from __future__ import annotations

import base64
import binascii
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from kubesched.api.field_errors import child
from kubesched.api.quantity import FORM_ERROR, Amount, QuantityError, canonical, parse_quantity
from kubesched.api.times import micro_time, moment_at, parse_time, second_time
from kubesched.api.yaml_syntax import Repeating
from kubesched.apiserver.plain import Plain, json_word

if TYPE_CHECKING:
    from kubesched.apiserver.schema import ObjectType

_MILLI: Final = -3
_MICROSECONDS: Final = re.compile(r":\d\d\.\d{6}(?:Z|[+-])")


class SchemaError(ValueError):
    """A value does not fit its type; the message is upstream's."""


class Rule(NamedTuple):
    """A rule that a field has to keep, such as `is(subdomain)`: a word with its arguments."""

    name: str
    arguments: tuple[str, ...] = ()


class Field(msgspec.Struct, frozen=True):
    """One field of an object.

    Attributes:
        owner: The name of the type it belongs to.
        inner: The type of the object that its value is, or of the objects in its list or map.
        is_pointer: Whether it may be absent, unlike an empty value.
        is_left_out: Whether it is not written when it is empty.
        is_always_written: Whether it is written even if it is absent.
        default: What fills it in where it is absent or, if it has to be there, empty; None if
            nothing does. It is also the value of an absent key of a list entry.
        default_if: The name of another field, and the values of it that bring the default; () for
            always.
        tag: The numbers that lead to it in protobuf; () for fields that never come in this form.
        merge_key: The field that identifies entries of the list in strategic merge patches; "" for
            lists of scalars, None for values that such patches replace.
        is_replaced: Whether strategic merge patches replace the object.
        is_immutable: Whether an update leaves it as it is.
        is_dropped: Whether it is read and forgotten.
    """

    name: str
    owner: str
    type: ValueType
    is_pointer: bool
    is_left_out: bool
    is_always_written: bool
    inner: ObjectType | None = None
    default: Any = None
    default_if: tuple[str, ...] = ()
    tag: tuple[int, ...] = ()
    merge_key: str | None = None
    is_replaced: bool = False
    rules: tuple[Rule, ...] = ()
    is_immutable: bool = False
    is_dropped: bool = False


# Reading.

Step: TypeAlias = "Field | int | str"


class Place(NamedTuple):
    """The place of a value: a field, a position in a list, or a key of a map, in another place."""

    outer: Place | None
    step: Step

    def steps(self) -> list[Step]:
        """Return the way to the value, from the outside."""
        return [*(() if self.outer is None else self.outer.steps()), self.step]

    def __str__(self) -> str:
        names = (step.name if isinstance(step, Field) else step for step in self.steps())
        return child("", *names)


class Reading(msgspec.Struct):
    """What is found wrong while a body is read.

    After a value of the wrong type, reading continues: a malformed quantity or time that follows is
    reported instead.

    Attributes:
        unknown: Paths of fields that the types do not have, in the order of the body.
        problems: Unknown and repeated fields, in the words of messages.
        type_error: About the first value of the wrong type, in upstream's words; "" for none.
    """

    unknown: list[str] = []
    problems: list[str] = []
    type_error: str = ""

    def note_type_error(self, value: Any, wanted: str, place: Place | None) -> None:
        """Record a value of the wrong type, if it is the first."""
        self.type_error = self.type_error or _type_error(value, wanted, place)

    def note_unknown(self, place: Place | None, name: str) -> None:
        """Record an unknown field."""
        self.unknown.append(str(Place(place, name)))
        self.problems.append(f'unknown field "{self.unknown[-1]}"')

    def note_repeated(self, value: Plain, place: Place | None, known: Container[str]) -> None:
        """Record the known names that an object repeats."""
        if isinstance(value, Repeating):
            names = (name for name in value.repeated if name in known)
            self.problems += [f'duplicate field "{Place(place, name)}"' for name in names]


def _type_error(value: Any, wanted: str, place: Place | None) -> str:
    word = json_word(value)
    if word == "number" and wanted.startswith("int"):
        word = f"number {value}"
    where, steps = "Go value", [] if place is None else place.steps()
    # Go reports no positions.
    if fields := [step for step in steps if isinstance(step, Field)]:
        path = ".".join(field.name for field in fields)
        where = f"Go struct field {fields[-1].owner}.{path}"
    return f"json: cannot unmarshal {word} into {where} of type {wanted}"


class ValueType(ABC):
    """A type of values; if Go has a struct for it, no value counts as empty."""

    is_struct = False

    def zero(self) -> Any:
        """Return how an absent value is written; None if it is not written."""
        return None

    @abstractmethod
    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return a value as the server writes it, None if there is none; may raise SchemaError."""

    def is_equal(self, one: Any, other: Any) -> bool:
        """Return whether two values, as the server writes them, are equal."""
        return bool(one == other)

    def child(self, name: str) -> ValueType | None:
        """Return the type of a field or of a map's entry, None if there is no such field."""
        return None

    def is_whole(self, *values: Any) -> bool:
        """Return whether server-side apply gives such a value one owner, not one for each part."""
        return True


class Scalar(ValueType):
    """A type of values that contain no others.

    Forms are `string`, `bool`, `int32`, `int64`, `float64`, `bytes`, `quantity`, `time`,
    `microTime`, `intOrString` and `any`.
    """

    def __init__(
        self,
        form: str,
        read: Callable[[Any, Place | None], Any] = lambda value, _place: value,
        zero: object = None,
        *,
        fits: Callable[[Any], bool] | None = None,
    ) -> None:
        """Set up.

        `read` returns a value in its canonical form, and raises SchemaError if there is none. With
        `fits`, a value that does not fit is noted as an error, and Go's zero value replaces it.
        """
        self.form = form
        self.is_struct = fits is None and form != "bytes"
        self._read = read
        self._zero = zero
        self._fits = fits

    def zero(self) -> Any:
        """Return Go's zero value: null, 0, False or ""."""
        return self._zero

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the value in its canonical form."""
        if self._fits is not None and not self._fits(value):
            reading.note_type_error(value, self.form, place)
            return self._zero
        return self._read(value, place)

    def is_equal(self, one: Any, other: Any) -> bool:
        """Return whether both are equal; quantities are compared by amount."""
        if one == other or self.form != "quantity" or one is None or other is None:
            return bool(one == other)
        return parse_quantity(one).compare(parse_quantity(other)) == 0


# Scalars.


def _is_int(value: Any, bits: int) -> bool:
    """Return whether a value is an integer of so many bits; True and 1.0 are not."""
    return type(value) is int and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _read_bytes(value: Any, place: Place | None) -> str:
    if not isinstance(value, str):
        raise SchemaError(_type_error(value, "[]uint8", place))
    text = value.replace("\r", "").replace("\n", "")
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise SchemaError("illegal base64 data") from None


def _read_quantity(value: Any, _place: Place | None) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SchemaError(FORM_ERROR)
    try:
        return canonical(value)
    except QuantityError as error:
        raise SchemaError(str(error).rpartition(": ")[2]) from None


def _read_rounded_quantity(value: Any, place: Place | None) -> str:
    text = _read_quantity(value, place)
    amount = parse_quantity(text)
    if amount.exponent >= _MILLI:
        return text
    # Amounts of resources are kept in thousandths, rounded away from zero.
    step = 10 ** (_MILLI - amount.exponent)
    number = -(-abs(amount.unscaled) // step)
    return str(Amount(number * amount.sign, _MILLI, amount.is_big, amount.format))


def _read_time(value: Any, place: Place | None, *, is_micro: bool = False) -> str:
    """Return a time in UTC, to the second or to the microsecond."""
    if not isinstance(value, str):
        raise SchemaError(_type_error(value, "string", place))
    try:
        moment = moment_at(parse_time(value))
    except (ValueError, OverflowError):
        moment = None
    if moment is None or (is_micro and _MICROSECONDS.search(value) is None):
        example = "2006-01-02T15:04:05.000000Z" if is_micro else "2006-01-02T15:04:05Z"
        raise SchemaError(f'parsing time "{value}": it does not have the form of {example}')
    return micro_time(moment) if is_micro else second_time(moment)


def _read_int_or_string(value: Any, place: Place | None) -> int | str:
    if isinstance(value, str) or _is_int(value, 32):
        return value  # type: ignore[no-any-return]  # narrowed above, for one half of the union
    raise SchemaError(_type_error(value, "int32", place))


JSON_SCHEMA: Final = Scalar("any")
"""Kept as it is sent in JSON; in protobuf it is a `JSONSchemaProps`."""
SCALARS: Final[Mapping[str, Scalar]] = {
    "string": Scalar("string", zero="", fits=lambda value: isinstance(value, str)),
    "bool": Scalar("bool", zero=False, fits=lambda value: isinstance(value, bool)),
    "int32": Scalar("int32", zero=0, fits=lambda value: _is_int(value, 32)),
    "int64": Scalar("int64", zero=0, fits=lambda value: _is_int(value, 64)),
    "float64": Scalar("float64", zero=0, fits=lambda value: type(value) in (int, float)),
    "bytes": Scalar("bytes", _read_bytes),
    "Quantity": Scalar("quantity", _read_quantity, "0"),
    "RoundedQuantity": Scalar("quantity", _read_rounded_quantity, "0"),
    "Time": Scalar("time", _read_time),
    "MicroTime": Scalar("microTime", partial(_read_time, is_micro=True)),
    "IntOrString": Scalar("intOrString", _read_int_or_string, 0),
    "RawExtension": Scalar("any"),
    "FieldsV1": Scalar("any"),
    "JSONSchema": JSON_SCHEMA,
}
"""By their names in the tables."""
