"""Warnings about what is accepted."""

# ruff: noqa: E501  # messages read better in one piece

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.advice import warnings_of_new, warnings_of_update
from kubesched.apiserver.resources import RESOURCES, Resource

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


WORKLOAD_NAME = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
    "behavior; a DNS label is recommended: [must not contain dots]"
)
HALF = {"resources": {"requests": {"storage": "500m"}, "limits": {"storage": "1"}}}
ALL_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is "
    "recommended"
)
TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
    "prevent possible logging of tokens in volume attributes"
)


@pytest.mark.parametrize(
    ("kind", "api_version", "is_told"),
    [
        pytest.param("Deployment", "apps/v1", True, id="deployment"),
        pytest.param("ReplicaSet", "apps/v1", True, id="replica set"),
        pytest.param("ReplicationController", "v1", True, id="controller"),
        pytest.param("Job", "batch/v1", True, id="job"),
        pytest.param("CronJob", "batch/v1", True, id="cron job"),
        pytest.param("StatefulSet", "apps/v1", False, id="stateful set"),
        pytest.param("DaemonSet", "apps/v1", False, id="daemon set"),
    ],
)
def test_names_that_become_those_of_pods(
    kind: str, api_version: str, is_told: bool
) -> None:  # a column of the table
    """A dot in a name is told where pods are named after it, and only when it is new."""
    obj = {"metadata": {"name": "a.b"}, "spec": {}}
    resource = found(kind, api_version)
    assert ([WORKLOAD_NAME] if is_told else []) == warnings_of_new(resource, obj)
    assert [] == warnings_of_update(resource, obj, obj, "")


@pytest.mark.parametrize(
    ("kind", "api_version", "obj", "expected"),
    [
        pytest.param(
            "PersistentVolumeClaim",
            "v1",
            {"spec": HALF},
            [
                (
                    'spec.resources.requests[storage]: fractional byte value "500m" is invalid, '
                    "must be an integer"
                )
            ],
            id="half a byte",
        ),
        pytest.param(
            "StatefulSet",
            "apps/v1",
            {"spec": {"volumeClaimTemplates": [{"spec": HALF}], "revisionHistoryLimit": -1}},
            [
                (
                    "spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte "
                    'value "500m" is invalid, must be an integer'
                ),
                ALL_HISTORY,
            ],
            id="stateful set",
        ),
        pytest.param(
            "PodTemplate",
            "v1",
            {
                "template": {
                    "spec": {
                        "volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": HALF}}}],
                    }
                }
            },
            [
                (
                    "template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources"
                    '.requests[storage]: fractional byte value "500m" is invalid, must be an '
                    "integer"
                )
            ],
            id="a claim inside of a pod",
        ),
        pytest.param(
            "CSIDriver",
            "storage.k8s.io/v1",
            {"spec": {"tokenRequests": [{"audience": "a"}]}},
            [TOKENS],
            id="tokens",
        ),
        pytest.param(
            "CSIDriver",
            "storage.k8s.io/v1",
            {
                "spec": {
                    "tokenRequests": [{"audience": "a"}],
                    "serviceAccountTokenInSecrets": False,
                }
            },
            [],
            id="tokens by choice",
        ),
        pytest.param(
            "ResourceSlice",
            "resource.k8s.io/v1",
            {"spec": {"driver": "A.com"}},
            [
                (
                    'spec.driver: driver names should be lowercase; "A.com" contains uppercase '
                    "characters"
                )
            ],
            id="driver",
        ),
        pytest.param(
            "RuntimeClass",
            "node.k8s.io/v1",
            {"scheduling": {"nodeSelector": {OLD_ZONE: "z"}}},
            [f"scheduling.nodeSelector: {ZONE_MESSAGE}"],
            id="runtime class",
        ),
        pytest.param(
            "Service",
            "v1",
            {
                "spec": {
                    "type": "ClusterIP",
                    "clusterIP": "None",
                    "sessionAffinity": "ClientIP",
                    "externalName": "e",
                    "trafficDistribution": "PreferClose",
                }
            },
            [
                "spec.SessionAffinity is ignored for headless services",
                'spec.externalName is ignored when spec.type is not "ExternalName"',
                'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
            ],
            id="headless service",
        ),
        pytest.param(
            "Service",
            "v1",
            {"spec": {"type": "ClusterIP", "externalIPs": ["1.2.3.4"]}},
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
            id="service",
        ),
        pytest.param(
            "Job",
            "batch/v1",
            {
                "metadata": {"name": "j"},
                "spec": {
                    "completionMode": "Indexed",
                    "completions": 100_001,
                    "parallelism": 10_001,
                },
            },
            [
                (
                    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a "
                    "parallelism higher than 10^4, Kubernetes might not be able to track "
                    "completedIndexes when a big number of indexes fail"
                )
            ],
            id="job",
        ),
        pytest.param(
            "Ingress",
            "networking.k8s.io/v1",
            {"metadata": {"annotations": {"kubernetes.io/ingress.class": "a"}}},
            [
                (
                    'annotation "kubernetes.io/ingress.class" is deprecated, please use '
                    "'spec.ingressClassName' instead"
                )
            ],
            id="ingress",
        ),
    ],
)
def test_kinds_that_are_checked_once(
    kind: str, api_version: str, obj: dict[str, Any], expected: list[str]
) -> None:
    """What is new and hardly meant is told by kind."""
    assert expected == warnings_of_new(found(kind, api_version), obj)


def test_what_is_told_of_changes_only() -> None:
    """Changed tokens are told and others are not; the schedule of a cron job is told then."""
    driver = found("CSIDriver", "storage.k8s.io/v1")
    old, new = ({"spec": {"tokenRequests": [{"audience": one}]}} for one in "ab")
    assert [] == warnings_of_update(driver, old, old, "")
    assert [TOKENS] == warnings_of_update(driver, new, old, "")
    job = found("CronJob", "batch/v1")
    spec = {"metadata": {"name": "c"}, "spec": {"schedule": "CRON_TZ=UTC * * * * *"}}
    (warning,) = warnings_of_update(job, spec, spec, "")
    assert warning.startswith("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone")
    assert [] == warnings_of_new(job, spec)


def test_a_changed_stateful_set() -> None:
    """Its claims are told by a name that no field has, and with every change."""
    resource = found("StatefulSet", "apps/v1")
    obj = {"spec": {"volumeClaimTemplates": [{"spec": HALF}], "revisionHistoryLimit": -1}}
    half, history = warnings_of_update(resource, obj, obj, "")
    assert half.startswith("spec.volumeClaimTemplates[0].Spec.resources.requests[storage]: ")
    assert ALL_HISTORY == history


def test_a_changed_replication_controller() -> None:
    """The template that it had is told of, not the one that it has."""
    resource = found("ReplicationController")
    odd = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": -1}}}}
    old, new = {"metadata": {"generation": 1}}, {"metadata": {"generation": 2}}
    fine: dict[str, Any] = {"spec": {"template": {"spec": {}}}}
    assert [] == warnings_of_update(resource, {**new, **odd}, {**old, **fine}, "")
    assert 1 == len(warnings_of_update(resource, {**new, **fine}, {**old, **odd}, ""))
