"""Syntax errors of JSON text, with Go's messages.

Upstream: encoding/json of Go, scanner.go and stream.go: Unmarshal reads a text, a Decoder reads
          the value at the beginning of a stream
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.go_text import go_quote_character

_BLANKS: Final = b" \t\r\n"
_DIGITS: Final = b"0123456789"
_HEX: Final = b"0123456789abcdefABCDEF"
_ESCAPES: Final = b'bfnrt\\/"'
_LITERALS: Final = {b"t": b"true", b"f": b"false", b"n": b"null"}
_DEPTH_MAX: Final = 10_000
_CONTROL: Final = 0x20


def json_text_error(text: bytes) -> str:
    """Return why a text is not a JSON value, "" if it is one."""
    scanner = _Scanner(text, "unexpected end of JSON input")
    try:
        scanner.value()
        scanner.end()
    except JsonSyntaxError as error:
        return str(error)
    return ""


def json_stream_error(text: bytes) -> str:
    """Return why a text does not begin with a JSON value, "" if it does."""
    if not text.strip(_BLANKS):
        return "EOF"
    try:
        _Scanner(text, "unexpected EOF").value()
    except JsonSyntaxError as error:
        return str(error)
    return ""


class JsonSyntaxError(ValueError):
    """A syntax error; the message is Go's."""


class _Scanner:
    """Scans the bytes of one value."""

    def __init__(self, text: bytes, at_end: str) -> None:
        self._text = text
        self._at_end = at_end
        self._at = 0

    def _peek(self) -> bytes:
        """Return the next byte; raises JsonSyntaxError at the end of the text."""
        if self._at >= len(self._text):
            raise JsonSyntaxError(self._at_end)
        return self._text[self._at : self._at + 1]

    def _solid(self) -> bytes:
        """Return the next byte that is not blank."""
        while self._peek() in _BLANKS:
            self._at += 1
        return self._peek()

    def _take(self, expected: bytes, context: str) -> None:
        """Skip a byte, which must be one of those expected."""
        if self._peek() not in expected:
            raise self._error(context)
        self._at += 1

    def _error(self, context: str) -> JsonSyntaxError:
        return JsonSyntaxError(f"invalid character {_quoted(self._peek())} {context}")

    def value(self) -> None:
        """Skip a value."""
        closers: list[bytes] = []
        while True:
            opened = self._solid()
            if opened in b"{[":
                closers.append(b"}" if opened == b"{" else b"]")
                if len(closers) > _DEPTH_MAX:
                    raise self._error("exceeded max depth")
                self._at += 1
                if self._solid() != closers[-1]:
                    self._key(closers)
                    continue
            else:
                self._simple(opened)
            self._close(closers)
            if not closers:
                return

    def end(self) -> None:
        """Check that only blanks follow."""
        self._skip(_BLANKS)
        if self._at < len(self._text):
            raise self._error("after top-level value")

    def _key(self, closers: list[bytes]) -> None:
        """Skip the key before a value, if inside an object."""
        if closers[-1] == b"}":
            self._solid()
            self._take(b'"', "looking for beginning of object key string")
            self._string()
            self._solid()
            self._take(b":", "after object key")

    def _close(self, closers: list[bytes]) -> None:
        """Skip the ends of objects and arrays after a value, and the comma before the next one."""
        while closers:
            found = self._solid()
            self._at += found in (b",", closers[-1])
            if found == b",":
                self._key(closers)
                return
            if found != closers[-1]:
                is_object = closers[-1] == b"}"
                where = "object key:value pair" if is_object else "array element"
                raise self._error(f"after {where}")
            closers.pop()

    def _simple(self, first: bytes) -> None:
        if first == b'"':
            self._at += 1
            self._string()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first in b"-" + _DIGITS:
            self._number()
        else:
            raise self._error("looking for beginning of value")

    def _literal(self, word: bytes) -> None:
        for byte in word:
            expected = bytes((byte,))
            self._take(expected, f"in literal {word.decode()} (expecting {_quoted(expected)})")

    def _string(self) -> None:
        while (found := self._peek()) != b'"':
            if found[0] < _CONTROL:
                raise self._error("in string literal")
            self._at += 1
            if found == b"\\":
                self._escape()
        self._at += 1

    def _escape(self) -> None:
        if self._peek() == b"u":
            self._at += 1
            for _ in range(4):
                self._take(_HEX, "in \\u hexadecimal character escape")
        else:
            self._take(_ESCAPES, "in string escape code")

    def _number(self) -> None:
        self._skip(b"-", 1)
        if not self._skip(b"0", 1):
            self._take(_DIGITS, "in numeric literal")
            self._skip(_DIGITS)
        if self._skip(b".", 1):
            self._take(_DIGITS, "after decimal point in numeric literal")
            self._skip(_DIGITS)
        if self._skip(b"eE", 1):
            self._skip(b"+-", 1)
            self._take(_DIGITS, "in exponent of numeric literal")
            self._skip(_DIGITS)

    def _skip(self, bytes_: bytes, count_max: int | None = None) -> int:
        """Skip up to `count_max` of these bytes; return how many."""
        start = self._at
        end = len(self._text) if count_max is None else min(len(self._text), start + count_max)
        while self._at < end and self._text[self._at] in bytes_:
            self._at += 1
        return self._at - start


def _quoted(byte: bytes) -> str:
    """Return a byte in quotes; Go takes it for a character."""
    return go_quote_character(byte.decode("latin-1"))
