"""Who somebody is, and what somebody may do."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver import authorization
from kubesched.apiserver.authorization import StoredRoles, Tokens
from kubesched.apiserver.request import User
from kubesched.apiserver.resources import RESOURCES
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import StatusError

ALICE = User("alice", ("system:authenticated",), "u")


def review(plural: str, spec: dict[str, Any], group: str = "authorization.k8s.io") -> Any:
    """Return the status of a review that alice creates."""
    resource = RESOURCES.find(group, "v1", plural)
    assert resource is not None
    server = ApiServer()
    roles = StoredRoles(server.registry.lookup)
    tokens = Tokens({"t": ALICE}, server.registry.lookup, server.registry.clock)
    return authorization.review(tokens, roles, resource, ALICE, {"spec": spec})["status"]


def test_token_reviews() -> None:
    """A known token is authenticated with its user; another is not."""
    group = "authentication.k8s.io"
    info = {"username": "alice", "uid": "u", "groups": ["system:authenticated"]}
    assert review("tokenreviews", {"token": "t"}, group) == {"authenticated": True, "user": info}
    assert "error" in review("tokenreviews", {"token": "x"}, group)
    assert review("selfsubjectreviews", {}, group) == {"userInfo": info}


def test_access_reviews() -> None:
    """Access to resources and paths can be reviewed for oneself and for others."""
    nodes = {"resourceAttributes": {"verb": "list", "resource": "nodes"}}
    assert review("selfsubjectaccessreviews", nodes) == {"allowed": False}
    other = {"user": "system:kube-scheduler", **nodes}
    assert review("subjectaccessreviews", other)["allowed"]
    path = {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
    assert review("subjectaccessreviews", {"user": "x", **path}) == {"allowed": False}
    assert review("subjectaccessreviews", {"groups": ["system:authenticated"], **path})["allowed"]


def test_rules() -> None:
    """All that one may do is listed, and paths apart."""
    found = review("selfsubjectrulesreviews", {"namespace": "default"})
    assert not found["incomplete"]
    listed = [one["resources"] for one in found["resourceRules"]]
    assert ["selfsubjectreviews"] in listed
    assert all("/version" in one["nonResourceURLs"] for one in found["nonResourceRules"])


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({}, ["spec.resourceAttributes", "spec.user"], id="nothing"),
        pytest.param({"user": "x"}, ["spec.resourceAttributes"], id="about-nothing"),
        pytest.param(
            {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}},
            ["spec.nonResourceAttributes", "spec.user"],
            id="both",
        ),
    ],
)
def test_invalid_reviews(spec: dict[str, Any], fields: list[str]) -> None:
    """A review needs a user, and either a resource or a path."""
    with pytest.raises(StatusError) as caught:
        review("subjectaccessreviews", spec)
    assert caught.value.details is not None
    assert fields == [cause["field"] for cause in caught.value.details["causes"]]
