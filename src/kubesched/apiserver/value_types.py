"""Types of values that are not objects: text, numbers, quantities, times, lists and maps of them.

Each type reads a JSON value and returns it as the server writes it: quantities and times in their
canonical form, and what is empty as None where the wire form cannot tell it from nothing.

Upstream: staging/src/k8s.io/apimachinery/pkg/{api/resource,apis/meta/v1,util/intstr} (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import base64
import binascii
import string
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from kubesched.api.quantity import Amount, QuantityError, canonical, parse_quantity
from kubesched.apiserver.go_time import TimeError, canonical_micro_time, canonical_time
from kubesched.apiserver.reading import DecodeError, Place, Reading, is_int, misfit

_MILLI: Final = -3
_BASE64: Final = frozenset(f"{string.ascii_letters}{string.digits}+/".encode())
_LINE_ENDS: Final = b"\r\n"
# A group of four may be cut off behind so many.
_CHARACTERS_MIN: Final = 2
_QUANTITY_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class ValueType(Protocol):
    """What values of one type look like."""

    @property
    def go_name(self) -> str:
        """Go's name of the type, as messages have it."""

    @property
    def is_struct(self) -> bool:
        """Whether Go holds it in a struct, which is never empty."""

    def zero(self) -> Any:
        """Return what is written for a value that nobody gave."""

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return a value as the server writes it; None if there is none.

        Raises:
            DecodeError: It is a text that cannot be understood.
        """


class Simple:
    """Text, a truth or a number: a value that either fits or does not.

    Attributes:
        go_name: Go's name of the type, such as `v1.DNSPolicy`.
        form: What it is a name for: `string`, `bool`, `int32`, `int64` or `float64`.
    """

    is_struct = False

    def __init__(self, go_name: str, form: str, fits: Callable[[Any], bool], zero: object) -> None:
        self.go_name = go_name
        self.form = form
        self._fits = fits
        self._zero = zero

    def zero(self) -> Any:
        """Return "", False or 0."""
        return self._zero

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the value itself."""
        if self._fits(value):
            return value
        reading.note_misfit(value, self.go_name, place)
        return self._zero


class Bytes:
    """Bytes, written in base 64."""

    is_struct = False
    go_name = "[]uint8"
    form = "bytes"

    def zero(self) -> Any:
        """Return None: no bytes."""
        return None

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the value in canonical base 64."""
        if not isinstance(value, str):
            reading.note_misfit(value, self.go_name, place)
            return None
        text = value.replace("\r", "").replace("\n", "")
        try:
            return base64.b64encode(base64.b64decode(text, validate=True)).decode()
        except (binascii.Error, ValueError):
            reading.misfit = reading.misfit or (
                f"illegal base64 data at input byte {_first_fault_of_base64(value)}"
            )
            return None


def _first_fault_of_base64(text: str) -> int:
    """Return where Go's decoder stops in a text that is none.

    It stops at a foreign character, behind a group that is padded, or where the last group begins
    if that is cut off.
    """
    data = text.encode()
    at = count = 0
    while at < len(data):
        if data[at] in _BASE64:
            count = (count + 1) % 4
        elif data[at] not in _LINE_ENDS:
            is_padding = data[at] == ord("=") and count >= _CHARACTERS_MIN
            return _end_of_padding(data, at + 1, count) if is_padding else at
        at += 1
    return len(data) - count


def _end_of_padding(data: bytes, at: int, count: int) -> int:
    if count == _CHARACTERS_MIN:
        at = _behind_line_ends(data, at)
        if at == len(data):
            return at
        if data[at] != ord("="):
            return at - 1
        at += 1
    return _behind_line_ends(data, at)


def _behind_line_ends(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _LINE_ENDS:
        at += 1
    return at


class Special:
    """A value that Go reads in its own way: quantities, times, numbers or text, anything.

    Attributes:
        go_name: Go's name of the type, such as `v1.Time`.
        form: `quantity`, `time`, `microTime`, `intOrString` or `any`.
    """

    is_struct = True

    def __init__(
        self,
        go_name: str,
        form: str,
        read: Callable[[Any, Place | None], Any],
        zero: object = None,
    ) -> None:
        self.go_name = go_name
        self.form = form
        self._read = read
        self._zero = zero

    def zero(self) -> Any:
        """Return what Go writes for none: null, or 0."""
        return self._zero

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the canonical value."""
        return self._read(value, place)


Scalar: TypeAlias = Simple | Bytes | Special
"""What is neither a list, a map nor an object of known fields."""


class ListType:
    """A list; an empty one is None."""

    is_struct = False

    def __init__(self, element: ValueType) -> None:
        self.go_name = f"[]{element.go_name}"
        self.element = element

    def zero(self) -> Any:
        """Return None: no list."""
        return None

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the list of what its entries are; null stands for an empty entry."""
        if not isinstance(value, list):
            reading.note_misfit(value, self.go_name, place)
            return None
        element = self.element
        return [
            element.zero() if one is None else element.read(one, Place(place, index), reading)
            for index, one in enumerate(value)
        ] or None


class MapType:
    """A map from text; an empty one is None."""

    is_struct = False

    def __init__(self, element: ValueType, go_name: str = "", key_name: str = "string") -> None:
        self.go_name = go_name or f"map[{key_name}]{element.go_name}"
        self.element = element

    def zero(self) -> Any:
        """Return None: no map."""
        return None

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the map of what its values are, by key; null stands for an empty value."""
        if not isinstance(value, dict):
            reading.note_misfit(value, self.go_name, place)
            return None
        element = self.element
        return {
            key: element.zero()
            if value[key] is None
            else element.read(value[key], Place(place, key), reading)
            for key in sorted(value)
        } or None


def _read_quantity(value: Any, _place: Place | None) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DecodeError(_QUANTITY_FORM)
    try:
        return canonical(value)
    except QuantityError as error:
        raise DecodeError(str(error).rpartition(": ")[2]) from None


def _read_rounded_quantity(value: Any, place: Place | None) -> str:
    text = _read_quantity(value, place)
    amount = parse_quantity(text)
    if amount.exponent >= _MILLI:
        return text
    # Amounts of resources are kept in thousandths, rounded away from zero.
    step = 10 ** (_MILLI - amount.exponent)
    number = -(-abs(amount.unscaled) // step)
    return str(Amount(number * amount.sign, _MILLI, amount.is_big, amount.format))


def _time_reader(canonical_of: Callable[[str], str]) -> Callable[[Any, Place | None], str]:
    def read(value: Any, place: Place | None) -> str:
        if not isinstance(value, str):
            raise DecodeError(misfit(value, "string", place))
        try:
            return canonical_of(value)
        except TimeError as error:
            raise DecodeError(str(error)) from None

    return read


def _read_int_or_string(value: Any, place: Place | None) -> int | str:
    if isinstance(value, str) or is_int(value, 32):
        return value  # type: ignore[no-any-return]  # narrowed above, for one half of the union
    raise DecodeError(misfit(value, "int32", place))


def _read_anything(value: Any, _place: Place | None) -> Any:
    return value


QUANTITY: Final = Special("resource.Quantity", "quantity", _read_quantity, "0")
ROUNDED_QUANTITY: Final = Special("resource.Quantity", "quantity", _read_rounded_quantity, "0")
SIMPLE: Final[dict[str, Callable[[str], ValueType]]] = {
    "string": lambda name: Simple(name, "string", lambda value: isinstance(value, str), ""),
    "bool": lambda name: Simple(name, "bool", lambda value: isinstance(value, bool), False),
    "int32": lambda name: Simple(name, "int32", lambda value: is_int(value, 32), 0),
    "int64": lambda name: Simple(name, "int64", lambda value: is_int(value, 64), 0),
    "float64": lambda name: Simple(name, "float64", lambda value: type(value) in (int, float), 0),
}
SPECIAL: Final[dict[str, ValueType]] = {
    "bytes": Bytes(),
    "Quantity": QUANTITY,
    "Time": Special("v1.Time", "time", _time_reader(canonical_time)),
    "MicroTime": Special("v1.MicroTime", "microTime", _time_reader(canonical_micro_time)),
    "IntOrString": Special("intstr.IntOrString", "intOrString", _read_int_or_string, 0),
    "RawExtension": Special("runtime.RawExtension", "any", _read_anything),
    "FieldsV1": Special("v1.FieldsV1", "any", _read_anything),
}
