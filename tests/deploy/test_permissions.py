"""Who runs as shipped may do all that the scheduler does, and hold its lock alone."""

from __future__ import annotations

import pytest

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.config.types import LeaderElection
from kubesched.inputs.live_cluster import READ_KINDS, READER_ROLE
from tests.deploy.permissions import rules_of
from tests.deploy.sent_requests import WRITES, Wish, coroutine_methods, sent
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
    "patch events",
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
    """Return the lock that is used."""
    text, gates = configuration_of(way), FeatureGates()
    loaded = default_configuration(gates) if text is None else load_configuration(text, gates)
    return loaded.leader_election


def in_short(wish: Wish) -> str:
    """Return verb and resource."""
    group = "events.k8s.io/" if wish.group == "events.k8s.io" else ""
    return f"{wish.verb} {group}{wish.resource}"


def test_all_writes_are_known() -> None:
    """The scheduler writes this and nothing else."""
    found = {in_short(wish) for wish in sent("kube-system", "kube-scheduler")}
    reads = ("get ", "list ", "watch ")
    assert EXPECTED_WRITES == sorted(one for one in found if not one.startswith(reads))


@pytest.mark.parametrize("writer", WRITES, ids=lambda writer: writer.__name__)
def test_no_write_is_forgotten(writer: type) -> None:
    """All that a writer can do was done for the list above."""
    assert set(WRITES[writer]) == coroutine_methods(writer)


@pytest.mark.parametrize("way", WAYS)
def test_everything_that_is_sent_is_allowed(way: str) -> None:
    """With kube-apiserver's own roles, and those that are shipped."""
    lock, rules = lock_of(way), rules_of(way)
    wishes = sent(lock.resource_namespace, lock.resource_name)
    refused = [wish for wish in wishes if not any(rule.allows(wish) for rule in rules)]
    assert [] == [wish for wish in refused if wish.group != POD_GROUPS]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_allowed_in_passing(way: str) -> None:
    """No secrets, no node writes, no other pods' making, and no wildcards."""
    rules = rules_of(way)
    for wish in (
        Wish("get", "", "secrets", "kube-system", "x"),
        Wish("list", "", "secrets", "", ""),
        Wish("create", "", "pods", "ns", ""),
        Wish("update", "", "nodes", "", "x"),
        Wish("update", "coordination.k8s.io", "leases", "ns", "another"),
    ):
        assert not any(rule.allows(wish) for rule in rules)
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
def test_locks(way: str, expected: str) -> None:
    """Beside kube-scheduler another lock is used, in its place the same one."""
    lock = lock_of(way)
    assert expected == f"{lock.resource_namespace}/{lock.resource_name}"
    assert lock.leader_elect


def test_readers_may_list_and_watch_what_is_read_and_nothing_else() -> None:
    """The ClusterRole that errors and documents name."""
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
