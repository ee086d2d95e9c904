"""Selection says which objects of a resource somebody wants to see, by labels and by fields.

Upstream: staging/src/k8s.io/apiserver/pkg/storage (SelectionPredicate),
          staging/src/k8s.io/apimachinery/pkg/fields, pkg/apis/*/*/conversion.go
          (AddFieldLabelConversionFunc), pkg/registry/*/*/strategy.go (v1.36)
Rejects:  400 for texts that are no field selector, and for fields that a kind does not offer.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import SelectorError, parse_field_selector
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import bad_request
from kubesched.apiserver.stored_object import EVENTS_GROUP, StoredObject, to_core


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
        return cls(resource, labels, fields_selected(resource, fields) if fields else None)

    def matches(self, stored: StoredObject) -> bool:
        """Whether an object is wanted."""
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
    getters = _GETTERS.get((resource.group, resource.kind))
    if getters is None:
        if field not in _METADATA:
            raise bad_request(
                f'"{field}" is not a known field selector: only "metadata.name", '
                '"metadata.namespace"'
            )
        return _METADATA[field]
    if field not in getters:
        raise bad_request(f"field label not supported: {field}")
    return getters[field]


def _text(*path: str) -> Getter:
    """Return what reads a text; a missing one is empty."""

    def read(value: Plain) -> str:
        return str(get(value, *path) or "")

    return read


def _truth(*path: str) -> Getter:
    """Return what reads a truth as Go prints it; a missing one is false."""

    def read(value: Plain) -> str:
        return "true" if get(value, *path) else "false"

    return read


def _number(*path: str) -> Getter:
    """Return what reads a number; a missing one is 0."""

    def read(value: Plain) -> str:
        return str(get(value, *path) or 0)

    return read


def _nothing(_value: Plain) -> str:
    """Return what a field has that is offered and never filled."""
    return ""


def _pod_ip(value: Plain) -> str:
    addresses = get(value, "status", "podIPs")
    if addresses:
        return str(addresses[0].get("ip", ""))
    return str(get(value, "status", "podIP") or "")


def _event_source(value: Plain) -> str:
    return str(get(value, "source", "component") or value.get("reportingComponent") or "")


def _of_core(getter: Getter) -> Getter:
    """Return what reads an event of the newer group as if it were one of the core group."""

    def read(value: Plain) -> str:
        return getter(to_core(value))

    return read


_NAME: Final[Mapping[str, Getter]] = {"metadata.name": _text("metadata", "name")}
_METADATA: Final = {**_NAME, "metadata.namespace": _text("metadata", "namespace")}
_NODE_NAME: Final = _text("spec", "nodeName")
_POD: Final = {
    **_METADATA,
    "spec.host": _NODE_NAME,
    "spec.hostNetwork": _truth("spec", "hostNetwork"),
    "spec.nodeName": _NODE_NAME,
    "spec.restartPolicy": _text("spec", "restartPolicy"),
    "spec.schedulerName": _text("spec", "schedulerName"),
    "spec.serviceAccountName": _text("spec", "serviceAccountName"),
    "status.nominatedNodeName": _text("status", "nominatedNodeName"),
    "status.phase": _text("status", "phase"),
    "status.podIP": _pod_ip,
    "status.podIPs": _nothing,
}
_OBJECT_FIELDS: Final = (
    "apiVersion",
    "fieldPath",
    "kind",
    "name",
    "namespace",
    "resourceVersion",
    "uid",
)
_EVENT: Final = {
    **_METADATA,
    **{f"involvedObject.{name}": _text("involvedObject", name) for name in _OBJECT_FIELDS},
    "reason": _text("reason"),
    "reportingComponent": _text("reportingComponent"),
    "source": _event_source,
    "type": _text("type"),
}
_NEWER_EVENT: Final = {
    **_METADATA,
    **{f"regarding.{name}": _of_core(_text("involvedObject", name)) for name in _OBJECT_FIELDS},
    "reason": _text("reason"),
    "reportingController": _of_core(_text("reportingComponent")),
    "type": _text("type"),
}
_GETTERS: Final[Mapping[tuple[str, str], Mapping[str, Getter]]] = {
    ("", "Event"): _EVENT,
    ("", "Namespace"): {**_NAME, "status.phase": _text("status", "phase")},
    ("", "Node"): {**_NAME, "spec.unschedulable": _truth("spec", "unschedulable")},
    ("", "Pod"): _POD,
    ("", "ReplicationController"): {**_METADATA, "status.replicas": _number("status", "replicas")},
    ("", "Secret"): {**_METADATA, "type": _text("type")},
    ("", "Service"): {
        **_METADATA,
        "spec.clusterIP": _text("spec", "clusterIP"),
        "spec.type": _text("spec", "type"),
    },
    ("batch", "Job"): {**_METADATA, "status.successful": _number("status", "succeeded")},
    ("certificates.k8s.io", "CertificateSigningRequest"): {
        **_NAME,
        "spec.signerName": _text("spec", "signerName"),
    },
    (EVENTS_GROUP, "Event"): _NEWER_EVENT,
    ("resource.k8s.io", "ResourceSlice"): {
        **_NAME,
        "spec.driver": _text("spec", "driver"),
        "spec.nodeName": _NODE_NAME,
    },
}
