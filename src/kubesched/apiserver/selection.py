"""Selection says which objects of a resource somebody wants to see.

Upstream: staging/src/k8s.io/apiserver/pkg/storage (SelectionPredicate, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.requirements import CompiledSelector
from kubesched.apiserver import field_selectors
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.stored_object import StoredObject


class Selection:
    """A question about one object, answered with yes or no.

    Attributes:
        is_everything: Whether nothing is left out.
    """

    def __init__(
        self,
        resource: Resource,
        labels: CompiledSelector | None = None,
        fields: Callable[[Plain], bool] | None = None,
    ) -> None:
        self._resource = resource
        self._labels = None if labels is None or labels.is_empty else labels
        self._fields = fields
        self.is_everything = self._labels is None and fields is None

    @classmethod
    def of(cls, resource: Resource, labels: CompiledSelector | None, fields: str) -> Selection:
        """Return the selection of parsed labels and of a field selector's text.

        Raises:
            ApiError: The field selector asks for what the resource does not offer.
        """
        return cls(resource, labels, field_selectors.parse(resource, fields) if fields else None)

    def matches(self, stored: StoredObject) -> bool:
        """Whether an object is wanted."""
        if self._labels is not None:
            labels = stored.plain["metadata"].get("labels") or {}
            if not self._labels.matches(labels):
                return False
        return self._fields is None or self._fields(stored.form(self._resource))
