from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.unschedulable_pods import Topic, UnschedulablePods
from kubesched.testing.builders import make_pod_info

TOPICS: tuple[Topic, ...] = (("a", "Fit"), ("a", "Spread"), ("b", "Fit"), ("", ""))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", "r", "s"]),
        st.none() | st.lists(st.sampled_from(TOPICS), unique=True),
        st.booleans(),
    ),
    max_size=40,
)


@given(STEPS, st.lists(st.sampled_from(TOPICS)))
def test_topics_equal_a_search(
    steps: list[tuple[str, list[Topic] | None, bool]], asked: list[Topic]
) -> None:
    """The pods of topics are those found by a search of all pods, in order of arrival."""
    pods = UnschedulablePods()
    twin: dict[str, tuple[QueuedPodInfo, list[Topic]]] = {}
    for number, (name, topics, is_gated) in enumerate(steps):
        key = f"default/{name}"
        if topics is None:
            known = twin.pop(key, None)
            assert (None if known is None else known[0]) is pods.delete(key)
        else:
            queued = QueuedPodInfo(make_pod_info(name), gating_plugin="Gates" if is_gated else "")
            queued.arrival = number
            assert (key not in twin) == pods.put(queued, topics)
            twin[key] = (queued, topics)
        pods.check()
        assert [queued for queued, _ in twin.values()] == pods.pods()
        assert len(twin) == len(pods)
        assert sum(queued.is_gated for queued, _ in twin.values()) == pods.gated
        expected = [queued for queued, topics in twin.values() if set(topics) & set(asked)]
        assert expected == pods.filed_under(asked)


def test_check_finds_a_changed_pod_that_was_not_put_again() -> None:
    """Its topics may have changed."""
    pods = UnschedulablePods()
    queued = QueuedPodInfo(make_pod_info("p"))
    pods.put(queued, [("a", "Fit")])
    queued.gating_plugin = "Gates"
    with pytest.raises(AssertionError, match="default/p was gated"):
        pods.check()
    assert not pods.put(queued, [("a", "Gates")])
    pods.check()
    assert queued is pods.get("default/p")
    assert "default/p" in pods
