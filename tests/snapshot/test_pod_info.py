from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.pod_requests import pod_requests
from kubesched.snapshot.host_ports import ANY_ADDRESS, HostPort
from kubesched.snapshot.pod_info import Derived, PodInfo, PodTemplate
from kubesched.testing.builders import PodFields, make_pod_info

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
TWO_CPU = {"requests": {"cpu": "2"}}
INFEASIBLE = {"type": "PodResizePending", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "reason": "Deferred"}
IN_PROGRESS = {"type": "PodResizeInProgress", "reason": "Error"}


def volume(**source: object) -> PodFields:
    """Return the field of a pod with one volume."""
    return {"volumes": [{"name": "a", **source}]}


def sized(**status: object) -> PodFields:
    """Return the status of a pod that was resized as a whole."""
    return {"status": {"resources": TWO_CPU, **status}}


def claim(name: str) -> PodFields:
    """Return the field of a pod with a volume of this claim."""
    return volume(persistentVolumeClaim={"claimName": name})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({}, {}, id="name"),
        pytest.param({"uid": "1"}, {"uid": "2"}, id="uid"),
        pytest.param({"node_name": "a"}, {"node_name": "b"}, id="node"),
        pytest.param({}, {"start_time": "2026-01-01T00:00:00Z"}, id="start-time"),
        pytest.param({}, {"metadata": {"annotations": {"a": "b"}}}, id="annotations"),
        pytest.param(
            {"volumes": [{"name": "a", "configMap": {"name": "x"}}]},
            {"volumes": [{"name": "b", "configMap": {"name": "y"}}]},
            id="configuration-volumes",
        ),
        pytest.param(claim("x"), claim("y"), id="claims"),
        pytest.param(
            volume(ephemeral={}),
            volume(ephemeral={}),
            id="ephemeral-claims-are-named-by-the-pod",
        ),
        pytest.param({}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="deleted"),
    ],
)
def test_siblings_share_a_template(one: PodFields, other: PodFields) -> None:
    """Pods that are equal in all fields that scheduling reads have the same template."""
    first, second = make_pod_info("a", **one), make_pod_info("b", **other)
    assert first.template is second.template is PodInfo(second.pod, before=first).template


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"namespace": "a"}, {"namespace": "b"}, id="namespace"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"a": "2"}}, id="labels"),
        pytest.param({"requests": {"cpu": 1}}, {"requests": {"cpu": 2}}, id="requests"),
        pytest.param({"requests": {"cpu": 1}}, {"limits": {"cpu": 1}}, id="limits"),
        pytest.param({"priority": 1}, {"priority": 2}, id="priority"),
        pytest.param({"host_ports": [80]}, {"host_ports": [81]}, id="host-ports"),
        pytest.param({}, {"node_selector": {}}, id="empty-node-selector"),
        pytest.param({}, {"tolerations": [{"operator": "Exists"}]}, id="tolerations"),
        pytest.param(
            {},
            {"pod_affinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
            id="affinity",
        ),
        pytest.param({}, {"scheduling_gates": ["wait"]}, id="gates"),
        pytest.param(
            {},
            {"metadata": {"ownerReferences": [{"name": "x", "controller": True}]}},
            id="controller",
        ),
        pytest.param(
            claim("x"),
            volume(ephemeral={}),
            id="claims-and-ephemeral-volumes",
        ),
        pytest.param(
            volume(gcePersistentDisk={"pdName": "x"}),
            volume(gcePersistentDisk={"pdName": "y"}),
            id="disks",
        ),
        pytest.param(
            {},
            {"status": {"initContainerStatuses": [{"name": "s", "resources": TWO_CPU}]}},
            id="resized-sidecar",
        ),
        pytest.param({}, sized(), id="resized-as-a-whole"),
        pytest.param(sized(), sized(allocatedResources={"cpu": "3"}), id="allocated-as-a-whole"),
        pytest.param(
            sized(conditions=[INFEASIBLE]),
            sized(conditions=[DEFERRED, INFEASIBLE]),
            id="first-condition-decides-what-is-infeasible",
        ),
        pytest.param(
            {
                "status": {
                    "initContainerStatuses": [{"name": "s", "resources": TWO_CPU}],
                    "containerStatuses": [{"name": "s", "resources": {}}],
                }
            },
            {
                "status": {
                    "containerStatuses": [
                        {"name": "s", "resources": TWO_CPU},
                        {"name": "s", "resources": {}},
                    ]
                }
            },
            id="name-in-both-lists",
        ),
    ],
)
def test_what_scheduling_reads_tells_templates_apart(one: PodFields, other: PodFields) -> None:
    """Pods that differ in a field that scheduling reads have different templates."""
    first, second = make_pod_info("a", **one), make_pod_info("b", **other)
    assert first.template is not second.template is PodInfo(second.pod, before=first).template


def test_template_answers() -> None:
    """The derived values are those of the pod."""
    pod = make_pod_info(
        labels={"b": "2", "a": "1"},
        requests={"cpu": "500m", "memory": "1Gi", "example.com/gpu": 2},
        host_ports=[80],
        priority=None,
        volumes=[
            {"name": "a", "persistentVolumeClaim": {"claimName": "x"}},
            {"name": "b", "emptyDir": {}},
        ],
        metadata={"ownerReferences": [{"name": "o"}, {"name": "c", "controller": True}]},
    )
    template = pod.template
    assert (("a", "1"), ("b", "2")) == template.label_items
    assert {"cpu": 500, "memory": 1 << 30, "example.com/gpu": 2} == template.requests
    assert template.requests == template.held
    assert (500, 1 << 30) == template.held_non_zero
    assert (HostPort(ANY_ADDRESS, "TCP", 80),) == template.host_ports
    assert ("x",) == pod.claim_names
    assert template.controller is not None
    assert "c" == template.controller.name
    assert template.affinity is None
    assert 0 == pod.priority


def test_held_follows_an_in_place_resize() -> None:
    """Resources in effect count on the node, but not for the incoming pod."""
    pod = make_pod_info(
        requests={"cpu": "1"},
        status={
            "containerStatuses": [
                {"name": "container", "resources": {"requests": {"cpu": "3"}}},
            ]
        },
    )
    assert 1_000 == pod.template.requests["cpu"]
    assert 3_000 == pod.template.held["cpu"]


def test_best_effort_pods_hold_defaults() -> None:
    """A container without requests counts as 100m and 200Mi for scores."""
    assert {} == make_pod_info().template.requests
    assert (100, 200 << 20) == make_pod_info().template.held_non_zero


def test_a_pod_without_uid_is_known_by_its_name() -> None:
    """Two pods without uid are distinguished by namespace and name."""
    assert "ns/a" == make_pod_info("a", namespace="ns", uid="").uid
    assert "default/pod" == make_pod_info().key


_numbers = count()
_amounts = st.dictionaries(st.just("cpu"), st.sampled_from(("1", "3")))
_resources = st.fixed_dictionaries({}, optional={"requests": _amounts})
_reported = {"resources": st.none() | _resources, "allocatedResources": st.none() | _amounts}
_containers = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("ab"), **_reported}), max_size=2
)
_conditions = st.lists(st.sampled_from((INFEASIBLE, DEFERRED, IN_PROGRESS)), max_size=2)
_fields: dict[str, st.SearchStrategy[Any]] = {
    "containerStatuses": _containers,
    "initContainerStatuses": _containers,
    "conditions": _conditions,
    **_reported,
}
_status = st.fixed_dictionaries({}, optional=_fields)
_other_field = st.sampled_from(sorted(_fields)).flatmap(
    lambda name: st.fixed_dictionaries({name: _fields[name]})
)


@settings(max_examples=50)
@given(whole=st.none() | _resources, status=_status, changes=st.lists(_other_field, max_size=10))
def test_a_shared_template_answers_for_every_status(
    whole: Any, status: dict[str, Any], changes: list[dict[str, Any]]
) -> None:
    """Derived values equal those of a template that is not shared."""
    derived = [name for name, value in vars(PodTemplate).items() if _is_derived(value)]
    assert "held" in derived
    namespace = f"ns-{next(_numbers)}"
    asks = {"resources": {"requests": {"cpu": "2"}}}
    spec = {
        "containers": [{"name": "a", **asks}],
        "initContainers": [{"name": "b", "restartPolicy": "Always", **asks}],
        "resources": whole,
    }
    for each in (status, *({**status, **change} for change in changes)):
        pod = make_pod_info(namespace=namespace, spec=spec, status=each)
        fresh = PodTemplate(pod.pod)
        for name in derived:
            assert getattr(fresh, name) == getattr(pod.template, name), name


def _is_derived(value: object) -> bool:
    return isinstance(value, Derived)


_requests = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(("0", "1", "300m")) for name in ("cpu", "memory", "a.b/c")}
)
_asking = st.lists(_requests, max_size=2)


@given(
    containers=_asking,
    init_containers=_asking,
    whole=st.none() | _requests,
    overhead=_requests,
    status=_status,
)
def test_requests_that_are_shared_equal_requests_added_up(
    containers: list[dict[str, str]],
    init_containers: list[dict[str, str]],
    whole: dict[str, str] | None,
    overhead: dict[str, str],
    status: dict[str, Any],
) -> None:
    """A template adds up requests only once if two kinds of them must be equal."""
    listed = [
        [{"name": f"{at}", "resources": {"requests": each}} for at, each in enumerate(requests)]
        for requests in (containers, init_containers)
    ]
    spec: dict[str, Any] = {"containers": listed[0], "initContainers": listed[1]}
    spec |= {"overhead": overhead, "resources": None if whole is None else {"requests": whole}}
    pod = make_pod_info(spec=spec, status=status).pod
    template = PodTemplate(pod)
    assert pod_requests(pod, use_status=True) == template.held
    held = pod_requests(pod, use_status=True, default_missing=True)
    assert (held.get("cpu", 0), held.get("memory", 0)) == template.held_non_zero
    assert pod_requests(pod, pod_level=False, default_missing=True) == template.container_requests
