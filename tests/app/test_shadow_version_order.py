"""Changes of nodes and other objects are passed on between the changes of pods around them."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from kubesched.api.meta import KubeObject
from kubesched.app.shadow import VersionOrder
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time


class _Passed:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def added(self, item: KubeObject) -> None:
        self.names.append(f"+{item.metadata.name}")

    def updated(self, _old: KubeObject, new: KubeObject) -> None:
        self.names.append(new.metadata.name)

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        self.names.append(f"-{item.metadata.name}{'' if is_final_state_known else '?'}")


def _begun() -> tuple[VersionOrder, _Passed]:
    passed = _Passed()
    order = VersionOrder(passed)
    order.begin()
    return order, passed


def _at(item: KubeObject, version: str) -> KubeObject:
    return replace(item, metadata=replace(item.metadata, resource_version=version))


def _node(name: str, version: int) -> KubeObject:
    return _at(make_node(name), str(version))


def _pod(name: str, version: int) -> KubeObject:
    return _at(make_pod(name), str(version))


@on_virtual_time
async def test_a_watch_that_is_ahead_waits() -> None:
    """All kinds of changes; those of one kind keep their order."""
    order, passed = _begun()
    order.updated(_node("n", 3), _node("n5", 5))
    order.deleted(_node("n7", 7), is_final_state_known=False)
    order.added(_node("n9", 9))
    assert [] == passed.names
    order.added(_pod("p6", 6))
    order.deleted(_pod("p8", 8))
    assert ["n5", "+p6", "-n7?", "-p8"] == passed.names
    order.pass_held()
    assert "+n9" == passed.names[-1]


@on_virtual_time
async def test_lists_are_passed_at_once() -> None:
    """Their objects are in no order."""
    passed = _Passed()
    order = VersionOrder(passed)
    order.added(_node("n9", 9))
    order.added(_pod("p6", 6))
    assert ["+n9", "+p6"] == passed.names


@on_virtual_time
async def test_nothing_waits_long_for_a_pod() -> None:
    """Where no pod changes, nodes do all the same."""
    order, passed = _begun()
    order.added(_node("n1", 1))
    await asyncio.sleep(11)
    order.added(_node("n2", 2))
    assert ["+n1", "+n2"] == passed.names


@on_virtual_time
async def test_versions_of_other_servers() -> None:
    """Those that are no numbers do not make anything wait."""
    order, passed = _begun()
    order.added(_at(make_node("n"), "abc"))
    order.added(_pod("p1", 1))
    order.added(_at(make_pod("p"), "xyz"))
    assert ["+n", "+p1", "+p"] == passed.names
