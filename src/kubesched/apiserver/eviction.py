"""Evictions: a pod is deleted if its disruption budget allows it.

Upstream: pkg/registry/core/pod/storage/eviction.go,
          staging/src/k8s.io/component-helpers/apps/poddisruptionbudget (v1.36)
Rejects:  evictions that a budget does not allow, or that more than one budget covers.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubesched.api.meta import LabelSelector
from kubesched.api.selectors import matches_label_selector
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
from kubesched.apiserver.stored_object import StoredObject, key_of

_EXEMPT_PHASES: Final = ("Succeeded", "Failed", "Pending")
_FINISHED: Final = ("Succeeded", "Failed")
_DISRUPTED_MAX: Final = 2000
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_SECONDS: Final = 10
_SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
_ALLOWED: Final = "DisruptionAllowed"


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
        plain = pod.plain
        if _is_exempt(plain):
            self._delete(_guarded(options, plain) if _must_stay_so(plain) else options)
            return
        matching = self._matching(plain)
        if len(matching) > 1:
            raise internal(_SEVERAL)
        if not matching:
            self._delete(options)
        elif not _is_ready(plain) and _lets_unhealthy_go(matching[0].plain):
            self._delete(_guarded(options, plain))
        else:
            self._use_up(matching[0].plain, options)
            self._delete(options)

    def _options(self, eviction: Plain) -> DeleteOptions:
        options = options_of(eviction.get("deleteOptions") or {})
        if self._operation.is_dry_run and not options.dry_run:
            return msgspec.structs.replace(options, dry_run=("All",))
        return options

    def _matching(self, pod: Plain) -> list[StoredObject]:
        labels = pod["metadata"].get("labels") or {}
        listing = self._registry.store.list(self._budgets.storage_kind, self._operation.namespace)
        return [
            budget
            for budget in listing.items
            if matches_label_selector(_selector(budget.plain), labels)
        ]

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

    def _use_up(self, budget: Plain, options: DeleteOptions) -> None:
        """Take one disruption from a budget.

        Raises:
            StatusError: There is none left.
        """
        status = budget.get("status", {})
        _check_budget(budget, status)
        left = status["disruptionsAllowed"] - 1
        now = self._registry.clock.timestamp()
        changed = {
            **status,
            "disruptionsAllowed": left,
            "disruptedPods": {**status.get("disruptedPods", {}), self._operation.name: now},
        }
        if left == 0:
            changed["conditions"] = _conditions(status, now)
        if options.dry_run:
            return
        name = budget["metadata"]["name"]
        key = key_of(self._budgets, self._operation.namespace, name)
        self._registry.write(key, {**budget, "status": changed})


def _selector(budget: Plain) -> LabelSelector | None:
    selector = budget.get("spec", {}).get("selector")
    return None if selector is None else msgspec.convert(selector, LabelSelector)


def _guarded(options: DeleteOptions, pod: Plain) -> DeleteOptions:
    """Return options that hold only for the pod as it is."""
    return options if options.precondition("resourceVersion") else _only_for(pod, options)


def _only_for(pod: Plain, options: DeleteOptions) -> DeleteOptions:
    preconditions = {
        **(options.preconditions or {}),
        "resourceVersion": pod["metadata"]["resourceVersion"],
    }
    return msgspec.structs.replace(options, preconditions=preconditions)


def _is_exempt(pod: Plain) -> bool:
    is_deleted = bool(pod["metadata"].get("deletionTimestamp"))
    return is_deleted or pod.get("status", {}).get("phase") in _EXEMPT_PHASES


def _must_stay_so(pod: Plain) -> bool:
    is_over = pod.get("status", {}).get("phase") in _FINISHED
    return not is_over and not pod["metadata"].get("deletionTimestamp")


def _is_ready(pod: Plain) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(bool(one["type"] == "Ready" and one["status"] == "True") for one in conditions)


def _lets_unhealthy_go(budget: Plain) -> bool:
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(0 < desired <= status.get("currentHealthy", 0))


def _check_budget(budget: Plain, status: Plain) -> None:
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        message = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(message, _RETRY_SECONDS)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods", {})) > _DISRUPTED_MAX:
        raise _forbidden(
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        raise _too_many(_why_none_left(name, status))


def _why_none_left(name: str, status: Plain) -> str:
    condition = _failing_condition(status)
    begin = f"The disruption budget {name} does not allow evicting pods currently"
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if condition and condition.get("reason") == "SyncFailed":
        return f"{begin} because it failed sync: {condition['message']}"
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    if condition:
        return f"{begin} ({condition.get('reason', '')}): {condition['message']}"
    return begin


def _failing_condition(status: Plain) -> Plain | None:
    for one in status.get("conditions", []):
        if one["type"] == _ALLOWED:
            failing: bool = one["status"] == "False" and bool(one.get("message"))
            found: Plain = one
            return found if failing else None
    return None


def _too_many(message: str, retry_seconds: int = 0) -> StatusError:
    details: Plain = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    if retry_seconds:
        details["retryAfterSeconds"] = retry_seconds
    return StatusError(429, "TooManyRequests", _REFUSED, details)


def _forbidden(name: str, why: str) -> StatusError:
    message = f'poddisruptionbudget.policy "{name}" is forbidden: {why}'
    details = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
    return StatusError(403, "Forbidden", message, details)


def _conditions(status: Plain, now: str) -> list[Any]:
    """Return a budget's conditions with the one that says that nothing is left."""
    conditions = list(status.get("conditions", []))
    whole: Plain = {
        "type": _ALLOWED,
        "status": "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    for position, one in enumerate(conditions):
        if one["type"] == _ALLOWED:
            if one["status"] == "False":
                whole["lastTransitionTime"] = one["lastTransitionTime"]
            conditions[position] = whole
            return conditions
    return [*conditions, whole]
