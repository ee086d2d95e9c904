"""The eviction subresource: a pod is deleted if its disruption budget allows it.

Upstream: pkg/registry/core/pod/storage/eviction.go (v1.36)
Rejects:  evictions that a budget does not allow, or that more than one budget covers.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.apiserver.binding import with_condition
from kubesched.apiserver.deletion import (
    DeleteOptions,
    check_preconditions,
    delete,
    options_of,
)
from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.registry import Registry
from kubesched.apiserver.status import StatusError, bad_request, internal
from kubesched.apiserver.stored_object import key_of
from kubesched.cluster.eviction import (
    BrokenBudgetError,
    Granted,
    NotAllowedError,
    SeveralBudgetsError,
    grant,
    plain_status,
)
from kubesched.cluster.store import Key

_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
_BUDGETS: Final = "poddisruptionbudgets.policy"
_EVICTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(registry: Registry, operation: Operation, eviction: Plain) -> None:
    """Delete a pod if its budget allows it.

    Args:
        registry: Where pods and budgets are.
        operation: The request, which names the pod.
        eviction: As it was sent.

    Raises:
        StatusError: The budget does not allow it, or there is no such pod.
    """
    if eviction.get("metadata", {}).get("name", "") != operation.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = options_of(eviction.get("deleteOptions") or {})
    if operation.is_dry_run and not options.dry_run:
        options = msgspec.structs.replace(options, dry_run=("All",))
    pod = registry.get(operation.resource, operation.namespace, operation.name)
    granted = _grant(registry, pod.typed(Pod))
    if granted.only_unchanged and not options.precondition("resourceVersion"):
        options = _only_for(pod.plain, options)
    if not options.dry_run:
        if granted.budget is not None:
            _pay(registry, granted.budget)
        options = _announced(registry, operation, options)
    delete(registry, msgspec.structs.replace(operation, subresource=""), options)


def _grant(registry: Registry, pod: Pod) -> Granted:
    stored = registry.store.list(_BUDGETS, pod.metadata.namespace).items
    budgets = (one.typed(PodDisruptionBudget) for one in stored)
    try:
        return grant(pod, budgets, registry.clock.timestamp())
    except SeveralBudgetsError:
        raise internal(_SEVERAL) from None
    except NotAllowedError as error:
        raise _too_many(str(error), error.retry_seconds) from None
    except BrokenBudgetError as error:
        raise _forbidden(error.budget_name, str(error)) from None


def _pay(registry: Registry, budget: PodDisruptionBudget) -> None:
    """Write a budget's status, which has one disruption less."""
    key = Key(_BUDGETS, budget.metadata.namespace, budget.metadata.name)
    found = registry.store.find(key)
    assert found is not None, "just listed"
    registry.write(key, {**found.plain, "status": plain_status(budget.status)})


def _announced(registry: Registry, operation: Operation, options: DeleteOptions) -> DeleteOptions:
    """Write into the pod's status why it is deleted; return options for the pod as it is then."""
    pods = operation.resource
    found = registry.get(pods, operation.namespace, operation.name).plain
    check_preconditions(pods, found["metadata"], options)
    status = with_condition(found.get("status", {}), _EVICTED, registry.clock.timestamp())
    if status == found.get("status"):
        return options
    key = key_of(pods, operation.namespace, operation.name)
    written = registry.write(key, {**found, "status": status})
    is_guarded = options.precondition("resourceVersion")
    return _only_for(written.plain, options) if is_guarded else options


def _only_for(pod: Plain, options: DeleteOptions) -> DeleteOptions:
    preconditions = {
        **(options.preconditions or {}),
        "resourceVersion": pod["metadata"]["resourceVersion"],
    }
    return msgspec.structs.replace(options, preconditions=preconditions)


def _too_many(message: str, retry_seconds: int = 0) -> StatusError:
    details: Plain = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    if retry_seconds:
        details["retryAfterSeconds"] = retry_seconds
    return StatusError(429, "TooManyRequests", _REFUSED, details)


def _forbidden(name: str, why: str) -> StatusError:
    message = f'poddisruptionbudget.policy "{name}" is forbidden: {why}'
    details = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
    return StatusError(403, "Forbidden", message, details)
