from __future__ import annotations

import json
import re

from kubesched.apiserver.discovery import openapi_document, openapi_index
from kubesched.apiserver.resources import RESOURCES


def test_the_index_leads_to_documents() -> None:
    """Every URL in the index is served, for groups and for each of their versions."""
    paths = openapi_index(RESOURCES)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/apps", "api", "apis", "version"} <= set(paths)
    for path, entry in paths.items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")
        assert openapi_document(RESOURCES, path) is not None
    assert openapi_document(RESOURCES, "apis/nosuch/v1") is None


def test_patches_have_the_parameters_that_kubectl_looks_for() -> None:
    """The PATCH operation of a kind names its kind, and `fieldValidation` among its parameters."""
    document = openapi_document(RESOURCES, "apis/apps/v1")
    assert document is not None
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/replicasets/{name}"]["patch"]
    assert {"group": "apps", "version": "v1", "kind": "ReplicaSet"} == (
        patch["x-kubernetes-group-version-kind"]
    )
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} == {
        parameter["name"] for parameter in patch["parameters"]
    }


def test_kinds_have_schemas() -> None:
    """Schemas have types, enums, defaults and required fields, and refer to each other."""
    document = openapi_document(RESOURCES, "api/v1")
    assert document is not None
    schemas = document["components"]["schemas"]
    kinds = {
        kind["kind"]: schema
        for schema in schemas.values()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }
    (reference,) = kinds["Pod"]["properties"]["spec"]["allOf"]
    spec = schemas[reference["$ref"].rpartition("/")[2]]
    assert {
        "type": "string",
        "enum": ["Always", "OnFailure", "Never"],
        "default": "Always",
    } == spec["properties"]["restartPolicy"]
    assert ["containers"] == spec["required"]
    assert {"type": "array", "items": {"type": "string"}} == schemas[
        "io.k8s.api.core.v1.ExecAction"
    ]["properties"]["command"]


def test_references_are_resolved() -> None:
    """Every schema that is referred to is in the same document."""
    for path in openapi_index(RESOURCES)["paths"]:
        document = openapi_document(RESOURCES, path)
        assert document is not None
        text = json.dumps(document)
        named = set(re.findall(r"#/components/schemas/([^\"]+)", text))
        assert named <= set(document["components"]["schemas"])


def test_documents_are_valid() -> None:
    """No list of required fields is empty, and every operation has a response."""
    for path in openapi_index(RESOURCES)["paths"]:
        text = json.dumps(openapi_document(RESOURCES, path))
        assert '"required": []' not in text
        assert '"responses": {}' not in text
