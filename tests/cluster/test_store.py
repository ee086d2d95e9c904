"""The store compared with a naive twin, and its errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubesched.api.errors import AlreadyExistsError, ApiError, GoneError, NotFoundError
from kubesched.cluster.store import Change, ChangeType, Key, Store, Watch

Value = tuple[str, int]
POD = Key("pods", "default", "a")
OTHER = Key("pods", "default", "b")


def new_store(changes_kept: int = 100) -> Store[Value]:
    """Return a store of (text, version)."""
    return Store(lambda value, version: (value[0], version), changes_kept)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda store: store.create(POD, ("y", 0)), AlreadyExistsError, 'pods "a" already exists'),
        (lambda store: store.update(OTHER, ("y", 0)), NotFoundError, 'pods "b" not found'),
        (lambda store: store.delete(OTHER), NotFoundError, 'pods "b" not found'),
        (lambda store: store.get(OTHER), NotFoundError, 'pods "b" not found'),
    ],
    ids=["create", "update", "delete", "get"],
)
def test_errors_have_classes_and_messages(
    act: Callable[[Store[Value]], object], error: type[ApiError], message: str
) -> None:
    """The messages are the API server's; the store does not change."""
    store = new_store()
    store.create(POD, ("x", 0))
    with pytest.raises(error) as caught:
        act(store)
    assert message == caught.value.message
    assert (2, ("x", 2)) == (store.version, store.get(POD))


def test_list_is_of_one_namespace_or_all() -> None:
    """In order of creation, with the current version."""
    store = new_store()
    for namespace, name in (("n2", "b"), ("n1", "a"), ("n2", "a")):
        store.create(Key("pods", namespace, name), (f"{namespace}/{name}", 0))
    store.create(Key("nodes", "", "a"), ("node", 0))
    assert ["n2/b", "n1/a", "n2/a"] == [text for text, _ in store.list("pods")]
    assert ["n2/b", "n2/a"] == [text for text, _ in store.list("pods", "n2")]
    assert () == store.list("pods", "n3")
    assert store.version == 5
    assert (3, 1, 0) == (store.count("pods"), store.count("nodes"), store.count("services"))


def test_watch_of_a_compacted_version_is_gone() -> None:
    """The watcher has to list again."""
    store = new_store(changes_kept=2)
    watch = store.watch("pods", store.version)
    store.create(POD, ("x", 0))
    for _ in range(3):
        store.update(POD, ("y", 0))
    with pytest.raises(GoneError, match=r"too old resource version: 1 \(3\)"):
        watch.read()
    with pytest.raises(GoneError):
        store.watch("pods", 2)
    assert [4, 5] == [change.version for change in store.watch("pods", 3).read()]


def test_on_change_is_called_until_closed() -> None:
    """For changes of its kind, in the order of registration."""
    store = new_store()
    notified: list[str] = []
    first = store.watch("pods", store.version, lambda: notified.append("first"))
    store.watch("pods", store.version, lambda: notified.append("second"))
    store.create(POD, ("x", 0))
    store.create(Key("nodes", "", "a"), ("x", 0))
    first.close()
    first.close()
    store.delete(POD)
    assert ["first", "second", "second"] == notified


def test_a_watch_may_be_closed_within_its_callback() -> None:
    """Others are still called."""
    store = new_store()
    notified: list[int] = []

    def once() -> None:
        notified.append(1)
        watch.close()

    watch = store.watch("pods", store.version, once)
    store.watch("pods", store.version, lambda: notified.append(2))
    store.create(POD, ("x", 0))
    store.delete(POD)
    assert [1, 2, 2] == notified


def test_changes_kept_must_be_positive() -> None:
    """A store without changes could not serve a watch."""
    with pytest.raises(ValueError, match="at least 1"):
        new_store(0)


@given(st.lists(st.integers(1, 5)))
def test_reading_in_parts_misses_nothing(limits: list[int]) -> None:
    """Each part has at most `limit` changes."""
    store = new_store()
    watch = store.watch("pods", store.version)
    for number in range(10):
        store.create(Key("pods", "", str(number)), ("x", 0))
    got: list[int] = []
    for limit in limits:
        got += [change.version for change in watch.read(limit)]
    got += [change.version for change in watch.read()]
    assert list(range(2, 12)) == got
    assert not watch.has_changes


KEYS = st.builds(
    Key, st.sampled_from(["pods", "nodes"]), st.sampled_from(["", "n"]), st.sampled_from("abc")
)


class StoreMachine(RuleBasedStateMachine):
    """Compares a store with a twin: a dictionary and a list."""

    @initialize(kept=st.integers(1, 4))
    def start(self, kept: int) -> None:
        """Start with an empty store."""
        self.store = new_store(kept)
        self.kept = kept
        self.objects: dict[Key, Value] = {}
        self.changes: list[Change[Value]] = []
        self.watches: list[tuple[Watch[Value], int]] = []

    @rule(key=KEYS, text=st.text("xy", max_size=1))
    def create(self, key: Key, text: str) -> None:
        """Create an object, which may exist."""
        if key in self.objects:
            with pytest.raises(AlreadyExistsError):
                self.store.create(key, (text, -1))
        else:
            value = self.store.create(key, (text, -1))
            self._wrote(ChangeType.ADDED, key, value, (text, len(self.changes) + 2))

    @rule(key=KEYS, text=st.text("xy", max_size=1))
    def update(self, key: Key, text: str) -> None:
        """Update an object, which may not exist."""
        if key not in self.objects:
            with pytest.raises(NotFoundError):
                self.store.update(key, (text, -1))
        else:
            value = self.store.update(key, (text, -1))
            self._wrote(ChangeType.MODIFIED, key, value, (text, len(self.changes) + 2))

    @rule(key=KEYS)
    def delete(self, key: Key) -> None:
        """Delete an object, which may not exist."""
        if key not in self.objects:
            with pytest.raises(NotFoundError):
                self.store.delete(key)
        else:
            value = self.store.delete(key)
            text = self.objects[key][0]
            self._wrote(ChangeType.DELETED, key, value, (text, len(self.changes) + 2))

    def _wrote(self, type_: ChangeType, key: Key, value: Value, expected: Value) -> None:
        assert expected == value
        change = Change(type_, expected[1], key, value, self.objects.get(key))
        self.changes.append(change)
        if type_ is ChangeType.DELETED:
            del self.objects[key]
        else:
            self.objects[key] = value

    @rule(kind=st.sampled_from(["pods", "nodes"]), back=st.integers(0, 10))
    def watch(self, kind: str, back: int) -> None:
        """Start a watch, perhaps too late."""
        since = max(self.store.version - back, 1)
        newer = [c for c in self.changes if c.key.kind == kind and c.version > since]
        try:
            watch = self.store.watch(kind, since)
        except GoneError:
            assert len(newer) > self.kept, "enough is kept"
        else:
            assert len(newer) < 2 * self.kept, "memory is bounded"
            self.watches.append((watch, since))

    @precondition(lambda self: self.watches)
    @rule(data=st.data(), limit=st.none() | st.integers(1, 3))
    def read(self, data: st.DataObject, limit: int | None) -> None:
        """Read some changes, perhaps too late."""
        watch, since = self.watches.pop(data.draw(st.integers(0, len(self.watches) - 1)))
        newer = [c for c in self.changes if c.key.kind == watch.kind and c.version > since]
        assert bool(newer) == watch.has_changes
        try:
            got = watch.read(limit)
        except GoneError:
            assert len(newer) > self.kept, "enough is kept"
        else:
            assert newer[:limit] == got
            self.watches.append((watch, got[-1].version if got else since))

    @invariant()
    def same(self) -> None:
        """Store and twin are equal."""
        assert len(self.changes) + 1 == self.store.version
        for kind in ("pods", "nodes"):
            expected = [value for key, value in self.objects.items() if key.kind == kind]
            assert expected == list(self.store.list(kind))
        assert self.objects == dict(self.store.everything())


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


# Lists of the past.


@given(
    st.lists(
        st.tuples(st.sampled_from("cud"), st.sampled_from("xyz"), st.sampled_from(("a", "b"))),
        max_size=30,
    )
)
def test_list_at_equals_an_earlier_list(writes: list[tuple[str, str, str]]) -> None:
    """The lists are equal at every version."""
    store = new_store()
    seen = {store.version: set(store.list("pods"))}
    for what, name, namespace in writes:
        key = Key("pods", namespace, name)
        exists = store.find(key) is not None
        if what == "c" and not exists:
            store.create(key, (name, 0))
        elif what == "u" and exists:
            store.update(key, (name, 0))
        elif what == "d" and exists:
            store.delete(key)
        seen[store.version] = set(store.list("pods"))
    for version, items in seen.items():
        assert items == set(store.list_at("pods", version))


def test_list_at_of_one_namespace() -> None:
    """Other namespaces are left out."""
    store = new_store()
    store.create(POD, ("x", 0))
    store.create(Key("pods", "other", "a"), ("y", 0))
    assert (("y", 3),) == store.list_at("pods", 3, "other")


def test_compacting_all_forgets_the_past_of_every_kind() -> None:
    """Even of a kind without changes."""
    store = new_store()
    store.create(POD, ("x", 0))
    store.compact_all()
    for kind in ("pods", "nodes"):
        with pytest.raises(GoneError):
            store.list_at(kind, 1)
        with pytest.raises(GoneError):
            store.watch(kind, 1)
        assert not store.watch(kind, 2).has_changes
    assert store.newest_change("pods") == 2
