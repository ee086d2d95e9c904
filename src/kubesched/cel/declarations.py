"""Types of expressions and the overloads of functions, read from one-line signatures.

Upstream: google/cel-go common/types/types.go, common/decls
Differs:  nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.cel.values import from_map_key, type_name


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `params` are the element type of a list, the key and value types of a map."""

    name: str
    params: "tuple[Type, ...]" = ()

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def is_param(self) -> bool:
        """Whether the type is a type parameter of an overload or a variable of the checker."""
        return len(self.name) == 1 or self.name.startswith("_")

    @property
    def is_dyn(self) -> bool:
        """Whether the type is known only when the expression is evaluated."""
        return self.name in {"dyn", "any", "!error!"}


DYN, ANY, ERROR = Type("dyn"), Type("any"), Type("!error!")
BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, NULL = Type("string"), Type("null")
QUANTITY, SEMVER = Type("kubernetes.Quantity"), Type("kubernetes.Semver")

_SHORT_NAMES = {
    "quantity": QUANTITY,
    "semver": SEMVER,
    "ip": Type("net.IP"),
    "cidr": Type("net.CIDR"),
    "url": Type("kubernetes.URL"),
}


def list_of(element: Type) -> Type:
    """Return the type of lists with elements of this type."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps from such keys to such values."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values."""
    return Type("optional_type", (value,))


Implementation = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Overload:
    """A signature of a function and its implementation; a member's first argument is its target."""

    args: tuple[Type, ...]
    result: Type
    implementation: Implementation

    def accepts(self, args: tuple[object, ...]) -> bool:
        """Whether the values have the declared argument types."""
        return len(args) == len(self.args) and all(map(_is_instance, self.args, args))


def _is_instance(declared: Type, value: object) -> bool:
    """Whether the value has the type; as upstream, only its first element is checked."""
    if declared.is_param or declared.is_dyn:
        return True
    if declared.name != type_name(value):
        return False
    if isinstance(value, tuple):
        return not value or _is_instance(declared.params[0], value[0])
    if isinstance(value, dict) and value:
        key, element = next(iter(value.items()))
        entry = (from_map_key(key), element)
        return all(map(_is_instance, declared.params, entry))
    return True


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its overloads: `plain` for `f(x)`, `member` for `x.f()`."""

    name: str
    plain: tuple[Overload, ...] = ()
    member: tuple[Overload, ...] = ()


Library = dict[str, Implementation]


def declare(*libraries: Library) -> dict[str, Function]:
    """Return the functions of libraries, which map signatures to implementations.

    A signature is `size(string): int`, for a member function `@size(string): int` (target first),
    for an operator whose name begins with an @ `@in <- A, list(A): bool`.
    """
    plain: dict[str, list[Overload]] = {}
    member: dict[str, list[Overload]] = {}
    for library in libraries:
        for signature, implementation in library.items():
            is_member, name, args, result = _parse_signature(signature)
            table = member if is_member else plain
            table.setdefault(name, []).append(Overload(args, result, implementation))
    return {
        name: Function(name, tuple(plain.get(name, ())), tuple(member.get(name, ())))
        for name in {**plain, **member}
    }


def _parse_signature(signature: str) -> tuple[bool, str, tuple[Type, ...], Type]:
    call, _, result = signature.rpartition(": ")
    head, arrow, args_text = call.partition(" <- ")
    if arrow:
        return False, head, _parse_types(args_text), _parse_types(result)[0]
    head, _, args_text = call.partition("(")
    args = _parse_types(args_text.removesuffix(")"))
    return head.startswith("@"), head.removeprefix("@"), args, _parse_types(result)[0]


def _parse_types(text: str) -> tuple[Type, ...]:
    """Parse a list of types such as `string, list(A)`."""
    parts = [""]
    depth = 0
    for char in text:
        if char == "," and depth == 0:
            parts.append("")
            continue
        depth += (char == "(") - (char == ")")
        parts[-1] += char
    return tuple(_parse_type(part.strip()) for part in parts if part)


def _parse_type(text: str) -> Type:
    name, paren, params = text.partition("(")
    if paren:
        return Type("optional_type" if name == "optional" else name, _parse_types(params[:-1]))
    return _SHORT_NAMES.get(name, Type(name))
