"""Handler answers requests about resources: it finds who is to answer, and asks.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints (installer.go, handlers, v1.36)
Differs:  what needs a node behind it (logs, exec, port forwarding, proxies) and tokens of service
          accounts are not served.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.media_types import negotiate
from kubesched.apiserver.presentation import Presentation
from kubesched.apiserver.reads import Reads
from kubesched.apiserver.registry import Registry
from kubesched.apiserver.request import Request, Response, Target
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.reviews import Reviewer
from kubesched.apiserver.status import method_not_allowed, not_served
from kubesched.apiserver.subresources import Subresources
from kubesched.apiserver.writes import Writes

_COLLECTION_VERBS: Final = frozenset(("create", "deletecollection", "list", "watch"))
_EVERYWHERE: Final = frozenset(("list", "watch"))
_DEPRECATED: Final = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}


class Handler:
    """Answers requests about resources."""

    def __init__(self, registry: Registry, reviewer: Reviewer) -> None:
        self._registry = registry
        self._resources = registry.resources
        self._reads = Reads(registry)
        self._writes = Writes(registry, reviewer)
        self._subresources = Subresources(registry)

    async def handle(self, request: Request, target: Target) -> Response:
        """Return the answer to a request.

        Raises:
            ApiError: It is refused.
        """
        resource = self._resource(target)
        self._check_verb(resource, target)
        presentation = Presentation(
            resource,
            negotiate(request.accept),
            request.parameter("includeObject"),
            self._registry.clock.now,
        )
        if target.subresource:
            return self._subresources.answer(request, target, resource, presentation)
        if target.verb in {"get", "list", "watch"}:
            return await self._reads.answer(request, target, resource, presentation)
        return await self._writes.answer(request, target, resource, presentation)

    def deprecation_of(self, target: Target) -> str:
        """Return the warning for users of a resource, "" if there is none."""
        resource = self._resources.find(target.group, target.version, target.plural)
        return "" if resource is None else _DEPRECATED.get(resource.group_resource, "")

    def _resource(self, target: Target) -> Resource:
        resource = self._resources.find(target.group, target.version, target.plural)
        if resource is None or target.rest:
            raise not_served()
        is_in_namespace = bool(target.namespace) and target.plural != "namespaces"
        if is_in_namespace and not resource.is_namespaced:
            raise not_served()
        is_everywhere = resource.is_namespaced and not target.namespace
        if is_everywhere and target.name and target.verb not in _EVERYWHERE:
            raise not_served()
        if is_everywhere and target.verb not in _EVERYWHERE:
            raise method_not_allowed()
        return resource

    def _check_verb(self, resource: Resource, target: Target) -> None:
        verbs = resource.verbs
        if target.subresource:
            subresource = resource.subresource(target.subresource)
            if subresource is None:
                raise not_served()
            verbs = subresource.verbs
        elif (target.verb in _COLLECTION_VERBS) == bool(target.name) and (
            target.verb not in _EVERYWHERE
        ):
            raise method_not_allowed()
        if target.verb not in verbs:
            raise method_not_allowed()
