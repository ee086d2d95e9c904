"""Macros that go through a list or a map: quantifiers, filters, maps.

Upstream: google/cel-go parser/macro.go, ext/comprehensions.go, interpreter/interpretable.go
Differs:  the cost of an evaluation is counted in rounds alone; upstream counts all steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kubesched.cel.functions import sort_by
from kubesched.cel.values import (
    CelError,
    from_map_key,
    map_key,
    no_such_overload,
    text,
    type_name,
)

Variables = dict[str, object]
Evaluation = Callable[[Variables], object]

BUDGET: Final = "@budget"
"""The variable, out of reach for expressions, that holds the `Budget`."""


class CostLimitExceededError(Exception):
    """The evaluation takes too long; no operator can absorb that."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Budget:
    """How many rounds an evaluation may go through."""

    __slots__ = ("_rounds",)

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds

    def spend(self) -> None:
        """Take one round. Raises CostLimitExceededError if there is none left."""
        if self._rounds == 0:
            raise CostLimitExceededError
        self._rounds -= 1


@dataclass(frozen=True, slots=True)
class Loop:
    """One go through a container.

    Attributes:
        container: A list, or a map, of which the keys come first.
        names: One variable, or two: index or key, and element or value.
        variables: Those around the macro.
        predicate: Of the elements to look at; None for all. The key of `sortBy`.
        transform: Into what elements are turned; None if they are not.
    """

    container: object
    names: tuple[str, ...]
    variables: Variables
    predicate: Evaluation | None
    transform: Evaluation | None

    def rounds(self) -> Iterator[tuple[object, Variables]]:
        """The first variable and all variables of each round. Raises CelError."""
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

    def holding(self) -> Iterator[tuple[object, Variables]]:
        """The rounds for which the predicate holds. Raises CelError."""
        return ((first, scope) for first, scope in self.rounds() if self.holds(scope))

    def holds(self, scope: Variables) -> bool:
        """Whether the predicate is true in a round. Raises CelError."""
        value = True if self.predicate is None else self.predicate(scope)
        if not isinstance(value, bool):
            raise no_such_overload()
        return value

    def transformed(self, scope: Variables) -> object:
        """What the element of a round is turned into. Raises CelError."""
        assert self.transform is not None
        return self.transform(scope)


Fold = Callable[[Loop], object]


def _quantify(loop: Loop, *, decisive: bool) -> bool:
    """`all` is decided by a false, `exists` by a true, whatever becomes of the others."""
    error: CelError | None = None
    for _, scope in loop.rounds():
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
    rounds = list(loop.rounds())
    keys = tuple(loop.predicate(scope) for _, scope in rounds)
    return sort_by(tuple(element for element, _ in rounds), keys)


def _map_entries(loop: Loop) -> dict[object, object]:
    result: dict[object, object] = {}
    for _, scope in loop.holding():
        entries = loop.transformed(scope)
        if not isinstance(entries, dict):
            raise no_such_overload("cel.@mapInsert", result, entries)
        for key, value in entries.items():
            if key in result:
                raise CelError(f"insert failed: key {text(from_map_key(key))} already exists")
            result[key] = value
    return result


def _map_list(loop: Loop) -> tuple[object, ...]:
    return tuple(loop.transformed(scope) for _, scope in loop.holding())


FOLDS: dict[str, Fold] = {
    "all": lambda loop: _quantify(loop, decisive=False),
    "exists": lambda loop: _quantify(loop, decisive=True),
    "exists_one": lambda loop: sum(1 for _ in loop.holding()) == 1,
    "filter": lambda loop: tuple(element for element, _ in loop.holding()),
    "map": _map_list,
    "sortBy": _sort_by,
    "transformList": _map_list,
    "transformMap": lambda loop: {
        map_key(key): loop.transformed(scope) for key, scope in loop.holding()
    },
    "transformMapEntry": _map_entries,
}
