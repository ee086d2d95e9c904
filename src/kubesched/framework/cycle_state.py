"""CycleState holds what plugins know of one pod during one scheduling cycle.

Upstream: pkg/scheduler/framework/cycle_state.go (v1.36)
Invariants: a clone may be changed without the original seeing it.
Differs:  a plugin's own state is typed and handed to it; string keys serve only what plugins
          share with each other.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeGuard


class Clonable(Protocol):
    """A state that `add_pod` and `remove_pod` change."""

    def clone(self) -> Self:
        """Return a copy whose changes the original does not see."""
        ...


def is_clonable(state: object) -> TypeGuard[Clonable]:
    """Whether a state has a `clone`; an isinstance with the protocol costs ten times as much."""
    return hasattr(state, "clone")


class CycleState:
    """The states of one pod's cycle.

    Attributes:
        filter_states: Plugin name -> what its `pre_filter` returned.
        score_states: Plugin name -> what its `pre_score` returned.
        skip_filter: Plugins whose `pre_filter` said Skip.
        skip_score: Plugins whose `pre_score` said Skip.
        skip_pre_bind: Plugins whose preflight said Skip.
        shared: What plugins share with each other, by key.
    """

    __slots__ = (
        "filter_states",
        "score_states",
        "shared",
        "skip_filter",
        "skip_pre_bind",
        "skip_score",
    )

    def __init__(self) -> None:
        self.filter_states: dict[str, object] = {}
        self.score_states: dict[str, object] = {}
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self.skip_pre_bind: set[str] = set()
        self.shared: dict[str, object] = {}

    @classmethod
    def of(
        cls,
        filter_states: dict[str, object],
        score_states: dict[str, object],
        skip_filter: set[str],
        skip_score: set[str],
    ) -> Self:
        """Begin with what is known; nothing is copied."""
        cycle = cls.__new__(cls)
        cycle.filter_states = filter_states
        cycle.score_states = score_states
        cycle.skip_filter = skip_filter
        cycle.skip_score = skip_score
        cycle.skip_pre_bind = set()
        cycle.shared = {}
        return cycle

    def clone(self) -> CycleState:
        """Copy; states that know how to clone themselves are cloned, others are shared."""
        copy = CycleState()
        copy.filter_states = {
            name: state.clone() if is_clonable(state) else state
            for name, state in self.filter_states.items()
        }
        copy.score_states = self.score_states
        copy.skip_filter = self.skip_filter
        copy.skip_score = self.skip_score
        copy.skip_pre_bind = self.skip_pre_bind
        copy.shared = dict(self.shared)
        return copy
