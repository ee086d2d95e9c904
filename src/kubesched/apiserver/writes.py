"""Writes: create, replace, patch and delete objects, and ask for reviews.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.apiserver.binding import bind
from kubesched.apiserver.decoding import decoded
from kubesched.apiserver.deletion import delete, delete_options
from kubesched.apiserver.list_options import list_options
from kubesched.apiserver.listing import ObjectList, list_objects
from kubesched.apiserver.operation import Operation, operation_of
from kubesched.apiserver.owner_references import without_repeated_owners
from kubesched.apiserver.patching import Patch, check_name, check_type, same_object
from kubesched.apiserver.presentation import Presentation
from kubesched.apiserver.registry import Registry, check_namespace
from kubesched.apiserver.request import Request, Response, Target, json_response
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.reviews import Reviewer
from kubesched.apiserver.status import StatusError, details_of, success

_REVIEW_GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")


class Writes:
    """Answers requests that change something."""

    def __init__(self, registry: Registry, reviewer: Reviewer) -> None:
        self._registry = registry
        self._reviewer = reviewer
        self._pods = registry.resources.find("", "v1", "pods")

    async def answer(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        """Return the answer to a write.

        Raises:
            ApiError: It is refused.
        """
        if target.verb == "create":
            return self._create(request, target, resource, presentation)
        if target.verb == "update":
            return self._update(request, target, resource, presentation)
        if target.verb == "patch":
            return self._patch(request, target, resource, presentation)
        if target.verb == "delete":
            return self._delete(request, target, resource, presentation)
        return await self._delete_collection(request, target, resource, presentation)

    def _create(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        operation = operation_of(request, target, resource)
        if resource.group in _REVIEW_GROUPS:
            asked = decoded(operation, self._registry.resources, resource)
            return json_response(201, self._reviewer.review(resource, request.user, asked))
        obj = decoded(operation, self._registry.resources, resource)
        if resource.kind == "Binding":
            assert self._pods is not None, "pods are always served"
            check_namespace(operation, obj)
            bind(self._registry, operation, self._pods, obj)
            return json_response(201, success(201))
        check_namespace(operation, obj)
        obj = without_repeated_owners(operation, obj, is_admitted=False)
        stored = self._registry.create(operation, obj)
        return Response(201, presentation.one(stored))

    def _update(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        operation = operation_of(request, target, resource)
        obj = decoded(operation, self._registry.resources, resource)
        check_namespace(operation, obj)
        check_name(operation, obj)
        obj = without_repeated_owners(operation, obj, is_admitted=False)
        stored, is_new = self._registry.update(
            operation, lambda _: obj, creates=resource.is_created_by_update
        )
        status = 201 if is_new else 200
        return Response(status, presentation.one(stored))

    def _patch(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        check_type(request.content_type, resource)
        operation = operation_of(request, target, resource)
        patch = Patch(operation, resource, self._registry.clock)
        stored, is_new = self._registry.update(
            operation,
            lambda current: same_object(operation, patch.apply(current)),
            creates=patch.is_apply,
            is_tracked=not patch.is_apply,
        )
        status = 201 if is_new else 200
        return Response(status, presentation.one(stored))

    def _delete(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        options = delete_options(request, resource)
        operation = _deleting(request, target, resource)
        done = delete(self._registry, operation, options)
        if not done.is_deleted or resource.is_shown_when_deleted:
            is_accepted = not done.is_deleted and options.orphan_dependents is False
            return Response(202 if is_accepted else 200, presentation.one(done.object))
        details = details_of(resource.group, resource.plural, target.name)
        details["uid"] = done.object.plain["metadata"]["uid"]
        return json_response(200, success(details=details))

    async def _delete_collection(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        # Bad options are told before anything is deleted, and even if there is nothing.
        delete_options(request, resource)
        listing = list_options(request, resource, is_watch=False)
        namespace = target.namespace if resource.is_namespaced else ""
        found = await list_objects(self._registry.store, resource, namespace, listing)
        deleted = []
        for stored in found.items:
            metadata = stored.plain["metadata"]
            one = msgspec.structs.replace(
                target, name=metadata["name"], namespace=metadata.get("namespace", "")
            )
            if self._is_deleted(request, one, resource):
                deleted.append(stored)
        shown = ObjectList(tuple(deleted), found.version)
        return Response(200, presentation.many(shown))

    def _is_deleted(self, request: Request, target: Target, resource: Resource) -> bool:
        operation = _deleting(request, target, resource)
        try:
            delete(self._registry, operation, delete_options(request, resource))
        except StatusError as error:
            if error.reason == "NotFound":
                return False
            raise
        return True


def _deleting(request: Request, target: Target, resource: Resource) -> Operation:
    namespace = target.namespace if resource.is_namespaced else ""
    return Operation(request, resource, namespace, target.name)
