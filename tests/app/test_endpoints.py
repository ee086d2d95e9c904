"""What the secure port answers, against the recorded exchanges with kube-scheduler 1.36."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import platform
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from prometheus_client.metrics_core import Metric

from kubesched.app.access import Authenticator, Authorities, Authorizer, with_access
from kubesched.app.endpoints import Endpoints, configz, flagz, scheduler_health
from kubesched.app.http_exchange import HttpRequest, HttpResponse
from kubesched.app.logs import LogOptions, Logs
from kubesched.app.metrics.pages import MetricsPage
from kubesched.app.options import ALWAYS_ALLOWED_PATHS
from kubesched.client.requests import Request
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from tests.loops import in_real_time

from .fake_rest import FakeRest, access_reviews, token_reviews
from .port_records import exchanges, recorded

STARTED = datetime(2026, 11, 21, 15, 31, 44, tzinfo=UTC)
USERS = {
    "admin": {"username": "admin", "groups": ["system:masters"]},
    "alice": {"username": "alice", "groups": ["", "system:authenticated"]},
}
FLAGS = {
    "allow-metric-labels": "[]",
    "allow-metric-labels-manifest": "",
    "authentication-kubeconfig": "<kubeconfig>",
}


class Page(MetricsPage):
    """A page of metrics that counts its resets."""

    def __init__(self) -> None:
        super().__init__(reset=self._count)
        self.resets = 0

    def page(self) -> bytes:
        """Return a page without metrics."""
        return b"# no metrics\n"

    def _count(self) -> None:
        self.resets += 1


def answer_review(request: Request) -> dict[str, Any]:
    """Know the users by their names as tokens; allow nothing."""
    spec = json.loads(request.body)["spec"]
    if request.path.endswith("tokenreviews"):
        user = USERS.get(spec["token"])
        if user is None:
            return {"status": {"user": {}, "error": "invalid bearer token"}}
        return {"status": {"authenticated": True, "user": user}}
    assert spec["nonResourceAttributes"]["verb"].islower()
    return {"status": {"allowed": False}}


def scheduler_endpoints(page: MetricsPage, *, is_leader: bool = True) -> Endpoints:
    """Return the endpoints of the recorded scheduler."""
    config = next(step["config"] for step in recorded()["steps"] if "config" in step)
    config["clientConnection"]["kubeconfig"] = "<dir>/sched.kubeconfig"
    configuration = load_configuration(config, FeatureGates())
    endpoints = Endpoints()
    endpoints.add_health(
        scheduler_health(leader_election=None, is_stopping=lambda: False, has_synced=lambda: True)
    )
    shown = configz(configuration)
    endpoints.add("/configz", lambda _request: shown)
    endpoints.add_metrics("/metrics", page, STARTED.timestamp() + 0.9)
    endpoints.add_metrics("/metrics/resources", page, is_shown=lambda: is_leader)
    endpoints.add_metrics("/metrics/slis", page, STARTED.timestamp())
    endpoints.add_debugging(Logs(LogOptions(), io.StringIO(), io.StringIO()).set_verbosity)
    endpoints.add("/flagz", lambda request: flagz(request, FLAGS))
    moments = iter((STARTED, STARTED.replace(minute=33)))
    endpoints.add_statusz(lambda: next(moments))
    return endpoints


def ask(request: HttpRequest, user: str | None = "admin", page: Page | None = None) -> HttpResponse:
    """Ask as somebody."""
    rest = FakeRest(answer_review)
    endpoints = scheduler_endpoints(page or Page())
    handle = with_access(
        Authenticator(Authorities, token_reviews(rest)),
        Authorizer(ALWAYS_ALLOWED_PATHS, access_reviews(rest)),
        endpoints.answer,
    )
    if user is not None:
        token = ("Authorization", f"Bearer {user}")
        request = replace(request, headers=(*request.headers, token))
    return asyncio.run(handle(request))


def get(target: str, **headers: str) -> HttpResponse:
    """GET as admin."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    request = HttpRequest(path=target.partition("?")[0], target=target, headers=named)
    return ask(request)


def headers_of(answer: HttpResponse) -> dict[str, str]:
    """Return the headers that were recorded."""
    kept = {name.lower(): value for name, value in answer.headers}
    found = {"content-type": answer.content_type}
    if "x-content-type-options" in kept:
        found["x-content-type-options"] = kept["x-content-type-options"]
    return found


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=f"{number}-{entry['method']}-{entry['path']}-{entry['user']}")
        for number, entry in enumerate(exchanges())
    ],
)
def test_answers_are_the_recorded_ones(entry: dict[str, Any]) -> None:
    """Status, headers and bodies equal the records; pages of metrics are compared elsewhere."""
    target = entry["path"]
    request = HttpRequest(method=entry["method"], path=target.partition("?")[0], target=target)
    answer = ask(request, entry["user"])
    assert entry["status"] == answer.status
    assert entry["headers"] == headers_of(answer)
    if "body" in entry:
        assert entry["body"] == json.loads(answer.body)
    elif "body_text" in entry and entry["method"] != "HEAD":
        # What stands for something volatile, or was cut off, may be anything.
        parts = entry["body_text"].split("<...>")
        pattern = ".*".join(re.escape(part) for part in parts)
        assert re.fullmatch(pattern + r"\n?", answer.body.decode())


def test_status_objects_are_written_for_who_reads_them() -> None:
    """Compact with an end of line for programs; indented for people."""
    anonymous = HttpRequest(path="/metrics", target="/metrics")
    compact = ask(anonymous, None).body
    assert compact.endswith(b'"code":403}\n')
    curl = replace(anonymous, headers=(("User-Agent", "curl/8.5.0"),))
    assert ask(curl, None).body.startswith(b'{\n  "kind": "Status",\n')
    assert 224 == len(ask(curl, None).body)
    assert b"\n " not in ask(replace(curl, target="/metrics?pretty=0"), None).body
    assert b"\n " in ask(replace(anonymous, target="/metrics?pretty=1"), None).body


def test_errors_are_negotiated() -> None:
    """Errors are YAML if the client accepts it, else JSON."""
    wants = (("Accept", "application/vnd.kubernetes.protobuf, application/yaml"),)
    answer = ask(HttpRequest(path="/x", headers=wants), "invalid")
    assert (401, "application/yaml") == (answer.status, answer.content_type)
    expected = (
        "apiVersion: v1\ncode: 401\nkind: Status\nmessage: Unauthorized\n"
        "metadata: {}\nreason: Unauthorized\nstatus: Failure\n"
    )
    assert yaml.safe_load(expected) == yaml.safe_load(answer.body)
    answer = ask(HttpRequest(path="/x", headers=(("Accept", "text/html"),)), "invalid")
    assert "application/json" == answer.content_type


def test_paths_in_errors_are_escaped() -> None:
    """HTML in the path is escaped in the error."""
    answer = ask(HttpRequest(method="POST", path='/a<b"c'), "alice")
    assert b'cannot post path \\"/a\\u0026lt;b\\\\\\"c\\""' in answer.body


def test_metrics_are_reset_by_delete() -> None:
    """DELETE resets a page; other methods show it, with the start of the process."""
    page = Page()
    for path in ("/metrics", "/metrics/slis", "/metrics/resources"):
        answer = ask(HttpRequest(method="DELETE", path=path), page=page)
        assert (b"metrics reset\n", "text/plain; charset=utf-8", ()) == (
            answer.body,
            answer.content_type,
            answer.headers,
        )
    assert 3 == page.resets
    answer = get("/metrics")
    assert b"# no metrics\n" == answer.body
    assert (("Process-Start-Time-Unix", "1795275104"),) == answer.headers
    assert () == get("/metrics/resources").headers


def test_resource_metrics_are_the_leaders() -> None:
    """Other replicas answer with nothing."""
    endpoints = scheduler_endpoints(Page(), is_leader=False)
    answer = endpoints.answer(HttpRequest(path="/metrics/resources"))
    assert HttpResponse(content_type="") == answer


@in_real_time
async def test_large_pages_hold_nothing_up() -> None:
    """They are written in a thread: a page of 100,000 pods takes seconds."""
    threads = []

    def metrics() -> Iterator[Metric]:
        threads.append(threading.current_thread())
        yield from ()

    page = MetricsPage(metrics, is_large=True)
    answer = scheduler_endpoints(page).answer(HttpRequest(path="/metrics/resources"))
    assert not isinstance(answer, HttpResponse)
    assert b"" == (await answer).body
    assert threading.current_thread() not in threads
    assert 1 == len(threads)


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("3", 200, "successfully set klog.logging.verbosity to 3"),
        ("abc", 400, '"abc" is not a number from 0 to 2147483647'),
        ("", 400, '"" is not a number from 0 to 2147483647'),
        ("-1", 400, '"-1" is not a number from 0 to 2147483647'),
        ("3000000000", 400, '"3000000000" is not a number from 0 to 2147483647'),
    ],
)
def test_verbosity_is_set_by_put(text: str, status: int, words: str) -> None:
    """A number is set, and confirmed as by kube-scheduler 1.36; anything else is refused."""
    logger = logging.getLogger("kubesched")
    level = logger.level
    try:
        answer = ask(HttpRequest(method="PUT", path="/debug/flags/v", body=text.encode()))
    finally:
        logger.setLevel(level)
    assert (status, "text/plain") == (answer.status, answer.content_type)
    assert f"{words}\n" == answer.body.decode()


@pytest.mark.parametrize("path", ["/debug/flags", "/debug/flags/", "/debug/flags/x"])
def test_flags_have_an_index(path: str) -> None:
    """Everything below the flags shows which flags there are."""
    answer = get(path)
    assert (200, "text/html; charset=utf-8", 168) == (
        answer.status,
        answer.content_type,
        len(answer.body),
    )


def test_profiles() -> None:
    """The index redirects; the one profile shows the stacks."""
    moved = get("/debug/pprof")
    assert (302, (("Location", "/debug/pprof/"),)) == (moved.status, moved.headers)
    assert b"goroutine" in get("/debug/pprof/").body
    assert b"test_profiles" in get("/debug/pprof/goroutine").body


def test_structured_pages() -> None:
    """Pages are objects for clients with the media type of their kind."""
    form = "v=v1beta1;g=config.k8s.io;as=Statusz"
    answer = get("/statusz", Accept=f"application/json;{form}")
    assert "application/json;g=config.k8s.io;v=v1beta1;as=Statusz" == answer.content_type
    assert {
        "kind": "Statusz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kube-scheduler"},
        "startTime": "2026-11-21T15:31:44Z",
        "uptimeSeconds": 120,
        "goVersion": f"python{platform.python_version()}",
        "binaryVersion": "1.36",
        "emulationVersion": "1.36",
        "paths": ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"],
    } == json.loads(answer.body)
    old = get("/flagz", Accept="application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz")
    words = "This version of the flagz endpoint is deprecated. Please use a newer version."
    assert (("Warning", f'299 - "{words}"'),) == old.headers
    assert FLAGS == yaml.safe_load(old.body)["flags"]


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_pages_in_other_forms_are_refused(accept: str) -> None:
    """JSON without the kind's name is not offered."""
    answer = get("/statusz", Accept=accept)
    expected = (
        "only the following media types are accepted:"
        " application/json, application/yaml, text/plain"
    )
    assert (406, expected) == (answer.status, json.loads(answer.body)["message"])
    assert 200 == get("/statusz", Accept="text/html, */*;q=0.8").status


def test_one_path_has_one_answer() -> None:
    """Answering twice is a mistake of the program."""
    endpoints = scheduler_endpoints(Page())
    with pytest.raises(AssertionError, match="/metrics is answered twice"):
        endpoints.add_metrics("/metrics", Page(), 0.0)
