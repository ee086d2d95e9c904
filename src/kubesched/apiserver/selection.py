"""Selection selects objects of a resource, by labels and by fields.

Upstream: staging/src/k8s.io/apiserver/pkg/storage (SelectionPredicate),
          staging/src/k8s.io/apimachinery/pkg/fields, pkg/apis/*/*/conversion.go
          (AddFieldLabelConversionFunc), pkg/registry/*/*/strategy.go (v1.36)
Rejects:  400 for texts that are no field selector, and for fields that a kind does not offer.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import SelectorError, parse_field_selector
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import bad_request
from kubesched.apiserver.stored_object import StoredObject
from kubesched.apiserver.values import ValueType


class Selection:
    """A predicate on objects of a resource.

    Attributes:
        is_everything: Whether it selects all objects.
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
            ApiError: The field selector names a field that the resource does not offer.
        """
        return cls(resource, labels, fields_selected(resource, fields) if fields else None)

    def matches(self, stored: StoredObject) -> bool:
        """Return whether an object is selected."""
        if self._labels is not None:
            labels = stored.plain["metadata"].get("labels") or {}
            if not self._labels.matches(labels):
                return False
        return self._fields is None or self._fields(stored.form(self._resource))


# Fields.

Getter: TypeAlias = Callable[[Plain], str]


class _Requirement(NamedTuple):
    getter: Getter
    is_equal: bool
    value: str


def fields_selected(resource: Resource, text: str) -> Callable[[Plain], bool]:
    """Return whether an object of a resource is selected, as a function of the object.

    Args:
        resource: What is selected from; objects are in its form.
        text: The selector, as in queries.

    Raises:
        ApiError: The text is no selector, or names a field that the resource does not offer.
    """
    try:
        selector = parse_field_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    requirements = [
        _Requirement(_getter(resource, one.field), one.operator == "=", one.value)
        for one in selector.requirements
    ]

    def is_selected(value: Plain) -> bool:
        for getter, is_equal, wanted in requirements:
            if (getter(value) == wanted) is not is_equal:
                return False
        return True

    return is_selected


def _getter(resource: Resource, field: str) -> Getter:
    """Return what reads a field as Go prints it; what is missing is empty, false or 0."""
    offered = resource.selectable
    if field == "metadata.name" or (
        field == "metadata.namespace" and (resource.is_namespaced or not offered)
    ):
        offered = (*offered, field)
    if not resource.selectable and not offered:
        raise bad_request(
            f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if field not in offered:
        raise bad_request(f"field label not supported: {field}")
    if field in _READ_OTHERWISE:
        return _READ_OTHERWISE[field]
    path = _RENAMED.get(field, field).split(".")
    zero = _zero(resource.type, path)

    def read(value: Plain) -> str:
        found = get(value, *path) or zero
        return str(found).lower() if isinstance(found, bool) else str(found)

    return read


def _zero(value_type: ValueType | None, path: Sequence[str]) -> Any:
    for name in path:
        value_type = None if value_type is None else value_type.child(name)
    return "" if value_type is None else value_type.zero()


def _event_source(event: Plain) -> str:
    return str(get(event, "source", "component") or event.get("reportingComponent") or "")


_RENAMED: Final[Mapping[str, str]] = {
    "spec.host": "spec.nodeName",
    "status.successful": "status.succeeded",
}
_READ_OTHERWISE: Final[Mapping[str, Getter]] = {
    "source": _event_source,
    # Offered, and never filled.
    "status.podIPs": lambda _pod: "",
}
