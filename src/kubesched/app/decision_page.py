"""/debug/decisions: the last decisions as JSON, and where a pod is in the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from kubesched.app.http_exchange import JSON, HttpRequest, HttpResponse, error_response
from kubesched.explain.decision_records import DecisionRecords

DECISIONS: Final = "/debug/decisions"

_LIMIT: Final = 1000
_PARAMETERS: Final = ("pod", "node", "limit")


class DecisionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which records to return.

    Attributes:
        namespace: The namespace of `pod`.
        pod: The name of a pod that they are about or that they evict; "" for any.
        node: The chosen or nominated node; "" for any.
        limit: At most so many, the newest.
    """

    namespace: str = ""
    pod: str = ""
    node: str = ""
    limit: int = _LIMIT


def decision_page(
    request: HttpRequest, read: Callable[[DecisionQuery], DecisionRecords]
) -> HttpResponse:
    """Return the document that a request asks for; 400 for a query that makes no sense."""
    try:
        query = _query_of(request)
    except ValueError as error:
        return error_response(str(error), 400)
    return HttpResponse(content_type=JSON, body=msgspec.json.encode(read(query).to_dict()))


def _query_of(request: HttpRequest) -> DecisionQuery:
    given = {name: request.query_values(name) for name in _PARAMETERS}
    pod, node, limit = ("".join(given[name][:1]) for name in _PARAMETERS)
    namespace, slash, name = pod.partition("/")
    if pod and not (namespace and slash and name):
        raise ValueError(f"pod={pod}: write NAMESPACE/NAME")
    if limit and (not limit.isdecimal() or not int(limit)):
        raise ValueError(f"limit={limit}: write a number from 1")
    return DecisionQuery(
        namespace=namespace, pod=name, node=node, limit=int(limit) if limit else _LIMIT
    )
