"""The queue again, as plain lists and loops written from the specification alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import ClusterEvent, QueueingHint
from kubesched.framework.status import Status
from kubesched.snapshot.pod_info import PodInfo

Registered = Sequence[tuple[str, ClusterEvent, QueueingHint]]
Gate = Callable[[PodInfo], Status]


@dataclass(eq=False)
class NaivePod:
    """A pod with its history."""

    info: PodInfo
    timestamp: float
    attempts: int = 0
    unschedulable_count: int = 0
    errors: int = 0
    was_flushed: bool = False
    first_active: float | None = None
    unschedulable: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""


@dataclass(eq=False)
class NaiveEvent:
    """An event while pods were in flight."""

    event: ClusterEvent
    old: object
    new: object


class NaiveQueue:
    """A queue of plain lists in order of arrival, searched from end to end."""

    def __init__(
        self,
        registered: Mapping[str, Registered],
        gates: Mapping[str, Mapping[str, Gate]],
        find_pod: Callable[[str, str], Pod | None],
        *,
        pops_from_backoff: bool = True,
        longest_backoff: float = 10.0,
    ) -> None:
        self.registered, self.gates, self.find_pod = registered, gates, find_pod
        self.pops_from_backoff = pops_from_backoff
        self.longest_backoff = longest_backoff
        self.active: list[NaivePod] = []
        self.backoff: list[NaivePod] = []
        self.error_backoff: list[NaivePod] = []
        self.unschedulable: list[NaivePod] = []
        # Pods in flight and events, in one list.
        self.log: list[NaivePod | NaiveEvent] = []
        self.nominations: list[tuple[str, str]] = []
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.rejections: Counter[tuple[str, str]] = Counter()
        self.pops = 0

    # 2.2

    def expiration(self, pod: NaivePod) -> float:
        """Return when the backoff ends."""
        count = pod.errors if pod.errors > 0 else pod.unschedulable_count
        if count == 0 or self.longest_backoff == 0:
            return -math.inf
        wait = 1.0
        for _ in range(count - 1):
            wait = min(2 * wait, self.longest_backoff)
        end = pod.timestamp + min(wait, self.longest_backoff)
        return math.floor(end) if self.pops_from_backoff else end

    def backs_off(self, pod: NaivePod, now: float) -> bool:
        """Whether the pod is backing off."""
        return self.expiration(pod) >= (math.floor(now) if self.pops_from_backoff else now)

    # 2.5

    def ask_gates(self, pod: NaivePod) -> None:
        """Run PreEnqueue plugins, the gating plugin first."""
        name = pod.info.pod.spec.scheduler_name
        plugins = list(self.gates[name])
        if pod.gate in plugins:
            plugins.sort(key=lambda plugin: plugin != pod.gate)
        for plugin in plugins:
            if not self.gates[name][plugin](pod.info).is_success:
                if plugin not in pod.unschedulable | pod.pending:
                    self.rejections[plugin, name] += 1
                pod.unschedulable = pod.unschedulable | {plugin}
                pod.gate = plugin
                return
        pod.gate = ""

    def is_deaf(self, pod: NaivePod, event: ClusterEvent) -> bool:
        """Whether the pod is gated and its gating plugin did not register the event."""
        return bool(pod.gate) and not any(
            plugin == pod.gate and registered.matches(event)
            for profile in self.registered.values()
            for plugin, registered, _ in profile
        )

    # 2.7

    def worth(self, pod: NaivePod, happened: NaiveEvent) -> str:
        """Return the strategy of an event for a pod."""
        rejectors = pod.unschedulable | pod.pending
        if not rejectors:
            return "after backoff"
        if happened.event.is_wildcard:
            new = happened.new
            if new is not None and not (
                isinstance(new, Pod) and new.metadata.uid == pod.info.pod.metadata.uid
            ):
                return "skip"
            return "after backoff"
        answers: set[str] = set()
        for plugin, event, hint in self.registered[pod.info.pod.spec.scheduler_name]:
            if event.matches(happened.event) and plugin in rejectors:
                try:
                    queues = hint(pod.info.pod, happened.old, happened.new)
                except ValueError:
                    queues = True
                if queues:
                    answers.add("immediately" if plugin in pod.pending else "after backoff")
        return min(answers, key=["immediately", "after backoff"].index, default="skip")

    # 2.8

    def requeue(self, pod: NaivePod, strategy: str, label: str, now: float) -> str:
        """Requeue a pod by the strategy; return its new place."""
        if strategy == "skip":
            return self.store(pod, label)
        if strategy == "after backoff" and self.backs_off(pod, now):
            if self.pops_from_backoff:
                self.ask_gates(pod)
                if pod.gate:
                    return self.store(pod, label)
            self.forget(pod.info.key, [self.unschedulable])
            rejected = pod.unschedulable | pod.pending
            (self.backoff if rejected else self.error_backoff).append(pod)
            self.incoming["backoff", label] += 1
            return "backoff"
        return self.make_active(pod, label, now)

    def make_active(self, pod: NaivePod, label: str, now: float, gates: bool = True) -> str:
        """Put a pod into activeQ, or into unschedulablePods if gated."""
        if gates:
            self.ask_gates(pod)
        if pod.gate:
            elsewhere = self.active + self.backoff + self.error_backoff
            if not any(other.info.key == pod.info.key for other in elsewhere):
                self.store(pod, label)
            return "unschedulable"
        if pod.first_active is None:
            pod.first_active = now
        self.forget(pod.info.key, [self.unschedulable, self.backoff, self.error_backoff])
        self.active.append(pod)
        self.incoming["active", label] += 1
        if label in {"UnschedulablePodAdd", "UnschedulablePodUpdate"}:
            self.nominate(pod.info, None)
        return "active"

    def store(self, pod: NaivePod, label: str) -> str:
        """Put a pod into unschedulablePods."""
        if not any(other is pod for other in self.unschedulable):
            self.unschedulable.append(pod)
            self.incoming["unschedulable", label] += 1
        return "unschedulable"

    def forget(self, key: str, places: list[list[NaivePod]]) -> NaivePod | None:
        """Remove a pod from the first place that has it."""
        for place in places:
            for pod in place:
                if pod.info.key == key:
                    place.remove(pod)
                    return pod
        return None

    def wakes(self, place: str) -> bool:
        """Whether a pod there can be popped."""
        return place == "active" or (place == "backoff" and self.pops_from_backoff)

    # 2.3, 2.4

    def in_flight(self) -> list[NaivePod]:
        """Return the pods in flight."""
        return [entry for entry in self.log if isinstance(entry, NaivePod)]

    def find_in_flight(self, uid: str) -> NaivePod | None:
        """Return the pod in flight with that uid."""
        return next((pod for pod in self.in_flight() if pod.info.uid == uid), None)

    def sort_key(self, pod: NaivePod) -> tuple[float, ...]:
        """Return the order of activeQ."""
        return (-pod.info.priority, pod.timestamp)

    def in_order(self, place: str) -> list[NaivePod]:
        """Return the pods of a place in the order of popping."""
        if place == "active":
            return sorted(self.active, key=self.sort_key)
        order = (
            (lambda pod: (self.expiration(pod), *self.sort_key(pod)))
            if self.pops_from_backoff
            else self.expiration
        )
        return sorted(self.backoff, key=order) + sorted(self.error_backoff, key=self.expiration)

    def pop(self) -> NaivePod | None:
        """Pop the next pod."""
        if self.active:
            pod = self.in_order("active")[0]
            self.active.remove(pod)
        elif self.backoff and self.pops_from_backoff:
            pod = self.in_order("backoff")[0]
            self.backoff.remove(pod)
            self.incoming["active", "PopFromBackoffQ"] += 1
        else:
            return None
        return self.take_off(pod)

    def take_off(self, pod: NaivePod) -> NaivePod:
        """Put a pod in flight."""
        pod.attempts += 1
        self.pops += 1
        self.log.append(pod)
        for plugin in pod.unschedulable | pod.pending:
            self.rejections[plugin, pod.info.pod.spec.scheduler_name] -= 1
        return pod

    def pop_specific(self, info: PodInfo, now: float) -> NaivePod | None:
        """Pop a specific pod."""
        self.activate_one(info, now)
        pod = self.forget(info.key, [self.active])
        return None if pod is None else self.take_off(pod)

    def record(self, event: ClusterEvent, old: object, new: object) -> None:
        """Record an event if any pod is in flight."""
        if self.in_flight():
            self.log.append(NaiveEvent(event, old, new))

    def done(self, uid: str) -> None:
        """End the flight of a pod."""
        pod = self.find_in_flight(uid)
        if pod is not None:
            self.log.remove(pod)
            while self.log and isinstance(self.log[0], NaiveEvent):
                del self.log[0]

    def log_counts(self) -> dict[str, int]:
        """Count events and pods in the log."""
        counts = Counter(entry.event.label for entry in self.log if isinstance(entry, NaiveEvent))
        return {**counts, "PodPopped": len(self.in_flight())}

    # 2.6

    def fail(self, pod: NaivePod, unschedulable: set[str], pending: set[str], now: float) -> bool:
        """Put a pod back."""
        pod.unschedulable, pod.pending, pod.gate = set(unschedulable), set(pending), ""
        rejectors = unschedulable | pending
        if rejectors:
            pod.unschedulable_count += 1
            pod.errors = 0
        else:
            pod.errors += 1
        pod.timestamp, pod.was_flushed = now, False
        for plugin in rejectors:
            self.rejections[plugin, pod.info.pod.spec.scheduler_name] += 1
        if rejectors:
            since = self.log[self.log.index(pod) + 1 :]
            found = {self.worth(pod, each) for each in since if isinstance(each, NaiveEvent)}
            strategy = min(found | {"skip"}, key=["immediately", "after backoff", "skip"].index)
        else:
            strategy = "after backoff"
        place = self.requeue(pod, strategy, "ScheduleAttemptFailure", now)
        self.done(pod.info.uid)
        return self.wakes(place)

    # 2.9

    def add(self, info: PodInfo, now: float) -> bool:
        """Add a pod."""
        return self.wakes(self.make_active(NaivePod(info, now), "UnschedulablePodAdd", now))

    def update(
        self, old: PodInfo, new: PodInfo, events: Sequence[ClusterEvent], now: float
    ) -> bool:
        """Update a pod."""
        if self.find_in_flight(new.uid) is not None:
            self.log += [NaiveEvent(event, old.pod, new.pod) for event in events]
            return False
        for place in (self.active, self.backoff, self.error_backoff, self.unschedulable):
            for pod in place:
                if pod.info.key == old.key:
                    pod.info = new
                    self.renominate(old, new)
                    return place is self.unschedulable and self.apply(pod, old, events, now)
        label = "UnschedulablePodUpdate"
        return self.wakes(self.make_active(NaivePod(new, now), label, now))

    def apply(
        self, pod: NaivePod, old: PodInfo, events: Sequence[ClusterEvent], now: float
    ) -> bool:
        """Requeue a changed pod, event by event."""
        for event in events:
            strategy = self.worth(pod, NaiveEvent(event, old.pod, pod.info.pod))
            if pod in self.backoff + self.error_backoff:
                if strategy == "skip":
                    continue
                gated_before = list(self.unschedulable)
                place = self.again(pod, strategy, event.label, now)
                assert gated_before == self.unschedulable
            else:
                place = self.requeue(pod, strategy, event.label, now)
            if self.wakes(place):
                return True
        return False

    def again(self, pod: NaivePod, strategy: str, label: str, now: float) -> str:
        """Requeue a pod that an earlier event of the same update moved to backoffQ."""
        if strategy == "after backoff" and self.backs_off(pod, now):
            self.incoming["backoff", label] += 1
            return "backoff"
        return self.make_active(pod, label, now)

    def delete(self, info: PodInfo) -> None:
        """Delete a pod."""
        self.nominations = [each for each in self.nominations if each[0] != info.uid]
        if self.forget(info.key, [self.active, self.backoff, self.error_backoff]) is None:
            pod = self.forget(info.key, [self.unschedulable])
            if pod is not None:
                for plugin in pod.unschedulable | pod.pending:
                    self.rejections[plugin, pod.info.pod.spec.scheduler_name] -= 1

    def activate(self, infos: Sequence[PodInfo], event: ClusterEvent, now: float) -> bool:
        """Activate pods."""
        woke = False
        for info in infos:
            if self.activate_one(info, now):
                woke = True
            elif self.find_in_flight(info.uid) is not None:
                self.log.append(NaiveEvent(event, None, info.pod))
        return woke

    def activate_one(self, info: PodInfo, now: float) -> bool:
        """Activate one pod."""
        for waiting in self.unschedulable:
            if waiting.info.key == info.key:
                return self.make_active(waiting, "ForceActivate", now) == "active"
        pod = self.forget(info.key, [self.backoff, self.error_backoff])
        if pod is None:
            return False
        gates = not self.pops_from_backoff
        return self.make_active(pod, "ForceActivate", now, gates) == "active"

    def move_all(
        self,
        event: ClusterEvent,
        old: object,
        new: object,
        now: float,
        pre_check: Callable[[PodInfo], bool],
    ) -> bool:
        """Move all pods that an event may have helped."""
        if not event.is_wildcard and not any(
            registered.matches(event)
            for profile in self.registered.values()
            for _, registered, _ in profile
        ):
            return False
        pods = [pod for pod in self.unschedulable if pre_check(pod.info)]
        return self.move(pods, NaiveEvent(event, old, new), now)

    def move(self, pods: Sequence[NaivePod], happened: NaiveEvent, now: float) -> bool:
        """Move those pods that an event may have helped."""
        woke = False
        for pod in pods:
            if self.is_deaf(pod, happened.event):
                continue
            strategy = self.worth(pod, happened)
            if strategy == "skip":
                continue
            gate, position = pod.gate, self.unschedulable.index(pod)
            self.unschedulable.remove(pod)
            place = self.requeue(pod, strategy, happened.event.label, now)
            if gate and gate == pod.gate and place == "unschedulable":  # It keeps its position.
                self.unschedulable.remove(pod)
                self.unschedulable.insert(position, pod)
            woke = self.wakes(place) or woke
        self.record(happened.event, happened.old, happened.new)
        return woke

    def flush_backoff(self, now: float) -> bool:
        """Move pods whose backoff has ended."""
        woke = False
        for pod in self.in_order("backoff"):
            if not self.backs_off(pod, now):
                self.forget(pod.info.key, [self.backoff, self.error_backoff])
                gates = not self.pops_from_backoff
                if self.make_active(pod, "BackoffComplete", now, gates) == "active":
                    woke = True
        return woke

    def flush_unschedulable(self, event: ClusterEvent, now: float) -> bool:
        """Move pods that have waited for more than five minutes."""
        late = [pod for pod in self.unschedulable if now - pod.timestamp > 300]
        for pod in late:
            pod.was_flushed = True
        return bool(late) and self.move(late, NaiveEvent(event, None, None), now)

    # 2.10

    def nominate(self, info: PodInfo, node: str | None) -> None:
        """Nominate a pod to a node; None means the node in its status."""
        self.nominations = [each for each in self.nominations if each[0] != info.uid]
        node = info.pod.status.nominated_node_name if node is None else node
        observed = self.find_pod(info.namespace, info.name)
        if node and observed is not None and not observed.spec.node_name:
            self.nominations.append((info.uid, node))

    def renominate(self, old: PodInfo, new: PodInfo) -> None:
        """Keep a nomination in memory through an update."""
        known = dict(self.nominations).get(old.uid)
        before, after = old.pod.status.nominated_node_name, new.pod.status.nominated_node_name
        self.nominations = [each for each in self.nominations if each[0] != old.uid]
        self.nominate(new, known if not before and not after else None)
