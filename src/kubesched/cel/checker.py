"""Check the types of an expression before it is evaluated.

Upstream: google/cel-go checker/{checker,types,errors,format}.go
Differs:  nothing that a device selector can show.
"""

from collections.abc import Callable, Mapping

from kubesched.cel.declarations import (
    BOOL,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Overload,
    Type,
    declare,
    list_of,
    map_of,
    optional_of,
)
from kubesched.cel.evaluator import TYPE_IDENTS, resolve
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
from kubesched.cel.values import UInt

Bindings = dict[str, Type]
Scope = dict[str, Type]

_LITERALS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    type(None): NULL,
}
_OPTIONAL = "optional_type"


ObjectTypes = Mapping[str, Mapping[str, Type]]
"""The types of objects' fields, by the name of the object's type."""


def check(source: str, node: Node, variables: Scope, object_types: ObjectTypes) -> Type:
    """Return the type of the expression. Raises TypeCheckError with all its errors."""
    checker = _Checker(source, object_types)
    result = checker.check(node, variables)
    if checker.errors:
        ordered = sorted(checker.errors, key=lambda error: error.offset)
        raise TypeCheckError("\n".join(map(str, ordered)))
    return checker.substitute(result, free_is_dyn=True)


class TypeCheckError(ValueError):
    """All type errors of an expression, in the order of their offsets."""


def _unwrap(kind: Type) -> tuple[Type, bool]:
    return (kind.params[0], True) if kind.name == _OPTIONAL else (kind, False)


def _is_less_specific(one: Type, other: Type) -> bool:
    """Whether every value of `other` is one of `one`."""
    if one.is_dyn or one.is_param:
        return True
    if other.is_dyn or other.is_param or one.name != other.name:
        return False
    return all(map(_is_less_specific, one.params, other.params))


def _most_general(one: Type, other: Type) -> Type:
    return one if _is_less_specific(one, other) else other


class _Checker:
    def __init__(self, source: str, object_types: ObjectTypes) -> None:
        self._source = source
        self._object_types = object_types
        self._bindings: Bindings = {}
        self._free = 0
        self.errors: list[CelCompileError] = []
        self._checks: dict[type, Callable[..., Type]] = {
            Literal: self._check_literal,
            Ident: self._check_ident,
            Select: self._check_select,
            Index: self._check_index,
            Call: self._check_call,
            ListLiteral: self._check_list,
            MapLiteral: self._check_map,
            Bind: self._check_bind,
            OptionalMap: self._check_optional_map,
            Comprehension: self._check_comprehension,
        }

    def _report(self, node: Node, message: str) -> Type:
        self.errors.append(CelCompileError(self._source, node.offset, message))
        return ERROR

    def _new_variable(self) -> Type:
        self._free += 1
        return Type(f"_var{self._free - 1}")

    # Assignability.

    def substitute(self, kind: Type, *, free_is_dyn: bool = False) -> Type:
        """Replace type variables by the types they are bound to, if any."""
        if kind.name in self._bindings:
            return self.substitute(self._bindings[kind.name], free_is_dyn=free_is_dyn)
        if kind.is_param and free_is_dyn:
            return DYN
        params = tuple(self.substitute(param, free_is_dyn=free_is_dyn) for param in kind.params)
        return Type(kind.name, params)

    def _assignable(self, ones: tuple[Type, ...], others: tuple[Type, ...]) -> bool:
        """Whether all of `ones` fit `others`; if not, no variable stays bound."""
        before = dict(self._bindings)
        if len(ones) == len(others) and all(map(self._fits, ones, others)):
            return True
        self._bindings = before
        return False

    def _fits(self, one: Type, other: Type) -> bool:
        if other.is_param:
            valid, bound = self._bind(one, other)
            if valid or bound:
                return valid
        if one.is_param:
            return self._bind(other, one)[0]
        if one.is_dyn or other.is_dyn:
            return True
        if NULL in (one, other):
            kind = other if one == NULL else one
            return one == other or kind.name == _OPTIONAL or "." in kind.name
        if one.name == other.name == "type":
            return True
        same = one.name == other.name and len(one.params) == len(other.params)
        return same and all(map(self._fits, one.params, other.params))

    def _bind(self, kind: Type, variable: Type) -> tuple[bool, bool]:
        """Bind the variable to `kind`; return whether it fits and whether it was bound before."""
        if kind == variable:
            return True, True
        bound = self._bindings.get(variable.name)
        if bound is None:
            if self._occurs(variable, kind):
                return False, False
            self._bindings[variable.name] = kind
            return True, False
        if kind == bound:
            return True, True
        if not self._fits(kind, bound):
            return False, True
        general = _most_general(kind, bound)
        if not self._occurs(variable, general):
            self._bindings[variable.name] = general
        return True, True

    def _occurs(self, variable: Type, kind: Type) -> bool:
        if kind == variable:
            return True
        if kind.name in self._bindings and self._occurs(variable, self._bindings[kind.name]):
            return True
        return any(self._occurs(variable, param) for param in kind.params)

    # Nodes.

    def check(self, node: Node, scope: Scope) -> Type:
        """Return the type of a node; errors are added to `errors`."""
        return self._checks[type(node)](node, scope)

    def _check_literal(self, node: Literal, scope: Scope) -> Type:
        return _LITERALS[type(node.value)]

    def _check_bind(self, node: Bind, scope: Scope) -> Type:
        value = self.check(node.value, scope)
        return self.check(node.body, {**scope, node.name: value})

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._report(node, f"undeclared reference to '{name}' (in container '')")

    def _check_ident(self, node: Ident, scope: Scope) -> Type:
        if node.name in scope:
            return scope[node.name]
        if node.name in TYPE_IDENTS:
            return Type("type", (Type(node.name),))
        return self._undeclared(node, node.name)

    def _check_select(self, node: Select, scope: Scope) -> Type:
        operand = self.substitute(self.check(node.operand, scope))
        target, is_optional = _unwrap(operand)
        result = self._field(node, target)
        if node.test_only:
            return BOOL
        return optional_of(result) if is_optional or node.optional else result

    def _field(self, node: Select, target: Type) -> Type:
        if target.name == "map":
            return target.params[1]
        if target.name in self._object_types:
            found = self._object_types[target.name].get(node.field)
            return found or self._report(node, f"undefined field '{node.field}'")
        if target.is_param:
            self._assignable((DYN,), (target,))
        elif not target.is_dyn:
            kind = str(target)
            self._report(node, f"type '{kind}' does not support field selection")
        return DYN

    def _check_index(self, node: Index, scope: Scope) -> Type:
        args = (self.check(node.operand, scope), self.check(node.index, scope))
        function = _CHECKED_ONLY["_[?_]" if node.optional else "_[_]"]
        return self._resolve(node, function.name, function.plain, args, is_member=False)

    def _check_call(self, node: Call, scope: Scope) -> Type:
        if node.function in {"_&&_", "_||_"}:
            fits = [self._expect(arg, BOOL, self.check(arg, scope)) for arg in node.args]
            return BOOL if all(fits) else ERROR
        resolved = resolve(node, _CHECKED_ONLY)
        if resolved is None or not resolved[0]:
            resolved = resolve(node)
        if resolved is None:
            for operand in (*node.args, *(() if node.target is None else (node.target,))):
                self.check(operand, scope)
            return self._undeclared(node, node.function)
        overloads, operands, name = resolved
        args = tuple(self.check(operand, scope) for operand in operands)
        return self._resolve(node, name, overloads, args, is_member=len(operands) > len(node.args))

    def _expect(self, node: Node, expected: Type, found: Type) -> bool:
        if self._assignable((found,), (expected,)):
            return True
        self._report(node, f"expected type '{expected}' but found '{found}'")
        return False

    def _resolve(
        self,
        node: Node,
        name: str,
        overloads: tuple[Overload, ...],
        args: tuple[Type, ...],
        *,
        is_member: bool,
    ) -> Type:
        """Return the result type of the overloads that fit; dyn if they have different ones."""
        result: Type | None = None
        for overload in overloads:
            declared, returned = self._instantiate(overload)
            if not self._assignable(args, declared):
                continue
            if isinstance(node, Call):
                node.chosen.append(overload)
            found = self.substitute(returned)
            if result is None:
                result = found
            elif not result.is_dyn and found != result:
                result = DYN
        if result is None:
            return self._no_match(node, name, args, is_member=is_member)
        return result

    def _instantiate(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        fresh: Bindings = {}

        def rename(kind: Type) -> Type:
            if len(kind.name) == 1:
                if kind.name not in fresh:
                    fresh[kind.name] = self._new_variable()
                return fresh[kind.name]
            return Type(kind.name, tuple(map(rename, kind.params)))

        return tuple(map(rename, overload.args)), rename(overload.result)

    def _no_match(self, node: Node, name: str, args: tuple[Type, ...], *, is_member: bool) -> Type:
        known = [str(self.substitute(arg, free_is_dyn=True)) for arg in args]
        target = f"{known.pop(0)}." if is_member else ""
        signature = f"{target}({', '.join(known)})"
        return self._report(
            node, f"found no matching overload for '{name}' applied to '{signature}'"
        )

    # Aggregates and macros.

    def _join(self, node: Node, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self._assignable((previous,), (current,)):
            return _most_general(previous, current)
        self._expect(node, previous, current)
        return ERROR

    def _element(self, node: Node, scope: Scope, *, is_optional: bool) -> Type:
        kind = self.check(node, scope)
        if not is_optional:
            return kind
        inner, wrapped = _unwrap(kind)
        if not wrapped and not inner.is_dyn:
            self._expect(node, optional_of(inner), inner)
        return inner

    def _check_list(self, node: ListLiteral, scope: Scope) -> Type:
        kind: Type | None = None
        for at, element in enumerate(node.elements):
            found = self._element(element, scope, is_optional=at in node.optional)
            kind = self._join(element, kind, found)
        return list_of(kind or self._new_variable())

    def _check_map(self, node: MapLiteral, scope: Scope) -> Type:
        key_kind: Type | None = None
        value_kind: Type | None = None
        for at, (key, value) in enumerate(node.entries):
            key_kind = self._join(key, key_kind, self.check(key, scope))
            found = self._element(value, scope, is_optional=at in node.optional)
            value_kind = self._join(value, value_kind, found)
        return map_of(key_kind or self._new_variable(), value_kind or self._new_variable())

    def _check_optional_map(self, node: OptionalMap, scope: Scope) -> Type:
        target = self.check(node.target, scope)
        inner = self._new_variable()
        if not self._assignable((target,), (optional_of(inner),)):
            return self._no_match(node, "hasValue", (target,), is_member=True)
        body = self.check(node.body, {**scope, node.name: self.substitute(inner)})
        if not node.flat:
            return optional_of(body)
        result = self._new_variable()
        if not self._assignable((body,), (optional_of(result),)):
            args = (BOOL, body, optional_of(DYN))
            return self._no_match(node, "_?_:_", args, is_member=False)
        return optional_of(self.substitute(result))

    def _check_comprehension(self, node: Comprehension, scope: Scope) -> Type:
        source = self.substitute(self.check(node.range, scope))
        kinds = self._iteration_types(node, source)
        inner = {**scope, **dict(zip(node.variables, kinds, strict=False))}
        if node.predicate is not None:
            found = self.check(node.predicate, inner)
            if node.kind != "sortBy":
                self._expect(node.predicate, BOOL, found)
        result = DYN if node.transform is None else self.check(node.transform, inner)
        match node.kind:
            case "all" | "exists" | "exists_one":
                return BOOL
            case "map" | "transformList":
                return list_of(result)
            case "filter" | "sortBy":
                return list_of(kinds[0])
            case "transformMap":
                return map_of(kinds[0], result)
            case _:
                return result

    def _iteration_types(self, node: Comprehension, source: Type) -> tuple[Type, Type]:
        """Return the types of the first and the second iteration variable."""
        two = len(node.variables) == 2
        if source.name == "list":
            element = source.params[0]
            return (INT, element) if two else (element, DYN)
        if source.name == "map":
            return source.params[0], source.params[1]
        if source.name == "any" or not (source.is_dyn or source.is_param):
            self._report(
                node.range,
                f"expression of type '{source}' cannot be range of a comprehension"
                " (must be list, map, or dynamic)",
            )
            return ERROR, ERROR
        self._assignable((DYN,), (source,))
        return DYN, DYN


def _never_called() -> object:
    raise AssertionError("the evaluator implements these itself")


_CHECKED_ONLY = declare(
    dict.fromkeys(
        (
            "_?_:_(bool, A, A): A",
            "_==_(A, A): bool",
            "_!=_(A, A): bool",
            "_[_](list(A), int): A",
            "_[_](map(A, B), A): B",
            "_[_](optional(list(A)), int): optional(A)",
            "_[_](optional(map(A, B)), A): optional(B)",
            "_[?_](list(A), int): optional(A)",
            "_[?_](map(A, B), A): optional(B)",
            "_[?_](optional(list(A)), int): optional(A)",
            "_[?_](optional(map(A, B)), A): optional(B)",
            "@orValue(optional(A), A): A",
            "@or(optional(A), optional(A)): optional(A)",
        ),
        _never_called,
    )
)
