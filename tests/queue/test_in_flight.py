from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.cluster_event import NODE, Action, ClusterEvent
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.in_flight import InFlight
from kubesched.queue.moves import ClusterChange
from kubesched.testing.builders import make_pod_info

EVENTS = (ClusterEvent(NODE, Action.ADD), ClusterEvent(NODE, Action.DELETE))
STEPS = st.lists(
    st.tuples(st.sampled_from(["pop", "event", "event", "done"]), st.integers(0, 3)), max_size=60
)


@given(STEPS)
def test_in_flight_equals_one_list_of_pods_and_events(steps: list[tuple[str, int]]) -> None:
    """A pod gets the events after its marker; events before every marker are dropped."""
    in_flight = InFlight()
    log: list[str | ClusterChange] = []
    for number, (step, which) in enumerate(steps):
        uid = f"default/p{which}"
        if step == "pop" and uid not in log:
            in_flight.add(QueuedPodInfo(make_pod_info(f"p{which}")))
            log.append(uid)
        elif step == "event":
            change = ClusterChange(EVENTS[which % 2], new=number)
            in_flight.record(change)
            if log:
                log.append(change)
        elif step == "done":
            assert (uid in log) == (in_flight.done(uid) is not None)
            log = [entry for entry in log if entry != uid]
            while log and isinstance(log[0], ClusterChange):
                del log[0]
        in_flight.check()
        assert [entry for entry in log if isinstance(entry, str)] == [
            queued.pod_info.uid for queued in in_flight.pods()
        ]
        for other in (f"default/p{at}" for at in range(4)):
            since = in_flight.since_popped(other)
            assert (other in log) == (since is not None) == (other in in_flight)
            if since is not None:
                after = log[log.index(other) + 1 :]
                assert [entry for entry in after if isinstance(entry, ClusterChange)] == list(since)
        counts = Counter(
            e.event.label if isinstance(e, ClusterChange) else "PodPopped" for e in log
        )
        assert counts == Counter(in_flight.counts())
