"""Macros that iterate over a list or a map: quantifiers, filters, maps.

Upstream: google/cel-go parser/macro.go, ext/comprehensions.go, interpreter/interpretable.go
Differs:  only loop iterations count towards the cost limit; upstream counts all steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kubesched.cel.functions import sort_by
from kubesched.cel.values import CelError, from_map_key, map_key, no_such_overload, text, type_name

Variables = dict[str, object]
Evaluation = Callable[[Variables], object]

BUDGET: Final = "@budget"
"""The variable that holds the `Budget`; expressions cannot name it."""


class CostLimitExceededError(Exception):
    """The evaluation takes too long; unlike a CelError, `||` and `&&` cannot absorb this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Budget:
    """The number of loop iterations that an evaluation may still run."""

    __slots__ = ("_iterations",)

    def __init__(self, iterations: int) -> None:
        self._iterations = iterations

    def spend(self) -> None:
        """Count one iteration. Raises CostLimitExceededError if there is none left."""
        if self._iterations == 0:
            raise CostLimitExceededError
        self._iterations -= 1


@dataclass(frozen=True, slots=True)
class Loop:
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
        return self.transform(scope)


Fold = Callable[[Loop], object]


def _quantify(loop: Loop, *, decisive: bool) -> bool:
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


def _sort_by(loop: Loop) -> tuple[object, ...]:
    assert loop.predicate is not None
    iterations = list(loop.iterations())
    keys = tuple(loop.predicate(scope) for _, scope in iterations)
    return sort_by(tuple(element for element, _ in iterations), keys)


def _map_entries(loop: Loop) -> dict[object, object]:
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


def _map_list(loop: Loop) -> tuple[object, ...]:
    return tuple(loop.transformed(scope) for _, scope in loop.selected())


FOLDS: dict[str, Fold] = {
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
