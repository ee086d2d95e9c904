from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import CSI_NODE, NODE, POD, Action, ClusterEvent, Filing
from kubesched.framework.plugin_error import PluginError
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.hinting import QueueingHints, QueueingStrategy, ask_hint
from kubesched.queue.moves import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterChange
from kubesched.queue.registrations import Registration
from kubesched.testing.builders import make_node, make_pod, make_pod_info

from .scene import (
    ASSIGNED_ADD,
    ASSIGNED_DELETE,
    CLAIM_ADD,
    EVENTS,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    OTHER_PROFILE,
    PROFILE,
    REGISTERED,
    Answers,
)

SKIP, LATER, NOW = (
    QueueingStrategy.SKIP,
    QueueingStrategy.AFTER_BACKOFF,
    QueueingStrategy.IMMEDIATELY,
)
PLUGINS = sorted({plugin for plugin, _ in REGISTERED})


def hints(answers: Answers) -> QueueingHints:
    """Return the registrations of a scene."""
    return QueueingHints({name: rules.registrations for name, rules in answers.rules().items()})


def rejected(by: str = "", pending: str = "", scheduler: str = PROFILE) -> QueuedPodInfo:
    """Return a pod that was rejected by the plugins named in a text."""
    return QueuedPodInfo(
        make_pod_info("p", spec={"schedulerName": scheduler}),
        unschedulable_plugins=frozenset(by.split()),
        pending_plugins=frozenset(pending.split()),
    )


@pytest.mark.parametrize(
    ("queued", "event", "helped", "expected", "asked"),
    [
        pytest.param(rejected(), NODE_ADD, "", LATER, "", id="nothing-rejected-it"),
        pytest.param(rejected("Fit"), NODE_ADD, "Fit", LATER, "Fit", id="hint-queues"),
        pytest.param(rejected("Fit"), NODE_ADD, "Spread", SKIP, "Fit", id="hint-skips"),
        pytest.param(rejected("Fit"), NODE_LABEL, "Fit", SKIP, "", id="not-registered"),
        pytest.param(
            rejected("Fit Spread"), NODE_ADD, "Fit Spread", LATER, "Fit", id="first-is-enough"
        ),
        pytest.param(
            rejected("Fit Spread"), NODE_ADD, "Spread", LATER, "Fit Spread", id="any-is-enough"
        ),
        pytest.param(rejected("Fit Spread"), NODE_ADD, "", SKIP, "Fit Spread", id="none-queues"),
        pytest.param(rejected("", "Fit"), NODE_ADD, "Fit", NOW, "Fit", id="pending-queues"),
        pytest.param(rejected("", "Fit"), NODE_ADD, "", SKIP, "Fit", id="pending-skips"),
        pytest.param(
            rejected("Fit", "Spread"), NODE_ADD, "Fit Spread", NOW, "Fit Spread", id="pending-wins"
        ),
        pytest.param(
            rejected("Fit", "Spread"), NODE_ADD, "Fit", LATER, "Fit Spread", id="pending-was-asked"
        ),
        pytest.param(
            rejected("Fit", "Volumes"), NODE_ADD, "Fit", LATER, "Fit", id="pending-not-registered"
        ),
        pytest.param(
            rejected("Fit Spread", "Fit"), NODE_ADD, "Fit Spread", NOW, "Fit", id="pending-first"
        ),
        pytest.param(rejected("Gone"), NODE_ADD, "Gone", SKIP, "", id="unknown-plugin"),
        pytest.param(
            rejected("Spread", scheduler=OTHER_PROFILE), NODE_ADD, "Spread", SKIP, "",
            id="not-in-its-profile",
        ),
        pytest.param(
            rejected("Fit", scheduler="unknown"), NODE_LABEL, "", LATER, "", id="unknown-profile"
        ),
        pytest.param(rejected("Fit", scheduler=""), NODE_ADD, "Fit", LATER, "Fit", id="default"),
        pytest.param(
            rejected("Fit"), ASSIGNED_DELETE, "Fit", LATER, "Fit", id="assigned-pods-are-pods"
        ),
        pytest.param(
            rejected("Features"), ClusterEvent("UnschedulablePod", Action.UPDATE_POD_LABEL),
            "Features", LATER, "Features", id="specific-event-general-registration",
        ),
        pytest.param(
            rejected("Taints"), ClusterEvent("UnschedulablePod", Action.UPDATE),
            "Taints", SKIP, "", id="general-event-specific-registration",
        ),
        pytest.param(rejected("Fit"), UNSCHEDULABLE_TIMEOUT, "", LATER, "", id="wildcard"),
        pytest.param(rejected("", "Fit"), UNSCHEDULABLE_TIMEOUT, "", LATER, "", id="never-at-once"),
    ],
)  # fmt: skip
def test_the_best_strategy_wins(
    queued: QueuedPodInfo, event: ClusterEvent, helped: str, expected: QueueingStrategy, asked: str
) -> None:
    """The plugins that rejected the pod and registered the event are asked."""
    answers = Answers()
    answers.helped = set(helped.split())
    assert expected is hints(answers).strategy(queued, ClusterChange(event))
    assert [(plugin, "p") for plugin in asked.split()] == answers.asked


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(None, LATER, id="everybody"),
        pytest.param(make_pod("p"), LATER, id="itself"),
        pytest.param(make_pod("other"), SKIP, id="another"),
        pytest.param(make_pod("p", uid="reborn"), SKIP, id="same-name-another-pod"),
        pytest.param(make_node("p"), SKIP, id="no-pod"),
    ],
)
def test_a_forced_activation_is_for_one_pod(new: object, expected: QueueingStrategy) -> None:
    """Others are not moved by the wildcard."""
    assert expected is hints(Answers()).strategy(
        rejected("Fit"), ClusterChange(FORCE_ACTIVATE, None, new)
    )


def test_a_failing_hint_queues() -> None:
    """A hint that raises queues the pod, because a needless attempt does no harm."""
    answers = Answers()
    answers.raising = {"Fit"}
    assert LATER is hints(answers).strategy(rejected("Fit"), ClusterChange(NODE_ADD))
    assert NOW is hints(answers).strategy(rejected("", "Fit"), ClusterChange(NODE_ADD))


def _without_return(_pod: Pod, _old: object, _new: object) -> bool: ...  # type: ignore[empty-body]


def _as_in_go(_logger: object, _pod: Pod, _old: object, _new: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (_without_return, "answered wrongly in QueueingHint for pod default/p: a queueing hint mu"),
        (_as_in_go, "raised in QueueingHint for pod default/p: TypeError: _as_in_go() missing 1"),
    ],
)
def test_a_hint_that_is_wrong_is_named(hint: Any, text: str) -> None:
    """Also one that cannot be called: its line is where it is defined."""
    found: list[PluginError] = []
    one = QueueingHints({PROFILE: [Registration("Fit", NODE_ADD, hint)]})
    one.report_plugin_error = found.append
    assert LATER is one.strategy(rejected("Fit"), ClusterChange(NODE_ADD))
    [error] = found
    assert str(error).startswith(f"plugin Fit {text}")
    assert hint.__name__ == error.places[-1].function


def test_a_missing_hint_queues() -> None:
    """A registration without a hint always queues the pod."""
    one = QueueingHints({PROFILE: [Registration("Fit", NODE_ADD)]})
    assert LATER is one.strategy(rejected("Fit"), ClusterChange(NODE_ADD))


def test_hints_are_called_through_the_wrapper() -> None:
    """It sees every call, and its exceptions."""
    seen: list[tuple[str, str, str]] = []

    def ask(registration: Registration, change: ClusterChange, pod: Pod) -> bool:
        seen.append((registration.plugin, change.event.label, pod.metadata.name))
        return ask_hint(registration, change, pod)

    registration = Registration("Fit", NODE_ADD, lambda pod, old, new: (old, new) == (1, 2))
    one = QueueingHints({PROFILE: [registration]}, ask)
    assert LATER is one.strategy(rejected("Fit"), ClusterChange(NODE_ADD, 1, 2))
    assert SKIP is one.strategy(rejected("Fit"), ClusterChange(NODE_ADD, 2, 1))
    assert [("Fit", "NodeAdd", "p")] * 2 == seen


@pytest.mark.parametrize(
    ("labels", "helped", "pending", "expected", "times"),
    [
        pytest.param("", "Fit", "", SKIP, 0, id="nothing-happened"),
        pytest.param("NodeUpdateNodeLabel", "Fit", "", SKIP, 0, id="nothing-that-helps"),
        pytest.param("NodeAdd NodeAdd", "Fit", "", LATER, 1, id="first-is-enough"),
        pytest.param("NodeAdd NodeAdd", "", "", SKIP, 2, id="all-are-asked"),
        pytest.param("NodeAdd AssignedPodAdd", "Fit Spread", "Spread", NOW, 2, id="pending-later"),
        pytest.param("NodeAdd AssignedPodAdd", "Fit", "Spread", LATER, 3, id="pending-skips"),
    ],
)
def test_the_best_strategy_of_several_events(
    labels: str, helped: str, pending: str, expected: QueueingStrategy, times: int
) -> None:
    """Hints that cannot improve it are not called."""
    answers = Answers()
    answers.helped = set(helped.split())
    changes = [ClusterChange(EVENTS[label]) for label in labels.split()]
    assert expected is hints(answers).strategy_of_all(rejected("Fit", pending), changes)
    assert times == len(answers.asked)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(NODE_ADD, True, id="registered"),
        pytest.param(ASSIGNED_ADD, True, id="assigned-pod"),
        pytest.param(ClusterEvent(CSI_NODE, Action.ADD), False, id="nobody"),
        pytest.param(ClusterEvent(NODE, Action.UPDATE), False, id="too-general"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, True, id="wildcard"),
    ],
)
def test_an_event_is_of_interest_if_registered(event: ClusterEvent, expected: bool) -> None:
    """A plugin of any profile may have registered it."""
    assert expected == hints(Answers()).is_of_interest(event)


def test_plugins_of_an_event_are_those_of_all_profiles() -> None:
    """An event that nobody registered has none."""
    one = QueueingHints(
        {PROFILE: [Registration("Fit", NODE_ADD)], "b": [Registration("Claims", CLAIM_ADD)]}
    )
    assert frozenset({"Fit"}) == one.plugins_of(NODE_ADD)
    assert frozenset({"Claims"}) == one.plugins_of(CLAIM_ADD)
    assert frozenset() == one.plugins_of(NODE_LABEL)


@example({"Volumes"}, set(), PROFILE, CLAIM_ADD, {"Volumes"}, make_pod("p"))
@given(
    st.sets(st.sampled_from([*PLUGINS, "Gone"])),
    st.sets(st.sampled_from(PLUGINS), max_size=2),
    st.sampled_from([PROFILE, OTHER_PROFILE, "unknown"]),
    st.sampled_from(
        [*EVENTS.values(), NODE_DELETE, ClusterEvent(POD, Action.UPDATE), UNSCHEDULABLE_TIMEOUT]
    ),
    st.sets(st.sampled_from(PLUGINS)),
    st.sampled_from([None, make_pod("p"), make_pod("q")]),
)
def test_an_event_finds_every_pod_it_concerns(
    by: set[str],
    pending: set[str],
    scheduler: str,
    event: ClusterEvent,
    helped: set[str],
    new: Pod | None,
) -> None:
    """The topics of an event find all pods that it would move."""
    answers = Answers()
    answers.helped = helped
    all_hints = hints(answers)
    queued = rejected(" ".join(by), " ".join(pending), scheduler)
    change = ClusterChange(event, None, new)
    if all_hints.strategy(queued, change) is not QueueingStrategy.SKIP:
        topics = all_hints.topics_of_change(change)
        assert topics is None or set(topics) & set(all_hints.topics_of_pod(queued))


def test_topics_of_pod() -> None:
    """One topic per rejecting plugin; pods that any event moves have another topic."""
    all_hints = hints(Answers())
    assert {(PROFILE, "Fit"), (PROFILE, "Spread")} == set(
        all_hints.topics_of_pod(rejected("Fit", "Spread"))
    )
    anything = all_hints.topics_of_pod(rejected())
    assert anything == all_hints.topics_of_pod(rejected("Fit", scheduler="unknown"))
    topics = all_hints.topics_of_change(ClusterChange(NODE_ADD))
    assert topics is not None
    assert set(anything) < set(topics)


def _siblings(*names: str) -> list[QueuedPodInfo]:
    """Return pods of one template that Fit rejected."""
    return [
        QueuedPodInfo(make_pod_info(name), unschedulable_plugins=frozenset({"Fit"}))
        for name in names
    ]


@pytest.mark.parametrize(
    ("per_template", "new", "asked"),
    [
        pytest.param(True, make_node("n"), ["a"], id="once"),
        pytest.param(False, make_node("n"), ["a", "b", "c"], id="each"),
        pytest.param(True, make_pod("b"), ["a", "b", "c"], id="about-a-waiting-pod"),
        pytest.param(True, make_pod("x", node_name="n"), ["a"], id="about-a-bound-pod"),
    ],
)
def test_per_template_hints_are_called_once(
    *, per_template: bool, new: object, asked: list[str]
) -> None:
    """The result is used for all pods of the template."""
    seen: list[str] = []

    def hint(pod: Pod, _old: object, _new: object) -> bool:
        seen.append(pod.metadata.name)
        return True

    registration = Registration("Fit", NODE_ADD, hint, per_template=per_template)
    one = QueueingHints({PROFILE: [registration]})
    strategy_of = one.strategies(ClusterChange(NODE_ADD, None, new))
    assert [LATER] * 3 == [strategy_of(queued) for queued in _siblings("a", "b", "c")]
    assert asked == seen


def test_a_shared_result_is_for_pods_with_equal_rejecting_plugins() -> None:
    """Only hints of rejecting plugins count; pending plugins requeue immediately."""
    registrations = [
        Registration("Fit", NODE_ADD, lambda *_: False, per_template=True),
        Registration("Spread", NODE_ADD, lambda *_: True, per_template=True),
    ]
    strategy_of = QueueingHints({PROFILE: registrations}).strategies(ClusterChange(NODE_ADD))
    pods = [rejected("Fit"), rejected("Fit Spread"), rejected("Fit", "Spread"), rejected()]
    assert [SKIP, LATER, NOW, LATER] * 2 == [strategy_of(pod) for pod in [*pods, *pods]]


def test_an_event_with_a_name_finds_the_pods_filed_under_it() -> None:
    """One without a name finds all rejected pods."""
    filing = Filing(
        lambda pod: pod.metadata.labels.values(),
        lambda old, new: new if isinstance(new, tuple) else None,
    )
    filed = Registration("Volumes", CLAIM_ADD, lambda pod, old, new: True, filing=filing)
    all_hints = QueueingHints({PROFILE: [filed, Registration("Fit", NODE_ADD)]})
    queued = rejected("Volumes")
    queued.pod_info = make_pod_info("p", labels={"a": "mine", "b": "mine", "c": "other"})
    topics = all_hints.topics_of_pod(queued)
    about = (PROFILE, "Volumes")
    assert (about, (*about, "mine"), (*about, "other")) == topics
    changes = {("mine",): True, ("third", "other"): True, ("third",): False, (): False, None: True}
    for names, is_found in changes.items():
        found = all_hints.topics_of_change(ClusterChange(CLAIM_ADD, None, names))
        assert found is not None
        assert is_found == bool(set(found) & set(topics))


def test_a_hint_without_a_filing_is_called_for_all_pods() -> None:
    """Also if the plugin has another hint with a filing for the event."""
    nothing = Filing(lambda pod: (), lambda old, new: ["nothing"])
    filed = Registration("Volumes", CLAIM_ADD, lambda pod, old, new: False, filing=nothing)
    all_hints = QueueingHints({PROFILE: [filed, Registration("Volumes", CLAIM_ADD)]})
    topics = all_hints.topics_of_change(ClusterChange(CLAIM_ADD))
    assert topics is not None
    assert set(all_hints.topics_of_pod(rejected("Volumes"))) & set(topics)
