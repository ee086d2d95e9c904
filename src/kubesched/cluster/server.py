"""Server is the interface that kubelets and controllers use.

The embedded API server implements it with its local client, the simulator with objects on virtual
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
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

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


class Subscription(Protocol):
    """A watch on the objects of one kind."""

    def start(self) -> None:
        """Report all objects now, and changes from now on."""

    def stop(self) -> None:
        """Report nothing more; stopping twice is fine."""


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


class Server(Protocol):
    """The objects of a cluster.

    If it does not keep the statuses of workloads, controllers do not compute them.
    """

    keeps_statuses: bool

    def now(self) -> float:
        """Return the seconds since the Unix epoch."""

    def timestamp(self) -> str:
        """Return the time as Kubernetes writes it."""

    # Pods, nodes and disruption budgets.

    def watch(self, type_: type[Typed], on_change: OnChange[Typed]) -> Subscription:
        """Return a subscription to the objects of a class; it has to be started."""

    def read(self, type_: type[Typed], namespace: str, name: str) -> Typed | None:
        """Return an object, None if there is none."""

    def all(self, type_: type[Typed], namespace: str | None = None) -> Sequence[Typed]:
        """Return the objects of a class, of one namespace or of all."""

    # Plain objects.

    def follow(self, kind: str, on_change: OnChange[Plain]) -> Subscription:
        """Return a subscription to the objects of a kind; it has to be started."""

    def find(self, kind: str, namespace: str, name: str) -> Plain | None:
        """Return an object, None if there is none."""

    def list(self, kind: str, namespace: str | None = None) -> list[Plain]:
        """Return the objects of a kind, of one namespace or of all."""

    def create(self, kind: str, obj: Plain) -> Plain:
        """Create an object and return it; raises ApiError if it is refused."""

    def create_pod(self, pod: Plain) -> Pod:
        """Create a pod and return it; raises ApiError if it is refused."""

    def patch_status(self, key: Key, status: Plain) -> None:
        """Replace the status of an object; raises NotFoundError if it is gone."""

    def annotate(self, key: Key, name: str, value: str) -> None:
        """Set an annotation of an object; nothing happens if it is gone."""

    def scale(self, key: Key, replicas: int) -> None:
        """Set the number of replicas of a workload; raises NotFoundError if it is gone."""

    def delete(self, key: Key, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete an object, or begin to; the grace period is by default the object's own.

        `uid` is the identity it must have; "" for any.

        Raises:
            ApiError: It is not there, or it is another one.
        """


class AnyKindServer(Server, Protocol):
    """A server whose objects of any kind can be listed and changed, for garbage collection."""

    def kinds(self, *, only_namespaced: bool = False) -> list[str]:
        """Return the kinds that the store may hold."""

    def is_namespaced(self, kind: str) -> bool:
        """Whether the objects of a kind live in namespaces."""

    def kind_of(self, api_version: str, kind: str) -> str | None:
        """Return where the store keeps a kind, None if it is not served."""

    def count(self, kind: str) -> int:
        """Return how many objects of a kind there are."""

    def write(self, key: Key, plain: Plain) -> Plain:
        """Store a new state of an object that is there, without validation."""

    def release(self, key: Key, finalizer: str) -> None:
        """Remove a finalizer from an object, which is deleted if nothing else holds it."""

    def delete(
        self, key: Key, uid: str = "", grace_seconds: int | None = None, policy: str = "Background"
    ) -> None:
        """Delete an object, or begin to; `policy` decides about its dependents.

        Raises:
            ApiError: It is not there, or it is another one.
        """


class PodReports(Protocol):
    """Writes what kubelets report of their pods; each returns the pod as it is then."""

    def started(self, pod: Pod) -> Pod:
        """All containers run."""

    def restarted(self, pod: Pod, exit_code: int) -> Pod:
        """All containers ended, and run again."""

    def ended(self, pod: Pod, exit_code: int) -> Pod:
        """All containers ended for good."""

    def resized(self, pod: Pod) -> None:
        """A running pod changed; its containers get the resources that it asks for now."""

    def forget(self, pod_uid: str) -> None:
        """A pod is gone."""


@cache
def kind_name(type_: type) -> str:
    """Return the name under which a store keeps a class of objects."""
    kind = kind_of(type_)
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def key_of_plain(kind: str, obj: Plain) -> Key:
    """Return where a store keeps a plain object."""
    metadata = obj["metadata"]
    return Key(kind, metadata.get("namespace", ""), metadata["name"])


def since_changed(condition: Plain, old: Plain | None, now: str) -> Plain:
    """Return a condition with the time since when it has its status; `old` is the one before."""
    is_same = old is not None and old["status"] == condition["status"]
    since = old.get("lastTransitionTime") if old is not None and is_same else now
    return {**condition, "lastTransitionTime": since}


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
