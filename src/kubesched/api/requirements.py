"""Requirements on labels, the compiled selectors that consist of them, and selectors as text.

Upstream: staging/src/k8s.io/apimachinery/pkg/labels/selector.go, pkg/fields/selector.go (v1.36)
Differs:  nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from kubesched.api.field_errors import FieldError, aggregate, invalid
from kubesched.api.integers import is_int64
from kubesched.api.names import label_key_errors, label_value_errors

IN: Final = "In"
NOT_IN: Final = "NotIn"
EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GREATER_THAN: Final = "Gt"
LESS_THAN: Final = "Lt"

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_INTEGER_LENGTH_MAX: Final = 4_000
_LISTING_OPERATORS: Final = frozenset((IN, EQUALS, DOUBLE_EQUALS))
_EXCLUDING_OPERATORS: Final = frozenset((NOT_IN, NOT_EQUALS))
# Looking up the pods of more values takes more time than comparing all pods with the requirement.
_NARROW_MAX: Final = 10
_SYMBOLS: Final = {IN: " in ", NOT_IN: " notin ", GREATER_THAN: ">", LESS_THAN: "<"}


class SelectorError(ValueError):
    """A selector is invalid; the message is upstream's."""


def parse_int64(text: str) -> int | None:
    """Parse a base-10 int64; return None if the text is not one."""
    if _INTEGER.fullmatch(text) is None or len(text) > _INTEGER_LENGTH_MAX:
        return None
    number = int(text)
    return number if is_int64(number) else None


class Requirement(msgspec.Struct, frozen=True, order=True, gc=False):
    """A requirement on one label. Hashable; sorts by key.

    Attributes:
        key: The label's key.
        operator: One of this module's constants.
        values: One for equality and comparison, one or more for `in` and `notin`, else none.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy the requirement."""
        label = labels.get(self.key)
        match self.operator:
            case "In" | "=" | "==":
                return label is not None and label in self.values
            case "NotIn" | "!=":
                return label is None or label not in self.values
            case "Exists":
                return label is not None
            case "DoesNotExist":
                return label is None
            case _:
                return label is not None and self._compares(label)

    def _compares(self, label: str) -> bool:
        number = parse_int64(label)
        bound = parse_int64(self.values[0]) if len(self.values) == 1 else None
        if number is None or bound is None:
            return False
        return number > bound if self.operator == GREATER_THAN else number < bound

    def __str__(self) -> str:
        if self.operator in (EXISTS, DOES_NOT_EXIST):
            return f"!{self.key}" if self.operator == DOES_NOT_EXIST else self.key
        values = ",".join(sorted(self.values))
        if self.operator in (IN, NOT_IN):
            values = f"({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator)}{values}"


def requirement_errors(
    key: str, operator: str, values: tuple[str, ...], path: str = ""
) -> tuple[FieldError, ...]:
    """Return what is wrong with a requirement; empty if it is valid.

    `operator` is one of this module's constants; `path` is the requirement's field, "" at the root.
    """
    prefix = f"{path}." if path else ""
    errors = []
    if wrong := label_key_errors(key):
        errors.append(invalid(f"{prefix}key", key, "; ".join(wrong)))
    errors += _count_errors(operator, values, f"{prefix}values")
    for index, value in enumerate(values):
        if wrong := label_value_errors(value):
            errors.append(invalid(f"{prefix}values[{index}][{key}]", value, "; ".join(wrong)))
    return tuple(errors)


def checked_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Return a requirement; raises SelectorError if it is invalid."""
    if errors := requirement_errors(key, operator, values):
        raise SelectorError(aggregate(map(str, errors)))
    return Requirement(key, operator, values)


def _count_errors(operator: str, values: tuple[str, ...], path: str) -> list[FieldError]:
    match operator:
        case "In" | "NotIn" if not values:
            detail = "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=" if len(values) != 1:
            detail = "exact-match compatibility requires one single value"
        case "Exists" | "DoesNotExist" if values:
            detail = "values set must be empty for exists and does not exist"
        case "Gt" | "Lt":
            return _bound_errors(values, path)
        case _:
            return []
    return [invalid(path, values or None, detail)]


def _bound_errors(values: tuple[str, ...], path: str) -> list[FieldError]:
    errors = []
    if len(values) != 1:
        detail = "for 'Gt', 'Lt' operators, exactly one value is required"
        errors.append(invalid(path, values or None, detail))
    detail = "for 'Gt', 'Lt' operators, the value must be an integer"
    errors += [
        invalid(f"{path}[{index}]", value, detail)
        for index, value in enumerate(values)
        if parse_int64(value) is None
    ]
    return errors


class CompiledSelector(msgspec.Struct, frozen=True, gc=False):
    """A selector that matches if all requirements do. Hashable and comparable.

    Attributes:
        requirements: Sorted by key.
        is_nothing: Whether it matches nothing, as an absent selector does.
    """

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements and not self.is_nothing

    @property
    def needed_labels(self) -> tuple[tuple[str, str], ...] | None:
        """Pairs of key and value of which each match has exactly one; None if none are known."""
        if self.is_nothing:
            return ()
        fewest: tuple[tuple[str, str], ...] | None = None
        for requirement in self.requirements:
            if requirement.operator in _LISTING_OPERATORS:
                values = dict.fromkeys(requirement.values)
                if fewest is None or len(values) < len(fewest):
                    fewest = tuple((requirement.key, value) for value in values)
        return fewest

    @property
    def is_narrow(self) -> bool | None:
        """Whether each match has one of at most ten needed labels; None if none are known."""
        if self.is_nothing:
            return True
        listed = [
            len(each.values) for each in self.requirements if each.operator in _LISTING_OPERATORS
        ]
        return min(listed) <= _NARROW_MAX if listed else None

    @property
    def as_difference(self) -> "tuple[CompiledSelector, CompiledSelector] | None":
        """Two selectors: this one matches what the first matches, unless the second does too.

        The second has needed labels: it is `a,b in (c)` for `a,b notin (c)`, and the first is `a`.
        None if this selector has needed labels itself, or excludes no values, or many.
        """
        if self.needed_labels is None:
            for at, excluded in enumerate(self.requirements):
                is_short = len(excluded.values) <= _NARROW_MAX
                if is_short and excluded.operator in _EXCLUDING_OPERATORS:
                    rest = CompiledSelector(self.requirements[:at] + self.requirements[at + 1 :])
                    included = Requirement(excluded.key, IN, excluded.values)
                    return rest, rest.with_requirements((included,))
        return None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy all requirements."""
        for requirement in self.requirements:
            if not requirement.matches(labels):
                return False
        return not self.is_nothing

    def with_requirements(self, requirements: Iterable[Requirement]) -> "CompiledSelector":
        """Return a selector with additional requirements."""
        if self.is_nothing:
            return self
        return selector_of((*self.requirements, *requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


NOTHING: Final = CompiledSelector(is_nothing=True)
EVERYTHING: Final = CompiledSelector()


def selector_of(requirements: Iterable[Requirement]) -> CompiledSelector:
    """Return the selector of requirements that are known to be valid."""
    return CompiledSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


# Selectors as text: `a=b,c in (d,e),!f` on labels, `spec.nodeName=n` on fields.

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

    Raises SelectorError if the text is not a selector.
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

    Raises SelectorError if the text is not a selector.
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
