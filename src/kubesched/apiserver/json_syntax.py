"""What Go's decoder says of a text that is no JSON.

Upstream: encoding/json (scanner.go)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

_SPACE: Final = b" \t\r\n"
_DIGITS: Final = b"0123456789"
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_ESCAPES: Final = b'bfnrt"\\/'
_HEX: Final = b"0123456789abcdefABCDEF"
_VALUE: Final = "looking for beginning of value"
_KEY: Final = "looking for beginning of object key string"
_END: Final = "unexpected end of JSON input"


class _Fault(Exception):  # noqa: N818  # carries the message out of the scanner; nobody else sees it
    pass


class _Scanner:
    """Reads one value, and stops where Go's decoder would."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0

    def scan(self) -> None:
        self._value()
        self._space()
        if self._at < len(self._text):
            raise self._invalid("after top-level value")

    def _space(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1

    def _peek(self) -> int:
        if self._at >= len(self._text):
            raise _Fault(_END)
        return self._text[self._at]

    def _invalid(self, where: str) -> _Fault:
        return _Fault(f"invalid character {shown_byte(self._peek())} {where}")

    def _value(self) -> None:
        self._space()
        byte = self._peek()
        if byte == ord("{"):
            self._members()
        elif byte == ord("["):
            self._elements()
        elif byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte == ord("-") or byte in _DIGITS:
            self._number()
        else:
            raise self._invalid(_VALUE)

    def _members(self) -> None:
        self._at += 1
        self._space()
        if self._peek() == ord("}"):
            self._at += 1
            return
        while True:
            self._space()
            if self._peek() != ord('"'):
                raise self._invalid(_KEY)
            self._string()
            self._space()
            if self._peek() != ord(":"):
                raise self._invalid("after object key")
            self._at += 1
            self._value()
            if self._closes(ord("}"), "after object key:value pair"):
                return

    def _elements(self) -> None:
        self._at += 1
        self._space()
        if self._peek() == ord("]"):
            self._at += 1
            return
        while True:
            self._value()
            if self._closes(ord("]"), "after array element"):
                return

    def _closes(self, closing: int, where: str) -> bool:
        self._space()
        byte = self._peek()
        if byte not in {closing, ord(",")}:
            raise self._invalid(where)
        self._at += 1
        return byte == closing

    def _string(self) -> None:
        self._at += 1
        while True:
            byte = self._peek()
            if byte == ord('"'):
                self._at += 1
                return
            if byte < 0x20:
                raise self._invalid("in string literal")
            self._at += 1
            if byte == ord("\\"):
                self._escape()

    def _escape(self) -> None:
        byte = self._peek()
        if byte == ord("u"):
            for _ in range(4):
                self._at += 1
                if self._peek() not in _HEX:
                    raise self._invalid("in \\u hexadecimal character escape")
        elif byte not in _ESCAPES:
            raise self._invalid("in string escape code")
        self._at += 1

    def _literal(self, word: bytes) -> None:
        for expected in word:
            if self._peek() != expected:
                where = f"in literal {word.decode()} (expecting {shown_byte(expected)})"
                raise self._invalid(where)
            self._at += 1

    def _number(self) -> None:
        if self._peek() == ord("-"):
            self._at += 1
            if self._peek() not in _DIGITS:
                raise self._invalid("in numeric literal")
        if self._peek() == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._next_is(b"."):
            self._at += 1
            if self._peek() not in _DIGITS:
                raise self._invalid("after decimal point in numeric literal")
            self._digits()
        if self._next_is(b"eE"):
            self._at += 1
            if self._next_is(b"+-"):
                self._at += 1
            if self._peek() not in _DIGITS:
                raise self._invalid("in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        while self._next_is(_DIGITS):
            self._at += 1

    def _next_is(self, some: bytes) -> bool:
        return self._at < len(self._text) and self._text[self._at] in some


def shown_byte(byte: int) -> str:
    """Return a byte as Go's decoder quotes it."""
    if byte == ord("'"):
        return "'\\''"
    if byte == ord('"'):
        return "'\"'"
    special = {0x07: "a", 0x08: "b", 0x09: "t", 0x0A: "n", 0x0B: "v", 0x0C: "f", 0x0D: "r"}
    if byte in special:
        return f"'\\{special[byte]}'"
    if byte == ord("\\"):
        return "'\\\\'"
    if byte < 0x20 or byte == 0x7F:
        return f"'\\x{byte:02x}'"
    character = chr(byte)
    return f"'{character}'" if character.isprintable() else f"'\\u{byte:04x}'"


def json_fault(text: bytes) -> str | None:
    """Return what is wrong with a text, None if it is JSON."""
    try:
        _Scanner(text).scan()
    except _Fault as fault:
        return str(fault)
    return None
