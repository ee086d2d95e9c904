"""Kinds that CustomResourceDefinitions add: nothing that is sent of them is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubesched.apiserver.durable import DurableServer
from kubesched.apiserver.request import ApiRequest, Response
from kubesched.apiserver.server import ADMIN, ApiServer
from tests.loops import in_real_time, on_virtual_time

from .test_decoding_protobuf import SCHEMA
from .test_decoding_protobuf import body as protobuf
from .test_server import ask, new_server

Json = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CATS = "/apis/example.com/v1/namespaces/default/cats"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def definition(*, status: bool = True, **version: Any) -> Json:
    """The definition of cats."""
    names = {"plural": "cats", "kind": "Cat", "shortNames": ["meow"], "categories": ["all"]}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    below: Json = {"subresources": {"status": {}, "scale": scale}} if status else {}
    served = {"name": "v1", "served": True, "storage": True, "schema": {}, **below, **version}
    return {
        "metadata": {"name": "cats.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [served],
        },
    }


def cat(name: str = "tom", **spec: Any) -> Json:
    """One cat."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Cat",
        "metadata": {"name": name, "labels": {"is": "cat"}},
        "spec": {"toys": [{"name": "mouse"}], "lives": 9, "nothing": None, **spec},
    }


def body(answer: Response) -> Json:
    """The object of an answer that is good."""
    assert answer.status < 300, answer.body
    found: Json = json.loads(answer.body)
    return found


async def with_cats(**options: Any) -> ApiServer:
    """A server that knows cats."""
    server = new_server()
    created = body(await ask(server, "POST", DEFINITIONS, definition(**options)))
    states = {one["type"]: one["status"] for one in created["status"]["conditions"]}
    assert {"NamesAccepted": "True", "Established": "True"} == states
    return server


@in_real_time
async def test_creating_and_deleting_a_definition() -> None:
    """Deleting a definition deletes its objects."""
    server = new_server()
    found = [await ask(server, "POST", CATS, cat())]
    await ask(server, "POST", DEFINITIONS, definition())
    found.append(await ask(server, "POST", CATS, cat()))
    found.append(await ask(server, "GET", f"{CATS}/tom"))
    body(await ask(server, "DELETE", f"{DEFINITIONS}/cats.example.com"))
    found.append(await ask(server, "GET", f"{CATS}/tom"))
    await ask(server, "POST", DEFINITIONS, definition())
    found.append(await ask(server, "GET", f"{CATS}/tom"))
    assert [404, 201, 200, 404, 404] == [answer.status for answer in found]


@in_real_time
async def test_a_definition_in_protobuf() -> None:
    """As client-go sends it; its objects are served, and its schema is kept as in JSON."""
    version = [(1, "v1"), (2, 1), (3, 1), (4, [(1, SCHEMA)])]
    names = [(1, "cats"), (2, ""), (4, "Cat"), (5, "")]
    spec = [(1, "example.com"), (3, names), (4, "Namespaced"), (7, version), (10, 0)]
    kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    sent = protobuf(*kind, [(1, [(1, "cats.example.com")]), (2, spec), (3, [(2, names)])])
    server = new_server()
    headers = {"content-type": "application/vnd.kubernetes.protobuf"}
    request = ApiRequest("POST", DEFINITIONS, {}, headers, sent, ADMIN)
    created = body(await server.handle(request))["spec"]
    tom = body(await ask(server, "POST", CATS, cat()))
    schema = created["versions"][0].pop("schema")["openAPIV3Schema"]
    assert ("object", {"b": {"additionalProperties": False}}) == (
        schema["type"],
        schema["properties"],
    )
    assert "tom" == tom["metadata"]["name"]
    assert created == {
        "group": "example.com",
        "names": {"plural": "cats", "singular": "cat", "kind": "Cat", "listKind": "CatList"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True}],
        "conversion": {"strategy": "None"},
    }


@pytest.mark.parametrize(
    "kind",
    ["Deployment", "Event", "Job", "Namespace", "Node", "Pod", "PriorityClass", "Service"],
)
@in_real_time
async def test_kinds_called_like_built_in_ones_have_no_rules(kind: str) -> None:
    """Such as the Jobs of Volcano and the Services of Knative: they are stored as sent."""
    server, named = new_server(), definition()
    named["spec"]["names"]["kind"] = kind
    body(await ask(server, "POST", DEFINITIONS, named))
    created = body(await ask(server, "POST", CATS, {**cat(), "kind": kind}))
    changed = {**created, "spec": {"type": "NodePort", "finalizers": ["a"]}}
    updated = body(await ask(server, "PUT", f"{CATS}/tom", changed))
    deleted = await ask(server, "DELETE", f"{CATS}/tom")
    gone = await ask(server, "GET", f"{CATS}/tom")
    spec = {"toys": [{"name": "mouse"}], "lives": 9, "nothing": None}
    assert [spec, {"type": "NodePort", "finalizers": ["a"]}, 200, 404] == [
        created["spec"],
        updated["spec"],
        deleted.status,
        gone.status,
    ]


@in_real_time
async def test_fields_are_stored_as_sent() -> None:
    """Fields of custom resources are neither dropped nor defaulted."""
    server = await with_cats()
    sent = cat(deep={"a": [1, {"b": [[]]}], "c": ""})
    created = body(await ask(server, "POST", CATS, sent))
    assert created == body(await ask(server, "GET", f"{CATS}/tom"))
    assert sent["spec"] == created["spec"]
    assert (1, "default") == (
        created["metadata"]["generation"],
        created["metadata"]["namespace"],
    )


@in_real_time
async def test_a_body_that_is_no_object_of_the_kind_is_refused() -> None:
    """Name, namespace and labels follow the rules of all objects; finalizers need no domain."""
    server = await with_cats()
    held = cat() | {"metadata": {"name": "held", "finalizers": ["own"]}}
    wrong_name = cat("Bad_Name")
    wrong_kind = cat() | {"kind": "Dog"}
    wrong_metadata = cat() | {"metadata": {"name": "a", "labels": {"a": 1}}}
    no_kind, no_version = ({**cat(), name: ""} for name in ("kind", "apiVersion"))
    found = [
        await ask(server, "POST", CATS, one)
        for one in (held, wrong_name, wrong_kind, wrong_metadata, no_kind, no_version)
    ]
    assert [201, 422, 400, 400, 400, 400] == [answer.status for answer in found]


@in_real_time
async def test_statuses_and_generations() -> None:
    """A status changes through its path only, and nothing else there; it is in no generation."""
    server = await with_cats()
    made = body(await ask(server, "POST", CATS, cat() | {"status": {"mood": "bad"}}))
    metadata = {**made["metadata"], "labels": {}, "finalizers": ["example.com/f"]}
    changed = {"metadata": metadata, "status": {"mood": "good"}, "spec": {"lives": 1}}
    written = {**made, **changed}
    asleep = body(await ask(server, "PUT", f"{CATS}/tom/status", written))
    ignored = {**asleep, "status": {"mood": "?"}, "spec": {"lives": 8}}
    awake = body(await ask(server, "PUT", f"{CATS}/tom", ignored))
    assert "status" not in made
    assert made["metadata"]["labels"] == asleep["metadata"]["labels"]
    assert "finalizers" not in asleep["metadata"]
    written = asleep["metadata"]["managedFields"][-1]
    assert {"f:status": {".": {}, "f:mood": {}}} == written["fieldsV1"]
    assert ({"mood": "good"}, 9, 1) == (
        asleep["status"],
        asleep["spec"]["lives"],
        asleep["metadata"]["generation"],
    )
    assert ({"mood": "good"}, 8, 2) == (
        awake["status"],
        awake["spec"]["lives"],
        awake["metadata"]["generation"],
    )


@in_real_time
async def test_status_without_a_subresource() -> None:
    """The status can be set when the object is created."""
    server = await with_cats(status=False)
    made = body(await ask(server, "POST", CATS, cat() | {"status": {"mood": "bad"}}))
    assert {"mood": "bad"} == made["status"]


@in_real_time
async def test_patches() -> None:
    """JSON and merge patches apply; how lists merge is not known."""
    server = await with_cats()
    await ask(server, "POST", CATS, cat())
    patch = {"spec": {"lives": 8, "toys": None}}
    changed = await ask(server, "PATCH", f"{CATS}/tom", patch, headers={"content-type": MERGE})
    strategic = {"content-type": STRATEGIC}
    refused = await ask(server, "PATCH", f"{CATS}/tom", patch, headers=strategic)
    assert {"lives": 8, "nothing": None} == body(changed)["spec"]
    assert 415 == refused.status
    assert json.loads(refused.body)["message"].endswith(
        "accepted media types include: application/json-patch+json, "
        "application/merge-patch+json, application/apply-patch+yaml"
    )


@in_real_time
async def test_updates_name_a_version() -> None:
    """Without one, a write that came in between could be lost."""
    server = await with_cats()
    made = body(await ask(server, "POST", CATS, cat()))
    blind = await ask(server, "PUT", f"{CATS}/tom", cat(lives=8))
    seeing = await ask(server, "PUT", f"{CATS}/tom", {**made, "spec": {"lives": 8}})
    details = json.loads(blind.body)["details"]
    assert (422, "cats") == (blind.status, details["kind"])
    assert ["metadata.resourceVersion"] == [one["field"] for one in details["causes"]]
    assert {"lives": 8} == body(seeing)["spec"]


@in_real_time
async def test_server_side_apply() -> None:
    """Objects are owned field by field, lists as a whole; others' fields are not taken."""
    server = await with_cats()

    async def apply(manager: str, **spec: Any) -> Response:
        wanted = {**cat(), "spec": spec}
        query: Mapping[str, tuple[str, ...]] = {"fieldManager": (manager,)}
        return await ask(server, "PATCH", f"{CATS}/tom", wanted, query, {"content-type": APPLY})

    body(await apply("a", bed={"size": 1, "color": "red"}, toys=["ball"]))
    both = body(await apply("b", bed={"soft": True}))
    refused = await apply("b", bed={"soft": True, "size": 2}, toys=["mouse"])
    left = body(await apply("a", bed={"color": "red"}))
    assert {"bed": {"size": 1, "color": "red", "soft": True}, "toys": ["ball"]} == both["spec"]
    assert 409 == refused.status
    causes = json.loads(refused.body)["details"]["causes"]
    assert {".spec.bed.size", ".spec.toys"} == {one["field"] for one in causes}
    assert {"bed": {"color": "red", "soft": True}} == left["spec"]


def listed(kind: str, **options: Any) -> Json:
    """The schema of a list."""
    return {"type": "array", "x-kubernetes-list-type": kind, **options}


KEYED = listed(
    "map",
    items={"type": "object", "properties": {"tags": listed("set")}},
    **{"x-kubernetes-list-map-keys": ["name"]},
)
ATOMIC = {"type": "object", "x-kubernetes-map-type": "atomic"}


@pytest.mark.parametrize(
    ("schema", "first", "second", "expected"),
    [
        (KEYED, [{"name": "a"}], [{"name": "b"}], [{"name": "a"}, {"name": "b"}]),
        (
            KEYED,
            [{"name": "a", "tags": ["x"]}],
            [{"name": "a", "tags": ["y"]}],
            [{"name": "a", "tags": ["x", "y"]}],
        ),
        (KEYED, [{"name": "a", "size": 1}], [{"name": "a", "size": 2}], 'toys[name="a"].size'),
        (KEYED, [], [{"size": 2}], "toys: element 0: associative list with keys has an element"),
        (listed("set"), ["x"], ["y", "x"], ["y", "x"]),
        (listed("atomic"), ["x"], ["y"], ".spec.toys"),
        (ATOMIC, {"a": 1}, {"b": 2}, ".spec.toys"),
        ({"additionalProperties": KEYED}, {"a": []}, {"a": [{"size": 2}]}, "toys.a: element 0"),
    ],
)
@in_real_time
async def test_schemas_divide_what_is_applied(
    schema: Json, first: Any, second: Any, expected: Any
) -> None:
    """Managers share lists and maps as the definition says."""
    properties = {"spec": {"type": "object", "properties": {"toys": schema}}}
    server = await with_cats(schema={"openAPIV3Schema": {"properties": properties}})
    for manager, toys in (("a", first), ("b", second)):
        headers, query = {"content-type": APPLY}, {"fieldManager": (manager,)}
        wanted = cat(toys=toys)
        answer = await ask(server, "PATCH", f"{CATS}/tom", wanted, query, headers)
    if isinstance(expected, str):
        assert expected in json.loads(answer.body)["message"]
    else:
        assert expected == body(answer)["spec"]["toys"]


LIVES = {"properties": {"lives": {"default": 9}}}


@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        (LIVES, {}, {"lives": 9}),
        (LIVES, {"lives": 0}, {"lives": 0}),
        (LIVES, {"lives": None}, {"lives": 9}),
        ({"properties": {"lives": {"default": 9, "nullable": True}}}, {"lives": None}, None),
        ({"properties": {"lives": {"type": "integer"}}}, {"lives": None, "a": None}, {"a": None}),
        ({"properties": {"next": {"default": {}, **LIVES}}}, {}, {"next": {"lives": 9}}),
        ({"properties": {"kittens": {"items": LIVES}}}, {"kittens": [{}]}, [{"lives": 9}]),
        ({"additionalProperties": LIVES}, {"kitty": {}}, {"kitty": {"lives": 9}}),
        ({"default": {"lives": 9}}, None, {"lives": 9}),
    ],
)
@on_virtual_time
async def test_schemas_fill_in_defaults(schema: Json, sent: Any, expected: Any) -> None:
    """Where a value is missing, or null though it may not be; a status that is sent is dropped."""
    properties = {"spec": schema, "status": {"default": {"mood": "new"}}}
    server = await with_cats(schema={"openAPIV3Schema": {"properties": properties}})
    tom = {**cat(), "spec": sent, "status": {"mood": "good"}}
    created = body(await ask(server, "POST", CATS, tom))
    found = created["spec"]
    assert expected in (found, *found.values())
    assert {"mood": "new"} == created["status"]


@on_virtual_time
async def test_keys_of_entries_have_defaults() -> None:
    """An entry that is applied again without its key is the same one."""
    entries = {"properties": {"name": {"default": "mouse"}}}
    properties = {"spec": {"properties": {"toys": {**KEYED, "items": entries}}}}
    server = await with_cats(schema={"openAPIV3Schema": {"properties": properties}})
    headers, query = {"content-type": APPLY}, {"fieldManager": ("a",)}
    for size in (1, 2):
        wanted = {**cat(), "spec": {"toys": [{"size": size}]}}
        applied = body(await ask(server, "PATCH", f"{CATS}/tom", wanted, query, headers))
    assert [{"name": "mouse", "size": 2}] == applied["spec"]["toys"]


@on_virtual_time
async def test_watches_lists_and_tables() -> None:
    """Custom resources are selected, watched and printed like other kinds."""
    column = {"name": "Lives", "type": "integer", "jsonPath": ".spec.lives"}
    server = await with_cats(additionalPrinterColumns=[column])
    version = body(await ask(server, "GET", CATS))["metadata"]["resourceVersion"]
    query = {"watch": ("1",), "resourceVersion": (version,), "timeoutSeconds": ("5",)}
    stream = (await ask(server, "GET", CATS, query=query)).stream
    assert stream is not None
    await ask(server, "POST", CATS, cat())
    event = json.loads(await anext(stream))
    await stream.aclose()
    selected = {"labelSelector": ("is=cat",), "fieldSelector": ("metadata.name=tom",)}
    found = body(await ask(server, "GET", "/apis/example.com/v1/cats", query=selected))
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    shown = body(await ask(server, "GET", CATS, headers=table))
    assert ("ADDED", "Cat") == (event["type"], event["object"]["kind"])
    # Unlike those of other kinds, their items have a kind.
    assert [("tom", "Cat")] == [(one["metadata"]["name"], one["kind"]) for one in found["items"]]
    assert "" == found["metadata"]["continue"]
    assert ["Name", "Lives"] == [one["name"] for one in shown["columnDefinitions"]]
    assert [["tom", 9]] == [row["cells"] for row in shown["rows"]]


@pytest.mark.parametrize(
    ("path", "kind", "expected"),
    [
        ('.spec.toys[?(@.name=="ball")].size', "integer", 2),
        (".spec.toys[?(@.name == 'bone')].size", "integer", None),
        (".spec.toys[0].name", "string", "mouse"),
        (".spec.toys[-1:].name", "string", "ball"),
        (".spec.toys[*].size", "number", 2),
        (".spec.toys[5].name", "string", None),
        (".spec.toys[0]", "string", '{"name":"mouse"}'),
        (".spec.tame", "string", "true"),
        (r".metadata.annotations.example\.com/owner", "string", "ann"),
        (".metadata.annotations['example.com/owner']", "string", "ann"),
        (".spec.lives", "integer", None),
        (".spec.born", "date", "<invalid>"),
        (".spec.born", "integer", None),
        (".spec.died", "date", None),
        ("..name", "string", None),
    ],
)
@on_virtual_time
async def test_columns_show_what_is_at_their_paths(path: str, kind: str, expected: Any) -> None:
    """Conditions and positions select items of lists; what is missing is null, not a zero."""
    column = {"name": "Shown", "type": kind, "jsonPath": path}
    server = await with_cats(additionalPrinterColumns=[column])
    toys = [{"name": "mouse"}, {"name": "ball", "size": 2}]
    tom = cat(toys=toys, lives=None, tame=True, born="in May")
    tom["metadata"]["annotations"] = {"example.com/owner": "ann"}
    await ask(server, "POST", CATS, tom)
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    shown = body(await ask(server, "GET", CATS, headers=table))
    assert [["tom", expected]] == [row["cells"] for row in shown["rows"]]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.lives=9", ["tom"]),
        ("spec.lives!=9,metadata.namespace=default", ["felix", "kitty"]),
        ("spec.lives=0,spec.isGone=true", ["felix"]),
        ("spec.lives=", ["kitty"]),
        ("spec.toys=mouse", "field label not supported: spec.toys"),
    ],
)
@in_real_time
async def test_fields_that_a_definition_offers_select(selector: str, expected: Any) -> None:
    """They are compared as text; what is missing is empty."""
    fields = [{"jsonPath": ".spec.lives"}, {"jsonPath": ".spec.isGone"}]
    server = await with_cats(selectableFields=fields)
    for one in (cat(), cat("felix", lives=0, isGone=True), cat("kitty", lives=None)):
        await ask(server, "POST", CATS, one)
    answer = await ask(server, "GET", CATS, query={"fieldSelector": (selector,)})
    if isinstance(expected, str):
        assert (400, expected) == (answer.status, json.loads(answer.body)["message"])
    else:
        assert expected == [one["metadata"]["name"] for one in body(answer)["items"]]


@in_real_time
async def test_discovery() -> None:
    """Clients find the kind as they find others."""
    server = await with_cats()
    found = body(await ask(server, "GET", "/apis/example.com/v1"))["resources"][0]
    groups = body(await ask(server, "GET", "/apis"))["groups"]
    document = body(await ask(server, "GET", "/openapi/v3/apis/example.com/v1"))
    assert "/apis/example.com/v1/namespaces/{namespace}/cats/{name}" in document["paths"]
    assert ("cats", "Cat", "cat", ["meow"], ["all"]) == tuple(
        found[name] for name in ("name", "kind", "singularName", "shortNames", "categories")
    )
    assert "example.com" in [group["name"] for group in groups]


@in_real_time
async def test_a_scale() -> None:
    """Replicas of a custom resource are scaled as those of others."""
    server = await with_cats()
    await ask(server, "POST", CATS, cat(replicas=1))
    patch = {"spec": {"replicas": 5}}
    merge = {"content-type": MERGE}
    body(await ask(server, "PATCH", f"{CATS}/tom/scale", patch, headers=merge))
    assert 5 == body(await ask(server, "GET", f"{CATS}/tom"))["spec"]["replicas"]


@on_virtual_time
async def test_a_scale_at_paths_of_its_own() -> None:
    """The definition says where replicas and the selector of pods are."""
    paths = {
        "specReplicasPath": ".spec.kittens.wanted",
        "statusReplicasPath": ".status.kittens",
        "labelSelectorPath": ".status.pods",
    }
    server = await with_cats(subresources={"scale": paths})
    status = {"kittens": 2, "pods": "of=tom"}
    tom = {**cat(kittens={"wanted": 3, "names": ["a"]}), "status": status}
    await ask(server, "POST", CATS, tom)
    before = body(await ask(server, "GET", f"{CATS}/tom/scale"))
    patch = {"spec": {"replicas": 5}}
    await ask(server, "PATCH", f"{CATS}/tom/scale", patch, headers={"content-type": MERGE})
    spec = body(await ask(server, "GET", f"{CATS}/tom"))["spec"]
    assert ({"replicas": 3}, {"replicas": 2, "selector": "of=tom"}) == (
        before["spec"],
        before["status"],
    )
    assert {"wanted": 5, "names": ["a"]} == spec["kittens"]


@pytest.mark.parametrize(
    ("method", "headers"), [("PUT", {}), ("PATCH", {"content-type": APPLY})], ids=["put", "apply"]
)
@on_virtual_time
async def test_whole_scales(method: str, headers: dict[str, str]) -> None:
    """A scale may come without a version, and may be applied."""
    paths = {"specReplicasPath": ".spec.kittens.wanted", "statusReplicasPath": ".status.kittens"}
    server = await with_cats(subresources={"scale": paths})
    await ask(server, "POST", CATS, cat())
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "tom", "namespace": "default"},
        "spec": {"replicas": 5},
    }
    query = {"fieldManager": ("a",)}
    scaled = body(await ask(server, method, f"{CATS}/tom/scale", scale, query, headers))
    found = body(await ask(server, "GET", f"{CATS}/tom"))
    assert (5, {"wanted": 5}) == (scaled["spec"]["replicas"], found["spec"]["kittens"])
    owners = {one.get("subresource") for one in found["metadata"]["managedFields"]}
    assert {None, "scale"} == owners


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"name": "dogs.example.com"}},
        {"spec": {**definition()["spec"], "versions": []}},
        {"spec": {**definition()["spec"], "scope": "Galaxy"}},
    ],
)
@in_real_time
async def test_definitions_that_define_nothing(changes: Json) -> None:
    """A definition needs the name of its kind, a version and a scope."""
    assert 422 == (await ask(new_server(), "POST", DEFINITIONS, definition() | changes)).status


@in_real_time
async def test_a_restart_keeps_kinds_and_objects(tmp_path: Path) -> None:
    """Definitions and objects are restored from the file."""
    found = []
    for is_first in (True, False):
        server = DurableServer(tmp_path / "data.sqlite", {"t": ADMIN}, random=Random(1))
        if is_first:
            await ask(server, "POST", DEFINITIONS, definition())
            found.append((await ask(server, "POST", CATS, cat())).status)
        found.append((await ask(server, "GET", f"{CATS}/tom")).status)
        await server.stop()
    assert [201, 200, 200] == found
