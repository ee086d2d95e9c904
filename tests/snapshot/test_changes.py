"""A reader of the log sees every change once."""

from __future__ import annotations

from kubesched.snapshot.changes import ChangeReader, RowVersions
from kubesched.testing.builders import make_node, make_pod_info, make_snapshot


def test_rows_that_changed_since_the_last_time() -> None:
    """The first answer is None; then each change is listed once, also a repeated one."""
    nodes = make_snapshot([make_node("a"), make_node("b")]).nodes
    changed: ChangeReader[int] = ChangeReader()
    assert changed.read(nodes.changes) is None
    nodes.add_pod(make_pod_info("one"), 1)
    nodes.add_pod(make_pod_info("two"), 1)
    nodes.add_pod(make_pod_info("three"), 0)
    assert [1, 1, 0] == list(changed.read(nodes.changes) or ())
    assert [] == list(changed.read(nodes.changes) or ())


def test_any_row_may_have_changed() -> None:
    """None follows a change of nodes, another table, a log that was cut, and `forget`."""
    nodes, other = (make_snapshot([make_node("a")]).nodes for _ in range(2))
    changed: ChangeReader[int] = ChangeReader()
    changed.read(nodes.changes)
    nodes.add_node(make_node("b"))
    assert changed.read(nodes.changes) is None
    assert changed.read(nodes.changes) is not None
    assert changed.read(other.changes) is None
    changed.forget()
    assert changed.read(other.changes) is None
    for number in range(5000):
        info = make_pod_info(f"{number}")
        other.add_pod(info, 0)
        other.remove_pod(info, 0)
    assert changed.read(other.changes) is None


def test_rows_with_other_versions() -> None:
    """Rows whose pods changed, rows of new nodes and rows that moved are listed, and no others."""
    nodes = make_snapshot([make_node(name) for name in "abc"]).nodes
    versions = RowVersions()
    assert {0, 1, 2} == versions.changed(nodes)
    nodes.add_pod(make_pod_info("one"), 1)
    nodes.update_node(make_node("a", labels={"x": "y"}))
    assert {1} == versions.changed(nodes)
    nodes.add_node(make_node("d"))
    assert {3} == versions.changed(nodes)
    nodes.remove_node("a")
    assert {0} == versions.changed(nodes)
    assert set() == versions.changed(nodes)
    assert {0} == versions.changed(make_snapshot([make_node("a")]).nodes)
