"""Who may do what."""

from __future__ import annotations

import pytest

from kubesched.apiserver.authorization import Attributes, StoredRoles, impersonated, refusal
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.request import ANONYMOUS, ApiRequest, User
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import StatusError
from tests.loops import in_real_time

from .verdicts import Objects

ADMIN = User("admin", ("system:masters",))
ALICE = User("alice", ("system:authenticated",))
MONITORING = User("prometheus", ("system:monitoring",))
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
        pytest.param(Attributes(MONITORING, "get", path="/metrics"), True, id="monitoring"),
    ],
)
def test_decide(wanted: Attributes, *, expected: bool) -> None:
    """The roles that every cluster has decide."""
    roles = StoredRoles(ApiServer().registry.lookup)
    assert expected == roles.decide(wanted).is_allowed


# Roles that somebody stored.


def _role(name: str, *rules: Plain) -> Plain:
    return {"metadata": {"name": name, "namespace": "team"}, "rules": list(rules)}


def _binding(role: str, *subjects: Plain, kind: str = "Role") -> Plain:
    return {
        "metadata": {"name": "b", "namespace": "team"},
        "roleRef": {"kind": kind, "name": role},
        "subjects": list(subjects),
    }


READER = _role("reader", {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/status"]})
PICKY = _role(
    "picky",
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["leases"], "resourceNames": ["mine"]},
    {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]},
)
TO_ALICE = {"kind": "User", "name": "alice"}
ROBOT = User("system:serviceaccount:team:robot")


@pytest.mark.parametrize(
    ("subject", "wanted", "expected"),
    [
        pytest.param(TO_ALICE, Attributes(ALICE, "get", "", "pods", "", "team"), True, id="user"),
        pytest.param(
            {"kind": "Group", "name": "system:authenticated"},
            Attributes(ALICE, "get", "", "pods", "", "team"),
            True,
            id="group",
        ),
        pytest.param(
            {"kind": "ServiceAccount", "name": "robot"},
            Attributes(ROBOT, "get", "", "pods", "", "team"),
            True,
            id="service account of the namespace",
        ),
        pytest.param(
            {"kind": "ServiceAccount", "name": "robot", "namespace": "other"},
            Attributes(ROBOT, "get", "", "pods", "", "team"),
            False,
            id="service account of another namespace",
        ),
        pytest.param(
            TO_ALICE, Attributes(ALICE, "get", "", "pods", "", "other"), False, id="elsewhere"
        ),
        pytest.param(TO_ALICE, Attributes(ALICE, "get", "", "pods"), False, id="everywhere"),
        pytest.param(
            TO_ALICE, Attributes(ALICE, "list", "", "pods", "", "team"), False, id="another verb"
        ),
        pytest.param(
            TO_ALICE, Attributes(ALICE, "get", "", "pods", "log", "team"), False, id="subresource"
        ),
        pytest.param(
            TO_ALICE,
            Attributes(ALICE, "get", "", "nodes", "status", "team"),
            True,
            id="one subresource of everything",
        ),
        pytest.param(
            TO_ALICE, Attributes(ALICE, "get", "apps", "pods", "", "team"), False, id="group"
        ),
    ],
)
def test_roles_of_a_namespace(subject: Plain, wanted: Attributes, *, expected: bool) -> None:
    """A role gives its rules to the subjects of its bindings, in its namespace."""
    objects = Objects(roles=[READER], rolebindings=[_binding("reader", subject)])
    assert expected == StoredRoles(objects).decide(wanted).is_allowed


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(
            Attributes(ALICE, "patch", "any.io", "leases", "", "team", "mine"), True, id="its name"
        ),
        pytest.param(
            Attributes(ALICE, "patch", "any.io", "leases", "", "team", "other"), False, id="another"
        ),
        pytest.param(Attributes(ALICE, "list", "", "leases"), False, id="all names"),
        pytest.param(Attributes(ALICE, "get", path="/metrics"), True, id="path"),
        pytest.param(Attributes(ALICE, "get", path="/logs/x"), True, id="paths below"),
        pytest.param(Attributes(ALICE, "get", path="/metrics/x"), False, id="no path below"),
        pytest.param(Attributes(ALICE, "post", path="/metrics"), False, id="verb of a path"),
    ],
)
def test_roles_of_the_cluster(wanted: Attributes, *, expected: bool) -> None:
    """A role of the cluster gives its rules everywhere, or on objects of some names."""
    objects = Objects(
        clusterroles=[PICKY],
        clusterrolebindings=[_binding("picky", TO_ALICE, kind="ClusterRole")],
    )
    assert expected == StoredRoles(objects).decide(wanted).is_allowed


def test_a_rule_that_names_no_resources() -> None:
    """It allows nothing."""
    rule = {"verbs": ["get"], "apiGroups": [""]}
    objects = Objects(roles=[_role("empty", rule)], rolebindings=[_binding("empty", TO_ALICE)])
    wanted = Attributes(ALICE, "get", "", "pods", "", "team")
    assert not StoredRoles(objects).decide(wanted).is_allowed


def test_reasons() -> None:
    """A decision names the binding, or the role that is missing."""
    wanted = Attributes(ALICE, "get", "", "pods", "", "team")
    found = Objects(roles=[READER], rolebindings=[_binding("reader", TO_ALICE)])
    missing = Objects(rolebindings=[_binding("reader", TO_ALICE)])
    assert StoredRoles(found).decide(wanted).reason == (
        'RBAC: allowed by RoleBinding "b/team" of Role "reader" to User "alice"'
    )
    with pytest.raises(StatusError, match=r'RBAC: role\.\S+ "reader" not found'):
        StoredRoles(missing).check(wanted)


def test_rules() -> None:
    """All that a user may do in a namespace is listed."""
    objects = Objects(roles=[READER], rolebindings=[_binding("reader", TO_ALICE)])
    assert StoredRoles(objects).rules(ALICE, "team") == READER["rules"]
    assert StoredRoles(objects).rules(ALICE, "other") == []


# Speaking for others.


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, ADMIN, id="nobody else"),
        pytest.param(
            {"impersonate-user": "bob", "impersonate-group": "a, b"},
            User("bob", ("a", "b", "system:authenticated")),
            id="user with groups",
        ),
        pytest.param(
            {"impersonate-user": "system:serviceaccount:team:robot", "impersonate-uid": "u"},
            User(
                "system:serviceaccount:team:robot",
                (
                    "system:serviceaccounts",
                    "system:serviceaccounts:team",
                    "system:authenticated",
                ),
                "u",
            ),
            id="service account",
        ),
        pytest.param({"impersonate-user": ANONYMOUS.name}, ANONYMOUS, id="anonymous"),
    ],
)
def test_impersonation(headers: dict[str, str], expected: User) -> None:
    """An administrator may impersonate any user, with the user's groups."""
    assert expected == impersonated(headers, ADMIN, StoredRoles(Objects()))


def test_impersonation_needs_a_rule() -> None:
    """The right to impersonate a user does not include groups."""
    rule = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]}
    binding = _binding("reader", TO_ALICE, kind="ClusterRole")
    objects = Objects(clusterroles=[_role("reader", rule)], clusterrolebindings=[binding])
    headers = {"impersonate-user": "bob"}
    assert impersonated(headers, ALICE, StoredRoles(objects)).name == "bob"
    with pytest.raises(StatusError, match='cannot impersonate resource "groups"'):
        impersonated(
            {**headers, "impersonate-group": "system:masters"}, ALICE, StoredRoles(objects)
        )


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
def test_message_of_a_refusal(wanted: Attributes, expected: str) -> None:
    """The message names the user, the verb, the resource and the namespace."""
    error = refusal(wanted)
    assert (403, "Forbidden", expected) == (error.code, error.reason, error.message)


@in_real_time
async def test_a_change_of_a_binding_counts_at_once() -> None:
    """Cached decisions are dropped when a binding is stored or deleted."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    pods = ApiRequest("GET", "/api/v1/pods", user=ALICE)
    body = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [TO_ALICE],
    }
    json = {"content-type": "application/json"}
    server = ApiServer()
    assert [403, 201, 200, 200, 403] == [
        (await server.handle(request)).status
        for request in (
            pods,
            ApiRequest("POST", path, headers=json, body=encode(body), user=ADMIN),
            pods,
            ApiRequest("DELETE", f"{path}/b", user=ADMIN),
            pods,
        )
    ]


RBAC = "/apis/rbac.authorization.k8s.io/v1"
READ_PODS: Plain = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
WRITE_ROLES: Plain = {
    "verbs": ["create", "patch"],
    "apiGroups": ["rbac.authorization.k8s.io"],
    "resources": ["roles", "rolebindings"],
}


def _new_role(*rules: Plain) -> Plain:
    return {"metadata": {"name": "new"}, "rules": list(rules)}


def _new_binding(role: str) -> Plain:
    return {
        "metadata": {"name": "new"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [TO_ALICE],
    }


@pytest.mark.parametrize(
    ("plural", "body", "held", "expected"),
    [
        pytest.param("roles", _new_role(READ_PODS), [READ_PODS], 201, id="has-the-rights"),
        pytest.param("roles", _new_role(READ_PODS), [], 403, id="has-not"),
        pytest.param(
            "roles",
            _new_role({**READ_PODS, "resources": ["pods", "pods/log"]}),
            [READ_PODS],
            403,
            id="has-some",
        ),
        pytest.param(
            "roles",
            _new_role(READ_PODS),
            [{**WRITE_ROLES, "verbs": ["escalate"]}],
            201,
            id="may-escalate",
        ),
        pytest.param("rolebindings", _new_binding("cluster-admin"), [], 403, id="binds-admin"),
        pytest.param("rolebindings", _new_binding("no-such-role"), [], 404, id="binds-nothing"),
        pytest.param(
            "rolebindings",
            _new_binding("cluster-admin"),
            [{**WRITE_ROLES, "verbs": ["bind"], "resources": ["clusterroles"]}],
            201,
            id="may-bind",
        ),
    ],
)
@in_real_time
async def test_granting_needs_the_granted_rights(
    plural: str, body: Plain, held: list[Plain], expected: int
) -> None:
    """Writers of roles and bindings need the rights in them, or `escalate` or `bind`."""
    json = {"content-type": "application/json"}
    role = {"metadata": {"name": "held"}, "rules": [WRITE_ROLES, *held]}
    binding = {
        "metadata": {"name": "held"},
        "roleRef": {"kind": "ClusterRole", "name": "held"},
        "subjects": [TO_ALICE],
    }
    server = ApiServer()
    assert [201, 201, expected] == [
        (await server.handle(request)).status
        for request in (
            ApiRequest("POST", f"{RBAC}/clusterroles", {}, json, encode(role), ADMIN),
            ApiRequest("POST", f"{RBAC}/clusterrolebindings", {}, json, encode(binding), ADMIN),
            ApiRequest(
                "POST", f"{RBAC}/namespaces/default/{plural}", {}, json, encode(body), ALICE
            ),
        )
    ]


@in_real_time
async def test_changing_only_metadata_of_a_role() -> None:
    """Changing the labels of a role does not need its rights."""
    json = {"content-type": "application/json"}
    merge = {"content-type": "application/merge-patch+json"}
    place = f"{RBAC}/namespaces/default/roles"
    label = encode({"metadata": {"labels": {"a": "b"}}})
    more = encode({"rules": [{**READ_PODS, "verbs": ["delete"]}]})
    grants = (
        ("clusterroles", {"metadata": {"name": "held"}, "rules": [WRITE_ROLES]}),
        ("clusterrolebindings", {**_new_binding("held"), "metadata": {"name": "held"}}),
        ("namespaces/default/roles", _new_role(READ_PODS)),
    )
    server = ApiServer()
    requests = [
        *(
            ApiRequest("POST", f"{RBAC}/{where}", {}, json, encode(one), ADMIN)
            for where, one in grants
        ),
        *(ApiRequest("PATCH", f"{place}/new", {}, merge, body, ALICE) for body in (label, more)),
    ]
    assert [201, 201, 201, 200, 403] == [
        (await server.handle(request)).status for request in requests
    ]


RESERVED = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}


@pytest.mark.parametrize(
    ("more", "changes", "expected"),
    [
        pytest.param([], RESERVED, 422, id="reserves"),
        pytest.param([], {"status": {"allocation": {}}}, 422, id="allocates"),
        pytest.param([], {"status": {"devices": []}}, 200, id="neither"),
        pytest.param([], {**RESERVED, "metadata": {"resourceVersion": "1"}}, 409, id="stale"),
        pytest.param(["resourceclaims/binding"], RESERVED, 200, id="may-bind"),
    ],
)
@in_real_time
async def test_binding_a_claim_needs_a_right_of_its_own(
    more: list[str], changes: Plain, expected: int
) -> None:
    """Who writes its status must also be allowed to write the subresource `binding`."""
    json = {"content-type": "application/json"}
    merge = {"content-type": "application/merge-patch+json"}
    group = "resource.k8s.io"
    resources = ["resourceclaims/status", *more]
    rule = {"verbs": ["patch"], "apiGroups": [group], "resources": resources}
    claims = f"/apis/{group}/v1/namespaces/default/resourceclaims"
    requests = [{"name": "a", "exactly": {"deviceClassName": "gpus"}}]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    server = ApiServer()
    for path, obj in (
        (f"{RBAC}/clusterroles", {"metadata": {"name": "held"}, "rules": [rule]}),
        (f"{RBAC}/clusterrolebindings", {**_new_binding("held"), "metadata": {"name": "held"}}),
        (claims, claim),
    ):
        request = ApiRequest("POST", path, {}, json, encode(obj), ADMIN)
        assert 201 == (await server.handle(request)).status
    request = ApiRequest("PATCH", f"{claims}/c/status", {}, merge, encode(changes), ALICE)
    assert expected == (await server.handle(request)).status
