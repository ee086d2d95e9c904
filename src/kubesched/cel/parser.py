"""Parse an expression, expanding its macros.

Upstream: google/cel-go parser/{gen/CEL.g4,unescape.go,parser.go,macro.go}, ext/bindings.go,
          ext/comprehensions.go
Differs:  the wording of syntax errors, which upstream takes from its parser generator; message
          literals (`Type{…}`) are refused; expressions nest 100 levels deep, upstream 250.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kubesched.api.integers import is_int64
from kubesched.cel.syntax import (
    Bind,
    Call,
    CelCompileError,
    Comprehension,
    Ident,
    Index,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    OptionalMap,
    Select,
)
from kubesched.cel.values import UINT_MAX, UInt

T = TypeVar("T")

# Tokens.

_TOKENS = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
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

_SIMPLE_ESCAPES = dict(zip("abfnrtv\\'\"`?", "\a\b\f\n\r\t\v\\'\"`?", strict=True))
_PART = re.compile(
    r"(?P<plain>[^\\]+)"
    r"|\\(?:[xX](?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})"
    r"|(?P<o>[0-3][0-7]{2})|(?P<c>[abfnrtv\\'\"`?]))|\\"
)
"""The parts of a text literal: plain text, an escape, or a backslash without one."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `kind` is op, ident, escaped, int, uint, float, string or end."""

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
        if kind == "string":
            text, end = _string_literal(source, offset, match.group())
        else:
            text, end = match.group(), match.end()
        if kind != "space":
            tokens.append(Token(kind, text, offset))
        offset = end
    tokens.append(Token("end", "<EOF>", len(source)))
    return tokens


def _string_literal(source: str, start: int, opening: str) -> tuple[str, int]:
    quote = opening.lstrip("rR")
    raw = "r" in opening.lower()
    begin = start + len(opening)
    end = _find_end(source, begin, quote, raw=raw)
    if end < 0:
        text = source[start : start + 10]
        raise CelCompileError(source, start, f"Syntax error: token recognition error at: '{text}'")
    body = source[begin:end].replace("\r\n", "\n").replace("\r", "\n")
    if not raw:
        body = _unescape(source, start, body)
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


def _unescape(source: str, start: int, body: str) -> str:
    """Replace escapes. Raises CelCompileError."""

    def unescaped(part: re.Match[str]) -> str:
        match part.lastgroup:
            case "plain":
                return part[0]
            case "c":
                return _SIMPLE_ESCAPES[part["c"]]
            case "o" | "x" as base:
                return chr(int(part[base], 8 if base == "o" else 16))
            case "u" | "U" as form:
                code = int(part[form], 16)
                if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                    return chr(code)
        raise CelCompileError(source, start, "unable to unescape string")

    return _PART.sub(unescaped, body)


# Parsing.

_RESERVED = {
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
    "let", "loop", "package", "namespace", "null", "return", "true", "var", "void", "while",
}  # fmt: skip
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}
_LEVELS = (("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))
_PRECEDENCE = {operator: at for at, level in enumerate(_LEVELS, 1) for operator in level}
_ACCUMULATORS = {"__result__", "@result"}
_DEPTH_MAX = 100
_DIGITS_MAX = 1000


def parse(source: str) -> Node:
    """Return the syntax tree of `source`. Raises CelCompileError."""
    return _Parser(source).parse()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = tokenize(source)
        self._position = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._expression()
        if self._next.kind != "end":
            raise self._unexpected()
        return node

    # Tokens.

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _is(self, text: str) -> bool:
        return self._next.text == text and self._next.kind in {"op", "ident"}

    def _accept(self, text: str) -> Token | None:
        return self._take() if self._is(text) else None

    def _expect(self, text: str) -> Token:
        if not self._is(text):
            raise self._unexpected(text)
        return self._take()

    def _unexpected(self, expecting: str = "") -> CelCompileError:
        token = self._next
        hint = f" expecting '{expecting}'" if expecting else ""
        return self._error(token.offset, f"Syntax error: mismatched input '{token.text}'{hint}")

    def _error(self, offset: int, message: str) -> CelCompileError:
        return CelCompileError(self._source, offset, message)

    # Expressions, from the lowest precedence to the highest.

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            message = f"expression recursion limit exceeded: {_DEPTH_MAX}"
            raise self._error(self._next.offset, message)
        condition = self._binary(1)
        question = self._accept("?")
        if question is not None:
            then = self._binary(1)
            self._expect(":")
            otherwise = self._expression()
            condition = Call(question.offset, "_?_:_", None, (condition, then, otherwise))
        self._depth -= 1
        return condition

    def _binary(self, precedence: int) -> Node:
        left = self._unary()
        while self._next.kind in {"op", "ident"}:
            level = _PRECEDENCE.get(self._next.text, 0)
            if level < precedence:
                break
            operator = self._take()
            right = self._binary(level + 1)
            left = _binary_call(operator, left, right)
        return left

    def _unary(self) -> Node:
        for text, name in (("!", "!_"), ("-", "-_")):
            if not self._is(text):
                continue
            if text == "-" and self._tokens[self._position + 1].kind in {"int", "float"}:
                break
            first = self._next
            count = 0
            while self._accept(text) is not None:
                count += 1
            operand = self._member(self._primary())
            return Call(first.offset, name, None, (operand,)) if count % 2 else operand
        return self._member(self._primary())

    def _member(self, node: Node) -> Node:
        while True:
            if (dot := self._accept(".")) is not None:
                node = self._select_or_call(node, dot)
            elif (bracket := self._accept("[")) is not None:
                optional = self._accept("?") is not None
                index = self._expression()
                self._expect("]")
                node = Index(bracket.offset, node, index, optional)
            else:
                return node

    def _select_or_call(self, node: Node, dot: Token) -> Node:
        optional = self._accept("?") is not None
        token = self._take()
        if token.kind not in {"ident", "escaped"}:
            self._position -= 1
            raise self._unexpected()
        name = token.text.strip("`")
        if token.kind == "ident" and name in {"true", "false", "null", "in"}:
            raise self._error(
                token.offset, f"Syntax error: no viable alternative at input '.{name}'"
            )
        if token.kind == "ident" and not optional and self._is("("):
            opening = self._take()
            return self._call(opening.offset, name, node, self._arguments())
        return Select(dot.offset, node, name, optional)

    def _arguments(self) -> tuple[Node, ...]:
        if self._accept(")") is not None:
            return ()
        args = [self._expression()]
        while self._accept(",") is not None:
            args.append(self._expression())
        self._expect(")")
        return tuple(args)

    def _primary(self) -> Node:
        token = self._take()
        if token.kind in {"int", "uint", "float"}:
            return self._number(token, "")
        if token.kind == "string":
            return Literal(token.offset, token.text)
        if token.kind == "ident":
            return self._identifier(token)
        if token.kind == "op":
            return self._bracketed(token)
        self._position -= 1
        raise self._unexpected()

    def _bracketed(self, token: Token) -> Node:
        match token.text:
            case "(":
                node = self._expression()
                self._expect(")")
                return node
            case "[":
                return ListLiteral(token.offset, *self._items("]", self._expression))
            case "{":
                return MapLiteral(token.offset, *self._items("}", self._entry))
            case "-" if self._next.kind in {"int", "float"}:
                return self._number(self._take(), "-", token.offset)
            case "." if self._next.kind == "ident":
                return self._identifier(self._take())
        self._position -= 1
        raise self._unexpected()

    def _number(self, token: Token, sign: str, offset: int | None = None) -> Node:
        offset = token.offset if offset is None else offset
        if token.kind == "float":
            return Literal(offset, float(sign + token.text))
        text = token.text.rstrip("uU") if token.kind == "uint" else token.text
        if len(text) > _DIGITS_MAX:
            raise self._error(offset, f"invalid {token.kind} literal")
        number = int(sign + text, 16 if text.startswith("0x") else 10)
        if token.kind == "uint":
            if number > UINT_MAX:
                raise self._error(offset, "invalid uint literal")
            return Literal(offset, UInt(number))
        if not is_int64(number):
            raise self._error(offset, "invalid int literal")
        return Literal(offset, number)

    def _identifier(self, token: Token) -> Node:
        name = token.text
        if name in _CONSTANTS:
            return Literal(token.offset, _CONSTANTS[name])
        if name in _RESERVED:
            raise self._error(token.offset, f"reserved identifier: {name}")
        if self._is("("):
            opening = self._take()
            return self._call(opening.offset, name, None, self._arguments())
        return Ident(token.offset, name)

    def _items(self, closing: str, read: Callable[[], T]) -> tuple[tuple[T, ...], frozenset[int]]:
        """Read the items up to a bracket; return also the positions that have a question mark."""
        items: list[T] = []
        optional: set[int] = set()
        while not self._is(closing):
            if self._accept("?") is not None:
                optional.add(len(items))
            items.append(read())
            if self._accept(",") is None:
                break
        self._expect(closing)
        return tuple(items), frozenset(optional)

    def _entry(self) -> tuple[Node, Node]:
        key = self._expression()
        self._expect(":")
        return key, self._expression()

    # Calls and macros.

    def _call(self, offset: int, name: str, target: Node | None, args: tuple[Node, ...]) -> Node:
        if target is None:
            if name == "has" and len(args) == 1:
                return self._has(args[0])
            return Call(offset, name, None, args)
        is_cel = isinstance(target, Ident) and target.name == "cel"
        if is_cel and name == "bind" and len(args) == 3:
            return self._bind(offset, args)
        if name in {"optMap", "optFlatMap"} and len(args) == 2:
            return self._optional_map(name, offset, target, args)
        variables = _VARIABLES.get((name, len(args)))
        if variables is None:
            return Call(offset, name, target, args)
        kind = "exists_one" if name == "existsOne" else name
        return self._comprehension(kind, offset, target, args, variables)

    def _has(self, operand: Node) -> Node:
        if not isinstance(operand, Select) or operand.optional:
            raise self._error(operand.offset, "invalid argument to has() macro")
        return Select(operand.offset, operand.operand, operand.field, test_only=True)

    def _bind(self, offset: int, args: tuple[Node, ...]) -> Node:
        message = "cel.bind() variable names must be simple identifiers"
        return Bind(offset, self._variable(args[0], message), args[1], args[2])

    def _variable(self, node: Node, message: str) -> str:
        if not isinstance(node, Ident):
            raise self._error(node.offset, message)
        if node.name in _ACCUMULATORS:
            raise self._error(node.offset, "iteration variable overwrites accumulator variable")
        return node.name

    def _comprehension(
        self, kind: str, offset: int, target: Node, args: tuple[Node, ...], variables: int
    ) -> Node:
        """Return a comprehension; its first `variables` arguments are variable names."""
        simple = kind in {"all", "exists", "exists_one"}
        message = "argument must be a simple name" if simple else "argument is not an identifier"
        names = tuple(self._variable(arg, message) for arg in args[:variables])
        rest = args[variables:]
        if simple or kind in {"filter", "sortBy"}:
            return Comprehension(offset, kind, target, names, rest[0], None)
        predicate = rest[0] if len(rest) == 2 else None
        return Comprehension(offset, kind, target, names, predicate, rest[-1])

    def _optional_map(
        self, function: str, offset: int, target: Node, args: tuple[Node, ...]
    ) -> Node:
        message = f"{function}() variable name must be a simple identifier"
        name = self._variable(args[0], message)
        return OptionalMap(offset, target, name, args[1], function == "optFlatMap")


def _binary_call(operator: Token, left: Node, right: Node) -> Call:
    name = "@in" if operator.text == "in" else f"_{operator.text}_"
    if name in {"_&&_", "_||_"} and isinstance(left, Call) and left.function == name:
        # A chain of these becomes one call, so that a long chain is not a deep tree.
        return Call(left.offset, name, None, (*left.args, right))
    return Call(operator.offset, name, None, (left, right))


_QUANTIFIERS = ("all", "exists", "exists_one", "existsOne")
_TRANSFORMS = ("transformList", "transformMap", "transformMapEntry")
_VARIABLES: dict[tuple[str, int], int] = {
    **{(name, 2): 1 for name in (*_QUANTIFIERS, "map", "filter", "sortBy")},
    ("map", 3): 1,
    **{(name, 3): 2 for name in (*_QUANTIFIERS, *_TRANSFORMS)},
    **{(name, 4): 2 for name in _TRANSFORMS},
}
"""How many arguments of a comprehension are variables, by its name and number of arguments."""
