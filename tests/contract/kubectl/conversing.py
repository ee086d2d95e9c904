"""Recorded kubectl commands, whose requests are sent to our server in the same process.

What a server decides is compared: statuses, media types, errors, the sizes of the other answers,
and what kubectl prints of them where it prints tables, objects or names.

Differs:  JSON stands for protobuf both ways; what a front between kubectl and the real server
          answered is not asked; a stand-in for the kubelet finishes deletions when the record shows
          that they are finished, and after each command; kubectl's cache is as full as ours makes
          it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from kubesched.apiserver.request import ApiRequest, Response, User
from kubesched.apiserver.server import ApiServer
from tests.contract.placeholders import DifferenceError, Placeholders

from .printing import (
    Plain,
    Printed,
    Rows,
    as_list,
    names_of,
    prints_tables,
    rows_of_text,
    without_managers,
)
from .printing_discovery import api_resources, api_versions, review
from .sizes import has_recorded_size
from .table import Difference

_DATA: Final = Path(__file__).parent / "data"
_ADMIN: Final = User("admin", ("system:masters", "system:authenticated"), "admin-uid")
_UNKNOWN: Final = re.compile(r"<(?:uid|rv|time|continue)[^>]*>")
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_AGGREGATED: Final = "apidiscovery.k8s.io"
_TABLE: Final = "as=Table"
_JSON: Final = "application/json"
_ROOTS: Final = ("/api", "/apis")
_INDEX: Final = "/openapi/v3"
_WITH_KUBELET: Final = ("cordon-drain", "delete", "no-protobuf")
_QUIET_SECONDS: Final = 0.5
# Those that bodies in protobuf stand for; what they are is known from the commands.
_BODIES: Final[dict[str, Plain]] = {
    "/api/v1/namespaces": {"kind": "Namespace", "apiVersion": "v1"},
    "/api/v1/namespaces/default/configmaps": {
        "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "cm"}, "data": {"a": "1"},
    },
    "/api/v1/namespaces/default/pods/m1": {"kind": "DeleteOptions", "apiVersion": "v1"},
    "/api/v1/namespaces/default/resourcequotas": {
        "kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "nosuch"},
        "spec": {"hard": {"pods": "1"}},
    },
    "/apis/scheduling.k8s.io/v1/priorityclasses": {
        "kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": "high"}, "value": 1000, "description": "d",
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {
        "kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    "/apis/apps/v1/namespaces/default/deployments": {
        "kind": "Deployment", "apiVersion": "apps/v1",
        "metadata": {"name": "d", "labels": {"app": "d"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "x", "image": "x"}]},
            },
        },
    },
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
    },
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": {
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
    },
}  # fmt: skip


def names() -> list[str]:
    """Return the names of all conversations."""
    return sorted(path.name.removesuffix(".json.gz") for path in _DATA.glob("*.json.gz"))


def load(name: str) -> Plain:
    """Return a conversation."""
    found: Plain = json.loads(gzip.decompress((_DATA / f"{name}.json.gz").read_bytes()))
    return found


class _Answer(NamedTuple):
    """An answer, with the events of a watch."""

    path: str
    response: Response
    body: Any


class Conversation:
    """The replay of one recorded file.

    Attributes:
        requests: How many requests were compared.
        other_sizes: Paths whose answers are longer or shorter than those recorded.
        outputs: What of how many commands was printed was compared.
    """

    def __init__(self, record: Plain, server: ApiServer, now: Callable[[], datetime]) -> None:
        """Take the record, the server, and what tells the server's time."""
        self._record = record
        self._server = server
        self._now = now
        self._placeholders = Placeholders()
        self._discovered: dict[str, Plain] = {}
        self._etags: dict[str, str] = {}
        self._answers: list[_Answer] = []
        self.requests = 0
        self.other_sizes: set[str] = set()
        self.outputs = 0

    async def replay(self) -> list[Difference]:
        """Send all requests; return the differences."""
        for step in self._record["setup"]:
            await self._set_up(step)
        found = []
        for command in self._record["commands"]:
            if "setup" in command:
                await self._set_up(command["setup"])
                continue
            found += [Difference(command["command"], what) async for what in self._run(command)]
        return found

    async def _set_up(self, step: Plain) -> None:
        request = self._placeholders.filled(step["request"])
        headers = {"user-agent": "contract/1.0", **request.get("headers", {})}
        answer = await self._send(request["method"], request["path"], {}, headers, request["body"])
        assert step["status"] == answer.status, (step, answer.body)
        if "created_uid" in step:
            uid = json.loads(answer.body)["metadata"]["uid"]
            self._placeholders.bind(step["created_uid"], uid)

    async def _send(
        self,
        method: str,
        path: str,
        query: Plain,
        headers: Plain,
        body: object = None,
        user: User = _ADMIN,
    ) -> Response:
        content = b"" if body is None else json.dumps(body).encode()
        values = {name: (value,) for name, value in query.items()}
        return await self._server.handle(ApiRequest(method, path, values, headers, content, user))

    async def _run(self, command: Plain) -> Any:
        self._answers = []
        for recorded in command["requests"]:
            if self._is_fronts(recorded):
                continue
            self.requests += 1
            try:
                await self._exchange(command, recorded)
            except DifferenceError as difference:
                yield f"{recorded['method']} {recorded['path']}: {difference}"
        try:
            self._compare_output(command)
        except DifferenceError as difference:
            yield f"stdout: {difference}"
        await self._finish_deletions()

    def _is_fronts(self, recorded: Plain) -> bool:
        """Whether a proxy answered instead of the real server."""
        name: str = self._record["name"]
        path: str = recorded["path"]
        if name.endswith("-openapi"):
            return path.startswith("/openapi")
        is_binary = recorded["headers"].get("content-type") == _PROTOBUF
        return name == "no-protobuf" and is_binary

    # One request.

    async def _exchange(self, command: Plain, recorded: Plain) -> None:
        if recorded["status"] == 404:
            await self._finish_deletions()
        query = await self._query(recorded)
        body = await self._body(command, recorded)
        headers = self._headers(recorded)
        path = self._placeholders.filled(recorded["path"])
        user = _user_of(command["command"])
        answer = await self._send(recorded["method"], path, query, headers, body, user)
        if answer.stream is not None:
            content: Any = await self._events(command, answer)
        else:
            content = _content(answer)
        self._answers.append(_Answer(recorded["path"], answer, content))
        if path in _ROOTS and answer.status == 200:
            self._discovered[path] = content
        if "etag" in {name.lower() for name in answer.headers}:
            self._etags[path] = next(v for k, v in answer.headers.items() if k.lower() == "etag")
        self._compare(recorded, answer, content)

    async def _query(self, recorded: Plain) -> Plain:
        query = dict(recorded.get("query", {}))
        if "timeoutSeconds" in query:
            query["timeoutSeconds"] = "400"
        if "hash" in query:
            query["hash"] = await self._hash(recorded["path"])
        last = self._answers[-1].body if self._answers else {}
        metadata = last.get("metadata", {}) if isinstance(last, dict) else {}
        for name, key in (("resourceVersion", "resourceVersion"), ("continue", "continue")):
            if _UNKNOWN.search(query.get(name, "")):
                query[name] = metadata[key]
        filled: Plain = self._placeholders.filled(query)
        return filled

    async def _hash(self, path: str) -> str:
        index = await self._send("GET", "/openapi/v3", {}, {})
        url = json.loads(index.body)["paths"][path.removeprefix("/openapi/v3/")]
        _, _, value = url["serverRelativeURL"].partition("hash=")
        return str(value)

    async def _body(self, command: Plain, recorded: Plain) -> object:
        if "body_text" in recorded:
            body: Any = _BODIES[recorded["path"]]
            words = command["command"].split()
            if recorded["path"] == "/api/v1/namespaces":
                body = {**body, "metadata": {"name": words[-1]}}
            if "can-i" in words:
                attributes = {"namespace": "default", "verb": words[3], "resource": words[4]}
                body = {**body, "spec": {"resourceAttributes": attributes}}
            return body
        body = self._placeholders.filled(recorded.get("body"))
        if body is None or not _UNKNOWN.search(json.dumps(body)):
            return body
        if recorded["status"] >= 400:
            # What was refused named an old version.
            return json.loads(_UNKNOWN.sub("1", json.dumps(body)))
        found = await self._send("GET", recorded["path"], {}, {})
        return _adopted(body, json.loads(found.body))

    def _headers(self, recorded: Plain) -> Plain:
        headers = {"user-agent": "kubectl/v1.36.0", **recorded["headers"]}
        if "if-none-match" in headers or recorded["path"] == _INDEX:
            headers["if-none-match"] = self._etags.get(recorded["path"], "")
        if headers.get("content-type") == _PROTOBUF:
            headers["content-type"] = _JSON
        hidden = {"legacy-discovery": _AGGREGATED, "no-tables": _TABLE, "no-protobuf": _PROTOBUF}
        if hidden.get(self._record["name"], "?") in headers["accept"]:
            headers["accept"] = _JSON
        return headers

    async def _events(self, command: Plain, answer: Response) -> list[Plain]:
        """Read a watch until it is quiet; another client carries out the notes meanwhile."""
        assert answer.stream is not None
        events: list[Plain] = []

        async def read() -> None:
            assert answer.stream is not None
            async with aclosing(answer.stream) as stream:
                async for lines in stream:
                    events.extend(json.loads(line) for line in lines.splitlines())

        reading = asyncio.ensure_future(read())
        if command.get("interrupted_after_seconds") == 4 and "notes" in self._record:
            await self._create_run_delete()
        await asyncio.wait((reading,), timeout=_QUIET_SECONDS)
        reading.cancel()
        await asyncio.wait((reading,))
        return events

    async def _create_run_delete(self) -> None:
        """Create a pod, run it and delete it."""
        pods = "/api/v1/namespaces/default/pods"
        container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
        json_type = {"content-type": _JSON}
        merge = {"content-type": "application/merge-patch+json"}
        pod = {"metadata": {"name": "p3"}, "spec": {"containers": [container]}}
        await self._send("POST", pods, {}, json_type, pod)
        running = {"status": {"phase": "Running"}}
        await self._send("PATCH", f"{pods}/p3/status", {}, merge, running)
        await self._send("DELETE", f"{pods}/p3", {}, json_type, {"gracePeriodSeconds": 0})

    async def _finish_deletions(self) -> None:
        """Delete terminating pods, as a kubelet would."""
        if self._record["name"] not in _WITH_KUBELET:
            return
        pods = json.loads((await self._send("GET", "/api/v1/pods", {}, {})).body)
        for pod in pods["items"]:
            metadata = pod["metadata"]
            if "deletionTimestamp" in metadata:
                path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                at_once = {"gracePeriodSeconds": 0}
                await self._send("DELETE", path, {}, {"content-type": _JSON}, at_once)

    # Comparing.

    def _compare(self, recorded: Plain, answer: Response, content: Any) -> None:
        if recorded["path"] == _INDEX and answer.status == 304:
            # The real index is as new as the second, so whether it has changed is chance.
            return
        if recorded["status"] != answer.status:
            raise DifferenceError(
                f"status: expected {recorded['status']}, got {answer.status}: {content!r:.300}"
            )
        expected = (recorded["response_content_type"] or "").partition(";stream=")[0]
        expected = _JSON if expected == _PROTOBUF else expected
        if expected != answer.content_type:
            raise DifferenceError(f"type: expected {expected!r}, got {answer.content_type!r}")
        if not has_recorded_size(recorded, answer):
            self.other_sizes.add(recorded["path"])
        if "response" in recorded:
            self._placeholders.compare(recorded["response"], content, self._now(), "response")
        text = recorded.get("response_text", "")
        if text and isinstance(content, dict) and content.get("kind") == "Status":
            # A Status in protobuf: its texts can be read.
            for word in (content["message"], content["reason"]):
                if word not in text:
                    raise DifferenceError(f"response: {word!r} is not in {text!r}")

    def _compare_output(self, command: Plain) -> None:
        typed, stdout = command["command"], command["stdout"]
        printed = self._printed(typed)
        if printed:
            self._compare_values(rows_of_text(stdout), printed)
            return
        good = [(one.path, one.body) for one in self._answers if one.response.status < 300]
        good = [(path, body) for path, body in good if path not in _ROOTS]
        if command["exit_code"] not in {0, 1} or not stdout:
            return
        if typed.startswith("kubectl get --raw"):
            self._compare_text(stdout, self._answers[-1].response.body.decode())
        elif prints_tables(typed) and self._record["name"] != "no-tables":
            self._compare_tables(typed, stdout, good)
        elif typed.startswith("kubectl get") and " -o name" in typed:
            self._compare_values(stdout.split(), names_of(_flat(good)))
        elif re.search(r" -o (yaml|json)\b", typed) and good:
            shown = yaml.load(stdout, yaml.BaseLoader)  # noqa: S506 - a loader without types
            answer = good[-1][1]
            if "--show-managed-fields" not in typed:
                answer = without_managers(answer)
            self._compare_values(shown, _as_texts(as_list(answer)))

    def _printed(self, typed: str) -> Rows:
        """Return the output of discovery and reviews; nothing for other commands."""
        if typed == "kubectl api-versions":
            return api_versions(self._discovered.values())
        if typed.startswith("kubectl api-resources"):
            return api_resources(typed, self._discovered.values())
        is_answered = bool(self._answers) and self._answers[-1].response.status == 201
        return review(self._answers[-1].body) if " auth " in typed and is_answered else []

    def _compare_tables(self, typed: str, stdout: str, good: list[tuple[str, Any]]) -> None:
        tables = _flat(good)
        if "--watch-only" in typed:
            tables = tables[1:]
        if typed == "kubectl get pod p1 -w":
            # Of a watch from version 0, the first event is what was printed already.
            tables = [*tables[:1], *tables[2:]]
        printed = Printed(typed, tables).rows()
        self._compare_values(rows_of_text(stdout), printed)

    def _compare_text(self, expected: str, actual: str) -> None:
        try:
            self._compare_values(json.loads(expected), json.loads(actual))
        except json.JSONDecodeError:
            self._compare_values(expected.strip(), actual.strip())

    def _compare_values(self, expected: Any, actual: Any) -> None:
        self.outputs += 1
        self._placeholders.compare(expected, actual, self._now(), "")


def _user_of(command: str) -> User:
    """Return the user of a command: the administrator, or the one of a flag."""
    found = re.search(r"--as=(\S+)", command)
    return User(found[1], ("system:authenticated",)) if found else _ADMIN


def _content(answer: Response) -> Any:
    try:
        return json.loads(answer.body)
    except ValueError:
        return answer.body.decode(errors="replace")


def _adopted(recorded: Any, current: Any) -> Any:
    """Return a body with placeholders replaced by the object's current values."""
    match recorded:
        case [{"op": _, "path": _}, *_]:
            return [_adopted_operation(one, current) for one in recorded]
        case dict():
            inner = current if isinstance(current, dict) else {}
            return {name: _adopted(value, inner.get(name)) for name, value in recorded.items()}
        case list():
            others = current if isinstance(current, list) else []
            padded = [*others, *[None] * len(recorded)]
            return [_adopted(one, other) for one, other in zip(recorded, padded, strict=False)]
        case str() if _UNKNOWN.fullmatch(recorded) and current is not None:
            return current
    return recorded


def _adopted_operation(operation: Plain, current: Any) -> Plain:
    for part in operation["path"].split("/")[1:]:
        current = current.get(part) if isinstance(current, dict) else None
    return {**operation, "value": _adopted(operation.get("value"), current)}


def _flat(answers: list[tuple[str, Any]]) -> list[tuple[str, Plain]]:
    """Return the answers, and the objects of watch events."""
    return list(_each(answers))


def _each(answers: list[tuple[str, Any]]) -> Iterator[tuple[str, Plain]]:
    for path, body in answers:
        if isinstance(body, list):
            yield from ((path, event["object"]) for event in body if event["type"] != "BOOKMARK")
        elif isinstance(body, dict):
            yield path, body


def _as_texts(value: Any) -> Any:
    """Return a value with YAML's text for each scalar."""
    match value:
        case dict():
            return {name: _as_texts(one) for name, one in value.items()}
        case list():
            return [_as_texts(one) for one in value]
        case bool():
            return str(value).lower()
        case None:
            return "null"
    return str(value)
