"""Evictions: whether a pod's disruption budget allows its deletion now.

Upstream: pkg/registry/core/pod/storage/eviction.go,
          staging/src/k8s.io/component-helpers/apps/poddisruptionbudget (v1.36)
Reads:    pod.status.phase and conditions; the budgets' spec.selector, unhealthyPodEvictionPolicy
          and status
Rejects:  evictions that a budget does not allow, or that more than one budget covers.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.conditions import conditions_with, find_condition, is_condition_true
from kubesched.api.core import FINISHED, Pod
from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.api.meta import Condition, controller_of
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubesched.api.selectors import matches_label_selector
from kubesched.cluster.server import Plain

_DISRUPTED_PODS_MAX: Final = 2_000
_RETRY_SECONDS: Final = 10
_ALLOWED: Final = "DisruptionAllowed"
# Fields of a status that are there even if they are 0.
_NUMBERS: Final = dict.fromkeys(
    ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
)


# Messages of the API server.
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)

_TOO_MANY: Final = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"


class NotAllowedError(TooManyRequestsError):
    """The budget does not allow the eviction now; `why` has its numbers."""

    def __init__(self, why: str, retry_after_seconds: int | None = None) -> None:
        super().__init__(_REFUSED, retry_after_seconds)
        self.why = why


class BrokenBudgetError(ApiError):
    """The status of a budget cannot be right; `budget` is its name."""

    def __init__(self, budget: str, why: str) -> None:
        message = f'poddisruptionbudget.policy "{budget}" is forbidden: {why}'
        super().__init__(403, "Forbidden", message)
        self.budget = budget


def grant(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: str) -> PodDisruptionBudget | None:
    """Grant the eviction of a pod by the budgets of its namespace.

    Return the one that is charged, with its new status; None if none is. Raises NotAllowedError if
    the budget does not allow it now, BrokenBudgetError if its status is broken, ApiError if more
    than one budget selects the pod.
    """
    if pod.metadata.deletion_timestamp or pod.status.phase in ("Pending", *FINISHED):
        return None
    matching = [budget for budget in budgets if selects(budget, pod)]
    if len(matching) > 1:
        raise ApiError(500, "", _SEVERAL_BUDGETS)
    if not matching:
        return None
    [budget] = matching
    if not is_ready(pod) and _allows_unhealthy(budget):
        return None
    _check(budget)
    status = budget.status
    spent = replace(
        status,
        disruptions_allowed=status.disruptions_allowed - 1,
        disrupted_pods={**status.disrupted_pods, pod.metadata.name: now},
    )
    if not spent.disruptions_allowed:
        spent = with_allowed_condition(spent, now)
    return replace(budget, status=spent)


def stays_in_drain(pod: Pod) -> bool:
    """Whether `kubectl drain` leaves a pod alone, because it belongs to its node."""
    owner = controller_of(pod.metadata)
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return is_mirror(pod) or (is_daemon and pod.status.phase not in FINISHED)


def is_mirror(pod: Pod) -> bool:
    """Whether it is the mirror pod of a static pod, which the API server cannot stop."""
    return "kubernetes.io/config.mirror" in pod.metadata.annotations


def selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a budget covers a pod."""
    return budget.metadata.namespace == pod.metadata.namespace and matches_label_selector(
        budget.spec.selector, pod.metadata.labels
    )


def is_ready(pod: Pod) -> bool:
    """Whether a pod counts as healthy."""
    return is_condition_true(pod.status.conditions, "Ready")


def _allows_unhealthy(budget: PodDisruptionBudget) -> bool:
    """Whether a pod that is not ready may be evicted without counting."""
    status = budget.status
    has_enough = status.current_healthy >= status.desired_healthy > 0
    return budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" or has_enough


def _check(budget: PodDisruptionBudget) -> None:
    status, name = budget.status, budget.metadata.name
    if status.observed_generation < budget.metadata.generation:
        message = f"The disruption budget {name} is still being processed by the server."
        raise NotAllowedError(message, _RETRY_SECONDS)
    if status.disruptions_allowed < 0:
        raise BrokenBudgetError(name, "pdb disruptions allowed is negative")
    if len(status.disrupted_pods) > _DISRUPTED_PODS_MAX:
        raise BrokenBudgetError(name, _TOO_MANY)
    if not status.disruptions_allowed:
        raise NotAllowedError(_why_none_left(name, status))


def _why_none_left(name: str, status: PodDisruptionBudgetStatus) -> str:
    begin = f"The disruption budget {name} does not allow evicting pods currently"
    failing = find_condition(status.conditions, _ALLOWED)
    if failing is not None and (failing.status != "False" or not failing.message):
        failing = None
    current, desired = status.current_healthy, status.desired_healthy
    if failing is not None and failing.reason == "SyncFailed":
        return f"{begin} because it failed sync: {failing.message}"
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    return begin if failing is None else f"{begin} ({failing.reason}): {failing.message}"


def plain_status(status: PodDisruptionBudgetStatus) -> Plain:
    """Return a status as JSON, with its required fields."""
    found: Plain = {**_NUMBERS, **msgspec.to_builtins(status)}
    found["conditions"] = [{"message": "", **one} for one in found.get("conditions", ())]
    return found


def with_allowed_condition(
    status: PodDisruptionBudgetStatus, now: str, failure: str = ""
) -> PodDisruptionBudgetStatus:
    """Return a status with the condition that says whether the budget allows a disruption.

    `failure` says why the numbers could not be computed; "" if they were.
    """
    allowed = status.disruptions_allowed > 0 and not failure
    reason = "SufficientPods" if allowed else "InsufficientPods"
    condition = Condition(
        type=_ALLOWED,
        status="True" if allowed else "False",
        observed_generation=status.observed_generation,
        last_transition_time=now,
        reason="SyncFailed" if failure else reason,
        message=failure,
    )
    return replace(status, conditions=conditions_with(status.conditions, condition))
