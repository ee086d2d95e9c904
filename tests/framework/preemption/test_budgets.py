"""Tests of which victims disruption budgets protect."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubesched.api.policy import PodDisruptionBudget
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_pod_info

from .cluster import make_budget

FOO = {"matchLabels": {"app": "foo"}}


def split(
    budgets: Sequence[PodDisruptionBudget], pods: Sequence[PodInfo]
) -> tuple[list[str], list[str]]:
    """Return the names of protected pods and of the others."""
    store = ObjectStore()
    for budget in budgets:
        store.put(budget)
    violating, others = DisruptionBudgets(store).split(pods)
    return [pod.name for pod in violating], [pod.name for pod in others]


@pytest.mark.parametrize(
    ("budgets", "protected"),
    [
        pytest.param([], [], id="no-budget"),
        pytest.param([make_budget("b", FOO, allowed=3)], [], id="enough-for-all"),
        pytest.param([make_budget("b", FOO, allowed=1)], ["b", "c"], id="the-first-uses-it-up"),
        pytest.param([make_budget("b", FOO, allowed=0)], ["a", "b", "c"], id="none-allowed"),
        pytest.param([make_budget("b", FOO, allowed=-1)], ["a", "b", "c"], id="negative"),
        pytest.param([make_budget("b", FOO, namespace="x")], [], id="other-namespace"),
        pytest.param([make_budget("b", None)], [], id="no-selector-is-about-nobody"),
        pytest.param([make_budget("b", {})], [], id="empty-selector-is-about-nobody"),
        pytest.param(
            [make_budget("b", {"matchExpressions": [{"key": "app", "operator": "Nope"}]})],
            [],
            id="invalid-selector-is-about-nobody",
        ),
        pytest.param(
            [make_budget("b", {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]})],
            ["a", "b", "c", "bar"],
            id="pods-without-labels-are-never-protected",
        ),
        pytest.param(
            [make_budget("b", FOO, allowed=1, disrupted=["x"])],
            ["b", "c"],
            id="somebody-else-is-disrupted",
        ),
        pytest.param(
            [make_budget("b", FOO, allowed=1, disrupted=["b"])],
            ["c"],
            id="a-disrupted-pod-uses-nothing-up",
        ),
        pytest.param(
            [make_budget("b", FOO, allowed=0, disrupted=["a", "b", "c"])], [], id="all-disrupted"
        ),
        pytest.param(
            [make_budget("b1", FOO, allowed=2), make_budget("b2", FOO, allowed=1)],
            ["b", "c"],
            id="the-tightest-budget-decides",
        ),
        pytest.param(
            [
                make_budget("b1", {"matchLabels": {"app": "foo", "name": "a"}}, allowed=0),
                make_budget("b2", FOO, allowed=1),
            ],
            ["a", "b", "c"],
            id="a-protected-pod-still-uses-up-other-budgets",
        ),
    ],
)
def test_budgets(budgets: list[PodDisruptionBudget], protected: list[str]) -> None:
    """Each victim, in order, uses a disruption of every budget that selects it."""
    pods = [make_pod_info(n, labels={"app": "foo", "name": n}) for n in ("a", "b", "c")]
    pods += [make_pod_info("bar", labels={"app": "bar"}), make_pod_info("bare")]
    others = [pod.name for pod in pods if pod.name not in protected]
    assert (protected, others) == split(budgets, pods)


def test_budgets_are_charged_anew_for_each_node() -> None:
    """The victims of one node do not use disruptions of the next node's."""
    store = ObjectStore()
    store.put(make_budget("b", FOO, allowed=1))
    budgets = DisruptionBudgets(store)
    pods = [make_pod_info("a", labels={"app": "foo"})]
    assert ([], pods) == budgets.split(pods)
    assert ([], pods) == budgets.split(pods)
