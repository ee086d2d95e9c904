"""The syntax tree of an expression; `offset` is where errors of a node are reported."""

from dataclasses import dataclass, field

from kubesched.cel.declarations import Overload


class CelCompileError(ValueError):
    """An expression does not compile; the message is upstream's `ERROR: <input>:1:1: …`."""

    def __init__(self, source: str, offset: int, message: str) -> None:
        self.offset = offset
        before = source[:offset]
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1)
        text, dots = source.split("\n")[line - 1], "." * column
        super().__init__(f"ERROR: <input>:{line}:{column + 1}: {message}\n | {text}\n | {dots}^")


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: int, UInt, float, str, bool or None."""

    offset: int
    value: object


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable, or the name of a type."""

    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, `operand.?field`, or with `test_only` the macro `has(operand.field)`."""

    offset: int
    operand: "Node"
    field: str
    optional: bool = False
    test_only: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """`operand[index]` or `operand[?index]`."""

    offset: int
    operand: "Node"
    index: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call `function(args)` or `target.function(args)`; operators have names like `_+_`.

    The checker fills `chosen` with the overloads that fit the types of the arguments.
    """

    offset: int
    function: str
    target: "Node | None"
    args: "tuple[Node, ...]"
    chosen: list[Overload] = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, ?b]`; `optional` are the positions marked with a question mark."""

    offset: int
    elements: "tuple[Node, ...]"
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """`{a: b, ?c: d}`; `optional` are the positions marked with a question mark."""

    offset: int
    entries: "tuple[tuple[Node, Node], ...]"
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A macro such as `range.all(variable, predicate)`; `kind` is its name."""

    offset: int
    kind: str
    range: "Node"
    variables: tuple[str, ...]
    predicate: "Node | None"
    transform: "Node | None"


@dataclass(frozen=True, slots=True)
class Bind:
    """`cel.bind(name, value, body)`."""

    offset: int
    name: str
    value: "Node"
    body: "Node"


@dataclass(frozen=True, slots=True)
class OptionalMap:
    """`target.optMap(name, body)`, or `optFlatMap` if `flat`."""

    offset: int
    target: "Node"
    name: str
    body: "Node"
    flat: bool


Node = (
    Literal
    | Ident
    | Select
    | Index
    | Call
    | ListLiteral
    | MapLiteral
    | Comprehension
    | Bind
    | OptionalMap
)
