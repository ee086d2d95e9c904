"""Handler answers requests about resources: it decodes them, calls the registry and replies.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints (installer.go, handlers),
          pkg/registry/*/*/storage (v1.36)
Differs:  what needs a kubelet (logs, exec, port forwarding, proxies) fails as if the kubelet were
          unreachable.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.apiserver import managed_fields
from kubesched.apiserver.authorization import StoredRoles, Tokens, review
from kubesched.apiserver.decoding import decoded, read_object
from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.deletion import delete, delete_options
from kubesched.apiserver.listing import ObjectList, exact_version, list_objects, list_options
from kubesched.apiserver.patching import Patch, check_type, put_into_namespace, same_object
from kubesched.apiserver.plain import Plain, only
from kubesched.apiserver.presentation import Presentation, negotiate
from kubesched.apiserver.registry import ObjectRegistry, check_version
from kubesched.apiserver.request import (
    ApiRequest,
    Operation,
    Response,
    Target,
    check_options,
    json_response,
)
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import (
    StatusError,
    details_of,
    method_not_allowed,
    not_served,
    success,
)
from kubesched.apiserver.subresources import bind, check_scale, evict, scale_of, scaled
from kubesched.apiserver.watching import WatchStream

_COLLECTION_VERBS: Final = frozenset(("create", "deletecollection", "list", "watch"))
_EVERYWHERE: Final = frozenset(("list", "watch"))
_OF_KUBELETS: Final = frozenset(("attach", "exec", "log", "portforward", "proxy"))
_UNREACHABLE: Final = (
    "error dialing backend: nothing runs behind the nodes of this server, so pods have no logs and "
    "there is nothing to connect to"
)
_DEPRECATED: Final = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}
# A watch without a timeout ends after a random time between these.
_TIMEOUT_SECONDS: Final = (1800.0, 3600.0)


class Handler:
    """Answers requests about resources."""

    def __init__(self, registry: ObjectRegistry, tokens: Tokens, roles: StoredRoles) -> None:
        self._registry = registry
        self._tokens = tokens
        self._roles = roles
        self._resources = registry.resources
        self._of_verbs = {
            "create": self._create,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
            "get": self._get,
            "list": self._list,
            "patch": self._patch,
            "update": self._update,
            "watch": self._watch,
        }
        self._of_subresources = {
            "binding": self._bind_or_evict,
            "eviction": self._bind_or_evict,
            "scale": self._scale,
            "token": self._token,
        }

    async def handle(self, request: ApiRequest, target: Target) -> Response:
        """Return the answer to a request; raises ApiError if it is refused."""
        resource = self._resource(target)
        if resource.group_resource in _DEPRECATED:
            request.warnings.append(_DEPRECATED[resource.group_resource])
        kind = _kind_of(resource, target)
        shown = kind if target.subresource == "scale" else resource
        presentation = Presentation(
            shown,
            negotiate(request.accept),
            request.parameter("includeObject"),
            self._registry.clock.now,
        )
        if target.is_old_watch and target.name:
            query = {**request.query, "fieldSelector": (f"metadata.name={target.name}",)}
            request = msgspec.structs.replace(request, query=query)
        namespace = target.namespace if resource.is_namespaced else ""
        operation = Operation(request, resource, namespace, target.name, target.subresource)
        if target.subresource in _OF_KUBELETS:
            self._registry.get(operation)
            raise StatusError(500, "InternalError", _UNREACHABLE, {})
        if target.verb == "patch":
            check_type(request.content_type, resource)
        check_options(request)
        # Other subresources are read and written as the whole object.
        answer = self._of_subresources.get(target.subresource) or self._of_verbs[target.verb]
        return await answer(operation, presentation)

    def _resource(self, target: Target) -> Resource:
        resource = self._resources.find(target.group, target.version, target.plural)
        if resource is None or target.rest:
            raise not_served()
        is_in_namespace = bool(target.namespace) and target.plural != "namespaces"
        if is_in_namespace and not resource.is_namespaced:
            raise not_served()
        is_everywhere = resource.is_namespaced and not target.namespace
        if is_everywhere and target.verb not in _EVERYWHERE:
            raise not_served() if target.name else method_not_allowed()
        return resource

    # Reading.

    async def _get(self, operation: Operation, presentation: Presentation) -> Response:
        exact_version(operation.request.parameter("resourceVersion"))
        return Response(200, presentation.one(self._registry.get(operation)))

    async def _list(self, operation: Operation, presentation: Presentation) -> Response:
        return Response(200, presentation.many(await self._listed(operation)))

    async def _listed(self, operation: Operation) -> ObjectList:
        request, resource, namespace, *_ = operation
        options = list_options(request, resource, is_watch=False)
        return await list_objects(self._registry.store, resource, namespace, options)

    async def _watch(self, operation: Operation, presentation: Presentation) -> Response:
        presentation.check_single()
        request, resource, namespace, *_ = operation
        options = list_options(request, resource, is_watch=True)
        timeout = options.timeout_seconds or self._registry.clock.between(*_TIMEOUT_SECONDS)
        store = self._registry.store
        stream = WatchStream(store, resource, namespace, options, presentation, timeout)
        return Response(200, stream=stream.lines())

    # Writing.

    async def _create(self, operation: Operation, presentation: Presentation) -> Response:
        request, resource, *_ = operation
        obj = decoded(operation, self._resources, resource)
        if resource.group in ("authentication.k8s.io", "authorization.k8s.io"):
            answered = review(self._tokens, self._roles, resource, request.user, obj)
            return json_response(201, answered)
        put_into_namespace(operation, obj)
        self._granting(operation, None, obj)
        if resource.built_in_kind == "Binding":
            bind(self._registry, operation, obj)
            return json_response(201, success(201))
        return Response(201, presentation.one(self._registry.create(operation, obj)))

    async def _update(self, operation: Operation, presentation: Presentation) -> Response:
        resource = operation.resource
        obj = same_object(operation, decoded(operation, self._resources, resource))
        stored, is_new = self._registry.update(
            operation,
            lambda current: self._granting(operation, current, obj),
            creates="upsert" in resource.flags,
        )
        return Response(201 if is_new else 200, presentation.one(stored))

    async def _patch(self, operation: Operation, presentation: Presentation) -> Response:
        patch = Patch(operation, operation.resource, self._registry.clock)
        stored, is_new = self._registry.update(
            operation,
            lambda current: self._granting(
                operation, current, same_object(operation, patch.apply(current))
            ),
            creates=patch.is_apply,
            is_tracked=not patch.is_apply,
        )
        return Response(201 if is_new else 200, presentation.one(stored))

    def _granting(self, operation: Operation, old: Plain | None, new: Plain) -> Plain:
        """Return an object to write, unless it grants what the user may not grant."""
        roles, user, resource = self._roles, operation.request.user, operation.resource
        roles.check_grants(user, resource, old, new)
        if old is not None and resource.built_in_kind == "ResourceClaim" and operation.subresource:
            # A stale claim differs in what other clients have written.
            check_version(operation, old["metadata"], new["metadata"])
            verb = "patch" if operation.request.method == "PATCH" else "update"
            roles.check_claim(user, verb, old, new)
        return new

    async def _delete(self, operation: Operation, presentation: Presentation) -> Response:
        resource = operation.resource
        options = delete_options(operation.request, resource)
        last, is_deleted = delete(self._registry, operation, options)
        if not is_deleted or "echoed" in resource.flags:
            is_accepted = not is_deleted and options.orphan_dependents is False
            return Response(202 if is_accepted else 200, presentation.one(last))
        details = details_of(resource.group, resource.plural, operation.name)
        details["uid"] = last.plain["metadata"]["uid"]
        return json_response(200, success(details=details))

    async def _delete_collection(
        self, operation: Operation, presentation: Presentation
    ) -> Response:
        # Invalid options are refused first, even if there is nothing to delete.
        options = delete_options(operation.request, operation.resource)
        found = await self._listed(operation)
        for stored in found.items:
            metadata = stored.plain["metadata"]
            namespace = metadata.get("namespace", "")
            one = operation._replace(namespace=namespace, name=metadata["name"])
            delete(self._registry, one, options)
        return Response(200, presentation.many(ObjectList(found.items, found.version)))

    # Subresources that are objects of their own.

    async def _bind_or_evict(self, operation: Operation, _presentation: Presentation) -> Response:
        act = bind if operation.subresource == "binding" else evict
        act(self._registry, operation, self._body(operation))
        return json_response(201, success(201))

    async def _token(self, operation: Operation, _presentation: Presentation) -> Response:
        account = self._registry.get(operation)
        return json_response(201, self._tokens.issue(account.plain, self._body(operation)))

    def _body(self, operation: Operation) -> Plain:
        obj = decoded(operation, self._resources, operation.kind)
        put_into_namespace(operation, obj)
        return obj

    async def _scale(self, operation: Operation, presentation: Presentation) -> Response:
        resource = operation.resource
        if operation.request.method in ("PATCH", "PUT"):
            # The workload itself is changed, by the rules for the whole.
            stored, _ = self._registry.update(
                operation._replace(subresource=""),
                lambda current: self._scaled(operation, current),
                is_tracked=False,
            )
        else:
            stored = self._registry.get(operation)
        scale = scale_of(resource, stored.form(resource))
        return json_response(
            200, scale if presentation.is_plain else presentation.transformed(scale)
        )

    def _scaled(self, operation: Operation, current: Plain | None) -> Plain:
        assert current is not None, "a scale creates nothing"
        request, resource, kind = operation.request, operation.resource, operation.kind
        is_patch = request.method == "PATCH"
        patch = Patch(operation, kind, self._registry.clock) if is_patch else None
        if patch is None:
            scale = with_defaults(kind, read_object(request, kind.kind))
        elif patch.is_apply:
            scale = with_defaults(kind, patch.value)
        else:
            scale = patch.apply(scale_of(resource, current))
        same_object(operation, scale)
        check_scale(resource, current, scale)
        changed = scaled(resource, current, scale)
        # Upstream records no time for the manager of a scale.
        if patch is None or not patch.is_apply:
            return managed_fields.track(operation, current, changed, None)
        declared = scaled(resource, {**only(changed, "apiVersion", "kind"), "metadata": {}}, scale)
        applied = managed_fields.apply(operation, current, declared, None)
        managed = {"managedFields": applied["metadata"]["managedFields"]}
        return {**changed, "metadata": {**changed["metadata"], **managed}}


def _kind_of(resource: Resource, target: Target) -> Resource:
    """Return what bodies are; raises StatusError if it does not have the verb."""
    kind = resource.subresource(target.subresource) if target.subresource else resource
    if kind is None:
        raise not_served()
    is_misplaced = (target.verb in _COLLECTION_VERBS) == bool(target.name)
    if is_misplaced and not target.subresource and target.verb not in _EVERYWHERE:
        raise method_not_allowed()
    if target.verb not in kind.verbs:
        raise method_not_allowed()
    return kind
