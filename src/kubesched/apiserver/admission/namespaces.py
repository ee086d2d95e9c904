"""Namespaces have to exist, and to stay, for something to be made in them.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.admission.request import CREATE, AdmissionRequest
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.status import StatusError, cause, details_of, forbidden

_IMMORTAL: Final = ("default", "kube-public", "kube-system")
_TERMINATING: Final = "unable to create new content in namespace {} because it is being terminated"


def immortal_namespace(name: str) -> bool:
    """Whether a namespace may not be deleted."""
    return name in _IMMORTAL


def admit_into_namespace(request: AdmissionRequest, obj: Plain) -> None:
    """Refuse an object in a namespace that is not there, or not for long.

    Raises:
        StatusError: The request is refused.
    """
    name = obj["metadata"].get("namespace", "")
    if not name or not request.resource.is_namespaced:
        return
    namespace = request.lookup.get("namespaces", "", name)
    if namespace is None:
        message = f'namespaces "{name}" not found'
        raise StatusError(404, "NotFound", message, details_of("", "namespaces", name))
    if request.operation == CREATE and namespace["status"].get("phase") == "Terminating":
        why = cause(
            "NamespaceTerminating", "metadata.namespace", f"namespace {name} is being terminated"
        )
        own_name = obj["metadata"].get("name", "")
        raise forbidden(request.resource, own_name, _TERMINATING.format(name), [why])
