"""Selectors as text: `a=b,c in (d,e),!f` on labels, `spec.nodeName=n` on fields.

Upstream: apimachinery/pkg/labels/selector.go (Parse), pkg/fields/selector.go (v1.36)
Differs:  nothing.
"""

import re
from typing import Final, NamedTuple

from kubesched.api.field_errors import invalid
from kubesched.api.label_format import label_key_errors
from kubesched.api.requirements import (
    DOES_NOT_EXIST,
    DOUBLE_EQUALS,
    EQUALS,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_EQUALS,
    NOT_IN,
    CompiledSelector,
    Requirement,
    SelectorError,
    checked_requirement,
    selector_of,
)

_WORD: Final = "word"
_END: Final = "end"
_TOKEN: Final = re.compile(r"(==|!=|[=!(),><])|([^=!(),>< \t\r\n]+)")
_KEYWORDS: Final = frozenset({"in", "notin"})
_OPERATORS: Final = {
    "in": IN,
    "=": EQUALS,
    "==": DOUBLE_EQUALS,
    ">": GREATER_THAN,
    "<": LESS_THAN,
    "notin": NOT_IN,
    "!=": NOT_EQUALS,
}
_OPERATORS_SHOWN: Final = "in, notin, =, ==, !=, gt, lt"


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    """Return the symbols and words of a text; as upstream, a zero byte ends it."""
    tokens = []
    for symbol, word in _TOKEN.findall(text.partition("\0")[0]):
        kind = symbol or (word if word in _KEYWORDS else _WORD)
        tokens.append(_Token(kind, symbol or word))
    return [*tokens, _Token(_END, "")]


class _Parser:
    """A parser for a single use."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while self._peek_value() != _END:
            if self._peek_value() not in (_WORD, "!"):
                self._fail("expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            token = self._next()
            if token.kind == _END:
                break
            if token.kind != ",":
                self._at -= 1
                self._fail("expected: ',' or 'end of string'")
            if self._peek_value() not in (_WORD, "!"):
                self._fail("expected: identifier after ','")
        return requirements

    def _requirement(self) -> Requirement:
        negated = self._peek_value() == "!"
        if negated:
            self._next()
        if self._peek_value() != _WORD:
            self._fail("expected: identifier")
        key = self._next().text
        if wrong := label_key_errors(key):
            raise SelectorError(str(invalid("<nil>", key, "; ".join(wrong))))
        if self._peek().kind in (_END, ","):
            return checked_requirement(key, DOES_NOT_EXIST if negated else EXISTS, ())
        if negated:
            return checked_requirement(key, DOES_NOT_EXIST, ())
        operator = _OPERATORS.get(self._peek().kind)
        if operator is None:
            self._fail(f"expected: {_OPERATORS_SHOWN}")
        self._next()
        values = self._values() if operator in (IN, NOT_IN) else self._exact_value()
        return checked_requirement(key, str(operator), tuple(sorted(set(values))))

    def _values(self) -> list[str]:
        if self._peek().kind != "(":
            raise SelectorError(f"found '{self._peek().text}' expected: '('")
        self._next()
        values: list[str] = []
        if self._peek_value() not in (_WORD, ",", ")"):
            self._fail("expected: ',', ')' or identifier")
        while True:
            # A missing value means the empty one.
            values.append(self._next().text if self._peek_value() == _WORD else "")
            separator = self._peek_value()
            if separator not in (",", ")"):
                self._fail("expected: ',' or ')'")
            self._next()
            if separator == ")":
                return values
            if self._peek_value() not in (_WORD, ",", ")"):
                self._fail("expected: ',', or identifier")

    def _exact_value(self) -> list[str]:
        if self._peek().kind in (_END, ","):
            return [""]
        if self._peek_value() != _WORD:
            self._fail("expected: identifier")
        return [self._next().text]

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _peek_value(self) -> str:
        """Return the kind of the next token; `in` and `notin` are ordinary words here."""
        kind = self._peek().kind
        return _WORD if kind in _KEYWORDS else kind

    def _next(self) -> _Token:
        token = self._peek()
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _fail(self, expected: str) -> None:
        raise SelectorError(f"found '{self._peek().text}', {expected}")


def parse_selector(text: str) -> CompiledSelector:
    """Parse a label selector; an empty text matches everything.

    Raises:
        SelectorError: The text is not a selector.
    """
    return selector_of(_Parser(text).parse())


class FieldRequirement(NamedTuple):
    """A field must be equal to a value, or must differ from it."""

    field: str
    is_equal: bool
    value: str


_TERM: Final = re.compile(r"(?:[^\\,]|\\.|\\$)+", re.DOTALL)
"""What is between commas that are not escaped."""
_ESCAPED: Final = re.compile(r"\\(.?)|[,=]", re.DOTALL)
_FIELD_OPERATOR: Final = re.compile("!=|==|=")


def parse_field_selector(text: str) -> tuple[FieldRequirement, ...]:
    """Return the requirements of a field selector, all of which must hold.

    Raises:
        SelectorError: The text is not a selector.
    """
    return tuple(_field_requirement(text, term) for term in sorted(_TERM.findall(text)))


def _field_requirement(text: str, term: str) -> FieldRequirement:
    match = _FIELD_OPERATOR.search(term)
    if match is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _ESCAPED.sub(_unescaped, term[match.end() :])
    return FieldRequirement(term[: match.start()], match[0] != "!=", value)


def _unescaped(match: re.Match[str]) -> str:
    if match[0] in (",", "="):
        raise SelectorError(
            f"invalid field selector: unescaped character in value: {ord(match[0])}"
        )
    if match[1] not in ("\\", ",", "=") or not match[1]:
        raise SelectorError(f"invalid field selector: invalid escape sequence: {match[0]}")
    return match[1]
