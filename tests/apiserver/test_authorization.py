"""Who may do what."""

from __future__ import annotations

import pytest

from kubesched.apiserver.authorization import Attributes, decide, refusal
from kubesched.apiserver.request import ANONYMOUS, User

ADMIN = User("admin", ("system:masters",))
ALICE = User("alice", ("system:authenticated",))
SCHEDULER = User("system:kube-scheduler", ("system:authenticated",))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(Attributes(ADMIN, "delete", resource="nodes"), True, id="admin"),
        pytest.param(Attributes(ALICE, "list", resource="nodes"), False, id="alice"),
        pytest.param(Attributes(SCHEDULER, "list", resource="nodes"), True, id="read-nodes"),
        pytest.param(Attributes(SCHEDULER, "delete", resource="nodes"), False, id="write-nodes"),
        pytest.param(
            Attributes(SCHEDULER, "create", "", "pods", "binding", "default"), True, id="bind"
        ),
        pytest.param(
            Attributes(SCHEDULER, "create", "", "pods", "eviction", "default"), False, id="evict"
        ),
        pytest.param(
            Attributes(
                SCHEDULER,
                "update",
                "coordination.k8s.io",
                "leases",
                "",
                "default",
                "kube-scheduler",
            ),
            True,
            id="its-lease-anywhere",
        ),
        pytest.param(
            Attributes(
                SCHEDULER, "update", "coordination.k8s.io", "leases", "", "kube-system", "other"
            ),
            True,
            id="any-lease-in-kube-system",
        ),
        pytest.param(
            Attributes(
                SCHEDULER, "update", "coordination.k8s.io", "leases", "", "default", "other"
            ),
            False,
            id="other-leases-elsewhere",
        ),
        pytest.param(
            Attributes(
                SCHEDULER,
                "get",
                "",
                "configmaps",
                "",
                "kube-system",
                "extension-apiserver-authentication",
            ),
            True,
            id="one-config-map",
        ),
        pytest.param(
            Attributes(ALICE, "create", "authentication.k8s.io", "selfsubjectreviews"),
            True,
            id="who-am-i",
        ),
        pytest.param(
            Attributes(ANONYMOUS, "create", "authentication.k8s.io", "selfsubjectreviews"),
            False,
            id="nobody-is-nobody",
        ),
        pytest.param(Attributes(ANONYMOUS, "get", path="/healthz"), True, id="health"),
        pytest.param(Attributes(ANONYMOUS, "get", path="/api"), False, id="discovery"),
        pytest.param(Attributes(ALICE, "get", path="/apis/apps"), True, id="discovery-of-users"),
        pytest.param(Attributes(ALICE, "post", path="/version"), False, id="write-version"),
        pytest.param(Attributes(ALICE, "get", path="/metrics"), False, id="metrics"),
    ],
)
def test_decide(wanted: Attributes, *, expected: bool) -> None:
    """The default roles decide."""
    assert expected == decide(wanted).is_allowed


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(
            Attributes(ALICE, "update", "", "pods", "status", "default", "p"),
            'pods "p" is forbidden: User "alice" cannot update resource "pods/status" in API '
            'group "" in the namespace "default"',
            id="subresource",
        ),
        pytest.param(
            Attributes(ALICE, "get", path="/metrics"),
            'forbidden: User "alice" cannot get path "/metrics"',
            id="path",
        ),
    ],
)
def test_refusal(wanted: Attributes, expected: str) -> None:
    """A refusal says who may not do what, and where."""
    error = refusal(wanted)
    assert (403, "Forbidden", expected) == (error.code, error.reason, error.message)
