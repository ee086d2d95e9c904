"""Compile a syntax tree to a Python function that takes variables.

Upstream: google/cel-go interpreter/{planner,interpretable,attributes}.go, parser/macro.go,
          ext/comprehensions.go
Invariants: a compiled expression does not change the variables.
Differs:  loop iterations count towards the cost limit, and the work of a function that compares
          elements or grows is limited on its own; upstream adds up all steps.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from kubesched.cel.declarations import Function, Overload, declare
from kubesched.cel.functions import LIBRARIES, sort_by
from kubesched.cel.syntax import (
    Bind,
    Call,
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
from kubesched.cel.values import (
    NONE,
    CelError,
    CelType,
    CostLimitExceededError,
    DefaultMap,
    Optional,
    equal,
    from_map_key,
    is_primitive,
    map_key,
    no_such_overload,
    text,
    type_name,
)

Variables = dict[str, object]
Evaluation = Callable[[Variables], object]

BUDGET: Final = "@budget"
"""The variable that holds the `Budget`; expressions cannot name it."""


class Budget:
    """The number of loop iterations that an evaluation may still run, and elements it may keep."""

    __slots__ = ("_iterations",)

    def __init__(self, iterations: int) -> None:
        self._iterations = iterations

    def spend(self, count: int = 1) -> None:
        """Count iterations or elements. Raises CostLimitExceededError if there are too few left."""
        if self._iterations < count:
            raise CostLimitExceededError
        self._iterations -= count


FUNCTIONS: Final[dict[str, Function]] = declare(*LIBRARIES)
TYPE_IDENTS: Final[dict[str, CelType]] = {
    name: CelType(name)
    for name in ("bool", "int", "uint", "double", "string", "list", "map", "null_type")
} | {"type": CelType("type"), "optional_type": CelType("optional_type")}

_MISSING: Final = object()


def plan(node: Node) -> Evaluation:
    """Return the function that evaluates `node`; it raises CelError."""
    return _PLANS[type(node)](node)


def qualified_name(node: Node) -> str | None:
    """Return `a.b.c` as one name, None for any other node."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.optional and not node.test_only:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None


Resolved = tuple[tuple[Overload, ...], tuple[Node, ...], str]


def resolve(call: Call, functions: Mapping[str, Function] = FUNCTIONS) -> Resolved | None:
    """Return a call's possible overloads, its arguments (target first) and the function's name."""
    if call.target is not None:
        prefix = qualified_name(call.target)
        function = functions.get(f"{prefix}.{call.function}") if prefix else None
        if function is not None:
            return function.plain, call.args, function.name
    function = functions.get(call.function)
    if function is None:
        return None
    if call.target is None:
        return function.plain, call.args, function.name
    return function.member, (call.target, *call.args), function.name


def _plan_literal(node: Literal) -> Evaluation:
    value = node.value
    return lambda _: value


def _plan_ident(node: Ident) -> Evaluation:
    name = node.name
    default = TYPE_IDENTS.get(name)

    def evaluate(variables: Variables) -> object:
        value = variables.get(name, default)
        if value is None and name not in variables:
            raise CelError(f"no such attribute(s): {name}")
        return value

    return evaluate


# Selection and indexing.


def _find(container: object, key: object) -> object:
    """Return the element at `key` or _MISSING. Raises CelError for a key of a wrong type."""
    if isinstance(container, dict):
        found = container.get(map_key(key), _MISSING) if is_primitive(key) else _MISSING
        if found is _MISSING and isinstance(container, DefaultMap):
            return {}
        return found
    if isinstance(container, tuple):
        at = _list_index(key)
        return container[at] if 0 <= at < len(container) else _MISSING
    return _MISSING


def _list_index(key: object) -> int:
    if isinstance(key, float) and not key.is_integer():
        raise CelError(f"unsupported index value {text(key)} in list")
    if isinstance(key, bool) or not isinstance(key, int | float):
        raise CelError(f"unsupported index type '{type_name(key)}' in list")
    return int(key)


def _missing(container: object, key: object) -> CelError:
    if isinstance(container, tuple):
        return CelError(f"index out of bounds: {text(key)}")
    return CelError(f"no such key: {text(key)}")


def _qualify(container: object, key: object, optional: bool) -> object:
    """Return `container[key]`; as an optional if `optional` or if the container is one."""
    if isinstance(container, Optional):
        if not container.has_value:
            return NONE
        container, optional = container.value, True
    found = _find(container, key)
    if optional:
        if isinstance(found, Optional):
            return found
        return NONE if found is _MISSING else Optional(found, has_value=True)
    if found is _MISSING:
        raise _missing(container, key)
    return found


def _plan_select(node: Select) -> Evaluation:
    operand, field, optional = plan(node.operand), node.field, node.optional
    if node.test_only:
        return _plan_has(operand, field)

    def select(variables: Variables) -> object:
        container = operand(variables)
        if type(container) is dict and not optional:
            try:
                return container[field]
            except KeyError:
                raise CelError(f"no such key: {field}") from None
        return _qualify(container, field, optional)

    return select


def _plan_has(operand: Evaluation, field: str) -> Evaluation:
    def has(variables: Variables) -> bool:
        container = operand(variables)
        if isinstance(container, Optional):
            return container.has_value and _find(container.value, field) is not _MISSING
        return _find(container, field) is not _MISSING

    return has


def _plan_index(node: Index) -> Evaluation:
    operand, index, optional = plan(node.operand), plan(node.index), node.optional
    return lambda variables: _qualify(operand(variables), index(variables), optional)


# Operators that do not always evaluate all operands, and equality.


def _plan_logical(decisive: bool, *operands: Evaluation) -> Evaluation:
    """Plan `&&` or `||`: one decisive operand settles the result, even if others fail."""

    def logical(variables: Variables) -> bool:
        error: CelError | None = None
        for operand in operands:
            try:
                value = operand(variables)
            except CelError as failed:
                error = error or failed
                continue
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                error = error or no_such_overload()
        if error is not None:
            raise error
        return not decisive

    return logical


def _plan_conditional(condition: Evaluation, then: Evaluation, otherwise: Evaluation) -> Evaluation:
    def conditional(variables: Variables) -> object:
        chosen = condition(variables)
        if not isinstance(chosen, bool):
            raise no_such_overload()
        return then(variables) if chosen else otherwise(variables)

    return conditional


def _plan_equals(left: Evaluation, right: Evaluation) -> Evaluation:
    return lambda variables: equal(left(variables), right(variables))


def _plan_not_equals(left: Evaluation, right: Evaluation) -> Evaluation:
    def not_equals(variables: Variables) -> bool:
        one, other = left(variables), right(variables)
        try:
            return not equal(one, other)
        except CelError:
            # Upstream treats values that cannot be compared as not equal.
            return True

    return not_equals


def _plan_or(unwraps: bool, left: Evaluation, right: Evaluation) -> Evaluation:
    """Plan `or`, or with `unwraps` `orValue`, whose result is the value of an optional."""

    def either(variables: Variables) -> object:
        optional = left(variables)
        if not isinstance(optional, Optional):
            return optional
        if not optional.has_value:
            return right(variables)
        return optional.value if unwraps else optional

    return either


_SPECIAL: dict[tuple[str, bool], Callable[..., Evaluation]] = {
    ("_&&_", False): partial(_plan_logical, False),
    ("_||_", False): partial(_plan_logical, True),
    ("_?_:_", False): _plan_conditional,
    ("_==_", False): _plan_equals,
    ("_!=_", False): _plan_not_equals,
    ("orValue", True): partial(_plan_or, True),
    ("or", True): partial(_plan_or, False),
}


def _plan_call(node: Call) -> Evaluation:
    special = _SPECIAL.get((node.function, node.target is not None))
    if special is not None:
        operands = node.args if node.target is None else (node.target, *node.args)
        return special(*map(plan, operands))
    resolved = resolve(node)
    assert resolved is not None, f"unchecked call of {node.function}"
    overloads, args, name = resolved
    if len(node.chosen) == 1:
        overloads = tuple(node.chosen)
    return _plan_dispatch(name, overloads, tuple(map(plan, args)))


def _plan_dispatch(
    name: str, overloads: tuple[Overload, ...], args: tuple[Evaluation, ...]
) -> Evaluation:
    implementations = {overload.implementation for overload in overloads}
    if name[0] in "_-!@" and len(implementations) == 1:
        # The implementation of an operator distinguishes the types of its operands.
        operator = next(iter(implementations))
        return lambda variables: operator(*[arg(variables) for arg in args])

    def dispatch(variables: Variables) -> object:
        values = tuple(arg(variables) for arg in args)
        for overload in overloads:
            if overload.accepts(values):
                return overload.implementation(*values)
        if name == "size":
            # Upstream checks the "sizer" trait here, and its error names no types.
            raise CelError("no such overload: size")
        raise no_such_overload(name, *values)

    return dispatch


# Aggregates.


def _plan_list(node: ListLiteral) -> Evaluation:
    elements, optional = tuple(map(plan, node.elements)), node.optional

    def evaluate(variables: Variables) -> tuple[object, ...]:
        values = []
        for at, element in enumerate(elements):
            value = element(variables)
            if at in optional:
                if not isinstance(value, Optional):
                    raise CelError(
                        "cannot initialize optional list element from non-optional value"
                        f" {text(value)}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values.append(value)
        return tuple(values)

    return evaluate


def _plan_map(node: MapLiteral) -> Evaluation:
    entries, optional = [(plan(key), plan(value)) for key, value in node.entries], node.optional

    def evaluate(variables: Variables) -> dict[object, object]:
        values: dict[object, object] = {}
        for at, (key_plan, value_plan) in enumerate(entries):
            key, value = key_plan(variables), value_plan(variables)
            if at in optional:
                if not isinstance(value, Optional):
                    raise CelError(
                        f"cannot initialize optional entry '{text(key)}' from non-optional value"
                        f" {text(value)}"
                    )
                if not value.has_value:
                    values.pop(map_key(key), None)
                    continue
                value = value.value
            values[map_key(key)] = value
        return values

    return evaluate


# Macros.


def _plan_bind(node: Bind) -> Evaluation:
    name, value, body = node.name, plan(node.value), plan(node.body)
    return lambda variables: body({**variables, name: value(variables)})


def _plan_optional_map(node: OptionalMap) -> Evaluation:
    target, name, body, flat = plan(node.target), node.name, plan(node.body), node.flat

    def evaluate(variables: Variables) -> object:
        optional = target(variables)
        if not isinstance(optional, Optional):
            raise no_such_overload("hasValue", optional)
        if not optional.has_value:
            return NONE
        result = body({**variables, name: optional.value})
        return result if flat else Optional(result, has_value=True)

    return evaluate


# Macros that iterate over a list or a map: quantifiers, filters, maps.


@dataclass(frozen=True, slots=True)
class _Loop:
    """The iteration of a macro over a list or a map.

    Attributes:
        container: The list or map.
        names: The iteration variables. One: the element or key. Two: index and element of a list,
            key and value of a map.
        variables: The variables in scope outside the macro.
        predicate: Selects elements; None for all. For `sortBy` the sort key.
        transform: Maps each element; None if the macro keeps elements as they are.
    """

    container: object
    names: tuple[str, ...]
    variables: Variables
    predicate: Evaluation | None
    transform: Evaluation | None

    def iterations(self) -> Iterator[tuple[object, Variables]]:
        """Yield the first variable and all variables of each iteration. Raises CelError."""
        budget = self.variables.get(BUDGET)
        for first, second in self._elements():
            if isinstance(budget, Budget):
                budget.spend()
            scope = {**self.variables, self.names[0]: first}
            if len(self.names) == 2:
                scope[self.names[1]] = second
            yield first, scope

    def _elements(self) -> Iterator[tuple[object, object]]:
        if isinstance(self.container, dict):
            return ((from_map_key(key), value) for key, value in self.container.items())
        if not isinstance(self.container, tuple):
            raise CelError(f"got '{type_name(self.container)}', expected iterable type")
        if len(self.names) == 2:
            return iter(enumerate(self.container))
        return ((element, None) for element in self.container)

    def selected(self) -> Iterator[tuple[object, Variables]]:
        """Yield the iterations for which the predicate is true. Raises CelError."""
        return ((first, scope) for first, scope in self.iterations() if self.holds(scope))

    def holds(self, scope: Variables) -> bool:
        """Whether the predicate is true in an iteration. Raises CelError."""
        value = True if self.predicate is None else self.predicate(scope)
        if not isinstance(value, bool):
            raise no_such_overload()
        return value

    def transformed(self, scope: Variables) -> object:
        """Return what the transform makes of an iteration. Raises CelError."""
        assert self.transform is not None
        value, budget = self.transform(scope), self.variables.get(BUDGET)
        if isinstance(value, tuple | str) and isinstance(budget, Budget):
            budget.spend(len(value))
        return value


def _quantify(loop: _Loop, *, decisive: bool) -> bool:
    """Return the result of `all` or `exists`; one decisive element settles it despite errors."""
    error: CelError | None = None
    for _, scope in loop.iterations():
        try:
            if loop.holds(scope) is decisive:
                return decisive
        except CelError as failed:
            error = error or failed
    if error is not None:
        raise error
    return not decisive


def _sort_by(loop: _Loop) -> tuple[object, ...]:
    assert loop.predicate is not None
    iterations = list(loop.iterations())
    keys = tuple(loop.predicate(scope) for _, scope in iterations)
    return sort_by(tuple(element for element, _ in iterations), keys)


def _map_entries(loop: _Loop) -> dict[object, object]:
    result: dict[object, object] = {}
    for _, scope in loop.selected():
        entries = loop.transformed(scope)
        if not isinstance(entries, dict):
            raise no_such_overload("cel.@mapInsert", result, entries)
        for key, value in entries.items():
            if key in result:
                raise CelError(f"insert failed: key {text(from_map_key(key))} already exists")
            result[key] = value
    return result


def _map_list(loop: _Loop) -> tuple[object, ...]:
    return tuple(loop.transformed(scope) for _, scope in loop.selected())


_FOLDS: dict[str, Callable[[_Loop], object]] = {
    "all": lambda loop: _quantify(loop, decisive=False),
    "exists": lambda loop: _quantify(loop, decisive=True),
    "exists_one": lambda loop: sum(1 for _ in loop.selected()) == 1,
    "filter": lambda loop: tuple(element for element, _ in loop.selected()),
    "map": _map_list,
    "sortBy": _sort_by,
    "transformList": _map_list,
    "transformMap": lambda loop: {
        map_key(key): loop.transformed(scope) for key, scope in loop.selected()
    },
    "transformMapEntry": _map_entries,
}


def _plan_comprehension(node: Comprehension) -> Evaluation:
    source, names, fold = plan(node.range), node.variables, _FOLDS[node.kind]
    predicate = None if node.predicate is None else plan(node.predicate)
    transform = None if node.transform is None else plan(node.transform)
    return lambda variables: fold(_Loop(source(variables), names, variables, predicate, transform))


_PLANS: dict[type, Callable[..., Evaluation]] = {
    Literal: _plan_literal,
    Ident: _plan_ident,
    Select: _plan_select,
    Index: _plan_index,
    Call: _plan_call,
    ListLiteral: _plan_list,
    MapLiteral: _plan_map,
    Comprehension: _plan_comprehension,
    Bind: _plan_bind,
    OptionalMap: _plan_optional_map,
}
