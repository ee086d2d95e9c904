"""Admission fills in what other objects say, and refuses what does not go with them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kubesched.apiserver.admission import admit, admit_delete, check
from kubesched.apiserver.admission.request import AdmissionRequest
from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.status import StatusError

from .verdicts import Objects, resource_of

_POD: Final = resource_of("Pod")
_HIGH: Final = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
_USUAL: Final = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}


def _pod(**spec: Any) -> Plain:
    body = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }
    return with_defaults(_POD, body)


def _admitted(pod: Plain, **objects: list[Plain]) -> Plain:
    spec: Plain = admit(AdmissionRequest(_POD, Objects(**objects)), pod)["spec"]
    return spec


def _refusal(pod: Plain, **objects: list[Plain]) -> str:
    with pytest.raises(StatusError) as caught:
        admit(AdmissionRequest(_POD, Objects(**objects)), pod)
    return caught.value.message


# Priority.


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (0, None, "PreemptLowerPriority"), id="none"),
        pytest.param({"priorityClassName": "high"}, (1000, "high", "Never"), id="class"),
        pytest.param(
            {"priorityClassName": "high", "priority": 1000}, (1000, "high", "Never"), id="both"
        ),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            (2_000_001_000, "system-node-critical", "PreemptLowerPriority"),
            id="system class",
        ),
    ],
)
def test_priority(spec: Plain, expected: tuple[Any, ...]) -> None:
    """A pod gets the priority and the policy of its class."""
    admitted = _admitted(_pod(**spec), priorityclasses=[_HIGH])
    names = ("priority", "priorityClassName", "preemptionPolicy")
    assert expected == tuple(admitted.get(name) for name in names)


def test_default_priority_class() -> None:
    """A pod without a class gets the one for all."""
    admitted = _admitted(_pod(), priorityclasses=[_HIGH, _USUAL])
    assert (7, "usual") == (admitted["priority"], admitted["priorityClassName"])


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"priorityClassName": "nosuch"},
            "no PriorityClass with name nosuch was found",
            id="no such class",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority "
            "admission controller computed 1000 from the given PriorityClass name",
            id="another value",
        ),
        pytest.param(
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority "
            "admission controller computed 0 from the given PriorityClass name",
            id="a value and no class",
        ),
        pytest.param(
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in "
            "pod spec; priority admission controller computed Never from the given PriorityClass "
            "name",
            id="another policy",
        ),
    ],
)
def test_wrong_priorities(spec: Plain, why: str) -> None:
    """A priority and policy in the pod must equal those of its class."""
    message = _refusal(_pod(**spec), priorityclasses=[_HIGH])
    assert f'pods "p" is forbidden: {why}' == message


def test_only_one_default_class() -> None:
    """A second global default is refused; an update of the first is not."""
    resource = resource_of("PriorityClass", "scheduling.k8s.io")
    other = {"metadata": {"name": "other"}, "value": 1, "globalDefault": True}
    objects = Objects(priorityclasses=[_USUAL])
    with pytest.raises(StatusError, match="PriorityClass usual is already marked as default"):
        check(AdmissionRequest(resource, objects), other)
    check(AdmissionRequest(resource, objects, old=_USUAL), _USUAL)


# Namespaces.


def test_missing_namespace() -> None:
    """Nothing is created in a namespace that does not exist."""
    pod = _pod()
    pod["metadata"]["namespace"] = "nosuch"
    assert 'namespaces "nosuch" not found' == _refusal(pod)


def test_terminating_namespace() -> None:
    """Nothing is created in a namespace that is being deleted."""
    pod = _pod()
    pod["metadata"]["namespace"] = "going"
    metadata = {"name": "going", "deletionTimestamp": "2024-01-01T00:00:00Z"}
    going = {"metadata": metadata, "status": {"phase": "Terminating"}}
    expected = (
        'pods "p" is forbidden: unable to create new content in namespace going because it is '
        "being terminated"
    )
    assert expected == _refusal(pod, namespaces=[going])


@pytest.mark.parametrize(
    ("kind", "group", "name"),
    [
        pytest.param("Namespace", "", "kube-system", id="namespace"),
        pytest.param(
            "PriorityClass", "scheduling.k8s.io", "system-node-critical", id="priority class"
        ),
    ],
)
def test_objects_that_cannot_be_deleted(kind: str, group: str, name: str) -> None:
    """Namespaces and priority classes of the system cannot be deleted."""
    with pytest.raises(StatusError) as caught:
        admit_delete(resource_of(kind, group), name)
    assert 403 == caught.value.code
    admit_delete(resource_of(kind, group), "other")


# Nodes and pods.


def test_new_nodes_are_not_ready() -> None:
    """New nodes get the not-ready taint, once."""
    resource = resource_of("Node")
    node = with_defaults(resource, {"metadata": {"name": "n"}})
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    once = admit(AdmissionRequest(resource, Objects()), node)
    assert [taint] == once["spec"]["taints"]
    assert once == admit(AdmissionRequest(resource, Objects()), once)


def test_default_tolerations() -> None:
    """Pods get two tolerations, unless they tolerate these keys themselves."""
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    unreachable = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    assert [own, unreachable] == _admitted(_pod(tolerations=[own]))["tolerations"]
    anything = {"operator": "Exists"}
    assert [anything] == _admitted(_pod(tolerations=[anything]))["tolerations"]


# Storage.


def _class(name: str, *, created: str = "", is_default: bool = True, **more: Any) -> Plain:
    flag = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    metadata = {"name": name, "annotations": flag, "creationTimestamp": created}
    return {"metadata": metadata, "provisioner": "p.example.com", **more}


def _claim(**spec: Any) -> Plain:
    body = {"metadata": {"name": "v", "namespace": "default"}, "spec": spec}
    return with_defaults(resource_of("PersistentVolumeClaim"), body)


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        pytest.param({}, [], None, id="no class"),
        pytest.param({}, [_class("a", is_default=False)], None, id="no default"),
        pytest.param({}, [_class("a")], "a", id="default"),
        pytest.param({"storageClassName": ""}, [_class("a")], "", id="explicitly none"),
        pytest.param({"storageClassName": "b"}, [_class("a")], "b", id="another"),
        pytest.param(
            {},
            [
                _class("a", created="2024-01-01T00:00:00Z"),
                _class("b", created="2024-01-02T00:00:00Z"),
            ],
            "b",
            id="the newest of several",
        ),
    ],
)
def test_default_storage_class(spec: Plain, classes: list[Plain], expected: str | None) -> None:
    """Claims without a class get the default one."""
    resource = resource_of("PersistentVolumeClaim")
    objects = Objects(storageclasses=classes)
    claim = admit(AdmissionRequest(resource, objects), _claim(**spec))
    assert expected == claim["spec"].get("storageClassName")


@pytest.mark.parametrize(
    ("may_grow", "volume", "is_refused"),
    [
        pytest.param(True, "pv", False, id="may grow"),
        pytest.param(False, "pv", True, id="class says no"),
        pytest.param(True, "", True, id="not bound"),
    ],
)
def test_growing_claims(may_grow: bool, volume: str, is_refused: bool) -> None:
    """A bound claim may grow if its class lets it."""
    old, new = (
        _claim(
            storageClassName="a", volumeName=volume, resources={"requests": {"storage": storage}}
        )
        for storage in ("1Gi", "2Gi")
    )
    for claim in (old, new):
        claim["status"] = {"phase": "Bound" if volume else "Pending"}
    resource = resource_of("PersistentVolumeClaim")
    objects = Objects(storageclasses=[_class("a", allowVolumeExpansion=may_grow)])
    if not is_refused:
        check(AdmissionRequest(resource, objects, old=old), new)
        return
    with pytest.raises(StatusError) as caught:
        check(AdmissionRequest(resource, objects, old=old), new)
    assert 403 == caught.value.code


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_admin_access_needs_a_label_of_the_namespace(kind: str) -> None:
    """A claim that asks for it, or a template of such claims, is refused elsewhere."""
    resource = resource_of(kind, "resource.k8s.io")

    def ask(label: str, *, asks: bool) -> None:
        labels = {"resource.kubernetes.io/admin-access": label}
        namespace = {"metadata": {"name": "ns", "labels": labels}}
        requests = [{"name": "a", "exactly": {"adminAccess": one}} for one in (False, asks)]
        spec: Plain = {"devices": {"requests": requests}}
        claim = {
            "metadata": {"name": "c", "namespace": "ns"},
            "spec": spec if kind == "ResourceClaim" else {"spec": spec},
        }
        check(AdmissionRequest(resource, Objects(namespaces=[namespace])), claim)

    ask("true", asks=True)
    ask("false", asks=False)
    with pytest.raises(StatusError) as caught:
        ask("false", asks=True)
    assert caught.value.details is not None
    [cause] = caught.value.details["causes"]
    assert (422, "spec.devices.requests[1].adminAccess") == (caught.value.code, cause["field"])


# Limit ranges and runtime classes.


def _range(**limit: Any) -> Plain:
    metadata = {"name": "r", "namespace": "default"}
    return {"metadata": metadata, "spec": {"limits": [{"type": "Container", **limit}]}}


def test_defaults_of_limit_ranges() -> None:
    """Containers get missing amounts, and the pod an annotation that lists them."""
    found = _range(default={"cpu": "2"}, defaultRequest={"cpu": "1", "memory": "1Gi"})
    pod = admit(AdmissionRequest(_POD, Objects(limitranges=[found])), _pod())
    expected = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    assert expected == pod["spec"]["containers"][0]["resources"]
    note = "LimitRanger plugin set: cpu, memory request for container c; cpu limit for container c"
    assert note == pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"]


@pytest.mark.parametrize(
    ("bounds", "resources", "why"),
    [
        pytest.param({"max": {"cpu": "1"}}, {"limits": {"cpu": "1"}}, None, id="within"),
        pytest.param(
            {"max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but limit is 2",
            id="above",
        ),
        pytest.param(
            {"max": {"cpu": "1"}},
            {},
            "maximum cpu usage per Container is 1.  No limit is specified",
            id="no limit",
        ),
        pytest.param(
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
            id="below",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            id="ratio",
        ),
    ],
)
def test_limit_ranges_bound(bounds: Plain, resources: Plain, why: str | None) -> None:
    """Containers that use too much or too little are refused."""
    pod = _pod(containers=[{"name": "c", "image": "i", "resources": resources}])
    objects = Objects(limitranges=[_range(**bounds)])
    if why is None:
        check(AdmissionRequest(_POD, objects), pod)
        return
    with pytest.raises(StatusError) as caught:
        check(AdmissionRequest(_POD, objects), pod)
    assert f'pods "p" is forbidden: {why}' == caught.value.message


_SANDBOX: Final = {
    "metadata": {"name": "sandbox"},
    "handler": "vm",
    "overhead": {"podFixed": {"cpu": "100m"}},
    "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm"}]},
}


def test_runtime_classes_fill_in() -> None:
    """A pod gets the overhead of its runtime class, and where such pods may go."""
    admitted = _admitted(
        _pod(runtimeClassName="sandbox", nodeSelector={"a": "b"}), runtimeclasses=[_SANDBOX]
    )
    assert {"cpu": "100m"} == admitted["overhead"]
    assert {"a": "b", "vm": "yes"} == admitted["nodeSelector"]
    assert {"key": "vm"} in admitted["tolerations"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"runtimeClassName": "nosuch"},
            'pod rejected: RuntimeClass "nosuch" not found',
            id="no such class",
        ),
        pytest.param(
            {"runtimeClassName": "sandbox", "nodeSelector": {"vm": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
            "pod.spec.nodeSelector[vm] = no",
            id="another place",
        ),
    ],
)
def test_runtime_classes_refuse(spec: Plain, why: str) -> None:
    """A pod that does not go with its runtime class is refused."""
    assert why in _refusal(_pod(**spec), runtimeclasses=[_SANDBOX])


# Services.


def _service(**spec: Any) -> Plain:
    body = {"metadata": {"name": "s", "namespace": "default"}, "spec": spec}
    return with_defaults(resource_of("Service"), body)


def test_services_get_addresses_and_ports() -> None:
    """Addresses and node ports are allocated once."""
    resource = resource_of("Service")
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    first = admit(AdmissionRequest(resource, Objects()), _service(**spec))
    second = admit(AdmissionRequest(resource, Objects(services=[first])), _service(**spec))
    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    assert first["spec"]["ports"][0]["nodePort"] != second["spec"]["ports"][0]["nodePort"]
    assert [first["spec"]["clusterIP"]] == first["spec"]["clusterIPs"]


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ([{"port": 81}, {"port": 80}], [30_000, 31_000]),
        ([{"port": 80, "protocol": "UDP"}], [30_000]),
        ([{"port": 80}, {"port": 81, "nodePort": 31_000}], [30_000, 31_000]),
    ],
    ids=["another port before it", "another protocol", "taken by another port"],
)
def test_an_update_of_a_service_keeps_node_ports(ports: list[Plain], expected: list[int]) -> None:
    """A port without a node port keeps its own, unless the update asks for that elsewhere."""
    resource = resource_of("Service")
    given = _service(type="NodePort", ports=[{"port": 80, "nodePort": 31_000}])
    old = admit(AdmissionRequest(resource, Objects()), given)
    new = _service(type="NodePort", ports=ports)
    spec = admit(AdmissionRequest(resource, Objects(services=[old]), old), new)["spec"]
    assert expected == [port["nodePort"] for port in spec["ports"]]


def test_an_external_service_has_no_addresses() -> None:
    """Another service may have them."""
    resource = resource_of("Service")
    old = admit(AdmissionRequest(resource, Objects()), _service(ports=[{"port": 80}]))
    new = {**old, "spec": {**old["spec"], "type": "ExternalName", "externalName": "a.example"}}
    spec = admit(AdmissionRequest(resource, Objects(services=[old]), old), new)["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & spec.keys()
