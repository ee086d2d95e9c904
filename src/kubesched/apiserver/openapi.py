"""OpenAPI documents, the smallest with which kubectl applies, creates and replaces objects.

They have a path for each kind, and say that patches take `dryRun`, `fieldManager` and
`fieldValidation`; kubectl then leaves validation to the server.

Upstream: staging/src/k8s.io/kube-openapi, vendor/github.com/google/gnostic-models/openapiv2 (v1.36)
Differs:  there are no schemas of objects, so `kubectl explain` ends with the error that the kind
          is not found in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Final

from kubesched.api.protobuf_wire import field
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.resources import RESOURCES, Resource

__all__ = ["v2_document", "v2_protobuf", "v3_document", "v3_index"]

_INFO: Final = {"title": "Kubernetes", "version": "v1.36"}
_KIND_EXTENSION: Final = "x-kubernetes-group-version-kind"
_PATCH_OPTIONS: Final = ("dryRun", "fieldManager", "fieldValidation", "force")
_OTHER_PATHS: Final = (
    ".well-known/openid-configuration",
    "api",
    "apis",
    "openid/v1/jwks",
    "version",
)


def v3_index() -> Plain:
    """Return which documents there are, and where; the address changes with the document."""
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(path)}"}
            for path in sorted(_documents())
        }
    }


def v3_document(path: str) -> Plain | None:
    """Return a document, None if there is no such one.

    Args:
        path: Of a version of a group, as in the index: `api/v1`, `apis/apps/v1`.
    """
    resources = _documents().get(path)
    if resources is None:
        return None
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {_path(resource): {"patch": _patch_v3(resource)} for resource in resources},
        "components": {"schemas": {}},
    }


def v2_document() -> Plain:
    """Return the one document of the older form."""
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": {_path(resource): {"patch": _patch_v2(resource)} for resource in _patchable()},
        "definitions": {},
    }


@cache
def v2_protobuf() -> bytes:
    """Return the document of the older form in protocol buffers."""
    info = _text(1, _INFO["title"]) + _text(2, _INFO["version"])
    paths = b"".join(_path_message(resource) for resource in _patchable())
    return _text(1, "2.0") + field(2, info) + field(8, paths)


@cache
def _documents() -> dict[str, tuple[Resource, ...]]:
    documents: dict[str, tuple[Resource, ...]] = dict.fromkeys(_OTHER_PATHS, ())
    for served in RESOURCES.group_versions:
        if served.group:
            documents[f"apis/{served.group}"] = ()
        root = f"apis/{served.group}" if served.group else "api"
        documents[f"{root}/{served.version}"] = tuple(
            resource for resource in served.resources if "patch" in resource.verbs
        )
    return documents


def _patchable() -> Iterator[Resource]:
    for resources in _documents().values():
        yield from resources


@cache
def _hash(path: str) -> str:
    return hashlib.sha512(encode(v3_document(path))).hexdigest().upper()


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    scope = "namespaces/{namespace}/" if resource.is_namespaced else ""
    return f"{root}/{resource.version}/{scope}{resource.plural}/{{name}}"


def _kind(resource: Resource) -> Plain:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _patch_v3(resource: Resource) -> Plain:
    return {
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in _PATCH_OPTIONS
        ],
        "responses": {},
        "x-kubernetes-action": "patch",
        _KIND_EXTENSION: _kind(resource),
    }


def _patch_v2(resource: Resource) -> Plain:
    return {
        "parameters": [{"name": name, "in": "query", "type": "string"} for name in _PATCH_OPTIONS],
        "responses": {},
        "x-kubernetes-action": "patch",
        _KIND_EXTENSION: _kind(resource),
    }


def _text(number: int, text: str) -> bytes:
    return field(number, text.encode())


def _extension(number: int, name: str, yaml: str) -> bytes:
    return field(number, _text(1, name) + field(2, _text(2, yaml)))


def _query_parameter(name: str) -> bytes:
    # Parameters may be references or parameters, in bodies or not, in queries or elsewhere: one
    # message in the other.
    parameter = _text(2, "query") + _text(4, name) + _text(6, "string")
    return field(8, field(1, field(2, field(3, parameter))))


def _path_message(resource: Resource) -> bytes:
    kind = "".join(f'{name}: "{value}"\n' for name, value in _kind(resource).items())
    operation = b"".join(map(_query_parameter, _PATCH_OPTIONS)) + field(9, b"")
    operation += _extension(13, _KIND_EXTENSION, kind)
    operation += _extension(13, "x-kubernetes-action", "patch\n")
    return field(2, _text(1, _path(resource)) + field(2, field(8, operation)))
