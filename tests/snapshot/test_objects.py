from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Namespace, Service
from kubesched.api.meta import ObjectMeta
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.objects import ObjectName, ObjectStore

NAMES = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"]))


def service(name: str, namespace: str, uid: str = "") -> Service:
    """A service."""
    return Service(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


@given(st.lists(st.tuples(st.booleans(), NAMES), max_size=30))
def test_store_is_a_dictionary(changes: list[tuple[bool, tuple[str, str]]]) -> None:
    """After any changes, objects are found as in a dictionary; the version counts the changes."""
    store, twin = ObjectStore(), dict[tuple[str, str], Service]()
    for number, (puts, key) in enumerate(changes):
        item, version = service(*key, uid=str(number)), store.version(Service)
        previous = twin.pop(key, None) if not puts else twin.get(key)
        assert previous is (store.put(item) if puts else store.delete(item))
        if puts:
            twin[key] = item
        assert (puts or previous is not None) == (store.version(Service) != version)
    for key in (("a", "x"), ("b", "x"), ("c", "y")):
        assert twin.get(key) is store.get(Service, *key)
    assert sorted(map(id, twin.values())) == sorted(map(id, store.list(Service)))
    for namespace in ("x", "y", "z"):
        expected = [item for (_, place), item in twin.items() if place == namespace]
        assert sorted(map(id, expected)) == sorted(map(id, store.list(Service, namespace)))
        assert bool(expected) == store.any(Service, namespace)
    assert bool(twin) == store.any(Service)


@given(st.lists(st.tuples(st.booleans(), NAMES), max_size=12), st.integers(-1, 13))
def test_changes_since_a_version(changes: list[tuple[bool, tuple[str, str]]], version: int) -> None:
    """Changes since a version are those that increased it; other kinds do not count."""
    store, moved = ObjectStore(), list[tuple[str, str]]()
    for puts, key in changes:
        item = service(*key)
        if puts or store.get(Service, *key) is not None:
            moved.append((key[1], key[0]))
        _ = store.put(item) if puts else store.delete(item)
        store.put(Namespace(metadata=ObjectMeta(name="a")))
    expected = moved[version:] if 0 <= version <= len(moved) else None
    assert expected == store.changed_since(Service, version)


def test_log_of_changes_is_limited() -> None:
    """Old versions return None."""
    store = ObjectStore()
    for _ in range(5000):
        store.put(service("a", "x"))
    assert store.changes_of(Service).since(0) is None
    assert [("x", "a")] == store.changes_of(Service).since(4999)
    assert [] == store.changes_of(Service).since(5000)


def test_reader_of_changes() -> None:
    """Every change of the kind is read once; None is returned at first and for other objects."""
    store, other = ObjectStore(), ObjectStore()
    changed: ChangeReader[ObjectName] = ChangeReader()
    assert changed.read(store.changes_of(Service)) is None
    store.put(service("a", "x"))
    store.put(Namespace(metadata=ObjectMeta(name="a")))
    store.delete(service("a", "x"))
    assert [("x", "a"), ("x", "a")] == list(changed.read(store.changes_of(Service)) or ())
    assert [] == changed.read(store.changes_of(Service))
    assert changed.read(other.changes_of(Service)) is None
    assert changed.read(store.changes_of(Service)) is None


def test_kinds_do_not_mix() -> None:
    """Equal names of two kinds are two objects."""
    store = ObjectStore()
    namespace = Namespace(metadata=ObjectMeta(name="a"))
    store.put(namespace)
    store.put(service("a", "x"))
    assert namespace is store.get(Namespace, "a")
    assert store.get(Service, "a") is None
    assert [namespace] == list(store.list(Namespace))


def test_order_of_arrival() -> None:
    """Objects of a namespace are listed in order of arrival; a replaced one keeps its place."""
    store = ObjectStore()
    for name in ("c", "a", "b", "a"):
        store.put(service(name, "x"))
    assert ["c", "a", "b"] == [item.metadata.name for item in store.list(Service, "x")]
