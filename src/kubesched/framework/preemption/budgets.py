"""Disruption budgets: which victims a PodDisruptionBudget protects.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, filterPodsWithPDBViolation;
          pkg/scheduler/framework/preemption, filterVictimsWithPDBViolation (v1.36)
Reads:    PodDisruptionBudget spec.selector, status.disruptionsAllowed, status.disruptedPods
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kubesched.api.meta import LabelSelector
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.requirements import SelectorError
from kubesched.api.selectors import compile_label_selector, matches_label_selector
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

BudgetKey = tuple[str, str]
"""Namespace and name."""

Label: TypeAlias = tuple[str, str]
"""Key and value."""

_TEMPLATES_MAX: Final = 8192


class SelectedPods:
    """Which budgets, given by namespace, name and selector, select the pods of a template."""

    def __init__(self, selectors: Sequence[tuple[BudgetKey, LabelSelector | None]]) -> None:
        self.selectors = selectors
        self._about: dict[PodTemplate, tuple[BudgetKey, ...]] = {}
        # A budget that requires one of several labels is filed under each of them, with its
        # namespace; the others are filed under their namespace alone.
        self._by_label: dict[tuple[str, Label | None], list[int]] = {}
        for at, (key, selector) in enumerate(selectors):
            for label in _needed_labels(selector):
                self._by_label.setdefault((key[0], label), []).append(at)

    def budgets_about(self, pod: PodInfo) -> tuple[BudgetKey, ...]:
        """Return the budgets that select a pod."""
        keys = self._about.get(pod.template)
        if keys is None:
            if len(self._about) >= _TEMPLATES_MAX:
                self._about.clear()
            keys = self._about[pod.template] = self._select(pod)
        return keys

    def _select(self, pod: PodInfo) -> tuple[BudgetKey, ...]:
        if not pod.labels:
            return ()
        # No budget is found twice: a pod has one value of the label that a budget requires.
        filed = [
            at
            for label in (None, *pod.labels.items())
            for at in self._by_label.get((pod.namespace, label), ())
        ]
        budgets = [self.selectors[at] for at in sorted(filed)]
        return tuple(
            key for key, selector in budgets if matches_label_selector(selector, pod.labels)
        )


class DisruptionBudgets:
    """The budgets of a cluster, and which of them select which pods."""

    def __init__(self, objects: Objects, before: DisruptionBudgets | None = None) -> None:
        """Read the budgets of a cluster.

        `before` are the budgets as they were. An eviction changes the status of a budget, so nearly
        always they select the same pods as now.
        """
        self.selected: SelectedPods
        self._budgets = {
            (budget.metadata.namespace, budget.metadata.name): budget
            for budget in objects.list(PodDisruptionBudget)
            if _selects_something(budget)
        }
        selectors = [(key, each.spec.selector) for key, each in self._budgets.items()]
        if before is not None and before.selected.selectors == selectors:
            self.selected = before.selected
        else:
            self.selected = SelectedPods(selectors)

    def __bool__(self) -> bool:
        """Whether there are any that can select pods."""
        return bool(self._budgets)

    def changed_since(self, before: DisruptionBudgets) -> list[BudgetKey] | None:
        """Return the budgets that have another status now; None if they select other pods."""
        if self is before:
            return []
        selected, selected_before = self.selected, before.selected
        if selected is not selected_before and selected.selectors != selected_before.selectors:
            return None
        was = before._budgets
        return [key for key, each in self._budgets.items() if was.get(key) is not each]

    def protection(self, key: BudgetKey, pods: int) -> Hashable:
        """Return, for comparison, what decides which of at most `pods` pods a budget protects."""
        status = self._budgets[key].status
        return min(max(status.disruptions_allowed, 0), pods), tuple(status.disrupted_pods)

    def count(self, pods: Iterable[PodInfo]) -> Mapping[BudgetKey, int]:
        """Return how many of the pods each budget selects."""
        numbers: dict[BudgetKey, int] = {}
        if self._budgets:
            for pod in pods:
                for key in self.selected.budgets_about(pod):
                    numbers[key] = numbers.get(key, 0) + 1
        return numbers

    def split(self, victims: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Return protected victims and others, each in the given order.

        Each victim uses one disruption of every budget that selects it, so earlier victims use up
        a budget and later ones are protected by it.
        """
        budgets = self._budgets
        if all(
            budgets[key].status.disruptions_allowed >= n for key, n in self.count(victims).items()
        ):
            return [], list(victims)
        allowed: dict[BudgetKey, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for victim in victims:
            # min() counts the victim in all budgets; any() would stop at the first.
            violates = min(self._uses_up(victim, allowed), default=0) < 0
            (violating if violates else others).append(victim)
        return violating, others

    def protects(self, units: Sequence[Sequence[PodInfo]]) -> list[bool]:
        """Return whether a budget protects each unit, whose pods are evicted together.

        As upstream, counting stops at the first exhausted budget of a unit, so the unit's other
        pods use no disruptions.
        """
        allowed: dict[BudgetKey, int] = {}
        return [
            any(left < 0 for pod in unit for left in self._uses_up(pod, allowed)) for unit in units
        ]

    def _uses_up(self, victim: PodInfo, allowed: dict[BudgetKey, int]) -> Iterator[int]:
        """Count the victim in each budget that selects it; yield the disruptions left there."""
        for key in self.selected.budgets_about(victim):
            budget = self._budgets[key]
            if victim.name in budget.status.disrupted_pods:
                continue  # The API server has counted this disruption already.
            left = allowed.get(key, budget.status.disruptions_allowed) - 1
            allowed[key] = left
            yield left


def _selects_something(budget: PodDisruptionBudget) -> bool:
    """Whether the budget can select any pod; as upstream, an empty selector selects none."""
    selector = budget.spec.selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _needed_labels(selector: LabelSelector | None) -> Iterable[Label | None]:
    """Return labels of which each pod that the selector selects has one; None if unknown."""
    try:
        needed = compile_label_selector(selector).needed_labels
    except SelectorError:
        return ()
    return (None,) if needed is None else needed
