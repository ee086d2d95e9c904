"""Split an expression into tokens and read its literals.

Upstream: google/cel-go parser/gen/CEL.g4, parser/unescape.go
Differs:  the wording of syntax errors, which upstream takes from its parser generator.
"""

import re
from dataclasses import dataclass

from kubesched.cel.syntax import CelCompileError

_TOKENS = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<bytes>[bB][rR]?(?:\"{3}|'{3}|\"|'))
  | (?P<string>[rR]?(?:\"{3}|'{3}|\"|'))
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<uint>0x[0-9a-fA-F]+[uU]|\d+[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<escaped>`[A-Za-z0-9_.\-/ ]+`)
  | (?P<op>==|!=|<=|>=|&&|\|\||[<>()\[\]{}.,?:!+\-*/%])
    """,
    re.VERBOSE,
)

_SIMPLE_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPE = re.compile(
    r"\\(?:[xX](?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})"
    r"|(?P<o>[0-3][0-7]{2})|(?P<c>[abfnrtv\\'\"`?]))"
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `kind` is op, ident, escaped, int, uint, float, string, bytes or end."""

    kind: str
    text: str
    offset: int


def tokenize(source: str) -> list[Token]:
    """Return the tokens of `source`, the last of kind `end`; string tokens are unescaped.

    Raises CelCompileError.
    """
    tokens: list[Token] = []
    offset = 0
    while offset < len(source):
        match = _TOKENS.match(source, offset)
        if match is None or match.lastgroup is None:
            raise CelCompileError(
                source, offset, f"Syntax error: token recognition error at: '{source[offset]}'"
            )
        kind = match.lastgroup
        if kind in {"string", "bytes"}:
            text, end = _string_literal(source, offset, match.group(), is_bytes=kind == "bytes")
        else:
            text, end = match.group(), match.end()
        if kind != "space":
            tokens.append(Token(kind, text, offset))
        offset = end
    tokens.append(Token("end", "<EOF>", len(source)))
    return tokens


def _string_literal(source: str, start: int, opening: str, *, is_bytes: bool) -> tuple[str, int]:
    quote = opening.lstrip("bBrR")
    raw = "r" in opening.lower()
    begin = start + len(opening)
    end = _find_end(source, begin, quote, raw=raw)
    if end < 0:
        text = source[start : start + 10]
        raise CelCompileError(source, start, f"Syntax error: token recognition error at: '{text}'")
    body = source[begin:end].replace("\r\n", "\n").replace("\r", "\n")
    if not raw:
        body = _unescape(source, start, body, is_bytes=is_bytes)
    elif is_bytes:
        body = body.encode().decode("latin-1")
    return body, end + len(quote)


def _find_end(source: str, begin: int, quote: str, *, raw: bool) -> int:
    offset = begin
    while offset < len(source):
        if source.startswith(quote, offset):
            return offset
        if len(quote) == 1 and source[offset] in "\n\r":
            return -1
        offset += 2 if source[offset] == "\\" and not raw else 1
    return -1


def _unescape(source: str, start: int, body: str, *, is_bytes: bool) -> str:
    """Replace escapes; a bytes literal becomes a text with a character (0-255) per byte."""
    parts: list[str] = []
    offset = 0
    while offset < len(body):
        if body[offset] != "\\":
            following = body.find("\\", offset)
            following = len(body) if following < 0 else following
            plain = body[offset:following]
            parts.append(plain.encode().decode("latin-1") if is_bytes else plain)
            offset = following
            continue
        match = _ESCAPE.match(body, offset)
        char = None if match is None else _escaped(match, is_bytes=is_bytes)
        if match is None or char is None:
            raise CelCompileError(source, start, "unable to unescape string")
        parts.append(char)
        offset = match.end()
    return "".join(parts)


def _escaped(match: re.Match[str], *, is_bytes: bool) -> str | None:
    if (char := match["c"]) is not None:
        return _SIMPLE_ESCAPES[char]
    if (octal := match["o"]) is not None:
        return chr(int(octal, 8))
    if (hexadecimal := match["x"]) is not None:
        return chr(int(hexadecimal, 16))
    code = int(match["u"] or match["U"], 16)
    if is_bytes or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return None
    return chr(code)
