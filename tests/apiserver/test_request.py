"""Paths of requests."""

from __future__ import annotations

import pytest

from kubesched.apiserver.request import ApiRequest, Target, target_of


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        pytest.param("GET", "/api/v1/pods", {}, Target("list", "", "v1", "pods"), id="all"),
        pytest.param(
            "GET",
            "/api/v1/namespaces/a/pods",
            {"watch": ("1",)},
            Target("watch", "", "v1", "pods", "a"),
            id="watch",
        ),
        pytest.param(
            "GET",
            "/api/v1/namespaces/a/pods",
            {"watch": ("False",)},
            Target("list", "", "v1", "pods", "a"),
            id="no-watch",
        ),
        pytest.param(
            "GET",
            "/apis/coordination.k8s.io/v1/leases",
            {"fieldSelector": ("metadata.name=x,a=b",)},
            Target("list", "coordination.k8s.io", "v1", "leases", "", "x"),
            id="name-by-selector",
        ),
        pytest.param(
            "GET",
            "/api/v1/watch/namespaces/a/pods/p",
            {},
            Target("watch", "", "v1", "pods", "a", "p", is_old_watch=True),
            id="old-watch",
        ),
        pytest.param(
            "POST",
            "/api/v1/namespaces/a/pods/p/binding",
            {},
            Target("create", "", "v1", "pods", "a", "p", "binding"),
            id="subresource",
        ),
        pytest.param(
            "PUT",
            "/api/v1/namespaces/a/finalize",
            {},
            Target("update", "", "v1", "namespaces", "a", "a", "finalize"),
            id="namespace-finalize",
        ),
        pytest.param(
            "GET",
            "/api/v1/namespaces/a",
            {},
            Target("get", "", "v1", "namespaces", "a", "a"),
            id="namespace",
        ),
        pytest.param(
            "DELETE",
            "/apis/apps/v1/namespaces/a/replicasets",
            {},
            Target("deletecollection", "apps", "v1", "replicasets", "a"),
            id="collection",
        ),
        pytest.param("GET", "/api/v1", {}, None, id="group-version"),
        pytest.param("GET", "/apis/apps/v1", {}, None, id="named-group-version"),
        pytest.param("GET", "/healthz/ping", {}, None, id="elsewhere"),
    ],
)
def test_target(
    method: str, path: str, query: dict[str, tuple[str, ...]], expected: Target | None
) -> None:
    """A path names a verb, a resource, and perhaps one object."""
    assert expected == target_of(ApiRequest(method, path, query))


def test_manager() -> None:
    """The manager is that of the request, or the program in the user agent."""
    agent = {"user-agent": "kubectl/v1.36 (linux)"}
    assert ApiRequest("PUT", "/", headers=agent).manager == "kubectl"
    assert ApiRequest("PUT", "/", {"fieldManager": ("me",)}, agent).manager == "me"
    assert ApiRequest("PUT", "/").manager == "unknown"


def test_content_type_has_no_parameters() -> None:
    """A charset does not matter."""
    headers = {"content-type": "application/JSON; charset=utf-8"}
    assert ApiRequest("PUT", "/", headers=headers).content_type == "application/json"
