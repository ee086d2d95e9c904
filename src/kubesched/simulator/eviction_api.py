"""The eviction subresource: a pod is deleted if its disruption budget can spare it.

Upstream: pkg/registry/core/pod/storage/eviction.go (v1.36)
Reads:    pod.status.phase and conditions; the budgets' spec.selector, unhealthyPodEvictionPolicy
          and status
Rejects:  with 429 what a budget cannot spare now, with 500 pods of more than one budget.
Differs:  there are no causes beside the message, no dry runs and no preconditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.api.meta import Condition
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubesched.api.selectors import matches_label_selector
from kubesched.scheduler.api_client import PodConditionPatch
from kubesched.simulator.object_server import FINISHED, ObjectServer
from kubesched.simulator.pod_conditions import with_condition
from kubesched.simulator.timestamps import timestamp

_EVICTED: Final = PodConditionPatch(
    "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting"
)
_DISRUPTED_PODS_MAX: Final = 2_000
_REFUSAL: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_TOO_MANY_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


def is_ready(pod: Pod) -> bool:
    """Whether a pod counts as healthy."""
    return any(known.type == "Ready" and known.status == "True" for known in pod.status.conditions)


def evict(server: ObjectServer, pod: Pod, now: float) -> None:
    """Delete a pod, gracefully, if its disruption budget allows.

    Raises:
        NotFoundError: The pod is gone.
        ConflictError: There is another pod of that name.
        TooManyRequestsError: The budget does not allow it now.
        ApiError: There is more than one budget, or one that waits for too many deletions.
    """
    metadata = pod.metadata
    found = server.pod(metadata.namespace, metadata.name, metadata.uid)
    if found is not None and not _is_no_loss(found):
        _ask_budgets(server, found, now)
    if found is not None and not found.metadata.deletion_timestamp:
        server.update(with_condition(found, _EVICTED, now))
    server.delete_pod(metadata.namespace, metadata.name, metadata.uid)


def _is_no_loss(pod: Pod) -> bool:
    """Whether the pod counts for no budget: it has not begun, has ended, or goes anyway."""
    return pod.status.phase in ("Pending", *FINISHED) or bool(pod.metadata.deletion_timestamp)


def _ask_budgets(server: ObjectServer, pod: Pod, now: float) -> None:
    budgets = list(budgets_of(server, pod))
    if len(budgets) > 1:
        raise ApiError(500, "InternalError", _TOO_MANY_BUDGETS)
    for budget in budgets:
        if is_ready(pod) or not _spares_unhealthy(budget):
            _spend(server, budget, pod, now)


def budgets_of(server: ObjectServer, pod: Pod) -> Iterator[PodDisruptionBudget]:
    """Yield the budgets that select a pod."""
    for budget in server.all(PodDisruptionBudget):
        if selects(budget, pod):
            yield budget


def selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a budget is about a pod."""
    return budget.metadata.namespace == pod.metadata.namespace and matches_label_selector(
        budget.spec.selector, pod.metadata.labels
    )


def _spares_unhealthy(budget: PodDisruptionBudget) -> bool:
    """Whether a pod that is not ready may go without counting."""
    status = budget.status
    has_enough = status.current_healthy >= status.desired_healthy > 0
    return budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" or has_enough


def _spend(server: ObjectServer, budget: PodDisruptionBudget, pod: Pod, now: float) -> None:
    """Take one disruption from what the budget allows, and note for which pod."""
    status = budget.status
    if status.observed_generation < budget.metadata.generation:
        raise TooManyRequestsError(_REFUSAL)
    if status.disruptions_allowed < 0 or len(status.disrupted_pods) > _DISRUPTED_PODS_MAX:
        raise ApiError(403, "Forbidden", f'poddisruptionbudget "{budget.metadata.name}" is spent')
    if not status.disruptions_allowed:
        raise TooManyRequestsError(_REFUSAL)
    spent = replace(
        status,
        disruptions_allowed=status.disruptions_allowed - 1,
        disrupted_pods={**status.disrupted_pods, pod.metadata.name: timestamp(now)},
    )
    server.update(replace(budget, status=with_allowed_condition(spent, budget, now)))


def with_allowed_condition(
    status: PodDisruptionBudgetStatus,
    budget: PodDisruptionBudget,
    now: float,
    failure: str = "",
) -> PodDisruptionBudgetStatus:
    """Return the status with the condition that says whether it allows a disruption.

    Args:
        status: What the budget's status is to be.
        budget: The budget as it is.
        now: Seconds.
        failure: Why the numbers are not to be trusted, if so.
    """
    allowed = status.disruptions_allowed > 0 and not failure
    reason = "SufficientPods" if allowed else "InsufficientPods"
    condition = Condition(
        type="DisruptionAllowed",
        status="True" if allowed else "False",
        observed_generation=budget.metadata.generation,
        last_transition_time=timestamp(now),
        reason="SyncFailed" if failure else reason,
        message=failure,
    )
    others = []
    for known in status.conditions:
        if known.type != condition.type:
            others.append(known)
        elif known.status == condition.status:
            condition = replace(condition, last_transition_time=known.last_transition_time)
    return replace(status, conditions=(*others, condition))
