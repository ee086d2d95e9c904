"""AdmissionRequest is the context in which admission looks at an object.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/interfaces.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, cause, forbidden, not_found
from kubesched.apiserver.stored_object import StoredObjects

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"


class AdmissionRequest(NamedTuple):
    """A request to write; `old` is what is stored, None for a new object."""

    resource: Resource
    lookup: StoredObjects
    old: Plain | None = None
    subresource: str = ""

    @property
    def operation(self) -> str:
        """CREATE, UPDATE, or the subresource that is updated."""
        return CREATE if self.old is None else self.subresource or UPDATE

    def refusal(self, obj: Plain, why: str) -> StatusError:
        """Return the error for a refused object."""
        metadata = obj["metadata"]
        name = metadata.get("name") or metadata.get("generateName") or "Unknown"
        return forbidden(self.resource, name, why)


# A new object needs a namespace that exists and is not being deleted.

IMMORTAL_NAMESPACES: Final = ("default", "kube-public", "kube-system")
"""Namespaces that may not be deleted."""
_TERMINATING: Final = "unable to create new content in namespace {} because it is being terminated"


def admit_into_namespace(request: AdmissionRequest, obj: Plain) -> None:
    """Raise StatusError for an object in a namespace that is missing or is being deleted."""
    name = obj["metadata"].get("namespace", "")
    if not name or not request.resource.is_namespaced:
        return
    namespace = request.lookup.get("namespaces", "", name)
    if namespace is None:
        raise not_found(Resource("namespaces", "Namespace"), name)
    if request.operation == CREATE and namespace["status"].get("phase") == "Terminating":
        why = cause(
            "NamespaceTerminating", "metadata.namespace", f"namespace {name} is being terminated"
        )
        own_name = obj["metadata"].get("name", "")
        raise forbidden(request.resource, own_name, _TERMINATING.format(name), [why])


def admit_into_definition(request: AdmissionRequest, obj: Plain) -> None:
    """Raise StatusError for a new custom resource whose definition is being deleted."""
    definition = request.resource.definition or {"metadata": {}}
    if request.operation == CREATE and definition["metadata"].get("deletionTimestamp"):
        raise request.refusal(
            obj, "create not allowed while custom resource definition is terminating"
        )
