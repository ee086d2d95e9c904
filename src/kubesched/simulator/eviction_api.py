"""The eviction subresource of the simulated API server.

Upstream: pkg/registry/core/pod/storage/eviction.go (v1.36)
Rejects:  evictions that a budget does not allow (429), and pods with several budgets (500).
Differs:  there are no causes beside the message, no dry runs and no preconditions.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.core import Pod
from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.eviction import (
    BrokenBudgetError,
    NotAllowedError,
    SeveralBudgetsError,
    grant,
)
from kubesched.scheduler.api_client import PodConditionPatch
from kubesched.simulator.object_server import ObjectServer, with_condition
from kubesched.simulator.virtual_loop import timestamp

_EVICTED: Final = PodConditionPatch(
    "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting"
)
_REFUSAL: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_TOO_MANY_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


def evict(server: ObjectServer, pod: Pod, now: float) -> None:
    """Delete a pod, gracefully, if its disruption budget allows.

    Raises:
        NotFoundError: The pod is gone.
        ConflictError: There is another pod of that name.
        TooManyRequestsError: The budget does not allow it now.
        ApiError: There is more than one budget, or its status cannot be used.
    """
    metadata = pod.metadata
    found = server.pod(metadata.namespace, metadata.name, metadata.uid)
    if found is not None:
        _pay(server, found, timestamp(now))
        if not found.metadata.deletion_timestamp:
            server.update(with_condition(found, _EVICTED, now))
    server.delete_pod(metadata.namespace, metadata.name, metadata.uid)


def _pay(server: ObjectServer, pod: Pod, now: str) -> None:
    """Charge one disruption to the pod's budget, if it has one."""
    try:
        granted = grant(pod, server.all(PodDisruptionBudget), now)
    except NotAllowedError:
        raise TooManyRequestsError(_REFUSAL) from None
    except SeveralBudgetsError:
        raise ApiError(500, "InternalError", _TOO_MANY_BUDGETS) from None
    except BrokenBudgetError as error:
        why = f'poddisruptionbudget.policy "{error.budget_name}" is forbidden: {error}'
        raise ApiError(403, "Forbidden", why) from None
    if granted.budget is not None:
        server.update(granted.budget)
