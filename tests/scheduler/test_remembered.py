"""OneByOne: known states make it pay, new ones make it wait."""

from __future__ import annotations

from kubesched.scheduler.remembered import OneByOne


def _share_done(new_states: int, renewals: int = 1000, rows: int = 10) -> float:
    chooser, done = OneByOne(may_pay=True), 0
    for _ in range(renewals):
        if chooser.pays(rows):
            done += 1
            chooser.record(rows, new_states)
    return done / renewals


def test_known_states_make_it_pay() -> None:
    """A few new states among many renewals are borne."""
    assert _share_done(0) == 1
    assert _share_done(1) == 1


def test_new_states_make_it_wait_and_try_again() -> None:
    """It is tried again and again, but seldom."""
    assert 0.01 < _share_done(10) < 0.05


def test_it_recovers() -> None:
    """What has been lost on new states is won back by known ones, and not for ever."""
    chooser = OneByOne(may_pay=True)
    for _ in range(100):
        assert chooser.pays(10)
        chooser.record(10, 0)
    chooser.record(10, 10)
    assert chooser.pays(10)
    for _ in range(3):
        chooser.record(10, 10)
    assert not chooser.pays(10)


def test_many_rows_or_other_plugins_never() -> None:
    """Arrays are for many rows; plugins that read more than numbers know no states."""
    assert not OneByOne(may_pay=True).pays(17)
    assert not OneByOne(may_pay=False).pays(2)
