"""What users may not set is set before an object is checked."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.strategy import prepare_for_create, prepare_for_update

from .verdicts import NOW, resource_of


def _new(kind: str, group: str = "", **body: Any) -> Plain:
    resource = resource_of(kind, group)
    metadata = {"name": "a", "creationTimestamp": NOW, **body.pop("metadata", {})}
    body = {
        "kind": kind,
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "spec": {},
        **body,
    }
    return prepare_for_create(resource, with_defaults(resource, body))


def _pod(**spec: Any) -> Plain:
    containers = [{"name": "c", "image": "i:1"}]
    labels = {"app": "web"}
    return _new("Pod", metadata={"labels": labels}, spec={"containers": containers, **spec})


def _updated(old: Plain, subresource: str = "", **changes: Plain) -> Plain:
    resource = resource_of(old["kind"], old["apiVersion"].rpartition("/")[0])
    new = deepcopy(old)
    for part, fields in changes.items():
        new[part] |= fields
    return prepare_for_update(resource, new, old, subresource)


def test_new_pods_are_pending() -> None:
    """The client's status is dropped, except for the QoS class."""
    assert {"phase": "Pending", "qosClass": "BestEffort"} == _pod()["status"]
    pod = _new(
        "Pod", spec={"containers": []}, status={"phase": "Running", "qosClass": "Guaranteed"}
    )
    assert {"phase": "Pending", "qosClass": "Guaranteed"} == pod["status"]


def test_gated_pods_say_so() -> None:
    """A pod with gates has a condition from its first moment."""
    conditions = _pod(schedulingGates=[{"name": "g"}])["status"]["conditions"]
    expected = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": NOW,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    assert [expected] == conditions


def test_labels_are_merged_into_selectors() -> None:
    """Keys of labels become expressions about the pod's own values."""
    selector = {"matchLabels": {"x": "y"}}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        "matchLabelKeys": ["app", "nosuch"],
    }
    term = {"topologyKey": "zone", "labelSelector": selector, "mismatchLabelKeys": ["app"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = _pod(topologySpreadConstraints=[constraint], affinity=affinity)["spec"]
    found = spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"]
    assert [{"key": "app", "operator": "In", "values": ["web"]}] == found
    required = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found = required[0]["labelSelector"]["matchExpressions"]
    assert [{"key": "app", "operator": "NotIn", "values": ["web"]}] == found


@pytest.mark.parametrize(
    ("subresource", "changes", "generation"),
    [
        pytest.param("", {"metadata": {"labels": {}}}, 1, id="labels"),
        pytest.param("", {"spec": {"priority": 5}}, 2, id="specification"),
        pytest.param("", {"metadata": {"generation": 9}}, 1, id="generation itself"),
        pytest.param("", {"status": {"phase": "Failed"}}, 1, id="status"),
        pytest.param("status", {"status": {"phase": "Failed"}}, 1, id="status itself"),
    ],
)
def test_generations_of_pods(subresource: str, changes: dict[str, Plain], generation: int) -> None:
    """The generation increases with changes of the spec."""
    assert generation == _updated(_pod(), subresource, **changes)["metadata"]["generation"]


def test_statuses_change_through_their_subresource_only() -> None:
    """And nothing else changes through it."""
    old = _pod()
    changes: dict[str, Plain] = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    plain, status = (_updated(old, path, **changes) for path in ("", "status"))
    assert (old["status"], "n") == (plain["status"], plain["spec"]["nodeName"])
    assert ("Running", old["spec"]) == (status["status"]["phase"], status["spec"])


def test_conditions_keep_the_generation_they_were_seen_at() -> None:
    """A client that does not know the field does not drop it."""
    old = _pod()
    condition = {"type": "Ready", "status": "True"}
    old["status"]["conditions"] = [{**condition, "observedGeneration": 3}]
    new = _updated(old, "status", status={"conditions": [condition]})
    assert [{**condition, "observedGeneration": 3}] == new["status"]["conditions"]


def test_resizing_changes_resources_only() -> None:
    """Images, labels and statuses stay as they were."""
    old = _pod()
    resources = {"requests": {"cpu": "1"}}
    container = {**old["spec"]["containers"][0], "image": "other", "resources": resources}
    new = _updated(old, "resize", spec={"containers": [container]}, metadata={"labels": {"b": "c"}})
    expected = {**old["spec"]["containers"][0], "resources": resources}
    assert [expected] == new["spec"]["containers"]
    assert (old["metadata"]["labels"], 2) == (
        new["metadata"]["labels"],
        new["metadata"]["generation"],
    )


def test_fields_of_the_server() -> None:
    """Times of creation and deletion, and the uid, cannot be changed."""
    old = _pod()
    old["metadata"] |= {"uid": "u", "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}
    fields = {"creationTimestamp": "2000-01-01T00:00:00Z", "uid": ""}
    new = _updated(old, metadata=fields)["metadata"]
    assert old["metadata"] == new


def test_new_namespaces() -> None:
    """They are active, have a finalizer, and a label with their name."""
    namespace = _new("Namespace", status={"phase": "Terminating"})
    assert ({"phase": "Active"}, ["kubernetes"]) == (
        namespace["status"],
        namespace["spec"]["finalizers"],
    )
    assert "a" == namespace["metadata"]["labels"]["kubernetes.io/metadata.name"]


def test_new_volumes_wait_since_their_creation() -> None:
    """A volume begins as pending."""
    volume = _new("PersistentVolume", spec={})
    assert {"phase": "Pending", "lastPhaseTransitionTime": NOW} == volume["status"]


def test_nodes_keep_the_status_they_are_created_with() -> None:
    """Other kinds begin with an empty one."""
    status = {"capacity": {"cpu": "4"}}
    assert {"cpu": "4"} == _new("Node", status=status)["status"]["capacity"]
    replica_set = _new("ReplicaSet", "apps", status={"replicas": 3})
    assert {"replicas": 0} == replica_set["status"]


def test_data_sources_of_claims() -> None:
    """`dataSource` and `dataSourceRef` get the same value."""
    source = {"kind": "PersistentVolumeClaim", "name": "b"}
    claim = _new("PersistentVolumeClaim", spec={"dataSource": source})
    expected = {**source, "apiGroup": None}
    assert expected == claim["spec"]["dataSourceRef"] == claim["spec"]["dataSource"]


def test_fields_behind_disabled_gates() -> None:
    """They are dropped."""
    container = {"name": "c", "image": "i", "lifecycle": {"stopSignal": "SIGTERM"}}
    new = _new("Pod", spec={"containers": [container]})
    assert {} == new["spec"]["containers"][0]["lifecycle"]


def test_nothing_that_comes_in_is_changed() -> None:
    """Objects are shared with the store, so they are left alone."""
    for kind, group in (("Pod", ""), ("Namespace", ""), ("Job", "batch"), ("DaemonSet", "apps")):
        resource = resource_of(kind, group)
        body = {"kind": kind, "metadata": {"name": "a", "uid": "u"}, "spec": {"template": {}}}
        obj = with_defaults(resource, body)
        before = deepcopy(obj)
        once = prepare_for_create(resource, obj)
        assert before == obj
        old, new = deepcopy(once), deepcopy(once)
        prepare_for_update(resource, new, old)
        assert (once, once) == (old, new)


def test_new_custom_resources_know_their_stored_version() -> None:
    """Names are completed, and a status that is sent is replaced."""
    versions = [
        {"name": name, "served": True, "storage": name == "v2"} for name in ("v1", "v2", "v3")
    ]
    definition = _new(
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        spec={"group": "x.io", "names": {"plural": "cats", "kind": "Cat"}, "versions": versions},
        status={"storedVersions": ["v7"]},
    )
    names = {"plural": "cats", "kind": "Cat", "singular": "cat", "listKind": "CatList"}
    assert names == definition["spec"]["names"]
    assert {"strategy": "None"} == definition["spec"]["conversion"]
    assert 1 == definition["metadata"]["generation"]
    assert (["v2"], names) == tuple(
        definition["status"][name] for name in ("storedVersions", "acceptedNames")
    )


def test_an_approval_changes_conditions_and_metadata() -> None:
    """Conditions are stored as sent; spec and certificate do not change."""
    old = _new("CertificateSigningRequest", "certificates.k8s.io", spec={"request": "cg=="})
    old["status"] = {"certificate": "Yw=="}
    approved = {"type": "Approved", "status": "True", "reason": "r"}
    new = _updated(
        old,
        "approval",
        metadata={"annotations": {"by": "me"}},
        spec={"request": "bw=="},
        status={"certificate": "bw==", "conditions": [approved]},
    )
    assert "cg==" == new["spec"]["request"]
    assert {"certificate": "Yw==", "conditions": [approved]} == new["status"]
    assert {"by": "me"} == new["metadata"]["annotations"]
