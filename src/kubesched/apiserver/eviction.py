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
from kubesched.apiserver.resources import Resource
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

_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


def evict(
    registry: Registry, operation: Operation, pods: Resource, budgets: Resource, eviction: Plain
) -> None:
    """Delete a pod if its budget allows it.

    Args:
        registry: Where pods and budgets are.
        operation: The request.
        pods: The resource of pods.
        budgets: The resource of disruption budgets.
        eviction: As it was sent.

    Raises:
        StatusError: The budget does not allow it, or there is no such pod.
    """
    _Evictor(registry, operation, pods, budgets).evict(eviction)


class _Evictor:
    def __init__(
        self, registry: Registry, operation: Operation, pods: Resource, budgets: Resource
    ) -> None:
        self._registry = registry
        self._operation = operation
        self._pods = pods
        self._budgets = budgets
        self._key = key_of(pods, operation.namespace, operation.name)

    def evict(self, eviction: Plain) -> None:
        if eviction.get("metadata", {}).get("name", "") != self._operation.name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = self._options(eviction)
        pod = self._registry.get(self._pods, self._operation.namespace, self._operation.name)
        granted = self._grant(pod.typed(Pod))
        if granted.only_unchanged and not options.precondition("resourceVersion"):
            options = _only_for(pod.plain, options)
        if granted.budget is not None and not options.dry_run:
            self._pay(granted.budget)
        self._delete(options)

    def _grant(self, pod: Pod) -> Granted:
        namespace = self._operation.namespace
        stored = self._registry.store.list(self._budgets.storage_kind, namespace).items
        budgets = (one.typed(PodDisruptionBudget) for one in stored)
        try:
            return grant(pod, budgets, self._registry.clock.timestamp())
        except SeveralBudgetsError:
            raise internal(_SEVERAL) from None
        except NotAllowedError as error:
            raise _too_many(str(error), error.retry_seconds) from None
        except BrokenBudgetError as error:
            raise _forbidden(error.budget_name, str(error)) from None

    def _pay(self, budget: PodDisruptionBudget) -> None:
        """Write a budget's status, which has one disruption less."""
        name = budget.metadata.name
        found = self._registry.get(self._budgets, self._operation.namespace, name)
        key = key_of(self._budgets, self._operation.namespace, name)
        self._registry.write(key, {**found.plain, "status": plain_status(budget.status)})

    def _options(self, eviction: Plain) -> DeleteOptions:
        options = options_of(eviction.get("deleteOptions") or {})
        if self._operation.is_dry_run and not options.dry_run:
            return msgspec.structs.replace(options, dry_run=("All",))
        return options

    def _delete(self, options: DeleteOptions) -> None:
        operation = msgspec.structs.replace(self._operation, resource=self._pods, subresource="")
        if not options.dry_run:
            options = self._announce(options)
        delete(self._registry, operation, options)

    def _announce(self, options: DeleteOptions) -> DeleteOptions:
        """Say in the pod's status why it is deleted."""
        found = self._registry.get(self._pods, self._operation.namespace, self._operation.name)
        check_preconditions(self._pods, found.plain["metadata"], options)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        now = self._registry.clock.timestamp()
        status = with_condition(found.plain.get("status", {}), condition, now)
        if status == found.plain.get("status"):
            return options
        written = self._registry.write(self._key, {**found.plain, "status": status})
        if not options.precondition("resourceVersion"):
            return options
        return _only_for(written.plain, options)


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
