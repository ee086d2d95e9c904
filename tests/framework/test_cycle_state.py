"""The data of plugins during a cycle, and its copies."""

from __future__ import annotations

from kubesched.framework.cycle_state import CycleState


class Counter:
    """A state that changes and can be cloned."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def clone(self) -> Counter:
        """Copy."""
        return Counter(self.count)


def test_clone() -> None:
    """Clonable states are copied, others are shared; new keys of a copy stay there."""
    cycle, fixed = CycleState(), object()
    counter = Counter(1)
    cycle.filter_states = {"Counter": counter, "Fixed": fixed, "None": None}
    cycle.shared["key"] = fixed
    cycle.skip_filter.add("Skips")
    copy = cycle.clone()
    copied = copy.filter_states["Counter"]
    assert isinstance(copied, Counter)
    copied.count += 1
    copy.shared["other"] = 1
    copy.filter_states["New"] = 1
    assert (1, 2) == (counter.count, copied.count)
    assert fixed is copy.filter_states["Fixed"]
    assert fixed is copy.shared["key"]
    assert ["key"] == list(cycle.shared)
    assert "New" not in cycle.filter_states
    assert {"Skips"} == copy.skip_filter


def test_a_new_cycle_knows_nothing() -> None:
    """Two cycles share nothing."""
    one, two = CycleState(), CycleState()
    one.filter_states["P"] = 1
    one.skip_score.add("P")
    one.skip_pre_bind.add("P")
    one.shared["k"] = 1
    assert ({}, {}, set(), set(), set(), {}) == (
        two.filter_states,
        two.score_states,
        two.skip_filter,
        two.skip_score,
        two.skip_pre_bind,
        two.shared,
    )
