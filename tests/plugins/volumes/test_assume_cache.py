"""An assumed object is valid until the stored object changes."""

import pytest

from kubesched.api.volume import PersistentVolume
from kubesched.plugins.volumes.assume_cache import AssumeCache, AssumeError
from kubesched.snapshot.objects import ObjectStore
from tests.plugins.volume_objects import make_volume


def volume(name: str = "v", version: str = "1", storage: str = "1Gi") -> PersistentVolume:
    """A volume in some version; storage tells variants apart."""
    return make_volume(name, storage=storage, metadata={"resourceVersion": version})


@pytest.fixture
def store() -> ObjectStore:
    """A cluster with one volume."""
    store = ObjectStore()
    store.put(volume())
    return store


@pytest.fixture
def cache() -> AssumeCache[PersistentVolume]:
    """A cache without assumptions."""
    return AssumeCache(PersistentVolume, "persistentvolumes")


def test_assume_and_restore(store: ObjectStore, cache: AssumeCache[PersistentVolume]) -> None:
    """The assumed object is returned until it is restored."""
    assumed = volume(storage="2Gi")
    cache.assume(store, assumed)
    assert cache.get(store, "v") is assumed
    cache.restore(volume(version="2"))
    assert cache.get(store, "v") is assumed
    cache.restore(assumed)
    assert cache.get(store, "v") == volume()
    cache.restore(assumed)


def test_newer_object_wins(store: ObjectStore, cache: AssumeCache[PersistentVolume]) -> None:
    """A new version of the stored object ends the assumption; the same version does not."""
    assumed = volume(storage="2Gi")
    cache.assume(store, assumed)
    store.put(volume())
    assert cache.get(store, "v") is assumed
    store.put(newer := volume(version="2"))
    assert cache.get(store, "v") is newer
    assert {} == cache._assumed


def test_objects_without_versions(cache: AssumeCache[PersistentVolume]) -> None:
    """Objects that have no versions are new when they are replaced."""
    store = ObjectStore()
    store.put(volume(version=""))
    assumed = volume(version="", storage="2Gi")
    cache.assume(store, assumed)
    assert cache.get(store, "v") is assumed
    store.put(newer := volume(version=""))
    assert cache.get(store, "v") is newer


def test_cannot_assume(store: ObjectStore, cache: AssumeCache[PersistentVolume]) -> None:
    """A missing object, or one with another version, cannot be assumed."""
    with pytest.raises(AssumeError, match=r'^"v" is out of sync \(stored: 1, assume: 2\)$'):
        cache.assume(store, volume(version="2"))
    with pytest.raises(AssumeError, match=r'^persistentvolumes "w" not found$'):
        cache.assume(store, volume("w"))
    assert cache.get(store, "w") is None
    store.delete(volume())
    assert cache.get(store, "v") is None
