"""Reads: one object, a list, or a watch.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/{get,watch}.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.apiserver.list_options import exact_version, list_options
from kubesched.apiserver.listing import list_objects
from kubesched.apiserver.presentation import Presentation
from kubesched.apiserver.registry import Registry
from kubesched.apiserver.request import Request, Response, Target
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.watching import WatchStream, start_of

# Watches without a timeout of their own end after a time between these.
_TIMEOUT_SECONDS: Final = (1800.0, 3600.0)


class Reads:
    """Answers requests that change nothing."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer(
        self, request: Request, target: Target, resource: Resource, presentation: Presentation
    ) -> Response:
        """Return the answer to a get, a list or a watch.

        Raises:
            ApiError: The question makes no sense, or the object does not exist.
        """
        namespace = target.namespace if resource.is_namespaced else ""
        if target.verb == "get":
            exact_version(request.parameter("resourceVersion"))
            stored = self._registry.get(resource, namespace, target.name)
            return Response(200, presentation.one(stored))
        if target.is_old_watch and target.name:
            query = {**request.query, "fieldSelector": (f"metadata.name={target.name}",)}
            request = msgspec.structs.replace(request, query=query)
        if target.verb == "watch":
            return self._watch(request, namespace, resource, presentation)
        options = list_options(request, resource, is_watch=False)
        found = await list_objects(self._registry.store, resource, namespace, options)
        return Response(200, presentation.many(found))

    def _watch(
        self, request: Request, namespace: str, resource: Resource, presentation: Presentation
    ) -> Response:
        presentation.check_single()
        options = list_options(request, resource, is_watch=True)
        timeout = options.timeout_seconds or self._registry.clock.between(*_TIMEOUT_SECONDS)
        store = self._registry.store
        start = start_of(store, resource, namespace, options)
        stream = WatchStream(store, resource, namespace, options, start, presentation, timeout)
        return Response(200, stream=stream.lines())
