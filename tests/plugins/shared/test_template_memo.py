from __future__ import annotations

from kubesched.plugins.shared.template_memo import TemplateMemo


def test_derives_once_per_stamp() -> None:
    """A value holds as long as its stamp stays the same."""
    memo: TemplateMemo[int] = TemplateMemo()
    assert 1 == memo.get("a", (1,), lambda: 1)
    assert 1 == memo.get("a", (1,), lambda: 2)
    assert 3 == memo.get("a", (2,), lambda: 3)
    assert 4 == memo.get("b", (2,), lambda: 4)
    assert 3 == memo.get("a", (2,), lambda: 5)


def test_oldest_goes_first() -> None:
    """With too many values the one that came first is forgotten."""
    memo: TemplateMemo[int] = TemplateMemo(size_max=2)
    for number, key in enumerate("abc"):
        memo.get(key, (), lambda number=number: number)  # type: ignore[misc]  # bound early
    assert 1 == memo.get("b", (), lambda: -1)
    assert 2 == memo.get("c", (), lambda: -1)
    assert -1 == memo.get("a", (), lambda: -1)
