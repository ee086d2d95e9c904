"""The shipped roles allow all requests of the scheduler, and its lock only."""

from __future__ import annotations

import pytest

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.config.types import LeaderElection
from kubesched.inputs.live_cluster import READ_KINDS, READER_ROLE
from tests.deploy.permissions import rules_of
from tests.deploy.sent_requests import WRITES, NeededRight, coroutine_methods, sent
from tests.deploy.shipped import DEPLOY, WAYS, configuration_of, objects_of

POD_GROUPS = "scheduling.k8s.io"
"""The group that kube-apiserver serves, and allows schedulers, behind a gate that is off."""

EXPECTED_WRITES = [
    "create events",
    "create events.k8s.io/events",
    "create leases",
    "create pods/binding",
    "create resourceclaims",
    "create subjectaccessreviews",
    "create tokenreviews",
    "delete pods",
    "delete resourceclaims",
    "patch events.k8s.io/events",
    "patch podgroups/status",
    "patch pods/status",
    "patch resourceclaims/status",
    "update leases",
    "update persistentvolumeclaims",
    "update persistentvolumes",
    "update resourceclaims",
    "update resourceclaims/status",
]


def lock_of(way: str) -> LeaderElection:
    """Return the lock of a deployment."""
    text, gates = configuration_of(way), FeatureGates()
    loaded = default_configuration(gates) if text is None else load_configuration(text, gates)
    return loaded.leader_election


def in_short(right: NeededRight) -> str:
    """Return verb and resource."""
    group = "events.k8s.io/" if right.group == "events.k8s.io" else ""
    return f"{right.verb} {group}{right.resource}"


def test_the_list_of_writes_is_complete() -> None:
    """The scheduler sends no others."""
    found = {in_short(right) for right in sent("kube-system", "kube-scheduler")}
    reads = ("get ", "list ", "watch ")
    assert EXPECTED_WRITES == sorted(one for one in found if not one.startswith(reads))


@pytest.mark.parametrize("writer", WRITES, ids=lambda writer: writer.__name__)
def test_every_method_of_the_writers_is_called(writer: type) -> None:
    """For the list above."""
    assert set(WRITES[writer]) == coroutine_methods(writer)


@pytest.mark.parametrize("way", WAYS)
def test_the_roles_allow_every_request(way: str) -> None:
    """kube-apiserver's own roles and the shipped ones."""
    lock, rules = lock_of(way), rules_of(way)
    wishes = sent(lock.resource_namespace, lock.resource_name)
    refused = [right for right in wishes if not any(rule.allows(right) for rule in rules)]
    assert [] == [right for right in refused if right.group != POD_GROUPS]


@pytest.mark.parametrize("way", WAYS)
def test_the_roles_allow_nothing_else(way: str) -> None:
    """No secrets, no writes of nodes, no creation of pods, no wildcards."""
    rules = rules_of(way)
    for right in (
        NeededRight("get", "", "secrets", "kube-system", "x"),
        NeededRight("list", "", "secrets", "", ""),
        NeededRight("create", "", "pods", "ns", ""),
        NeededRight("update", "", "nodes", "", "x"),
        NeededRight("update", "coordination.k8s.io", "leases", "ns", "another"),
    ):
        assert not any(rule.allows(right) for rule in rules)
    words = [word for rule in rules for words in rule.content.values() for word in words]
    assert "*" not in words


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        pytest.param("second-scheduler", "kube-system/kubesched", id="its own"),
        pytest.param("replace-default", "kube-system/kube-scheduler", id="kube-scheduler's"),
        pytest.param("static-pod", "kube-system/kube-scheduler", id="kube-scheduler's too"),
        pytest.param("chart", "kube-system/kubesched", id="the release's"),
    ],
)
def test_lock_names(way: str, expected: str) -> None:
    """Another one beside kube-scheduler, the same one in its place."""
    lock = lock_of(way)
    assert expected == f"{lock.resource_namespace}/{lock.resource_name}"
    assert lock.leader_elect


def test_the_reader_role_allows_list_and_watch_of_read_kinds() -> None:
    """It is the ClusterRole that errors and documents name."""
    (role,) = objects_of((DEPLOY / "rbac" / "reader.yaml").read_text(encoding="utf-8"))
    assert ("ClusterRole", READER_ROLE) == (role["kind"], role["metadata"]["name"])
    assert {"get,list,watch"} == {",".join(rule["verbs"]) for rule in role["rules"]}
    allowed = sorted(
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    )
    assert sorted((kind.group, kind.plural) for kind in READ_KINDS) == allowed
