"""Discovery: what the server serves, and OpenAPI documents for `kubectl explain` and patches.

Upstream: staging/src/k8s.io/kube-openapi, staging/src/k8s.io/apiserver/pkg/endpoints/discovery
          (v1.36)
Differs:  of paths there are patches only. Fields have no descriptions. The document of
          version 2 is empty. Schemas of custom resources are those of their definitions, as they
          are.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from kubesched.api.media_types import JSON, PLAIN_TEXT
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.presentation import MediaType, parse_accept
from kubesched.apiserver.request import ApiRequest, Response, json_response
from kubesched.apiserver.resources import GroupVersion, Resource, Resources
from kubesched.apiserver.schema import ListType, MapType, ObjectType
from kubesched.apiserver.status import method_not_allowed, not_acceptable, not_served
from kubesched.apiserver.values import Field, Scalar, ValueType

# OpenAPI documents.

_INFO: Final = {"title": "Kubernetes", "version": "v1.36"}
# kubectl asks for version 2 before it writes a List. If it is empty, the server checks the fields.
_VERSION_2: Final = {"swagger": "2.0", "info": _INFO, "paths": {}}
_OPENAPI_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_VERSION_2_IN_PROTOBUF: Final = b"\n\x032.0\x12\x13\n\nKubernetes\x12\x05v1.36"
_KIND_EXTENSION: Final = "x-kubernetes-group-version-kind"
_PATCH_OPTIONS: Final = ("dryRun", "fieldManager", "fieldValidation", "force")
_OTHER_PATHS: Final = (
    *(".well-known/openid-configuration", "api", "apis"),
    *("openid/v1/jwks", "version"),
)


def openapi_index(resources: Resources) -> Plain:
    """Return the index of documents; the address of a document changes with its content."""
    paths = {}
    for path, served in sorted(_documents(resources).items()):
        # What is built in changes with the version only.
        known = [(resource.plural, resource.definition) for resource in _patchable(served)]
        digest = hashlib.sha512(encode([_INFO, path, known])).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def openapi_document(resources: Resources, path: str) -> Plain | None:
    """Return the document at a path of the index, such as `apis/apps/v1`; None without one."""
    documents = _documents(resources)
    if path not in documents:
        return None
    served = documents[path]
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {_path(resource): {"patch": _patch(resource)} for resource in _patchable(served)},
        "components": {"schemas": {} if served is None else _schemas(served)},
    }


def _documents(resources: Resources) -> dict[str, GroupVersion | None]:
    """Return the paths of documents, and the versions of groups that some of them describe."""
    found: dict[str, GroupVersion | None] = dict.fromkeys(_OTHER_PATHS)
    for served in resources.group_versions:
        root = f"apis/{served.group}" if served.group else "api"
        found.setdefault(root, None)
        found[f"{root}/{served.version}"] = served
    return found


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
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        _KIND_EXTENSION: _kind(resource),
    }


# Schemas, from the tables of fields.


def _schemas(served: GroupVersion) -> Plain:
    schemas: Plain = {}
    for resource in served.resources:
        if resource.definition is not None:
            schema = {**resource.defined_schema, _KIND_EXTENSION: [_kind(resource)]}
            schemas[f"{served.name}.{resource.kind}"] = schema
            continue
        name = _schema_name(resource.type)
        schemas |= _reachable(resource.type)
        kinds = [*schemas[name].get(_KIND_EXTENSION, ()), _kind(resource)]
        schemas[name] = {**schemas[name], _KIND_EXTENSION: kinds}
    return schemas


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
            schema = {
                "type": "object",
                "properties": {field.name: _property(field) for field in fields},
                "required": [
                    field.name
                    for field in fields
                    if field.default is None and any(one.name == "required" for one in field.rules)
                ],
            }
            # In OpenAPI, an empty list of required fields is not valid.
            found[_schema_name(one)] = {name: part for name, part in schema.items() if part}
            waiting += [field.type for field in fields]
    return found


def _schema_name(object_type: ObjectType) -> str:
    file, _, name = object_type.name.partition("/")
    return f"io.k8s.api.{file.replace('_', '.')}.{name}"


def _property(field: Field) -> Plain:
    shown = _value(field.type)
    words = next((rule.arguments for rule in field.rules if rule.name == "in"), ())
    if words and shown.get("type") == "string":
        shown["enum"] = list(words)
    if field.default is not None and not field.default_if:
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


# Groups, versions and resources.

_GROUP: Final = "apidiscovery.k8s.io"
_KIND: Final = "APIGroupDiscoveryList"


def _by_group(resources: Resources) -> dict[str, list[GroupVersion]]:
    groups: dict[str, list[GroupVersion]] = {}
    for served in resources.group_versions:
        groups.setdefault(served.group, []).append(served)
    return groups


def _group_version(resources: Resources, group: str, version: str) -> Plain:
    """Return the resources of a version of a group; raises StatusError if it is not served."""
    served = resources.group_version(group, version)
    if served is None:
        raise not_served()
    listed: Plain = {"kind": "APIResourceList"}
    # The core group is older than the field.
    if group:
        listed["apiVersion"] = "v1"
    return listed | {
        "groupVersion": served.name,
        "resources": [
            entry
            for resource in served.resources
            for entry in (_entry(resource), *_subresource_entries(resource))
        ],
    }


def _aggregated_groups(resources: Resources, version: str, *, is_core: bool) -> Plain:
    """Return groups with all their resources, in a version of this form."""
    items: list[Plain] = []
    for name, served in _by_group(resources).items():
        versions = [
            {
                "version": one.version,
                "resources": [_aggregated(resource) for resource in one.resources],
                "freshness": "Current",
            }
            for one in served
        ]
        if is_core is not bool(name):
            items.append({"metadata": {"name": name} if name else {}, "versions": versions})
    return {"kind": _KIND, "apiVersion": f"{_GROUP}/{version}", "metadata": {}, "items": items}


def aggregated_form(accept: str) -> MediaType | None:
    """Return the aggregated form that a client takes, None if it takes the older one.

    Raises StatusError if it takes neither.
    """
    accepted = parse_accept(accept)
    for one in accepted:
        if one.name in {JSON, "*/*"}:
            if not one.kind:
                return None
            if (one.group, one.kind) == (_GROUP, _KIND) and one.version in ("v2", "v2beta1"):
                return one
    if any(one.kind for one in accepted):
        raise not_acceptable()
    return None


def _group(name: str, served: list[GroupVersion]) -> Plain:
    versions = [{"groupVersion": one.name, "version": one.version} for one in served]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _entry(resource: Resource) -> Plain:
    entry: Plain = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
        **_other_names(resource),
    }
    if resource.is_stored:
        entry["storageVersionHash"] = resource.storage_version_hash
    return entry


def _other_names(resource: Resource) -> Plain:
    names = {"shortNames": resource.short_names, "categories": resource.categories}
    return {field: list(found) for field, found in names.items() if found}


def _subresource_entries(resource: Resource) -> Iterable[Plain]:
    for one in resource.subresources:
        entry: Plain = {
            "name": f"{resource.plural}/{one.plural}",
            "singularName": "",
            "namespaced": resource.is_namespaced,
        }
        if one.api_version != resource.api_version:
            entry |= {"group": one.group, "version": one.version}
        yield entry | {"kind": one.kind, "verbs": list(one.verbs)}


def _aggregated(resource: Resource) -> Plain:
    entry: Plain = {
        "resource": resource.plural,
        "responseKind": {**_kind(resource), "group": "", "version": ""},
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
        **_other_names(resource),
    }
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": one.plural,
                "responseKind": _response_kind(one, resource),
                "verbs": list(one.verbs),
            }
            for one in resource.subresources
        ]
    return entry


def _response_kind(one: Resource, resource: Resource) -> Plain:
    """Return a kind, with its group and version only if they are not those of a resource."""
    is_own = one.api_version == resource.api_version
    return {**_kind(one), **({"group": "", "version": ""} if is_own else {})}


# Paths that name no resource.

_VERSION: Final[Plain] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": f"{sys.platform}/python",
}


def discover(request: ApiRequest, resources: Resources, address: str) -> Response:
    """Return the answer to a request about the server itself, which listens at an address.

    Raises StatusError if the version of a group, or the method, is not served.
    """
    parts = tuple(part for part in request.path.split("/") if part)
    match parts:
        case ():
            return json_response(200, {"paths": ["/api", "/apis", "/healthz", "/version"]})
        case ("healthz" | "livez" | "readyz", *_):
            return _health(request, parts)
        case ("openapi", *path):
            return _openapi(request, resources, path)
        case ("version",):
            return json_response(200, _VERSION)
        case ("api" | "apis", *_):
            return _served(request, resources, address, parts)
    return page_not_found()


def _served(
    request: ApiRequest, resources: Resources, address: str, parts: Sequence[str]
) -> Response:
    if request.method not in {"GET", "HEAD"}:
        raise method_not_allowed()
    match parts:
        case [root]:
            return _roots(request, resources, address, is_core=root == "api")
        case ["api", version]:
            return json_response(200, _group_version(resources, "", version))
        case ["apis", group, *version] if served := _by_group(resources).get(group):
            if version:
                return json_response(200, _group_version(resources, group, version[0]))
            found = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, served)}
            return json_response(200, found)
    return page_not_found()


def _openapi(request: ApiRequest, resources: Resources, path: Sequence[str]) -> Response:
    match path:
        case ["v2"] if "protobuf" in request.accept:
            return _tagged(request, Response(200, _VERSION_2_IN_PROTOBUF, _OPENAPI_PROTOBUF))
        case ["v2"]:
            return _tagged(request, json_response(200, _VERSION_2))
        case ["v3"]:
            return _tagged(request, Response(200, encode(openapi_index(resources)), PLAIN_TEXT))
        case ["v3", *rest]:
            document = openapi_document(resources, "/".join(rest))
            if document is None:
                return Response(404, b"", "")
            return _tagged(request, json_response(200, document))
    return page_not_found()


def _roots(request: ApiRequest, resources: Resources, address: str, *, is_core: bool) -> Response:
    """Return the versions of the core group, or else the other groups."""
    if (form := aggregated_form(request.accept)) is not None:
        document = _aggregated_groups(resources, form.version, is_core=is_core)
        media_type = f"application/json;g={form.group};v={form.version};as={form.kind}"
        return _tagged(request, Response(200, encode(document), media_type))
    groups = _by_group(resources)
    if is_core:
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        core = {"kind": "APIVersions", "versions": [one.version for one in groups[""]]}
        return json_response(200, {**core, "serverAddressByClientCIDRs": addresses})
    listed = [_group(name, served) for name, served in groups.items() if name]
    return json_response(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


def _health(request: ApiRequest, parts: tuple[str, ...]) -> Response:
    if parts[1:] not in ((), ("ping",)):
        return page_not_found()
    is_verbose = len(parts) == 1 and "verbose" in request.query
    text = f"[+]ping ok\n{parts[0]} check passed\n" if is_verbose else "ok"
    return Response(200, text.encode(), PLAIN_TEXT)


def _tagged(request: ApiRequest, answer: Response) -> Response:
    """Return an answer with a tag, or without a body for a client that has seen it."""
    tag = f'"{hashlib.sha512(answer.body).hexdigest().upper()}"'
    headers = {"ETag": tag, "Vary": "Accept"}
    seen = [
        one.strip().removeprefix("W/")
        for one in request.headers.get("if-none-match", "").split(",")
    ]
    if tag in seen or "*" in seen:
        return Response(304, b"", "", headers)
    answer.headers = headers
    return answer


def page_not_found() -> Response:
    """Return the answer for an unknown path."""
    return Response(404, b"404 page not found\n", PLAIN_TEXT)
