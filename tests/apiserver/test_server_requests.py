"""Requests whose answers depend on what happened to an object before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.api.protobuf_wire import fields_of
from kubesched.apiserver.request import Response
from kubesched.apiserver.server import ApiServer
from tests.loops import in_real_time, on_virtual_time

from .test_server import JSON, ask, new_server

Json = dict[str, Any]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
APPLY = "application/apply-patch+yaml"
LEASE: Json = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "w"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SET: Json = {
    "metadata": {"name": "w"},
    "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": TEMPLATE},
}


def _body(answer: Response) -> Json:
    found: Json = json.loads(answer.body)
    return found


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        pytest.param(("uid", "resourceVersion"), 409, id="identity and version"),
        pytest.param(("uid",), 409, id="identity"),
        pytest.param(("resourceVersion",), 201, id="version"),
        pytest.param((), 201, id="neither"),
    ],
)
@in_real_time
async def test_an_update_of_a_lease_deleted_meanwhile(kept: tuple[str, ...], expected: int) -> None:
    """An update with a uid does not create the lease again."""
    server = new_server()
    seen = _body(await ask(server, "POST", LEASES, LEASE))["metadata"]
    await ask(server, "DELETE", f"{LEASES}/l")
    metadata = {"name": "l", **{name: seen[name] for name in kept}}
    answer = await ask(server, "PUT", f"{LEASES}/l", {**LEASE, "metadata": metadata})
    assert expected == answer.status
    if expected == 409:
        body = _body(answer)
        assert "Conflict" == body["reason"]
        wanted = f"UID in precondition: {seen['uid']}, UID in object meta: "
        assert body["message"].endswith(f"Precondition failed: {wanted}")


@in_real_time
async def test_an_apply_with_a_uid_does_not_create() -> None:
    """An apply with a uid needs an existing object."""
    server = new_server()
    metadata = {"name": "l", "uid": "1-2"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    answer = await ask(
        server,
        "PATCH",
        f"{LEASES}/l",
        body,
        {"fieldManager": ("m",)},
        {"content-type": APPLY},
    )
    expected = (
        'Operation cannot be fulfilled on leases.coordination.k8s.io "l": uid mismatch: '
        "the provided object specified uid 1-2, and no existing object was found"
    )
    assert (409, expected) == (answer.status, _body(answer)["message"])


@pytest.mark.parametrize(
    ("media_type", "patch", "expected"),
    [
        pytest.param("merge-patch", {"kind": "Pod"}, 422, id="merge"),
        pytest.param("merge-patch", {"apiVersion": "v2"}, 422, id="merge, version"),
        pytest.param("merge-patch", {"kind": None}, 200, id="merge, nothing"),
        pytest.param("merge-patch", {"apiVersion": None}, 400, id="merge, no version"),
        pytest.param(
            "json-patch", [{"op": "add", "path": "/kind", "value": []}], 422, id="JSON patch"
        ),
        pytest.param("strategic-merge-patch", {"kind": "Pod"}, 200, id="strategic"),
    ],
)
@in_real_time
async def test_patches_do_not_change_the_kind(
    media_type: str, patch: object, expected: int
) -> None:
    """Strategic merge patches ignore another kind; with others it is refused."""
    server = new_server()
    before = await ask(server, "POST", LEASES, LEASE)
    headers = {"content-type": f"application/{media_type}+json"}
    answer = await ask(server, "PATCH", f"{LEASES}/l", patch, headers=headers)
    assert expected == answer.status
    after = await ask(server, "GET", f"{LEASES}/l")
    assert _body(before) == _body(after)


@in_real_time
async def test_an_apply_that_leaves_no_object() -> None:
    """A quantity that is none is found when all is merged, and is an internal error."""
    resources = {"limits": {"cpu": "x"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }
    path, query = "/api/v1/namespaces/default/pods/p", {"fieldManager": ("m",)}
    answer = await ask(new_server(), "PATCH", path, pod, query, {"content-type": APPLY})
    assert 500 == answer.status
    assert _body(answer)["message"].startswith(
        "failed to convert new object (/p; /v1, Kind=Pod) to proper version: unable to convert "
        "unstructured object to /v1, Kind=Pod: quantities must match"
    )


@pytest.mark.parametrize("is_collection", [False, True])
@pytest.mark.parametrize(
    ("path", "has_selector", "finalizers", "warns"),
    [
        ("/api/v1/namespaces/default/replicationcontrollers", True, ["orphan"], False),
        ("/apis/batch/v1/namespaces/default/jobs", False, ["orphan"], True),
        ("/apis/apps/v1/namespaces/default/replicasets", True, None, False),
    ],
)
@in_real_time
async def test_dependents_of_older_kinds_are_orphaned(
    path: str, has_selector: bool, finalizers: list[str] | None, warns: bool, is_collection: bool
) -> None:
    """Without a policy, dependents of ReplicationControllers and Jobs are kept."""
    server = new_server()
    spec: Json = {"template": TEMPLATE}
    if has_selector:
        labels = {"app": "w"}
        is_old = path.endswith("controllers")
        spec["selector"] = labels if is_old else {"matchLabels": labels}
    else:
        spec["template"] = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    created = await ask(server, "POST", path, {"metadata": {"name": "w"}, "spec": spec})
    assert 201 == created.status, created.body
    deleted = await ask(server, "DELETE", path if is_collection else f"{path}/w")
    found = await ask(server, "GET", f"{path}/w")
    left = _body(found)["metadata"].get("finalizers") if found.status == 200 else None
    assert (finalizers, warns) == (
        left,
        any("child pods are preserved" in text for text in deleted.warnings),
    )


@in_real_time
async def test_a_body_of_another_version() -> None:
    """The message names both versions."""
    scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    scaler = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    answer = await ask(new_server(), "POST", scalers, {**scaler, "metadata": {"name": "s"}})
    assert 400 == answer.status
    assert _body(answer)["message"] == (
        "the API version in the data (autoscaling/v1) does not match the expected API version "
        "(autoscaling/v2)"
    )


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
@in_real_time
async def test_events_are_deleted_with_any_policy(policy: str) -> None:
    """Nothing collects what depends on them, so they do not wait for it."""
    server, path = new_server(), "/api/v1/namespaces/default/events"
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
    assert 201 == (await ask(server, "POST", path, event)).status
    await ask(server, "DELETE", f"{path}/e", {"propagationPolicy": policy})
    assert 404 == (await ask(server, "GET", f"{path}/e")).status


@in_real_time
async def test_message_of_a_failed_precondition() -> None:
    """The message names the kind and its group."""
    server = new_server()
    await ask(server, "POST", SETS, SET)
    body = _body(await ask(server, "DELETE", f"{SETS}/w", {"preconditions": {"uid": "other"}}))
    start = 'Operation cannot be fulfilled on ReplicaSet.apps "w": the UID in the precondition'
    assert body["message"].startswith(start)
    assert {"name": "w", "group": "apps", "kind": "ReplicaSet"} == body["details"]


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"])
@pytest.mark.parametrize("written", ["{}", "W/{}", '"other", {}'])
@in_real_time
async def test_openapi_documents_are_sent_once(path: str, written: str) -> None:
    """A client that has a document gets no second one."""
    server = new_server()
    first = await ask(server, "GET", path)
    seen = {"if-none-match": written.format(first.headers["ETag"])}
    second = await ask(server, "GET", path, headers=seen)
    assert [(200, True), (304, False)] == [(one.status, bool(one.body)) for one in (first, second)]


@in_real_time
async def test_the_document_of_version_2_is_empty() -> None:
    """Kubectl wants it in protobuf, before it writes a List."""
    server = new_server()
    wanted = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    binary = await ask(server, "GET", "/openapi/v2", headers={"accept": wanted})
    assert [(1, b"2.0"), (2, b"\n\nKubernetes\x12\x05v1.36")] == [
        (field.number, field.value) for field in fields_of(binary.body)
    ]
    assert "2.0" == _body(await ask(server, "GET", "/openapi/v2"))["swagger"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/api/v1/nodes",
            {
                "spec": {},
                "status": {
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                    "nodeInfo": {
                        "machineID": "",
                        "systemUUID": "",
                        "bootID": "",
                        "kernelVersion": "",
                        "osImage": "",
                        "containerRuntimeVersion": "",
                        "kubeletVersion": "",
                        "kubeProxyVersion": "",
                        "operatingSystem": "",
                        "architecture": "",
                    },
                },
            },
        ),
        (
            "/apis/apps/v1/replicasets",
            {
                "spec": {
                    "replicas": 0,
                    "selector": None,
                    "template": {"metadata": {}, "spec": {"containers": None}},
                },
                "status": {"replicas": 0},
            },
        ),
    ],
)
@on_virtual_time
async def test_bookmarks_have_what_every_object_has(path: str, expected: Json) -> None:
    """A bookmark is an object of its kind of which nothing is set."""
    query = {"watch": "1", "allowWatchBookmarks": "1", "sendInitialEvents": "1"}
    query["resourceVersionMatch"] = "NotOlderThan"
    query["timeoutSeconds"] = "1"
    answer = await ask(
        new_server(), "GET", path, query={name: (value,) for name, value in query.items()}
    )
    assert answer.stream is not None
    event: Json = json.loads((await anext(answer.stream)).splitlines()[0])
    await answer.stream.aclose()
    assert "BOOKMARK" == event["type"]
    shown = {name: event["object"].get(name) for name in expected}
    assert expected == shown


async def _scale(
    server: ApiServer, replicas: int, manager: str, *, patch: str = "", force: str = ""
) -> Response:
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}}
    body["metadata"] = {"name": "w", "namespace": "default"}
    return await ask(
        server,
        "PATCH" if patch else "PUT",
        f"{SETS}/w/scale",
        body,
        {"fieldManager": (manager,)} | ({"force": (force,)} if force and patch == APPLY else {}),
        {"content-type": patch or JSON["content-type"]},
    )


async def _apply_set(server: ApiServer, replicas: int) -> Response:
    body = {**SET, "apiVersion": "apps/v1", "kind": "ReplicaSet"}
    body["spec"] = {**SET["spec"], "replicas": replicas}
    return await ask(
        server,
        "PATCH",
        f"{SETS}/w",
        body,
        {"fieldManager": ("gitops",)},
        {"content-type": APPLY},
    )


@pytest.mark.parametrize(
    "patch", ["", "application/merge-patch+json", "application/strategic-merge-patch+json", APPLY]
)
@in_real_time
async def test_a_scale_manages_the_number_of_replicas(patch: str) -> None:
    """A later apply of another number conflicts with the manager of the scale."""
    server = new_server()
    await _apply_set(server, 1)
    if patch == APPLY:
        # An applier takes the number from another one by force alone.
        assert 409 == (await _scale(server, 5, "hpa", patch=patch)).status
    scaled = await _scale(server, 5, "hpa", patch=patch, force="true")
    assert 200 == scaled.status, scaled.body
    assert "managedFields" not in _body(scaled)["metadata"]
    entries = _body(await ask(server, "GET", f"{SETS}/w"))["metadata"]["managedFields"]
    refused = await _apply_set(server, 3)
    again = await _scale(server, 6, "hpa", patch=patch or "application/merge-patch+json")
    assert 200 == again.status, again.body
    last = _body(await ask(server, "GET", f"{SETS}/w"))["metadata"]["managedFields"]
    expected: Json = {
        "manager": "hpa",
        "operation": "Apply" if patch == APPLY else "Update",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
        "subresource": "scale",
    }
    assert [expected] == [one for one in entries if one["manager"] == "hpa"]
    assert 409 == refused.status
    cause = _body(refused)["details"]["causes"][0]
    assert (".spec.replicas", "FieldManagerConflict") == (cause["field"], cause["reason"])
    assert 'conflict with "hpa" with subresource "scale"' in cause["message"]
    assert ["f:replicas"] == [
        name for one in last for name in one["fieldsV1"].get("f:spec", {}) if name == "f:replicas"
    ]


@in_real_time
async def test_a_scale_is_shown_as_a_table() -> None:
    """`kubectl get --subresource=scale` shows the replicas of what is scaled."""
    server = new_server()
    await ask(server, "POST", SETS, {**SET, "spec": {**SET["spec"], "replicas": 2}})
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = _body(await ask(server, "GET", f"{SETS}/w/scale", headers=accept))
    names = [column["name"] for column in table["columnDefinitions"]]
    assert ["Name", "Desired", "Available", "Age"] == names
    assert ["w", 2, 0] == table["rows"][0]["cells"][:3]


@in_real_time
async def test_a_scale_of_another_workload_is_refused() -> None:
    """The identity in a scale is that of the workload, in whatever form it is sent."""
    server = new_server()
    await ask(server, "POST", SETS, SET)
    body = {"metadata": {"name": "w", "uid": "other"}, "spec": {"replicas": 2}}
    merge = {"content-type": "application/merge-patch+json"}
    answers = [
        await ask(server, "PUT", f"{SETS}/w/scale", body),
        await ask(server, "PATCH", f"{SETS}/w/scale", body, headers=merge),
    ]
    assert [409, 409] == [answer.status for answer in answers]


@in_real_time
async def test_a_broken_budget_refuses_evictions() -> None:
    """The answer names the budget."""
    pods = "/api/v1/namespaces/default/pods"
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    labels = {"app": "w"}
    selected = {"selector": {"matchLabels": labels}, "minAvailable": 1}
    runs = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    disrupted = {f"p-{number}": "2026-06-01T00:00:00Z" for number in range(2001)}
    numbers = dict.fromkeys(
        ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 1
    )
    broken = {**numbers, "observedGeneration": 1, "disruptedPods": disrupted}
    server = new_server()
    metadata: Json = {"name": "p", "labels": labels}
    await ask(server, "POST", pods, {"metadata": metadata, "spec": TEMPLATE["spec"]})
    await ask(server, "POST", budgets, {"metadata": {"name": "b"}, "spec": selected})
    merge = {"content-type": "application/merge-patch+json"}
    for path, status in ((f"{pods}/p", runs), (f"{budgets}/b", broken)):
        await ask(server, "PATCH", f"{path}/status", {"status": status}, headers=merge)
    answer = _body(await ask(server, "POST", f"{pods}/p/eviction", {"metadata": {"name": "p"}}))
    assert (
        'poddisruptionbudget.policy "b" is forbidden: DisruptedPods map too big - too many '
        "evictions not confirmed by PDB controller"
    ) == answer["message"]
    assert {"name": "b", "group": "policy", "kind": "poddisruptionbudget"} == answer["details"]
