from __future__ import annotations

from random import Random

import pytest

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.cohorts import Cohorts
from kubesched.testing.builders import make_pod_info


class Rows:
    """Compares cohorts with lists of pods that are each counted on their own."""

    def __init__(self, random: Random, pods: int) -> None:
        self.random, self.cohorts = random, Cohorts()
        self.rows: list[list[str]] = []
        self.pods: dict[str, QueuedPodInfo] = {}
        self.expected: dict[str, list[int]] = {}
        for number in range(pods):
            queued = QueuedPodInfo(make_pod_info(f"p{number}"))
            self.cohorts.begin_step()
            self.cohorts.arrive(queued)
            self.pods[queued.key] = queued
            self.expected[queued.key] = [0, queued.arrival]
            self.rows.append([queued.key])

    def leader(self, at: int) -> QueuedPodInfo:
        """Return the leader of a row."""
        return self.pods[self.rows[at][0]]

    def arrival(self, key: str) -> int:
        """Return a pod's number."""
        return self.expected[key][1]

    def join(self) -> None:
        """Let a row follow another one, if it arrived later."""
        if len(self.rows) < 2:
            return
        one, other = sorted(self.random.sample(range(len(self.rows)), 2))
        is_in_order = self.arrival(self.rows[one][-1]) < self.arrival(self.rows[other][0])
        assert is_in_order == self.cohorts.join(self.leader(one), self.leader(other))
        if is_in_order:
            self.rows[one] += self.rows.pop(other)

    def attempt(self) -> None:
        """Try a row."""
        at = self.random.randrange(len(self.rows))
        self.leader(at).unschedulable_count += 1
        assert len(self.rows[at]) == self.cohorts.attempt(self.leader(at))
        for key in self.rows[at]:
            self.expected[key][0] += 1

    def arrive(self) -> None:
        """Add all pods again, in order or row by row."""
        last = max(arrival for _, arrival in self.expected.values())
        self.cohorts.begin_step()
        shift = last + 1 - self.arrival(self.rows[0][0])
        for at, row in enumerate(self.rows):
            self.cohorts.arrive(self.leader(at))
            for key in row:
                self.expected[key][1] += shift

    def split(self) -> None:
        """Give the late pods of a row their own leader."""
        at = self.random.randrange(len(self.rows))
        row = self.rows[at]
        limit = self.random.randint(self.arrival(row[0]), self.arrival(row[-1]))
        late = [key for key in row if self.arrival(key) > limit]
        rest = self.cohorts.split(self.leader(at), limit)
        assert (late[0] if late else None) == (rest and rest.key)
        self.rows[at] = [key for key in row if key not in late]
        if late:
            self.rows.append(late)

    def leave(self) -> None:
        """Take a pod out of its row."""
        at = self.random.randrange(len(self.rows))
        row = self.rows[at]
        key = self.random.choice(row)
        if key != row[0]:
            assert key == self.cohorts.leave(key).key
        elif len(row) > 1:
            assert row[1] == self.cohorts.promote(key).key
        row.remove(key)
        self.rows = [*filter(None, self.rows), [key]]

    def check(self) -> None:
        """Assert that cohorts and lists agree."""
        self.cohorts.check()
        self.rows.sort(key=lambda row: self.arrival(row[0]))
        for at, row in enumerate(self.rows):
            members = list(self.cohorts.members(self.leader(at)))
            assert row == [queued.key for queued in members]
            for queued in members:
                seen = [queued.attempts, queued.arrival]
                assert self.expected[queued.key] == seen
                assert queued.attempts == queued.unschedulable_count


@pytest.mark.parametrize("seed", range(20))
def test_cohorts_count_each_pod(seed: int) -> None:
    """Random steps give the same numbers as counting the pods one by one."""
    random = Random(seed)
    rows = Rows(random, 12)
    for _ in range(100):
        step = (rows.join, rows.join, rows.attempt, rows.arrive, rows.split, rows.leave)
        random.choice(step)()
        rows.check()


def test_a_follower_has_the_times_of_its_leader() -> None:
    """Both were rejected at the same time."""
    rows = Rows(Random(1), 2)
    one, other = rows.pods.values()
    assert rows.cohorts.join(one, other)
    one.timestamp, one.was_flushed = 7.0, True
    left = rows.cohorts.leave(other.key)
    assert (7.0, True) == (left.timestamp, left.was_flushed)
