"""Server is the interface that kubelets and controllers use.

The embedded API server implements it with its local client, the simulator for objects on virtual
time. Both run on the event loop of the caller, so reads and writes return at once; only changes
arrive later, through followers.

Pods, nodes and disruption budgets are values of `kubesched.api`. Workloads are plain objects as in
JSON, so that the templates of their pods keep fields that kubesched does not read.

Upstream: staging/src/k8s.io/client-go/tools/cache/shared_informer.go (v1.36)
Invariants: objects that a server returns are never changed in place; the changes of an object are
            reported in their order; the first has no state before, the last has none after; the
            receiver may write.
Differs:  changes within one delay are reported together.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from kubesched.api.core import Node, Pod
from kubesched.api.errors import GoneError
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheme import kind_of
from kubesched.cluster.store import ChangeType, Key, Store, Watch

Plain: TypeAlias = dict[str, Any]
T = TypeVar("T")
Typed = TypeVar("Typed", Pod, Node, PodDisruptionBudget)

OnChange: TypeAlias = Callable[[Key, T | None, T | None], None]
"""Receives a change: the object's key, its state before, and after; None where there is none."""


Subscription: TypeAlias = "Watching | Follower[Any, Any]"
"""Reports all objects and their changes between `start` and `stop`."""


class Watching:
    """Watches objects from `start` to `stop`, and does nothing before.

    Subclasses set their subscriptions.
    """

    _followed: Sequence[Subscription]

    def start(self) -> None:
        """Report all objects now, and changes from now on."""
        for subscription in self._followed:
            subscription.start()

    def stop(self) -> None:
        """Stop; stopping twice is fine."""
        for subscription in self._followed:
            subscription.stop()


CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a CustomResourceDefinition whose objects are being deleted."""


class Server(ABC):
    """The objects of a cluster, which `store` keeps in a form of the implementation's choice.

    If it does not keep the statuses of workloads, controllers do not compute them.
    """

    keeps_statuses: ClassVar[bool]
    store: Store[Any]

    @abstractmethod
    def now(self) -> float:
        """Return the seconds since the Unix epoch."""

    @abstractmethod
    def timestamp(self) -> str:
        """Return the time as Kubernetes writes it."""

    @abstractmethod
    def _typed(self, stored: Any, type_: type[Typed]) -> Typed:
        """Return a stored object as a value of its class."""

    @abstractmethod
    def _plain(self, stored: Any) -> Plain:
        """Return a stored object as in JSON."""

    def _delay_of(self, _kind: str) -> Callable[[], float] | None:
        """Return what draws the seconds from a change to its report; None for no delay."""
        return None

    # Pods, nodes and disruption budgets.

    def watch(self, type_: type[Typed], on_change: OnChange[Typed]) -> Follower[Any, Typed]:
        """Return a subscription to the objects of a class; it has to be started."""
        kind = kind_name(type_)
        delay = self._delay_of(kind)
        return Follower(
            self.store, kind, on_change, lambda stored: self._typed(stored, type_), delay
        )

    def read(self, type_: type[Typed], namespace: str, name: str) -> Typed | None:
        """Return an object, None if there is none."""
        found = self.store.find(Key(kind_name(type_), namespace, name))
        return None if found is None else self._typed(found, type_)

    def all(self, type_: type[Typed]) -> list[Typed]:
        """Return the objects of a class."""
        found = self.store.list(kind_name(type_))
        return [self._typed(stored, type_) for stored in found]

    @abstractmethod
    def create_pod(self, pod: Plain) -> Pod:
        """Create a pod and return it; raises ApiError if it is refused."""

    # Plain objects.

    def follow(self, kind: str, on_change: OnChange[Plain]) -> Follower[Any, Plain]:
        """Return a subscription to the objects of a kind; it has to be started."""
        return Follower(self.store, kind, on_change, self._plain, self._delay_of(kind))

    def find(self, kind: str, namespace: str, name: str) -> Plain | None:
        """Return an object, None if there is none."""
        found = self.store.find(Key(kind, namespace, name))
        return None if found is None else self._plain(found)

    def list(self, kind: str, namespace: str | None = None) -> list[Plain]:
        """Return the objects of a kind, of one namespace or of all."""
        return [self._plain(stored) for stored in self.store.list(kind, namespace)]

    @abstractmethod
    def patch_status(self, key: Key, status: Plain) -> None:
        """Replace the status of an object; raises NotFoundError if it is gone."""

    @abstractmethod
    def delete(self, key: Key, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete an object, or begin to; the grace period is by default the object's own.

        `uid` is the identity it must have; "" for any. Raises ApiError if it is not there, or is
        another one.
        """


class AnyKindServer(Server):
    """A server whose objects of any kind can be created and changed."""

    @abstractmethod
    def kinds(self, *, only_namespaced: bool = False) -> list[str]:
        """Return the kinds that the store may hold."""

    @abstractmethod
    def is_namespaced(self, kind: str) -> bool:
        """Whether the objects of a kind live in namespaces."""

    @abstractmethod
    def kind_of(self, api_version: str, kind: str) -> str | None:
        """Return where the store keeps a kind, None if it is not served."""

    @abstractmethod
    def create(self, kind: str, obj: Plain) -> Plain:
        """Create an object and return it; raises ApiError if it is refused."""

    @abstractmethod
    def write(self, key: Key, plain: Plain) -> Plain:
        """Store a new state of an object that is there, without validation."""

    @abstractmethod
    def delete(
        self, key: Key, uid: str = "", grace_seconds: int | None = None, policy: str = "Background"
    ) -> None:
        """Delete an object, or begin to; `policy` decides about its dependents."""

    def patch_status(self, key: Key, status: Plain) -> None:
        """Replace the status of an object; raises NotFoundError if it is gone."""
        self.write(key, {**self._plain(self.store.get(key)), "status": status})

    def annotate(self, key: Key, name: str, value: str) -> None:
        """Set an annotation of an object; nothing happens if it is gone."""
        plain = self.find(*key)
        if plain is not None and plain["metadata"].get("annotations", {}).get(name) != value:
            self.write(key, {**plain, "metadata": annotated(plain, {name: value})})

    def scale(self, key: Key, replicas: int) -> Plain:
        """Set the number of replicas of a workload; raises NotFoundError if it is gone."""
        plain = self._plain(self.store.get(key))
        metadata = {**plain["metadata"]}
        metadata["generation"] = metadata.get("generation", 0) + 1
        spec = {**plain["spec"], "replicas": replicas}
        return self.write(key, {**plain, "metadata": metadata, "spec": spec})

    def disown(self, key: Key, uid: str) -> None:
        """Remove an owner from an object; nothing happens if the object is gone."""
        plain = self.find(*key)
        owners = [] if plain is None else plain["metadata"].get("ownerReferences", [])
        left = [one for one in owners if one["uid"] != uid]
        if plain is not None and left != owners:
            metadata = {**plain["metadata"], "ownerReferences": left}
            if not left:
                del metadata["ownerReferences"]
            self.write(key, {**plain, "metadata": metadata})

    def release(self, key: Key, finalizer: str) -> None:
        """Remove a finalizer from an object, and delete the object if nothing else holds it."""
        plain = self.find(*key)
        if plain is None or finalizer not in plain["metadata"].get("finalizers", ()):
            return
        metadata = dict(plain["metadata"])
        metadata["finalizers"] = [one for one in metadata["finalizers"] if one != finalizer]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        self.write(key, {**plain, "metadata": metadata})
        is_held = "finalizers" in metadata or metadata.get("deletionGracePeriodSeconds")
        if metadata.get("deletionTimestamp") and not is_held:
            self.store.delete(key)


@cache
def kind_name(type_: type) -> str:
    """Return the name under which a store keeps a class of objects."""
    kind = kind_of(type_)
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def key_of_plain(kind: str, obj: Plain) -> Key:
    """Return where a store keeps a plain object."""
    metadata = obj["metadata"]
    return Key(kind, metadata.get("namespace", ""), metadata["name"])


def annotated(obj: Plain, annotations: Plain) -> Plain:
    """Return the metadata of a plain object with more annotations."""
    metadata = obj["metadata"]
    return {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}


def since_changed(condition: Plain, old: Plain | None, now: str) -> Plain:
    """Return a condition with the time since when it has its status; `old` is the one before."""
    is_same = old is not None and old["status"] == condition["status"]
    since = old.get("lastTransitionTime") if old is not None and is_same else now
    return {**condition, "lastTransitionTime": since}


def with_condition(status: Plain, condition: Plain, now: str) -> Plain:
    """Return a pod's status with a condition; its time changes only with its status."""
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    old = conditions.get(condition["type"])
    conditions[condition["type"]] = since_changed({"lastProbeTime": None, **condition}, old, now)
    return {**status, "conditions": list(conditions.values())}


def reference_to(obj: Plain) -> Plain:
    """Return an ObjectReference to a plain object that is stored."""
    metadata = obj["metadata"]
    names = ("namespace", "name", "uid", "resourceVersion")
    kind = {"kind": obj["kind"], "apiVersion": obj["apiVersion"]}
    return {**kind, **{name: metadata[name] for name in names}}


# Subscriptions.

V = TypeVar("V")

# The maximum number of changes reported at once, so that other tasks can run in between.
_BATCH = 200


class Follower(Generic[V, T]):
    """Watches one kind.

    Attributes:
        kind: Its name in the store.
        known: The objects as last reported.
        newest: The object of the change that is being reported, as the store has it; None while
            all objects are listed.
        relists: How often all objects were listed again because changes were no longer kept.
    """

    def __init__(
        self,
        store: Store[V],
        kind: str,
        on_change: OnChange[T],
        view: Callable[[V], T | None],
        delay_seconds: Callable[[], float] | None = None,
        at_once: int | None = _BATCH,
    ) -> None:
        """Set up.

        `view` returns the form in which objects are reported, None for an object that is left out;
        `delay_seconds` draws the time from a change to its report, None for as soon as possible.
        At most `at_once` changes are reported before other tasks run; None reports all.
        """
        self.kind = kind
        self.known: dict[Key, T] = {}
        self.newest: V | None = None
        self.relists = 0
        self._store = store
        self._on_change = on_change
        self._view = view
        self._delay_seconds = delay_seconds
        self._at_once = at_once
        self._watch: Watch[V] | None = None
        self._due: asyncio.Handle | None = None

    def start(self) -> None:
        """Report all objects now, and changes from now on."""
        views = {key: self._view(value) for key, value in self._store.keyed(self.kind).items()}
        found = {key: view for key, view in views.items() if view is not None}
        self._follow(self._store.version)
        for key in [key for key in self.known if key not in found]:
            self._report(key, None)
        for key, view in found.items():
            self._report(key, view)

    def _follow(self, version: int) -> None:
        self._watch = self._store.watch(self.kind, version, self._wake)
        if self._watch.has_changes:
            self._wake()

    def stop(self) -> None:
        """Report nothing more; stopping twice is fine."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _wake(self) -> None:
        if self._due is None:
            loop = asyncio.get_running_loop()
            if self._delay_seconds is None:
                self._due = loop.call_soon(self._read)
            else:
                self._due = loop.call_later(self._delay_seconds(), self._read)

    def _read(self) -> None:
        self._due = None
        watch = self._watch
        assert watch is not None, "stopping cancels what is due"
        try:
            changes = watch.read(self._at_once)
        except GoneError:
            watch.close()
            self._list_again()
            return
        for change in changes:
            is_gone = change.type is ChangeType.DELETED
            self.newest = change.value
            self._report(change.key, None if is_gone else self._view(change.value))
        self.newest = None
        has_more = len(changes) == self._at_once and watch.has_changes
        if has_more and self._due is None and self._watch is watch:
            self._due = asyncio.get_running_loop().call_soon(self._read)

    def _list_again(self) -> None:
        self.relists += 1
        self.start()

    def _report(self, key: Key, after: T | None) -> None:
        before = self.known.get(key)
        if before is not after:
            if after is None:
                del self.known[key]
            else:
                self.known[key] = after
            self._on_change(key, before, after)
