"""Warnings about what is accepted."""

# ruff: noqa: E501  # messages read better in one piece

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.advice import warnings_of_new, warnings_of_update
from kubesched.apiserver.resource import Resource
from kubesched.apiserver.resources import RESOURCES

NULL = "a null labelSelector results in matching no pod"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONE_MESSAGE = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'


def found(kind: str, api_version: str = "v1") -> Resource:
    """The resource of a kind."""
    resource = RESOURCES.find_kind(api_version, kind)
    assert resource is not None
    return resource


def about_pod(spec: dict[str, Any], name: str = "p", **metadata: Any) -> list[str]:
    """Return the warnings about a new pod."""
    pod = {"metadata": {"name": name, **metadata}, "spec": spec}
    return warnings_of_new(found("Pod"), pod)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"nodeSelector": {OLD_ZONE: "z"}},
            [f"spec.nodeSelector[{OLD_ZONE}]: {ZONE_MESSAGE}"],
            id="old-label",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": OLD_ZONE}]}]
                        },
                        PREFERRED: [{"preference": {"matchExpressions": [{"key": OLD_ZONE}]}}],
                    }
                }
            },
            [
                (
                    f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
                    f".key: {OLD_ZONE} is {ZONE_MESSAGE}"
                ),
                (
                    f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].key: "
                    f"{OLD_ZONE} is {ZONE_MESSAGE}"
                ),
            ],
            id="node-affinity",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"topologyKey": OLD_ZONE, "labelSelector": {}},
                    {"topologyKey": "zone"},
                ]
            },
            [
                f"spec.topologySpreadConstraints[0].topologyKey: {OLD_ZONE} is {ZONE_MESSAGE}",
                f"spec.topologySpreadConstraints[1].labelSelector: {NULL}",
            ],
            id="spread",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {REQUIRED: [{}, {"labelSelector": {}}]},
                    "podAntiAffinity": {PREFERRED: [{"podAffinityTerm": {}}]},
                }
            },
            [
                f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector: {NULL}",
                (
                    f"spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.labelSelector: "
                    f"{NULL}"
                ),
            ],
            id="pod-affinity",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "storageos": {}}]},
            ["spec.volumes[0].storageOS: deprecated in v1.22, non-functional in v1.25+"],
            id="volume",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]},
            ['spec.hostAliases[1].ip: duplicate ip "1.1.1.1"'],
            id="host-aliases",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
            id="secrets",
        ),
        pytest.param(
            {
                "containers": [{"resources": {"requests": {"memory": "100m", "cpu": "100m"}}}],
                "overhead": {"memory": "1Gi"},
            },
            [
                (
                    'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is '
                    "invalid, must be an integer"
                )
            ],
            id="fractions",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "env": [
                            {"name": "A", "value": "1"},
                            {"name": "A", "value": "$(A)2"},
                            {"name": "A", "value": "3"},
                        ]
                    }
                ]
            },
            [
                (
                    'spec.containers[0].env[2]: hides previous definition of "A", which may be dropped '
                    "when using apply"
                )
            ],
            id="environment",
        ),
        pytest.param(
            {
                "containers": [
                    {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "w"}]},
                    {
                        "ports": [
                            {"containerPort": 80, "protocol": "TCP"},
                            {"containerPort": 80, "protocol": "TCP", "hostPort": 8},
                            {"containerPort": 81, "protocol": "TCP", "name": "w"},
                        ]
                    },
                ]
            },
            [
                (
                    "spec.containers[1].ports[0]: duplicate port definition with "
                    "spec.containers[0].ports[0]"
                ),
                (
                    "spec.containers[1].ports[1]: overlapping port definition with "
                    "spec.containers[0].ports[0]"
                ),
                (
                    "spec.containers[1].ports[1]: overlapping port definition with "
                    "spec.containers[1].ports[0]"
                ),
                (
                    'spec.containers[1].ports[2]: duplicate port name "w" with '
                    "spec.containers[0].ports[0], services and probes that select ports by name will "
                    "use spec.containers[0].ports[0]"
                ),
            ],
            id="ports",
        ),
        pytest.param(
            {"terminationGracePeriodSeconds": -1},
            [
                (
                    "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid "
                    "and will be treated as 1"
                )
            ],
            id="grace",
        ),
    ],
)
def test_pods(spec: dict[str, Any], expected: list[str]) -> None:
    """What is hardly meant is told, with the field."""
    assert expected == about_pod(spec)


def test_names_and_annotations() -> None:
    """A name that is no host name, and an annotation without effect, are told."""
    assert about_pod({}, "a.b") == [
        (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            "behavior; a DNS label is recommended: [must not contain dots]"
        )
    ]
    key = "scheduler.alpha.kubernetes.io/critical-pod"
    assert about_pod({}, annotations={key: ""}) == [
        (
            f"metadata.annotations[{key}]: non-functional in v1.16+; use the "
            '"priorityClassName" field instead'
        )
    ]


def test_updates() -> None:
    """Templates are looked at when they change; pods and statuses never."""
    kind = found("ReplicaSet", "apps/v1")
    spec = {"topologySpreadConstraints": [{"topologyKey": "zone"}]}
    old = {"metadata": {"name": "r", "generation": 1}, "spec": {"template": {"spec": spec}}}
    new = {**old, "metadata": {"name": "r", "generation": 2}}
    expected = [f"spec.template.spec.topologySpreadConstraints[0].labelSelector: {NULL}"]
    assert expected == warnings_of_update(kind, new, old, "") == warnings_of_new(kind, new)
    assert warnings_of_update(kind, old, old, "") == []
    assert warnings_of_update(kind, new, old, "status") == []
    assert warnings_of_update(found("Pod"), {"spec": spec}, {}, "") == []


@pytest.mark.parametrize(
    ("kind", "api_version", "obj", "expected"),
    [
        pytest.param(
            "Node",
            "v1",
            {"spec": {"externalID": "x", "configSource": {}}},
            [
                "spec.configSource: the feature is removed",
                "spec.externalID: this field is deprecated, and is unused by Kubernetes",
            ],
            id="node",
        ),
        pytest.param(
            "PersistentVolume",
            "v1",
            {
                "metadata": {"annotations": {"volume.beta.kubernetes.io/mount-options": ""}},
                "spec": {
                    "rbd": {},
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": OLD_ZONE}]}]
                        }
                    },
                },
            },
            [
                (
                    "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since "
                    'v1.31; use "mountOptions" attribute instead'
                ),
                (
                    "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: "
                    f"{OLD_ZONE} is {ZONE_MESSAGE}"
                ),
                "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
            ],
            id="volume",
        ),
        pytest.param(
            "StorageClass",
            "storage.k8s.io/v1",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": OLD_ZONE}]}]},
            [f"allowedTopologies[0].matchLabelExpressions[0].key: {ZONE_MESSAGE}"],
            id="storage-class",
        ),
        pytest.param("ConfigMap", "v1", {"data": {}}, [], id="others"),
    ],
)
def test_other_kinds(kind: str, api_version: str, obj: dict[str, Any], expected: list[str]) -> None:
    """Nodes, volumes and storage classes have warnings of their own."""
    assert expected == warnings_of_new(found(kind, api_version), obj)
