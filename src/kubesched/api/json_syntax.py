"""Says what is wrong with a text that is no JSON, in Go's words.

Upstream: encoding/json of Go, scanner.go and stream.go: Unmarshal reads a text, a Decoder reads
          the value at the beginning of a stream
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

_BLANKS: Final = b" \t\r\n"
_DIGITS: Final = b"0123456789"
_HEX: Final = b"0123456789abcdefABCDEF"
_ESCAPES: Final = b'bfnrt\\/"'
_LITERALS: Final = {b"t": b"true", b"f": b"false", b"n": b"null"}
_DEPTH_MAX: Final = 10_000
_CONTROL: Final = 0x20
_ASCII: Final = 0x80
_SPELLED: Final = {
    "\\": "\\\\", "'": "\\'", "\a": "\\a", "\b": "\\b", "\f": "\\f",
    "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def json_text_error(text: bytes) -> str:
    """Return why a text is no JSON value, "" if it is one."""
    scanner = _Scanner(text, "unexpected end of JSON input")
    try:
        scanner.value()
        scanner.end()
    except JsonSyntaxError as error:
        return str(error)
    return ""


def json_stream_error(text: bytes) -> str:
    """Return why no JSON value stands at the beginning of a text, "" if one does."""
    if not text.strip(_BLANKS):
        return "EOF"
    try:
        _Scanner(text, "unexpected EOF").value()
    except JsonSyntaxError as error:
        return str(error)
    return ""


class JsonSyntaxError(ValueError):
    """What is wrong."""


class _Scanner:
    """Walks through the bytes of one value."""

    def __init__(self, text: bytes, at_end: str) -> None:
        self._text = text
        self._at_end = at_end
        self._at = 0

    def _peek(self) -> bytes:
        """Return the next byte.

        Raises:
            JsonSyntaxError: The text ends here, in the middle of a value.
        """
        if self._at >= len(self._text):
            raise JsonSyntaxError(self._at_end)
        return self._text[self._at : self._at + 1]

    def _solid(self) -> bytes:
        """Return the next byte that is not blank."""
        while self._peek() in _BLANKS:
            self._at += 1
        return self._peek()

    def _take(self, expected: bytes, context: str) -> None:
        """Step over a byte, which must be one of those expected."""
        if self._peek() not in expected:
            raise self._fault(context)
        self._at += 1

    def _fault(self, context: str) -> JsonSyntaxError:
        return JsonSyntaxError(f"invalid character {_quoted(self._peek())} {context}")

    def value(self) -> None:
        """Step over a value."""
        closers: list[bytes] = []
        while True:
            opened = self._solid()
            if opened in b"{[":
                closers.append(b"}" if opened == b"{" else b"]")
                if len(closers) > _DEPTH_MAX:
                    raise self._fault("exceeded max depth")
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
        """See that nothing but blanks follows."""
        self._skip(_BLANKS)
        if self._at < len(self._text):
            raise self._fault("after top-level value")

    def _key(self, closers: list[bytes]) -> None:
        """Step over the key before a value, if there has to be one."""
        if closers[-1] == b"}":
            self._solid()
            self._take(b'"', "looking for beginning of object key string")
            self._string()
            self._solid()
            self._take(b":", "after object key")

    def _close(self, closers: list[bytes]) -> None:
        """Step over what ends after a value, and over the comma before the next one."""
        while closers:
            found = self._solid()
            self._at += found in (b",", closers[-1])
            if found == b",":
                self._key(closers)
                return
            if found != closers[-1]:
                is_object = closers[-1] == b"}"
                where = "object key:value pair" if is_object else "array element"
                raise self._fault(f"after {where}")
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
            raise self._fault("looking for beginning of value")

    def _literal(self, word: bytes) -> None:
        for byte in word:
            expected = bytes((byte,))
            self._take(expected, f"in literal {word.decode()} (expecting {_quoted(expected)})")

    def _string(self) -> None:
        while (found := self._peek()) != b'"':
            if found[0] < _CONTROL:
                raise self._fault("in string literal")
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
        """Step over some bytes, as far as they are there; return how many."""
        start = self._at
        end = len(self._text) if count_max is None else min(len(self._text), start + count_max)
        while self._at < end and self._text[self._at] in bytes_:
            self._at += 1
        return self._at - start


def _quoted(byte: bytes) -> str:
    """Write a byte as Go writes a character."""
    character = byte.decode("latin-1")
    if character in _SPELLED:
        return f"'{_SPELLED[character]}'"
    if character.isprintable():
        return f"'{character}'"
    number = ord(character)
    return f"'\\x{number:02x}'" if number < _ASCII else f"'\\u{number:04x}'"
