"""Subresources: a pod's binding and eviction, status, scale, and what else stands below an object.

Upstream: pkg/registry/*/*/storage (v1.36)
Differs:  what needs a node behind it fails, as where no kubelet can be reached; tokens of service
          accounts are not served.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.apiserver import defaults
from kubesched.apiserver.binding import bind
from kubesched.apiserver.decoding import decoded, read_object, typed
from kubesched.apiserver.eviction import evict
from kubesched.apiserver.operation import Operation, operation_of
from kubesched.apiserver.owner_references import without_repeated_owners
from kubesched.apiserver.patching import Patch, check_name, check_type, same_object
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.presentation import Presentation
from kubesched.apiserver.registry import Registry, check_namespace
from kubesched.apiserver.request import Request, Response, Target, json_response
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.scale import (
    check_scale,
    managed_scale_of,
    scale_of,
    scaled,
    with_managers_of_scale,
)
from kubesched.apiserver.status import not_found, not_served, success, unreachable

_PLAIN: Final = frozenset(("approval", "ephemeralcontainers", "finalize", "resize", "status"))
_OF_KUBELETS: Final = frozenset(("attach", "exec", "log", "portforward", "proxy"))
SCALE: Final = Resource("scales", "Scale", "autoscaling", "v1")
BINDING: Final = Resource("bindings", "Binding", "", "v1")
EVICTION: Final = Resource("evictions", "Eviction", "policy", "v1")


class Subresources:
    """Answers requests about parts of objects."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._budgets = registry.resources.find("policy", "v1", "poddisruptionbudgets")

    def answer(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        """Return the answer to a request.

        Raises:
            ApiError: It is refused.
        """
        if target.subresource == "scale":
            return self._scale(request, target, resource)
        if target.subresource == "binding":
            return self._bind(request, target, resource)
        if target.subresource == "eviction":
            return self._evict(request, target, resource)
        if target.subresource in _PLAIN:
            return self._part(request, target, resource, presentation)
        if target.subresource in _OF_KUBELETS:
            self._registry.get(resource, target.namespace, target.name)
            raise unreachable()
        raise not_served()

    def _part(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        """Answer for a part of the object that is read and written as the whole."""
        namespace = target.namespace if resource.is_namespaced else ""
        if target.verb == "get":
            stored = self._registry.get(resource, namespace, target.name)
            return Response(200, presentation.one(stored))
        if target.verb == "patch":
            check_type(request.content_type, resource)
        operation = operation_of(request, target, resource)
        if target.verb == "patch":
            patch = Patch(operation, resource, self._registry.clock)
            stored, _ = self._registry.update(
                operation,
                lambda current: same_object(operation, patch.apply(current)),
                is_tracked=not patch.is_apply,
            )
        else:
            obj = decoded(operation, self._registry.resources, resource)
            check_namespace(operation, obj)
            check_name(operation, obj)
            obj = without_repeated_owners(operation, obj, is_admitted=False)
            stored, _ = self._registry.update(operation, lambda _: obj)
        return Response(200, presentation.one(stored))

    def _scale(self, request: Request, target: Target, resource: Resource) -> Response:
        if target.verb == "get":
            stored = self._registry.get(resource, target.namespace, target.name)
            return json_response(200, scale_of(resource, stored.form(resource)))
        if target.verb == "patch":
            check_type(request.content_type, resource)
        operation = operation_of(request, target, resource)
        # The workload itself is changed, by the rules for the whole.
        whole = msgspec.structs.replace(operation, subresource="")
        if self._registry.find(resource, whole.namespace, whole.name) is None:
            raise not_found(resource, whole.name)
        stored, _ = self._registry.update(
            whole,
            lambda current: self._scaled(operation, resource, current),
            is_tracked=False,
        )
        return json_response(200, scale_of(resource, stored.form(resource)))

    def _scaled(self, operation: Operation, resource: Resource, current: Plain | None) -> Plain:
        assert current is not None, "a scale creates nothing"
        before = managed_scale_of(resource, current)
        is_apply = False
        if operation.request.method == "PATCH":
            patch = Patch(operation, SCALE, self._registry.clock)
            is_apply = patch.is_apply
            scale = patch.apply(before)
        else:
            scale = read_object(operation.request, SCALE.kind)
            scale = defaults.with_defaults(SCALE, scale)
        check_name(operation, scale)
        if not is_apply:
            of_scale = msgspec.structs.replace(operation, resource=SCALE)
            scale = self._registry.tracked(of_scale, before, scale)
        check_scale(resource, current, scale)
        changed = scaled(current, scale)
        return with_managers_of_scale(resource, changed, scale)

    def _bind(self, request: Request, target: Target, resource: Resource) -> Response:
        operation = operation_of(request, target, resource)
        obj = self._body(operation, BINDING)
        bind(self._registry, operation, resource, obj)
        return json_response(201, success(201))

    def _evict(self, request: Request, target: Target, resource: Resource) -> Response:
        operation = operation_of(request, target, resource)
        assert self._budgets is not None, "disruption budgets are always served"
        eviction = self._body(operation, EVICTION)
        evict(self._registry, operation, resource, self._budgets, eviction)
        return json_response(201, success(201))

    def _body(self, operation: Operation, resource: Resource) -> Plain:
        value = read_object(operation.request, resource.kind)
        if value.get("apiVersion") == "policy/v1beta1":
            value = {**value, "apiVersion": "policy/v1"}
        obj = defaults.with_defaults(resource, typed(value, self._registry.resources, resource))
        obj.setdefault("metadata", {})
        check_namespace(operation, obj)
        return obj
