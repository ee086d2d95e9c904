"""Handler answers requests about resources: it decodes them, calls the registry and replies.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints (installer.go, handlers),
          pkg/registry/*/*/storage (v1.36)
Differs:  what needs a kubelet (logs, exec, port forwarding, proxies) fails as if the kubelet were
          unreachable.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from kubesched.apiserver import managed_fields
from kubesched.apiserver.authorization import Reviewer
from kubesched.apiserver.decoding import decoded, read_object
from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.deletion import delete, delete_options
from kubesched.apiserver.listing import ObjectList, exact_version, list_objects, list_options
from kubesched.apiserver.patching import Patch, check_name, check_namespace, check_type, same_object
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.presentation import Presentation, negotiate
from kubesched.apiserver.registry import ObjectRegistry
from kubesched.apiserver.request import (
    ApiRequest,
    Operation,
    Response,
    Target,
    json_response,
    operation_of,
)
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import (
    StatusError,
    details_of,
    method_not_allowed,
    not_served,
    success,
)
from kubesched.apiserver.stored_object import StoredObject
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


class _Call(NamedTuple):
    """One request about a resource; the namespace is "" for none or all.

    `kind` is what bodies are: the resource, or its subresource.
    """

    request: ApiRequest
    target: Target
    resource: Resource
    kind: Resource
    namespace: str
    presentation: Presentation

    def operation(self) -> Operation:
        """Return the requested operation, with its options."""
        return operation_of(self.request, self.target, self.resource)


class Handler:
    """Answers requests about resources."""

    def __init__(self, registry: ObjectRegistry, reviewer: Reviewer) -> None:
        self._registry = registry
        self._reviewer = reviewer
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
        now = self._registry.clock.now
        form = negotiate(request.accept)
        shown = kind if target.subresource == "scale" else resource
        presentation = Presentation(shown, form, request.parameter("includeObject"), now)
        namespace = target.namespace if resource.is_namespaced else ""
        call = _Call(request, target, resource, kind, namespace, presentation)
        if target.subresource in self._of_subresources:
            return await self._of_subresources[target.subresource](call)
        if target.subresource in _OF_KUBELETS:
            self._registry.get(resource, namespace, target.name)
            raise StatusError(500, "InternalError", _UNREACHABLE, {})
        # Other subresources are read and written as the whole object.
        return await self._of_verbs[target.verb](call)

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

    async def _get(self, call: _Call) -> Response:
        exact_version(call.request.parameter("resourceVersion"))
        stored = self._registry.get(call.resource, call.namespace, call.target.name)
        return Response(200, call.presentation.one(stored))

    async def _list(self, call: _Call) -> Response:
        options = list_options(call.request, call.resource, is_watch=False)
        found = await list_objects(self._registry.store, call.resource, call.namespace, options)
        return Response(200, call.presentation.many(found))

    async def _watch(self, call: _Call) -> Response:
        request, resource, presentation = call.request, call.resource, call.presentation
        presentation.check_single()
        if call.target.is_old_watch and call.target.name:
            query = {**request.query, "fieldSelector": (f"metadata.name={call.target.name}",)}
            request = msgspec.structs.replace(request, query=query)
        options = list_options(request, resource, is_watch=True)
        timeout = options.timeout_seconds or self._registry.clock.between(*_TIMEOUT_SECONDS)
        store = self._registry.store
        stream = WatchStream(store, resource, call.namespace, options, presentation, timeout)
        return Response(200, stream=stream.lines())

    # Writing.

    async def _create(self, call: _Call) -> Response:
        operation = call.operation()
        obj = decoded(operation, self._resources, call.resource)
        if call.resource.group in ("authentication.k8s.io", "authorization.k8s.io"):
            return json_response(201, self._reviewer.review(call.resource, call.request.user, obj))
        check_namespace(operation, obj)
        self._granting(call, None, obj)
        if call.resource.built_in_kind == "Binding":
            bind(self._registry, operation, obj)
            return json_response(201, success(201))
        return Response(201, call.presentation.one(self._registry.create(operation, obj)))

    async def _update(self, call: _Call) -> Response:
        operation = call.operation()
        obj = same_object(operation, decoded(operation, self._resources, call.resource))
        stored, is_new = self._registry.update(
            operation,
            lambda current: self._granting(call, current, obj),
            creates="upsert" in call.resource.flags,
        )
        return Response(201 if is_new else 200, call.presentation.one(stored))

    async def _patch(self, call: _Call) -> Response:
        check_type(call.request.content_type, call.resource)
        operation = call.operation()
        patch = Patch(operation, call.resource, self._registry.clock)
        stored, is_new = self._registry.update(
            operation,
            lambda current: self._granting(
                call, current, same_object(operation, patch.apply(current))
            ),
            creates=patch.is_apply,
            is_tracked=not patch.is_apply,
        )
        return Response(201 if is_new else 200, call.presentation.one(stored))

    def _granting(self, call: _Call, old: Plain | None, new: Plain) -> Plain:
        """Return an object to write, unless it grants what the user may not grant."""
        roles, user = self._reviewer.roles, call.request.user
        roles.check_grants(user, call.resource, old, new)
        if call.resource.built_in_kind == "ResourceClaim" and call.target.subresource:
            roles.check_claim(user, call.target.verb, old or {}, new)
        return new

    async def _delete(self, call: _Call) -> Response:
        resource, name = call.resource, call.target.name
        options = delete_options(call.request, resource)
        operation = Operation(call.request, resource, call.namespace, name)
        last, is_deleted = delete(self._registry, operation, options)
        if not is_deleted or "echoed" in resource.flags:
            is_accepted = not is_deleted and options.orphan_dependents is False
            return Response(202 if is_accepted else 200, call.presentation.one(last))
        details = details_of(resource.group, resource.plural, name)
        details["uid"] = last.plain["metadata"]["uid"]
        return json_response(200, success(details=details))

    async def _delete_collection(self, call: _Call) -> Response:
        # Invalid options are refused first, even if there is nothing to delete.
        options = delete_options(call.request, call.resource)
        listing = list_options(call.request, call.resource, is_watch=False)
        found = await list_objects(self._registry.store, call.resource, call.namespace, listing)
        deleted = []
        for stored in found.items:
            metadata = stored.plain["metadata"]
            namespace = metadata.get("namespace", "")
            operation = Operation(call.request, call.resource, namespace, metadata["name"])
            try:
                delete(self._registry, operation, options)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise
            else:
                deleted.append(stored)
        return Response(200, call.presentation.many(ObjectList(tuple(deleted), found.version)))

    # Subresources that are objects of their own.

    async def _bind_or_evict(self, call: _Call) -> Response:
        operation = call.operation()
        act = bind if call.target.subresource == "binding" else evict
        act(self._registry, operation, self._body(call, operation))
        return json_response(201, success(201))

    async def _token(self, call: _Call) -> Response:
        account = self._registry.get(call.resource, call.namespace, call.target.name)
        asked = self._body(call, call.operation())
        return json_response(201, self._reviewer.tokens.issue(account.plain, asked))

    def _body(self, call: _Call, operation: Operation) -> Plain:
        obj = decoded(operation, self._resources, call.kind)
        check_namespace(operation, obj)
        return obj

    async def _scale(self, call: _Call) -> Response:
        resource, target = call.resource, call.target
        if target.verb == "get":
            stored = self._registry.get(resource, target.namespace, target.name)
            return _shown_scale(call, stored)
        if target.verb == "patch":
            check_type(call.request.content_type, resource)
        operation = call.operation()
        # The workload itself is changed, by the rules for the whole.
        whole = msgspec.structs.replace(operation, subresource="")
        stored, _ = self._registry.update(
            whole, lambda current: self._scaled(call, operation, current), is_tracked=False
        )
        return _shown_scale(call, stored)

    def _scaled(self, call: _Call, operation: Operation, current: Plain | None) -> Plain:
        assert current is not None, "a scale creates nothing"
        request, resource, kind = call.request, call.resource, call.kind
        is_patch = request.method == "PATCH"
        patch = Patch(operation, kind, self._registry.clock) if is_patch else None
        if patch is None:
            scale = with_defaults(kind, read_object(request, kind.kind))
        elif patch.is_apply:
            scale = with_defaults(kind, patch.value)
        else:
            scale = patch.apply(scale_of(resource, current))
        check_name(operation, scale)
        check_scale(resource, current, scale)
        changed = scaled(current, scale)
        # Upstream records no time for the manager of a scale.
        if patch is None or not patch.is_apply:
            return self._registry.tracked(operation, current, changed, has_time=False)
        declared = {name: changed[name] for name in ("apiVersion", "kind")}
        declared["spec"] = {"replicas": changed["spec"]["replicas"]}
        applied = managed_fields.apply(
            resource, current, declared, request.manager, request.flag("force"), None, "scale"
        )
        managed = {"managedFields": applied["metadata"]["managedFields"]}
        return {**changed, "metadata": {**changed["metadata"], **managed}}


def _shown_scale(call: _Call, stored: StoredObject) -> Response:
    scale = scale_of(call.resource, stored.form(call.resource))
    presentation = call.presentation
    return json_response(200, scale if presentation.is_plain else presentation.transformed(scale))


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
