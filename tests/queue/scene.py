"""Scene: a queue with a few plugins whose answers a test sets, controlled by short commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    Action,
    ClusterEvent,
    Filing,
    QueueingHint,
)
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable
from kubesched.queue.backoff_queue import QueueOptions
from kubesched.queue.gates import ProfileRules
from kubesched.queue.moves import QueueMove, QueuePlace
from kubesched.queue.registrations import Registration
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import PodFields, make_pod_info

PROFILE: Final = "default-scheduler"
OTHER_PROFILE: Final = "batch"

NODE_ADD: Final = ClusterEvent(NODE, Action.ADD)
NODE_LABEL: Final = ClusterEvent(NODE, Action.UPDATE_NODE_LABEL)
NODE_DELETE: Final = ClusterEvent(NODE, Action.DELETE)
CLAIM_ADD: Final = ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.ADD)
ASSIGNED_ADD: Final = ClusterEvent("AssignedPod", Action.ADD)
ASSIGNED_DELETE: Final = ClusterEvent("AssignedPod", Action.DELETE)
EVENTS: Final = {
    event.label: event
    for event in (NODE_ADD, NODE_LABEL, NODE_DELETE, CLAIM_ADD, ASSIGNED_ADD, ASSIGNED_DELETE)
}

REGISTERED: Final[Sequence[tuple[str, ClusterEvent]]] = (
    ("Gates", ClusterEvent(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),
    ("Preemption", ClusterEvent(POD, Action.DELETE)),
    ("Fit", ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)),
    ("Fit", ClusterEvent(POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)),
    ("Spread", ClusterEvent(POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)),
    ("Spread", ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.DELETE)),
    ("Taints", ClusterEvent(POD, Action.UPDATE_POD_TOLERATION)),
    ("Features", ClusterEvent(POD, Action.UPDATE)),
    ("Volumes", ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.ADD)),
)
# The other profile knows fewer plugins.
REGISTERED_IN_OTHER: Final = (
    ("Gates", ClusterEvent(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),
    ("Fit", ClusterEvent(NODE, Action.ADD)),
)


def name_of(old: object | None, new: object | None) -> tuple[str] | None:
    """Return the name of the changed pod, or None if another kind changed."""
    return (new.metadata.name,) if isinstance(new, Pod) else None


# The plugin Volumes weighs changes of a pod for that pod alone.
BY_NAME: Final = Filing(lambda pod: [pod.metadata.name], name_of)


def priority_sort(queued: QueuedPodInfo) -> tuple[int | float, ...]:
    """Higher priority first, then the pod that was queued earlier."""
    return (-queued.pod_info.priority, queued.timestamp)


class Answers:
    """The answers of a scene's plugins; tests change them.

    Attributes:
        helped: Plugins whose hints say Queue, about any pod.
        raising: Plugins whose hints raise.
        closed: PreEnqueue plugin -> names of the pods it holds back.
        broken: PreEnqueue plugins that fail.
        asked: Plugin and pod of every hint asked.
        gated: Plugin and pod of every PreEnqueue plugin asked.
        per_template: Whether most hints are asked once for all pods of a template.
    """

    def __init__(self, *, per_template: bool = False) -> None:
        self.per_template = per_template
        self.helped: set[str] = set()
        self.raising: set[str] = set()
        self.closed: dict[str, set[str]] = {"Gates": set(), "Preemption": set()}
        self.broken: set[str] = set()
        self.asked: list[tuple[str, str]] = []
        self.gated: list[tuple[str, str]] = []

    def hint(self, plugin: str) -> QueueingHint:
        """Return the plugin's hint."""

        def hint(pod: Pod, old: object | None, new: object | None) -> bool:
            if plugin == "Volumes" and name_of(old, new) not in (None, (pod.metadata.name,)):
                return False
            self.asked.append((plugin, pod.metadata.name))
            if plugin in self.raising:
                raise ValueError(plugin)
            return plugin in self.helped

        return hint

    def pre_enqueue(self, plugin: str) -> Callable[[PodInfo], Status]:
        """Return the PreEnqueue function of a plugin."""

        def pre_enqueue(info: PodInfo) -> Status:
            self.gated.append((plugin, info.name))
            if plugin in self.broken:
                return failure("broken")
            is_closed = info.name in self.closed[plugin] or (
                plugin == "Gates" and info.spec.scheduling_gates
            )
            return unresolvable("closed") if is_closed else SUCCESS

        return pre_enqueue

    def rules(self) -> dict[str, ProfileRules]:
        """Return the two profiles' rules."""
        return {
            PROFILE: self._rules(("Gates", "Preemption"), REGISTERED),
            OTHER_PROFILE: self._rules(("Gates",), REGISTERED_IN_OTHER),
        }

    def _rules(
        self, gates: Sequence[str], registered: Iterable[tuple[str, ClusterEvent]]
    ) -> ProfileRules:
        pre_enqueue = {plugin: self.pre_enqueue(plugin) for plugin in gates}

        def still_gates(plugin: str, infos: Sequence[PodInfo]) -> list[bool]:
            return [not pre_enqueue[plugin](info).is_success for info in infos]

        return ProfileRules(
            pre_enqueue,
            {plugin: partial(still_gates, plugin) for plugin in gates},
            self._registrations(registered),
        )

    def _registrations(self, events: Iterable[tuple[str, ClusterEvent]]) -> list[Registration]:
        return [
            Registration(
                plugin,
                event,
                self.hint(plugin),
                per_template=self.per_template and plugin != "Volumes",
                filing=BY_NAME if plugin == "Volumes" else None,
            )
            for plugin, event in events
        ]


class Scene:
    """A queue, its plugins' answers, the pods in it, and every move.

    Attributes:
        answers: What the plugins say.
        queue: The queue.
        moves: What it reported.
        observed: The pods as the API server shows them, by `namespace/name`.
        now: The time, seconds.
    """

    def __init__(self, options: QueueOptions | None = None, *, per_template: bool = False) -> None:
        self.answers = Answers(per_template=per_template)
        self.moves: list[QueueMove] = []
        self.observed: dict[str, PodInfo] = {}
        self.now = 0.0
        self.queue = SchedulingQueue(
            priority_sort,
            self.answers.rules(),
            options,
            nominator=Nominator(self._find_pod),
        )
        self.queue.observers.append(self._moved)
        self._popped: dict[str, QueuedPodInfo] = {}

    def _moved(self, move: QueueMove) -> None:
        self.moves.append(replace(move, followers=tuple(move.followers)))

    def _find_pod(self, namespace: str, name: str) -> Pod | None:
        info = self.observed.get(f"{namespace}/{name}")
        return None if info is None else info.pod

    def add(self, name: str, **fields: object) -> bool:
        """Add a pod; the fields are those of `make_pod`."""
        return self.queue.add(self.observe(name, **fields), self.now)

    def observe(self, name: str, **fields: object) -> PodInfo:
        """Set a pod of the API server without an event for the queue."""
        info = make_pod_info(name, **PodFields(**fields))  # type: ignore[typeddict-item] # tests choose
        self.observed[info.key] = info
        return info

    def update(self, name: str, **fields: object) -> bool:
        """Update a pod to these fields."""
        old = self.observed[f"default/{name}"]
        return self.queue.update(old, self.observe(name, **fields), self.now)

    def delete(self, name: str) -> None:
        """Delete a pod."""
        self.queue.delete(self.observed.pop(f"default/{name}"), self.now)

    def activate(self, *names: str) -> bool:
        """Activate a pod, as a plugin would."""
        return self.queue.activate([self.info(name) for name in names], self.now)

    def info(self, name: str) -> PodInfo:
        """Return a pod as last observed, or a new one."""
        return self.observed.get(f"default/{name}") or make_pod_info(name)

    def pop(self) -> str:
        """Take the next pod; return its name, "" if there is none."""
        return self._taken(self.queue.pop(self.now))

    def pop_specific(self, name: str) -> str:
        """Take one pod; return its name, "" if it cannot be had."""
        return self._taken(self.queue.pop_specific_pod(self.info(name), self.now))

    def attempt(self, name: str, **fields: object) -> None:
        """Add a pod and pop it."""
        self.add(name, **fields)
        assert name == self.pop_specific(name)

    def _taken(self, queued: QueuedPodInfo | None) -> str:
        if queued is None:
            return ""
        self._popped[queued.pod_info.name] = queued
        return queued.pod_info.name

    def fail(
        self,
        name: str,
        *plugins: str,
        pending: Iterable[str] = (),
    ) -> bool:
        """Put a popped pod back: rejected by plugins, or after an error without plugins."""
        queued = self._popped.pop(name)
        queued.pending_plugins = frozenset(pending)
        queued.unschedulable_plugins = frozenset(plugins) | queued.pending_plugins
        queued.gating_plugin = ""
        queued.pod_info = self.observed.get(queued.pod_info.key, queued.pod_info)
        return self.queue.add_unschedulable_if_not_present(queued, self.now)

    def done(self, name: str) -> None:
        """A popped pod is done."""
        self.queue.done(self._popped.pop(name).pod_info.uid, self.now)

    def event(
        self,
        event: ClusterEvent,
        *,
        helps: Iterable[str] = (),
        pre_check: Callable[[QueuedPodInfo], bool] | None = None,
    ) -> bool:
        """Send an event whose hints queue pods that these plugins rejected."""
        self.answers.helped = set(helps)
        return self.queue.move_all(event, None, object(), self.now, pre_check)

    def waiting(self, name: str) -> QueuedPodInfo:
        """Return a queued pod."""
        queued = self.queue.get_pod(f"default/{name}")
        assert queued is not None, f"{name} does not wait"
        return queued

    def names(self, place: QueuePlace) -> list[str]:
        """Return the names of the pods in a place."""
        return [queued.pod_info.name for queued in self.queue.pods(place)]

    def place_of(self, name: str) -> QueuePlace:
        """Return the place of a pod."""
        places = [place for place in QueuePlace if name in self.names(place)]
        assert len(places) <= 1, f"{name} is in {places}"
        return places[0] if places else QueuePlace.NOWHERE

    def to_unschedulable(self, name: str, *plugins: str, **fields: object) -> None:
        """Add a pod, pop it and reject it."""
        self.attempt(name, **fields)
        self.fail(name, *plugins)
