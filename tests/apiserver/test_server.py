"""The server as a whole: in the process, and over a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.request import ApiRequest, Response, User
from kubesched.apiserver.server import ADMIN, ApiServer
from kubesched.simulator.virtual_loop import run
from tests.loops import as_test, in_real_time, on_virtual_time

POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
PODS = "/api/v1/namespaces/default/pods"
JSON = {"content-type": "application/json"}


def new_server(**options: Any) -> ApiServer:
    """A server that draws the same in every run."""
    return ApiServer({"t": ADMIN}, random=Random(1), **options)


async def ask(
    server: ApiServer,
    method: str,
    path: str,
    body: object = None,
    query: Mapping[str, tuple[str, ...]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send a request in the process, as an administrator."""
    text = b"" if body is None else json.dumps(body).encode()
    return await server.handle(
        ApiRequest(method, path, query or {}, {**JSON, **(headers or {})}, text, ADMIN)
    )


class Listening(NamedTuple):
    """A server that listens, and an administrator's session with it."""

    server: ApiServer
    session: aiohttp.ClientSession


async def _converse(conversation: Callable[[Listening], Awaitable[object]]) -> None:
    server = new_server()
    await server.start()
    try:
        headers = {"authorization": "Bearer t"}
        async with aiohttp.ClientSession(server.url, headers=headers) as session:
            await conversation(Listening(server, session))
    finally:
        await server.stop()
    assert server.url == ""


def over_http(story: Callable[..., Awaitable[object]]) -> Callable[..., None]:
    """Run a test with a new server that listens, which is its first argument."""
    return as_test(story, lambda conversation: asyncio.run(_converse(conversation)))


@in_real_time
async def test_events_stay_for_an_hour() -> None:
    """After the last time that they are written; older ones go when the next one comes."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    server = new_server(now=lambda: now[0])
    events = "/api/v1/namespaces/default/events"

    async def create(minute: int, name: str) -> int:
        now[0] = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
        involved = {"kind": "Pod", "name": "p", "namespace": "default"}
        event = {"metadata": {"name": name}, "involvedObject": involved, "reason": "R"}
        return (await ask(server, "POST", events, event)).status

    created = [await create(0, "old"), await create(0, "written"), await create(0, "deleted")]
    await ask(server, "DELETE", f"{events}/deleted")
    now[0] += timedelta(minutes=30)
    merge = {"content-type": "application/merge-patch+json"}
    await ask(server, "PATCH", f"{events}/written", {"count": 2}, headers=merge)
    created += [await create(60, "last"), await create(61, "next")]
    assert [201] * 5 == created
    body = (await ask(server, "GET", events)).body
    assert isinstance(body, bytes)
    names = [one["metadata"]["name"] for one in json.loads(body)["items"]]
    assert ["last", "next", "written"] == sorted(names)


@in_real_time
async def test_creating_and_deleting_a_pod() -> None:
    """A created pod can be read, a deleted one cannot."""
    server = new_server()
    answers = [
        await ask(server, "POST", PODS, POD),
        await ask(server, "GET", f"{PODS}/p"),
        await ask(server, "DELETE", f"{PODS}/p"),
        await ask(server, "GET", f"{PODS}/p"),
    ]
    assert [answer.status for answer in answers] == [201, 200, 200, 404]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "log"),
        ("POST", "exec"),
        ("GET", "exec"),
        ("POST", "attach"),
        ("POST", "portforward"),
    ],
)
@in_real_time
async def test_subresources_of_kubelets(method: str, path: str) -> None:
    """Logs and exec need a kubelet: the error says so, and does not look like a wrong name."""
    server = new_server()
    await ask(server, "POST", PODS, POD)
    found = [await ask(server, method, f"{PODS}/{name}/{path}") for name in ("p", "nope")]
    (code, words), missing = [
        (answer.status, json.loads(answer.body)["message"]) for answer in found
    ]
    assert 500 == code
    assert words.startswith("error dialing backend: nothing runs behind the nodes")
    assert (404, 'pods "nope" not found') == missing


def test_equal_random_sources_give_equal_objects() -> None:
    """Uids come from the random source that is passed in."""

    async def uid() -> str:
        answer = await ask(new_server(), "POST", PODS, POD)
        found: str = json.loads(answer.body)["metadata"]["uid"]
        return found

    assert asyncio.run(uid()) == asyncio.run(uid())


def test_internal_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception is answered with 500, and the server continues."""
    server = new_server()

    def fail(*_: object) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(server.registry, "get", fail)
    broken = asyncio.run(ask(server, "GET", f"{PODS}/p"))
    assert (500, "InternalError") == (broken.status, json.loads(broken.body)["reason"])
    assert asyncio.run(ask(server, "GET", "/healthz")).body == b"ok"


def test_alpha_is_served_on_demand() -> None:
    """Alpha versions are served if they are enabled."""
    path = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
    found = [
        asyncio.run(ask(new_server(has_alpha=has), "GET", path)).status for has in (False, True)
    ]
    assert found == [404, 200]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
        ({}, 0),
        ({"priorityClassName": "nosuch"}, "no PriorityClass with name nosuch was found"),
        ({"priority": 5}, "priority set in the pod group (5) must match the priority computed (0)"),
    ],
)
def test_pod_groups_get_a_priority(spec: dict[str, Any], expected: int | str) -> None:
    """That of their class, with which they preempt."""
    path = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
    spec = {"schedulingPolicy": {"basic": {}}, **spec}
    server = new_server(has_alpha=True)
    found = asyncio.run(ask(server, "POST", path, {"metadata": {"name": "g"}, "spec": spec}))
    answer = json.loads(found.body)
    if isinstance(expected, int):
        assert expected == answer["spec"]["priority"]
    else:
        assert 403 == found.status
        assert f'podgroups.scheduling.k8s.io "g" is forbidden: {expected}' in answer["message"]


@in_real_time
async def test_taint_rules() -> None:
    """Rules that taint devices are stored; invalid ones are refused."""
    server = new_server(has_alpha=True)
    path = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
    taint = {"key": "broken", "effect": "NoExecute"}
    spec = {"deviceSelector": {"pool": "p1"}, "taint": taint}
    made = await ask(server, "POST", path, {"metadata": {"name": "r1"}, "spec": spec})
    wrong = {"deviceSelector": {"driver": "A_", "pool": "A"}, "taint": {"effect": "Sometimes"}}
    refused = await ask(server, "POST", path, {"metadata": {"name": "r2"}, "spec": wrong})
    assert (201, 422) == (made.status, refused.status)
    rule = json.loads(made.body)
    assert (1, "p1") == (rule["metadata"]["generation"], rule["spec"]["deviceSelector"]["pool"])
    fields = {cause["field"] for cause in json.loads(refused.body)["details"]["causes"]}
    expected = {"spec.deviceSelector.driver", "spec.deviceSelector.pool", "spec.taint.key"}
    assert expected | {"spec.taint.effect"} == fields


@in_real_time
async def test_an_old_pod_is_not_created_again() -> None:
    """A name that is taken is refused, also in another form."""
    server = new_server()
    await ask(server, "POST", PODS, POD)
    assert (await ask(server, "POST", PODS, POD)).status == 409


@in_real_time
async def test_yaml() -> None:
    """A client that prefers YAML gets objects, lists and errors in it."""
    server = new_server()
    found = []
    for accept in ("application/yaml", "application/json,application/yaml"):
        for path in ("/api/v1/namespaces/default", "/api/v1/namespaces/nosuch"):
            answer = await ask(server, "GET", path, headers={"accept": accept})
            found.append((answer.content_type, answer.body.decode()[:5]))
    yaml, json_ = "application/yaml", "application/json"
    expected = [(yaml, "apiVe"), (yaml, "apiVe"), (json_, '{"kin'), (json_, '{"kin')]
    assert expected == found


PATHS = st.sampled_from(
    (PODS, f"{PODS}/p", f"{PODS}/p/status", f"{PODS}/p/binding", "/api/v1/pods")
)
PARTS = st.sampled_from(
    ("api", "apis", "v1", "apps", "namespaces", "default", "pods", "p", "watch", "status", "events")
)
PARAMETERS = st.dictionaries(
    st.sampled_from(
        (
            "watch",
            "resourceVersion",
            "limit",
            "continue",
            "labelSelector",
            "fieldSelector",
            "resourceVersionMatch",
            "dryRun",
            "fieldManager",
            "force",
            "gracePeriodSeconds",
        )
    ),
    st.tuples(st.sampled_from(("", "0", "1", "true", "-1", "a=b", "metadata.name=p", "All", "!"))),
    max_size=3,
)
TYPES = st.sampled_from(
    (
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "text/html",
        "",
    )
)
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("kind", "apiVersion", "metadata", "name", "spec", "status", "containers", "labels")
            ),
            inner,
        )
    ),
).map(lambda value: json.dumps(value).encode())


@pytest.mark.slow
@given(
    st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "ODD")),
    PATHS | st.lists(PARTS).map(lambda parts: "/" + "/".join(parts)),
    PARAMETERS,
    st.fixed_dictionaries({"accept": TYPES, "content-type": TYPES}),
    BODIES | st.binary(max_size=9),
)
@on_virtual_time
async def test_any_request(
    method: str,
    path: str,
    query: dict[str, tuple[str, ...]],
    headers: dict[str, str],
    body: bytes,
) -> None:
    """No request is answered with 500."""
    server = new_server()
    await ask(server, "POST", PODS, POD)
    answer = await server.handle(ApiRequest(method, path, query, headers, body, ADMIN))
    if answer.stream is not None:
        await answer.stream.aclose()
    assert "InternalError" not in answer.body.decode()


# Over a socket.


@over_http
async def test_users_of_tokens(http: Listening) -> None:
    """A token has a user, a wrong one is refused; an admin may impersonate."""
    for headers, expected in (
        ({}, 200),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic dTpw"}, 401),
        ({"impersonate-user": "alice"}, 403),
    ):
        async with http.session.get(PODS, headers=headers) as answer:
            assert expected == answer.status
    async with (
        aiohttp.ClientSession(http.server.url) as nobody,
        nobody.get(PODS) as answer,
    ):
        assert answer.status == 403
        assert 'User \\"system:anonymous\\"' in await answer.text()


def test_impersonation_needs_the_right() -> None:
    """Other users get 403."""
    server = ApiServer({"a": User("alice", ("system:authenticated",))})
    with pytest.raises(Exception, match='User "alice" cannot impersonate resource "users"'):
        server.user_of({"authorization": "Bearer a", "impersonate-user": "admin"})


@over_http
async def test_a_watch_over_http(http: Listening) -> None:
    """Events arrive as lines, as they happen, until the timeout ends the watch."""
    async with http.session.get(PODS, params={"watch": "1"}) as answer:
        await ask(http.server, "POST", PODS, POD)
        event = json.loads(await answer.content.readline())
        assert ("ADDED", "p") == (event["type"], event["object"]["metadata"]["name"])


@over_http
async def test_stopping_ends_watches(http: Listening) -> None:
    """A server that stops leaves no watcher waiting."""
    async with http.session.get(PODS, params={"watch": "1"}) as answer:
        await http.server.stop()
        with pytest.raises(aiohttp.ClientError):
            await answer.content.readline()
    await http.server.stop()


@over_http
async def test_large_bodies_are_refused(http: Listening) -> None:
    """A body that no object needs is not read to its end."""
    host, port = http.server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST {PODS} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999\r\n\r\n"
    writer.write(head.encode())
    assert b"413" in await reader.readline()
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("agent", "query", "is_indented"),
    [
        pytest.param("curl/8", {}, True, id="curl"),
        pytest.param("curl/8", {"pretty": "false"}, False, id="curl-compact"),
        pytest.param("kubectl/v1.36", {}, False, id="kubectl"),
        pytest.param("kubectl/v1.36", {"pretty": "true"}, True, id="kubectl-pretty"),
    ],
)
@over_http
async def test_indented_json(
    http: Listening, agent: str, query: dict[str, str], is_indented: bool
) -> None:
    """Browsers and curl get indented JSON, other programs do not."""
    path = "/api/v1/namespaces/default"
    async with http.session.get(path, params=query, headers={"user-agent": agent}) as answer:
        assert is_indented == (b"\n" in await answer.read())


@over_http
async def test_etag(http: Listening) -> None:
    """A request with the current ETag is answered without a body."""
    async with http.session.get("/openapi/v3") as answer:
        tag = answer.headers["etag"]
    async with http.session.get("/openapi/v3", headers={"if-none-match": tag}) as answer:
        assert (304, b"") == (answer.status, await answer.read())


@over_http
async def test_warnings_are_headers(http: Listening) -> None:
    """Warnings reach the client one by one."""
    async with http.session.get("/api/v1/endpoints") as answer:
        (warning,) = answer.headers.getall("warning")
        assert warning.startswith('299 - "v1 Endpoints is deprecated')


@over_http
async def test_a_port_that_is_taken_is_an_error(http: Listening) -> None:
    """Two servers cannot listen on one port."""
    port = int(http.server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="address already in use"):
        await new_server().start(port=port)


def _answers(*asked: tuple[str, str, object, dict[str, tuple[str, ...]]]) -> list[Response]:
    """Ask a new server several things, one after the other."""

    async def answers() -> list[Response]:
        server = new_server()
        return [await ask(server, method, path, body, query) for method, path, body, query in asked]

    return run(answers())


MAPS = "/api/v1/namespaces/default/configmaps"
DRY: dict[str, tuple[str, ...]] = {"dryRun": ("All",)}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}


def test_warnings_of_refused_requests() -> None:
    """Warnings are sent also if the request is refused."""
    body = {"metadata": {"name": "c"}, "dataa": {}}
    container = {"name": "c", "image": "i", "resources": {"requests": {"memory": "100m"}}}
    odd = {**POD, "spec": {"containers": [container]}}
    answers = _answers(
        ("POST", MAPS, body, {}),
        ("POST", MAPS, body, {}),
        ("POST", MAPS, {**body, "metadata": {"name": "C"}}, {}),
        ("POST", PODS, odd, {}),
        ("POST", PODS, odd, {}),
    )
    unknown = 'unknown field "dataa"'
    fraction = (
        'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, '
        "must be an integer"
    )
    assert [
        (201, (unknown,)),
        (409, (unknown,)),
        (422, (unknown,)),
        (201, (fraction,)),
        (409, (fraction,)),
    ] == [(answer.status, answer.warnings) for answer in answers]


@over_http
async def test_a_warning_that_no_header_can_carry_is_not_sent(http: Listening) -> None:
    """A name with a line end does not end the answer."""
    body = {"metadata": {"name": "c"}, "a\nb": 1, "c": 2}
    async with http.session.post(MAPS, json=body) as answer:
        assert 201 == answer.status
        assert ['299 - "unknown field \\"c\\""'] == answer.headers.getall("warning")


def test_unknown_fields_of_bindings_and_evictions() -> None:
    """They are warned of, and refused if the client is strict, as those of other objects are."""
    strict: dict[str, tuple[str, ...]] = {"fieldValidation": ("Strict",)}
    binding = {"metadata": {"name": "p"}, "target": {"name": "n", "extra": 1}}
    eviction = {"metadata": {"name": "p", "extra": 1}}
    answers = _answers(
        ("POST", PODS, POD, {}),
        ("POST", f"{PODS}/p/binding", binding, strict),
        ("POST", f"{PODS}/p/binding", binding, {}),
        ("POST", f"{PODS}/p/eviction", eviction, strict),
        ("POST", f"{PODS}/p/eviction", eviction, {}),
    )
    assert [
        (201, ()),
        (400, ()),
        (201, ('unknown field "target.extra"',)),
        (400, ()),
        (201, ('unknown field "metadata.extra"',)),
    ] == [(answer.status, answer.warnings) for answer in answers]


def test_a_subresource_that_the_kind_does_not_have() -> None:
    """It is not served, whatever the kind of the object."""
    *_, answer = _answers(("POST", PODS, POD, {}), ("GET", f"{PODS}/p/nothing", None, {}))
    message = "the server could not find the requested resource"
    assert (404, message) == (answer.status, json.loads(answer.body)["message"])


@on_virtual_time
async def test_problems_of_a_patch() -> None:
    """Repeated fields of the patch come first, then unknown fields of the result, by name."""
    patch = b'{"x": 1, "dta": {"a": 1, "a": 2}, "data": {"b": "1", "b": "2"}}'
    server = new_server()
    await ask(server, "POST", MAPS, {"metadata": {"name": "c"}})
    headers = {"content-type": "application/merge-patch+json"}
    answer = await server.handle(ApiRequest("PATCH", f"{MAPS}/c", {}, headers, patch, ADMIN))
    twice = [f'duplicate field "{path}"' for path in ("dta.a", "data.b")]
    unknown = [f'unknown field "{name}"' for name in ("dta", "x")]
    assert (*twice, *unknown) == answer.warnings


def test_repeated_fields_of_yaml() -> None:
    """They are reported at every level."""
    body = b"metadata: {name: c}\ndata: {a: x}\ndata: {b: x, b: z}\n"
    headers = {"content-type": "application/yaml"}
    request = ApiRequest("POST", MAPS, {}, headers, body, ADMIN)
    answer = run(new_server().handle(request))
    assert ('duplicate field "data"', 'duplicate field "data.b"') == answer.warnings


@on_virtual_time
async def test_a_kind_that_is_no_text() -> None:
    """It is refused, also if it is empty."""
    server = new_server()
    wrong: list[dict[str, object]] = [{"kind": []}, {"kind": 0}, {"apiVersion": {}}]
    assert [400, 400, 400] == [(await ask(server, "POST", PODS, POD | one)).status for one in wrong]


@on_virtual_time
async def test_bytes_that_are_no_text() -> None:
    """They are read as U+FFFD, in objects and in patches."""
    server = new_server()
    body = b'{"metadata": {"name": "c"}, "data": {"a": "\xff"}}'
    patch = b'{"data": {"b": "\xff"}}'
    merge = {"content-type": "application/merge-patch+json"}
    created = await server.handle(ApiRequest("POST", MAPS, {}, JSON, body, ADMIN))
    patched = await server.handle(ApiRequest("PATCH", f"{MAPS}/c", {}, merge, patch, ADMIN))
    assert (201, 200) == (created.status, patched.status)
    assert {"a": "\ufffd", "b": "\ufffd"} == json.loads(patched.body)["data"]


def test_a_name_that_is_about_to_be_free() -> None:
    """Whoever creates an object learns that the other one of its name is being deleted."""
    kept = {"metadata": {"name": "c", "finalizers": ["example.com/f"]}}
    *_, answer = _answers(
        ("POST", MAPS, kept, {}), ("DELETE", f"{MAPS}/c", {}, {}), ("POST", MAPS, kept, {})
    )
    message = 'object is being deleted: configmaps "c" already exists'
    assert (409, message) == (answer.status, json.loads(answer.body)["message"])


def test_repeated_owners_are_dropped() -> None:
    """With a warning."""
    owned = {"metadata": {"name": "c", "ownerReferences": [OWNER, OWNER]}}
    (answer,) = _answers(("POST", MAPS, owned, {}))
    assert [OWNER] == json.loads(answer.body)["metadata"]["ownerReferences"]
    (warning,) = answer.warnings
    assert warning.startswith(".metadata.ownerReferences contains duplicate entries; ")
    assert warning.endswith("duplicate UID(s) observed: u")


def test_namespace_of_cluster_scoped_objects() -> None:
    """A namespace in the metadata of a cluster-scoped object is dropped."""
    node = {"metadata": {"name": "n", "namespace": "default"}}
    answers = _answers(
        ("POST", "/api/v1/nodes", node, {}),
        ("PUT", "/api/v1/nodes/n", node, {}),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "m", "namespace": "x"}}, {}),
        ("POST", MAPS, {"metadata": {"name": "c", "namespace": "other"}}, {}),
    )
    assert [201, 200, 201, 400] == [answer.status for answer in answers]
    assert all("namespace" not in json.loads(one.body)["metadata"] for one in answers[:3])


def test_versions_on_create() -> None:
    """Status codes and versions are kube-apiserver's, with and without a dry run."""

    def config(version: str) -> object:
        return {"metadata": {"name": "c", "resourceVersion": version}}

    answers = _answers(
        ("POST", MAPS, config("5"), DRY),
        ("POST", MAPS, config("5"), {}),
        ("POST", MAPS, config("x"), {}),
        ("POST", MAPS, config("x"), DRY),
    )
    assert [201, 500, 201, 409] == [answer.status for answer in answers]
    assert "5" == json.loads(answers[0].body)["metadata"]["resourceVersion"]
    assert json.loads(answers[2].body)["metadata"]["resourceVersion"].isdecimal()


def test_owners_are_named_once() -> None:
    """An owner that is named twice is taken out; other words for it are another."""
    other = {**OWNER, "controller": True}
    metadata = {"name": "c", "ownerReferences": [OWNER, other, OWNER, OWNER]}
    once = [OWNER, other]
    answers = _answers(
        ("POST", MAPS, {"metadata": metadata}, {}),
        ("PUT", f"{MAPS}/c", {"metadata": metadata}, {}),
    )
    assert [once, once] == [json.loads(one.body)["metadata"]["ownerReferences"] for one in answers]


@on_virtual_time
async def test_duplicate_owners_in_a_patch() -> None:
    """The patched object has each owner once."""
    operations = [{"op": "add", "path": "/metadata/ownerReferences", "value": [OWNER, OWNER]}]
    server = new_server()
    await ask(server, "POST", MAPS, {"metadata": {"name": "c"}})
    headers = {"content-type": "application/json-patch+json"}
    answer = await ask(server, "PATCH", f"{MAPS}/c", operations, headers=headers)
    assert [OWNER] == json.loads(answer.body)["metadata"]["ownerReferences"]


def test_generated_names_are_known_to_what_depends_on_them() -> None:
    """The label of a namespace and those of a job's pods have the name that was drawn."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {"metadata": {"generateName": "j-"}, "spec": {"template": template}}
    answers = _answers(
        ("POST", "/api/v1/namespaces", {"metadata": {"generateName": "n-"}}, {}),
        ("POST", "/apis/batch/v1/namespaces/default/jobs", job, {}),
    )
    namespace, made = (json.loads(one.body) for one in answers)
    name = namespace["metadata"]["name"]
    assert name.startswith("n-")
    assert {"kubernetes.io/metadata.name": name} == namespace["metadata"]["labels"]
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert made["metadata"]["name"] == labels["batch.kubernetes.io/job-name"]


@on_virtual_time
async def test_entries_without_keys_survive_an_apply() -> None:
    """Entries without keys have no manager, so that an apply does not remove them."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    applied: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "s"},
    }
    server = new_server()
    await ask(server, "POST", accounts, {**applied, "secrets": [{"kind": "a"}]})
    applied["secrets"] = [{"name": "x"}]
    headers = {"content-type": "application/apply-patch+yaml"}
    query = {"fieldManager": ("m",)}
    answer = await ask(server, "PATCH", f"{accounts}/s", applied, query, headers)
    assert 200 == answer.status
    assert [{"kind": "a"}, {"name": "x"}] == json.loads(answer.body)["secrets"]
