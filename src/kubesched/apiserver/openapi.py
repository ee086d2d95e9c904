"""OpenAPI documents: which patches there are, and the fields of kinds for `kubectl explain`.

Upstream: staging/src/k8s.io/kube-openapi (v1.36)
Differs:  of paths there are patches only. Fields have no descriptions. There is no document of
          version 2. Schemas of custom resources are those of their definitions, as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.resources import GroupVersion, Resource, Resources
from kubesched.apiserver.schema import ListType, MapType, ObjectType
from kubesched.apiserver.values import (
    Field,
    Scalar,
    ValueType,
)

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


class OpenApi:
    """The documents of a server."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def v3_index(self) -> Plain:
        """Return which documents there are, and where; the address changes with the document."""
        paths = [*_OTHER_PATHS, *self._roots()]
        return {
            "paths": {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._hash(path)}"}
                for path in sorted(paths)
            }
        }

    def v3_document(self, path: str) -> Plain | None:
        """Return a document, None if there is no such one.

        Args:
            path: Of a version of a group, as in the index: `api/v1`, `apis/apps/v1`.
        """
        roots = self._roots()
        if path not in roots and path not in _OTHER_PATHS:
            return None
        served = roots.get(path)
        resources = _patchable(served)
        return {
            "openapi": "3.0.0",
            "info": _INFO,
            "paths": {_path(resource): {"patch": _patch(resource)} for resource in resources},
            "components": {"schemas": {} if served is None else _schemas(served)},
        }

    def _roots(self) -> dict[str, GroupVersion | None]:
        """Return the versions of groups by their paths, and the groups themselves."""
        roots: dict[str, GroupVersion | None] = {}
        for served in self._resources.group_versions:
            if served.group:
                roots.setdefault(f"apis/{served.group}", None)
            root = f"apis/{served.group}" if served.group else "api"
            roots[f"{root}/{served.version}"] = served
        return roots

    def _hash(self, path: str) -> str:
        # What is built in changes with the version only.
        known = [
            (resource.plural, resource.definition)
            for resource in _patchable(self._roots().get(path))
        ]
        return hashlib.sha512(encode([_INFO, path, known])).hexdigest().upper()


def _patchable(served: GroupVersion | None) -> Iterator[Resource]:
    for resource in () if served is None else served.resources:
        if "patch" in resource.verbs:
            yield resource


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    scope = "namespaces/{namespace}/" if resource.is_namespaced else ""
    return f"{root}/{resource.version}/{scope}{resource.plural}/{{name}}"


def _kind(resource: Resource) -> Plain:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _patch(resource: Resource) -> Plain:
    typed: Plain = {"in": "query", "schema": {"type": "string"}}
    return {
        "parameters": [{"name": name, **typed} for name in _PATCH_OPTIONS],
        "responses": {},
        "x-kubernetes-action": "patch",
        _KIND_EXTENSION: _kind(resource),
    }


# Schemas, from the tables of fields.


def _schemas(served: GroupVersion) -> Plain:
    schemas: Plain = {}
    for resource in served.resources:
        if resource.definition is not None:
            schemas[f"{served.name}.{resource.kind}"] = _defined(resource)
            continue
        name = _schema_name(resource.type)
        schemas |= _reachable(resource.type)
        kinds = [*schemas[name].get(_KIND_EXTENSION, ()), _kind(resource)]
        schemas[name] = {**schemas[name], _KIND_EXTENSION: kinds}
    return schemas


def _defined(resource: Resource) -> Plain:
    assert resource.definition is not None, "asked before"
    versions = resource.definition["spec"]["versions"]
    version = next(one for one in versions if one["name"] == resource.version)
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    return {**schema, _KIND_EXTENSION: [_kind(resource)]}


@cache
def _reachable(object_type: ObjectType) -> Mapping[str, Plain]:
    """Return the schemas of a type and of all that its objects hold, by name."""
    found: dict[str, Plain] = {}
    waiting: list[ValueType] = [object_type]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ListType | MapType):
            waiting.append(one.element)
        elif isinstance(one, ObjectType) and _schema_name(one) not in found:
            fields = one.fields.values()
            found[_schema_name(one)] = {
                "type": "object",
                "properties": {field.name: _property(field) for field in fields},
                "required": [field.name for field in fields if _is_required(field)],
            }
            waiting += [field.type for field in fields]
    return found


def _schema_name(object_type: ObjectType) -> str:
    file, _, name = object_type.name.partition("/")
    return f"io.k8s.api.{file.replace('_', '.')}.{name}"


def _is_required(field: Field) -> bool:
    return any(rule.name == "required" for rule in field.rules) and field.default is None


def _property(field: Field) -> Plain:
    shown = _value(field.type)
    words = next((rule.arguments for rule in field.rules if rule.name == "in"), ())
    if words and shown.get("type") == "string":
        shown["enum"] = list(words)
    if field.default is not None:
        shown["default"] = field.default
    return shown


_SIMPLE: Final[Mapping[str, Plain]] = {
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "float64": {"type": "number", "format": "double"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "intOrString": {"type": "string", "format": "int-or-string"},
    "microTime": {"type": "string", "format": "date-time"},
    "quantity": {"type": "string"},
    "string": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
}


def _value(value_type: ValueType) -> Plain:
    if isinstance(value_type, ListType):
        return {"type": "array", "items": _value(value_type.element)}
    if isinstance(value_type, MapType):
        return {"type": "object", "additionalProperties": _value(value_type.element)}
    if isinstance(value_type, ObjectType):
        return {"allOf": [{"$ref": f"#/components/schemas/{_schema_name(value_type)}"}]}
    if isinstance(value_type, Scalar):
        return dict(_SIMPLE.get(value_type.form, {"type": "object"}))
    return {"type": "object"}
