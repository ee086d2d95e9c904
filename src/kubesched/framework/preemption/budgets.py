"""Disruption budgets: which victims a PodDisruptionBudget protects.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, filterPodsWithPDBViolation;
          pkg/scheduler/framework/preemption, filterVictimsWithPDBViolation (v1.36)
Reads:    PodDisruptionBudget spec.selector, status.disruptionsAllowed, status.disruptedPods
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.selectors import matches_label_selector
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

_TEMPLATES_MAX: Final = 8192


class DisruptionBudgets:
    """The budgets of a cluster; caches which of them select the pods of a template."""

    def __init__(self, objects: Objects) -> None:
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in objects.list(PodDisruptionBudget):
            if _selects_something(budget):
                self._by_namespace.setdefault(budget.metadata.namespace, []).append(budget)
        self._about: dict[PodTemplate, tuple[PodDisruptionBudget, ...]] = {}

    def split(self, victims: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Return protected victims and others, each in the given order.

        Each victim uses one disruption of every budget that selects it, so earlier victims use up
        a budget and later ones are protected by it.
        """
        if not self._by_namespace:
            return [], list(victims)
        allowed: dict[str, int] = {}
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
        allowed: dict[str, int] = {}
        return [any(self._exhausts(pod, allowed) for pod in unit) for unit in units]

    def _exhausts(self, victim: PodInfo, allowed: dict[str, int]) -> bool:
        return any(left < 0 for left in self._uses_up(victim, allowed))

    def _uses_up(self, victim: PodInfo, allowed: dict[str, int]) -> Iterator[int]:
        """Count the victim in each budget that selects it; yield the disruptions left there."""
        for budget in self._budgets_about(victim):
            if victim.name in budget.status.disrupted_pods:
                continue  # The API server has counted this disruption already.
            key = f"{budget.metadata.namespace}/{budget.metadata.name}"
            left = allowed.get(key, budget.status.disruptions_allowed) - 1
            allowed[key] = left
            yield left

    def _violates(self, victim: PodInfo, allowed: dict[str, int]) -> bool:
        # min() counts the victim in all budgets; any() would stop at the first.
        return min(self._uses_up(victim, allowed), default=0) < 0

    def _budgets_about(self, pod: PodInfo) -> tuple[PodDisruptionBudget, ...]:
        budgets = self._about.get(pod.template)
        if budgets is None:
            if len(self._about) >= _TEMPLATES_MAX:
                self._about.clear()
            budgets = self._about[pod.template] = tuple(
                budget
                for budget in self._by_namespace.get(pod.namespace, ())
                if pod.labels and matches_label_selector(budget.spec.selector, pod.labels)
            )
        return budgets


def _selects_something(budget: PodDisruptionBudget) -> bool:
    """Whether the budget can select any pod; as upstream, an empty selector selects none."""
    selector = budget.spec.selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)
