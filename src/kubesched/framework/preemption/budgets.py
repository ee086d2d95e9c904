"""Disruption budgets: which victims a PodDisruptionBudget protects.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, filterPodsWithPDBViolation;
          pkg/scheduler/framework/preemption, filterVictimsWithPDBViolation (v1.36)
Reads:    PodDisruptionBudget spec.selector, status.disruptionsAllowed, status.disruptedPods
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.api.meta import LabelSelector
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.selectors import matches_label_selector
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

BudgetKey = tuple[str, str]
"""Namespace and name."""

_TEMPLATES_MAX: Final = 8192


class SelectedPods:
    """Which budgets select the pods of a template.

    Attributes:
        selectors: Namespace, name and selector of each budget.
    """

    def __init__(self, selectors: Sequence[tuple[BudgetKey, LabelSelector | None]]) -> None:
        self.selectors = selectors
        self._about: dict[PodTemplate, tuple[BudgetKey, ...]] = {}

    def budgets_about(self, pod: PodInfo) -> tuple[BudgetKey, ...]:
        """Return the budgets that select a pod."""
        keys = self._about.get(pod.template)
        if keys is None:
            if len(self._about) >= _TEMPLATES_MAX:
                self._about.clear()
            keys = self._about[pod.template] = tuple(
                key
                for key, selector in self.selectors
                if key[0] == pod.namespace
                and pod.labels
                and matches_label_selector(selector, pod.labels)
            )
        return keys


class DisruptionBudgets:
    """The budgets of a cluster.

    Attributes:
        selected: Which of them select which pods.
    """

    def __init__(self, objects: Objects, before: DisruptionBudgets | None = None) -> None:
        """Read the budgets of a cluster.

        Args:
            objects: The objects of the cluster.
            before: The budgets as they were. An eviction changes the status of a budget, so nearly
                always they select the same pods as now.
        """
        self._budgets = {
            (budget.metadata.namespace, budget.metadata.name): budget
            for budget in objects.list(PodDisruptionBudget)
            if _selects_something(budget)
        }
        selectors = [(key, each.spec.selector) for key, each in self._budgets.items()]
        self.selected = SelectedPods(selectors)
        if before is not None and before.selected.selectors == selectors:
            self.selected = before.selected

    def changed_since(self, before: DisruptionBudgets) -> list[BudgetKey] | None:
        """Return the budgets that have another status now; None if they select other pods."""
        selectors = self.selected.selectors
        if self.selected is not before.selected and selectors != before.selected.selectors:
            return None
        return [key for key, each in self._budgets.items() if each is not before.get(key)]

    def get(self, key: BudgetKey) -> PodDisruptionBudget | None:
        """Return a budget that can select pods; None if there is none of that name."""
        return self._budgets.get(key)

    def split(self, victims: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Return protected victims and others, each in the given order.

        Each victim uses one disruption of every budget that selects it, so earlier victims use up
        a budget and later ones are protected by it.
        """
        if not self._budgets:
            return [], list(victims)
        allowed: dict[BudgetKey, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for victim in victims:
            (violating if self._violates(victim, allowed) else others).append(victim)
        return violating, others

    def protects(self, units: Sequence[Sequence[PodInfo]]) -> list[bool]:
        """Return whether a budget protects each unit, whose pods are evicted together.

        As upstream, counting stops at the first exhausted budget of a unit, so the unit's other
        pods use no disruptions.
        """
        allowed: dict[BudgetKey, int] = {}
        return [any(self._exhausts(pod, allowed) for pod in unit) for unit in units]

    def _exhausts(self, victim: PodInfo, allowed: dict[BudgetKey, int]) -> bool:
        return any(left < 0 for left in self._uses_up(victim, allowed))

    def _uses_up(self, victim: PodInfo, allowed: dict[BudgetKey, int]) -> Iterator[int]:
        """Count the victim in each budget that selects it; yield the disruptions left there."""
        for key in self.selected.budgets_about(victim):
            budget = self._budgets[key]
            if victim.name in budget.status.disrupted_pods:
                continue  # The API server has counted this disruption already.
            left = allowed.get(key, budget.status.disruptions_allowed) - 1
            allowed[key] = left
            yield left

    def _violates(self, victim: PodInfo, allowed: dict[BudgetKey, int]) -> bool:
        # min() counts the victim in all budgets; any() would stop at the first.
        return min(self._uses_up(victim, allowed), default=0) < 0


def _selects_something(budget: PodDisruptionBudget) -> bool:
    """Whether the budget can select any pod; as upstream, an empty selector selects none."""
    selector = budget.spec.selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)
