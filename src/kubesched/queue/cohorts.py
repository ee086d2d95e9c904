"""Cohorts are groups of equal pods that move through the queue as one.

Pods of one template that were rejected at the same moment for the same reason differ in name, age
and number of attempts alone: an event that moves one of them moves all, and while one is rejected,
all are. Only the first of them, the leader, is in a part of the queue; the others follow it. What
changes for all of them at once is counted once, and a follower has its numbers relative to that.

Upstream: nothing like it; the moves and numbers are those of pods that move one by one
Invariants: followers are in the order of their arrival, after their leader; a pod leads or follows
          in at most one cohort (`check()`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator
from copy import copy
from itertools import islice

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.snapshot.pod_info import PodInfo


class _Cohort:
    """A leader with followers; `attempts` and `shift` were added to all of them."""

    __slots__ = ("attempts", "followers", "leader", "shift")

    def __init__(self, leader: QueuedPodInfo) -> None:
        self.leader = leader
        self.followers: OrderedDict[str, QueuedPodInfo] = OrderedDict()
        self.attempts = 0
        self.shift = 0

    def count(self, queued: QueuedPodInfo, sign: int) -> None:
        """Add (1) or take away (-1) what was added to all followers."""
        queued.attempts += sign * self.attempts
        queued.unschedulable_count += sign * self.attempts
        queued.arrival += sign * self.shift


class Cohorts:
    """The cohorts of one queue, and the numbers by which its pods are in order of arrival."""

    def __init__(self) -> None:
        self._led: dict[str, _Cohort] = {}
        self._following: dict[str, _Cohort] = {}
        self._last = 0
        self._shift: int | None = None

    # Queries.

    def size(self, queued: QueuedPodInfo) -> int:
        """Return the number of pods that a pod of the queue stands for, itself included."""
        cohort = self._led.get(queued.key)
        return 1 if cohort is None else 1 + len(cohort.followers)

    def __contains__(self, key: str) -> bool:
        """Whether the pod of that `namespace/name` leads or follows others."""
        return key in self._following or key in self._led

    def leads(self, key: str) -> bool:
        """Whether other pods follow the one of that `namespace/name`."""
        return key in self._led

    def followers(self, queued: QueuedPodInfo) -> Collection[str]:
        """Return `namespace/name` of the pods that follow a pod, in order."""
        cohort = self._led.get(queued.key)
        return () if cohort is None else cohort.followers.keys()

    def leader_of(self, key: str) -> QueuedPodInfo | None:
        """Return the pod that a pod follows; None if it follows none."""
        cohort = self._following.get(key)
        return None if cohort is None else cohort.leader

    def leaders(self) -> list[QueuedPodInfo]:
        """Return the pods that others follow."""
        return [cohort.leader for cohort in self._led.values()]

    def members(self, queued: QueuedPodInfo, last: int | None = None) -> Iterator[QueuedPodInfo]:
        """Yield a pod, and copies of its followers that are up to date; or the last of these."""
        cohort = self._led.get(queued.key)
        if last is None or last >= self.size(queued):
            yield queued
        if cohort is not None:
            found = islice(reversed(cohort.followers.values()), last)
            yield from (self._copy(each, cohort) for each in [*found][::-1])

    def objects(self, queued: QueuedPodInfo) -> Iterator[PodInfo]:
        """Yield the pod and its followers without their queue state; faster than `members`."""
        yield queued.pod_info
        cohort = self._led.get(queued.key)
        if cohort is not None:
            yield from (follower.pod_info for follower in cohort.followers.values())

    def copy_of(self, key: str) -> QueuedPodInfo:
        """Return a copy of a follower that is up to date."""
        cohort = self._following[key]
        return self._copy(cohort.followers[key], cohort)

    def _copy(self, queued: QueuedPodInfo, cohort: _Cohort) -> QueuedPodInfo:
        copied = copy(queued)
        self._settle(copied, cohort)
        return copied

    # Changes of all members at once.

    def begin_step(self) -> None:
        """Begin a step: pods that `arrive` from now on keep their order."""
        self._shift = None

    def arrive(self, queued: QueuedPodInfo) -> None:
        """Number a pod and its followers after all pods that arrived before this step."""
        if self._shift is None:
            self._shift = self._last + 1 - queued.arrival
        queued.arrival = last = queued.arrival + self._shift
        cohort = self._led.get(queued.key)
        if cohort is not None:
            cohort.shift += self._shift
            last = next(reversed(cohort.followers.values())).arrival + cohort.shift
        self._last = max(self._last, last)

    def attempt(self, queued: QueuedPodInfo) -> int:
        """Count an attempt of a pod and its followers; return how many they are."""
        queued.attempts += 1
        cohort = self._led.get(queued.key)
        if cohort is None:
            return 1
        cohort.attempts += 1
        return 1 + len(cohort.followers)

    # Members come and go.

    def join(self, first: QueuedPodInfo, then: QueuedPodInfo) -> bool:
        """Let a pod and its followers follow another if they all arrived after its followers."""
        one = self._led.get(first.key) or _Cohort(first)
        other = self._led.pop(then.key, None) or _Cohort(then)
        if one.followers:
            end = next(reversed(one.followers.values())).arrival + one.shift
            if end > then.arrival:
                if other.followers:
                    self._led[then.key] = other
                return False
        # The smaller cohort moves into the larger one.
        if len(one.followers) < len(other.followers):
            moved = [then, *reversed(one.followers.values())]
            into, source, is_last = other, one, False
        else:
            moved = [then, *other.followers.values()]
            into, source, is_last = one, other, True
        for queued in moved:
            if queued is not then:
                source.count(queued, 1)
            into.count(queued, -1)
            into.followers[queued.key] = queued
            if not is_last:
                into.followers.move_to_end(queued.key, last=False)
            self._following[queued.key] = into
        into.leader = first
        self._led[first.key] = into
        return True

    def leave(self, key: str) -> QueuedPodInfo:
        """Let a follower stand alone; return it."""
        cohort = self._following.pop(key)
        queued = cohort.followers.pop(key)
        self._settle(queued, cohort)
        if not cohort.followers:
            del self._led[cohort.leader.key]
        return queued

    def promote(self, key: str) -> QueuedPodInfo:
        """Let a leader stand alone; return the pod that leads its followers now."""
        return self._promote(self._led.pop(key))

    def split(self, leader: QueuedPodInfo, arrival: int) -> QueuedPodInfo | None:
        """Split off the followers that arrived later; return their leader, None without any."""
        cohort = self._led.get(leader.key)
        if cohort is None:
            return None
        early, late = self._divide(cohort, arrival - cohort.shift)
        if late is not None:
            for queued in late:
                del cohort.followers[queued.key]
            if not cohort.followers:
                del self._led[leader.key]
            return self._new(cohort, late[0], late[1:]) if late else None
        # The smaller part moves, so the late ones keep the cohort.
        del self._led[leader.key]
        for queued in early:
            del cohort.followers[queued.key]
        if early:
            self._new(cohort, leader, early)
        return self._promote(cohort)

    @staticmethod
    def _divide(
        cohort: _Cohort, arrival: int
    ) -> tuple[list[QueuedPodInfo], list[QueuedPodInfo] | None]:
        """Return the early followers or the late ones, whichever are fewer."""
        early: list[QueuedPodInfo] = []
        late: list[QueuedPodInfo] = []
        both = zip(cohort.followers.values(), reversed(cohort.followers.values()), strict=True)
        for first, last in both:
            if last.arrival <= arrival:
                break
            late.append(last)
            if first.arrival > arrival:
                return early, None
            early.append(first)
        return [], late[::-1]

    def _new(
        self, source: _Cohort, leader: QueuedPodInfo, followers: list[QueuedPodInfo]
    ) -> QueuedPodInfo:
        """Make a cohort of pods that followed in another."""
        cohort = _Cohort(leader)
        cohort.attempts, cohort.shift = source.attempts, source.shift
        if self._following.pop(leader.key, None) is not None:
            self._settle(leader, source)
        for queued in followers:
            cohort.followers[queued.key] = queued
            self._following[queued.key] = cohort
        if followers:
            self._led[leader.key] = cohort
        return leader

    def _promote(self, cohort: _Cohort) -> QueuedPodInfo:
        key, queued = cohort.followers.popitem(last=False)
        del self._following[key]
        self._settle(queued, cohort)
        if cohort.followers:
            self._led[key] = cohort
        cohort.leader = queued
        return queued

    @staticmethod
    def _settle(queued: QueuedPodInfo, cohort: _Cohort) -> None:
        """Bring a follower up to date."""
        cohort.count(queued, 1)
        leader = cohort.leader
        queued.timestamp = leader.timestamp
        queued.backoff_expiration = leader.backoff_expiration
        queued.was_flushed = leader.was_flushed

    def check(self) -> None:
        """Assert that followers are in order, and in one cohort each."""
        for key, cohort in self._led.items():
            assert key == cohort.leader.key, f"{cohort.leader.key} leads as {key}"
            assert cohort.followers, f"{key} leads nobody"
            assert key not in self._following, f"{key} leads and follows"
            arrivals = [each.arrival + cohort.shift for each in cohort.followers.values()]
            assert cohort.leader.arrival < arrivals[0], f"{key} came after its followers"
            assert arrivals == sorted(set(arrivals)), f"followers of {key} are out of order"
            for follower in cohort.followers:
                assert self._following[follower] is cohort, f"{follower} follows two pods"
        followers = sum(len(cohort.followers) for cohort in self._led.values())
        assert len(self._following) == followers, "a pod follows nobody"
