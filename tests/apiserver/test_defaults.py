"""Defaults are a real server's, and filling them in twice changes nothing."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.validation import errors_of_new

from .recorded import read
from .verdicts import resource_of

_ACCEPTED: Final = [case for case in read("creations") if case["status"] == 201]


def _case(index: int) -> tuple[Any, dict[str, Any]]:
    case = _ACCEPTED[index % len(_ACCEPTED)]
    return resource_of(case["kind"], case["group"], case["version"]), case


@given(st.integers(0, 10_000), st.integers(0, 2**20 - 1))
def test_defaults_are_filled_in_once(index: int, dropped: int) -> None:
    """An object that has its defaults keeps them, whatever part of it was given."""
    resource, case = _case(index)
    body = {**case["body"]}
    for name in ("spec", "metadata", "status"):
        if isinstance(body.get(name), dict):
            fields = enumerate(body[name].items())
            body[name] = {key: one for at, (key, one) in fields if not dropped >> at % 20 & 1}
    once = with_defaults(resource, body)
    assert once == with_defaults(resource, once)


def test_stored_objects_have_their_defaults() -> None:
    """Objects that a real server stored get no further defaults."""
    for case in _ACCEPTED:
        resource = resource_of(case["kind"], case["group"], case["version"])
        assert case["object"] == with_defaults(resource, case["object"])


def test_stored_objects_are_valid() -> None:
    """Objects that a real server stored are valid as new objects, with their defaults."""
    for case in _ACCEPTED:
        resource = resource_of(case["kind"], case["group"], case["version"])
        assert [] == [str(fault) for fault in errors_of_new(resource, case["object"])]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("nginx", "Always", id="no tag"),
        pytest.param("nginx:latest", "Always", id="latest"),
        pytest.param("nginx:1.25", "IfNotPresent", id="tag"),
        pytest.param("registry:5000/nginx", "Always", id="port of the registry"),
        pytest.param("Nginx", "IfNotPresent", id="malformed"),
        pytest.param(f"nginx@sha256:{'0' * 64}", "IfNotPresent", id="digest"),
    ],
)
def test_pull_policies(image: str, policy: str) -> None:
    """Images that may change are pulled always."""
    volume = {"name": "v", "image": {"reference": image}}
    body = {"spec": {"containers": [{"name": "c", "image": image}], "volumes": [volume]}}
    pod = with_defaults(resource_of("Pod"), body)
    assert policy == pod["spec"]["containers"][0]["imagePullPolicy"]
    assert policy == pod["spec"]["volumes"][0]["image"]["pullPolicy"]


def test_requests_come_from_limits() -> None:
    """A limit without a request sets the request."""
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    body = {"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}
    pod = with_defaults(resource_of("Pod"), body)
    expected = {"cpu": "1", "memory": "1Gi"}
    assert expected == pod["spec"]["containers"][0]["resources"]["requests"]


def test_ports_with_host_network() -> None:
    """The host port defaults to the container port."""
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
    body = {"spec": {"containers": [container], "hostNetwork": True}}
    pod = with_defaults(resource_of("Pod"), body)
    expected = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert expected == pod["spec"]["containers"][0]["ports"]


def test_volumes_of_no_kind_are_empty_directories() -> None:
    """A volume needs a source."""
    body = {"spec": {"containers": [], "volumes": [{"name": "v"}]}}
    pod = with_defaults(resource_of("Pod"), body)
    assert [{"name": "v", "emptyDir": {}}] == pod["spec"]["volumes"]


def test_selectors_of_replication_controllers_come_from_their_templates() -> None:
    """Selector and labels default to the labels of the template."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    controller = with_defaults(
        resource_of("ReplicationController"), {"spec": {"template": template}}
    )
    assert {"a": "b"} == controller["spec"]["selector"]
    assert {"a": "b"} == controller["metadata"]["labels"]


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param(
            "Pod",
            {"spec": {"serviceAccount": "robot", "containers": []}},
            ("spec", {"serviceAccountName": "robot", "serviceAccount": "robot"}),
            id="service account",
        ),
        pytest.param(
            "Pod",
            {"spec": {"containers": []}, "status": {"podIP": "10.0.0.1"}},
            ("status", {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}),
            id="address of a pod",
        ),
        pytest.param(
            "Node",
            {"spec": {"podCIDRs": ["10.1.0.0/24"]}},
            ("spec", {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}),
            id="network of a node",
        ),
        pytest.param(
            "Node",
            {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
            ("spec", {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}),
            id="the older name wins",
        ),
    ],
)
def test_fields_with_two_names(
    kind: str, given: dict[str, Any], expected: tuple[str, dict[str, Any]]
) -> None:
    """The older and the newer name of a field get the same value."""
    part, fields = expected
    obj = with_defaults(resource_of(kind), given)
    assert fields == {name: obj[part].get(name) for name in fields}


def test_string_data_of_secrets() -> None:
    """`stringData` is encoded in base64 and overrides `data`."""
    body = {"data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "z"}}
    secret = with_defaults(resource_of("Secret"), body)
    assert {"a": "eg==", "b": "eQ=="} == secret["data"]
    assert "stringData" not in secret


def test_negative_grace_of_pods_is_a_second() -> None:
    """Templates keep what they have."""
    spec = {"containers": [], "terminationGracePeriodSeconds": -5}
    pod = with_defaults(resource_of("Pod"), {"spec": spec})
    template = with_defaults(resource_of("PodTemplate"), {"template": {"spec": spec}})
    assert 1 == pod["spec"]["terminationGracePeriodSeconds"]
    assert -5 == template["template"]["spec"]["terminationGracePeriodSeconds"]


def test_values_of_a_wrong_type_are_bad_requests() -> None:
    """The message names the kind and its version."""
    with pytest.raises(StatusError) as caught:
        with_defaults(resource_of("PriorityClass", "scheduling.k8s.io"), {"value": "high"})
    assert 400 == caught.value.code
    expected = (
        'PriorityClass in version "v1" cannot be handled as a PriorityClass: json: cannot '
        "unmarshal string into Go struct field PriorityClass.value of type int32"
    )
    assert expected == caught.value.message
