"""The table of resources: every group, version, kind and subresource that is served.

Upstream: pkg/controlplane/instance.go, pkg/registry/*/rest (v1.36)
Differs:  custom resources and aggregated API servers are not served.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.apiserver.resource import GroupVersion, Resource, Subresource

_READ_WRITE: Final = ("get", "patch", "update")
_SCALE: Final = Subresource("scale", "Scale", _READ_WRITE, group="autoscaling", version="v1")


def _status(kind: str) -> Subresource:
    return Subresource("status", kind, _READ_WRITE)


_TABLE: Final = (
    GroupVersion(
        "",
        "v1",
        (
            Resource("bindings", "Binding", verbs=("create",)),
            Resource(
                "componentstatuses",
                "ComponentStatus",
                is_namespaced=False,
                verbs=("get", "list"),
                short_names=("cs",),
            ),
            Resource("configmaps", "ConfigMap", short_names=("cm",)),
            Resource("endpoints", "Endpoints", short_names=("ep",)),
            Resource("events", "Event", short_names=("ev",)),
            Resource("limitranges", "LimitRange", short_names=("limits",)),
            Resource(
                "namespaces",
                "Namespace",
                is_namespaced=False,
                verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
                short_names=("ns",),
                subresources=(
                    Subresource("finalize", "Namespace", ("update",)),
                    _status("Namespace"),
                ),
            ),
            Resource(
                "nodes",
                "Node",
                is_namespaced=False,
                short_names=("no",),
                subresources=(
                    Subresource(
                        "proxy", "NodeProxyOptions", ("create", "delete", "get", "patch", "update")
                    ),
                    _status("Node"),
                ),
            ),
            Resource(
                "persistentvolumeclaims",
                "PersistentVolumeClaim",
                short_names=("pvc",),
                subresources=(_status("PersistentVolumeClaim"),),
            ),
            Resource(
                "persistentvolumes",
                "PersistentVolume",
                is_namespaced=False,
                short_names=("pv",),
                subresources=(_status("PersistentVolume"),),
            ),
            Resource(
                "pods",
                "Pod",
                short_names=("po",),
                categories=("all",),
                subresources=(
                    Subresource("attach", "PodAttachOptions", ("create", "get")),
                    Subresource("binding", "Binding", ("create",)),
                    Subresource("ephemeralcontainers", "Pod", ("get", "patch", "update")),
                    Subresource("eviction", "Eviction", ("create",), group="policy", version="v1"),
                    Subresource("exec", "PodExecOptions", ("create", "get")),
                    Subresource("log", "Pod", ("get",)),
                    Subresource("portforward", "PodPortForwardOptions", ("create", "get")),
                    Subresource(
                        "proxy", "PodProxyOptions", ("create", "delete", "get", "patch", "update")
                    ),
                    Subresource("resize", "Pod", ("get", "patch", "update")),
                    _status("Pod"),
                ),
            ),
            Resource("podtemplates", "PodTemplate"),
            Resource(
                "replicationcontrollers",
                "ReplicationController",
                short_names=("rc",),
                categories=("all",),
                subresources=(
                    _SCALE,
                    _status("ReplicationController"),
                ),
            ),
            Resource(
                "resourcequotas",
                "ResourceQuota",
                short_names=("quota",),
                subresources=(_status("ResourceQuota"),),
            ),
            Resource("secrets", "Secret"),
            Resource(
                "serviceaccounts",
                "ServiceAccount",
                short_names=("sa",),
                subresources=(
                    Subresource(
                        "token",
                        "TokenRequest",
                        ("create",),
                        group="authentication.k8s.io",
                        version="v1",
                    ),
                ),
            ),
            Resource(
                "services",
                "Service",
                short_names=("svc",),
                categories=("all",),
                subresources=(
                    Subresource(
                        "proxy",
                        "ServiceProxyOptions",
                        ("create", "delete", "get", "patch", "update"),
                    ),
                    _status("Service"),
                ),
            ),
        ),
    ),
    GroupVersion(
        "apiregistration.k8s.io",
        "v1",
        (
            Resource(
                "apiservices",
                "APIService",
                is_namespaced=False,
                categories=("api-extensions",),
                subresources=(_status("APIService"),),
            ),
        ),
    ),
    GroupVersion(
        "apps",
        "v1",
        (
            Resource("controllerrevisions", "ControllerRevision"),
            Resource(
                "daemonsets",
                "DaemonSet",
                short_names=("ds",),
                categories=("all",),
                subresources=(_status("DaemonSet"),),
            ),
            Resource(
                "deployments",
                "Deployment",
                short_names=("deploy",),
                categories=("all",),
                subresources=(
                    _SCALE,
                    _status("Deployment"),
                ),
            ),
            Resource(
                "replicasets",
                "ReplicaSet",
                short_names=("rs",),
                categories=("all",),
                subresources=(
                    _SCALE,
                    _status("ReplicaSet"),
                ),
            ),
            Resource(
                "statefulsets",
                "StatefulSet",
                short_names=("sts",),
                categories=("all",),
                subresources=(
                    _SCALE,
                    _status("StatefulSet"),
                ),
            ),
        ),
    ),
    GroupVersion(
        "events.k8s.io",
        "v1",
        (Resource("events", "Event", short_names=("ev",)),),
    ),
    GroupVersion(
        "authentication.k8s.io",
        "v1",
        (
            Resource(
                "selfsubjectreviews", "SelfSubjectReview", is_namespaced=False, verbs=("create",)
            ),
            Resource("tokenreviews", "TokenReview", is_namespaced=False, verbs=("create",)),
        ),
    ),
    GroupVersion(
        "authorization.k8s.io",
        "v1",
        (
            Resource("localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=("create",)),
            Resource(
                "selfsubjectaccessreviews",
                "SelfSubjectAccessReview",
                is_namespaced=False,
                verbs=("create",),
            ),
            Resource(
                "selfsubjectrulesreviews",
                "SelfSubjectRulesReview",
                is_namespaced=False,
                verbs=("create",),
            ),
            Resource(
                "subjectaccessreviews",
                "SubjectAccessReview",
                is_namespaced=False,
                verbs=("create",),
            ),
        ),
    ),
    GroupVersion(
        "autoscaling",
        "v2",
        (
            Resource(
                "horizontalpodautoscalers",
                "HorizontalPodAutoscaler",
                short_names=("hpa",),
                categories=("all",),
                subresources=(_status("HorizontalPodAutoscaler"),),
            ),
        ),
    ),
    GroupVersion(
        "autoscaling",
        "v1",
        (
            Resource(
                "horizontalpodautoscalers",
                "HorizontalPodAutoscaler",
                short_names=("hpa",),
                categories=("all",),
                subresources=(_status("HorizontalPodAutoscaler"),),
            ),
        ),
    ),
    GroupVersion(
        "batch",
        "v1",
        (
            Resource(
                "cronjobs",
                "CronJob",
                short_names=("cj",),
                categories=("all",),
                subresources=(_status("CronJob"),),
            ),
            Resource("jobs", "Job", categories=("all",), subresources=(_status("Job"),)),
        ),
    ),
    GroupVersion(
        "certificates.k8s.io",
        "v1",
        (
            Resource(
                "certificatesigningrequests",
                "CertificateSigningRequest",
                is_namespaced=False,
                short_names=("csr",),
                subresources=(
                    Subresource(
                        "approval", "CertificateSigningRequest", ("get", "patch", "update")
                    ),
                    _status("CertificateSigningRequest"),
                ),
            ),
        ),
    ),
    GroupVersion(
        "networking.k8s.io",
        "v1",
        (
            Resource("ingressclasses", "IngressClass", is_namespaced=False),
            Resource(
                "ingresses", "Ingress", short_names=("ing",), subresources=(_status("Ingress"),)
            ),
            Resource("ipaddresses", "IPAddress", is_namespaced=False, short_names=("ip",)),
            Resource("networkpolicies", "NetworkPolicy", short_names=("netpol",)),
            Resource(
                "servicecidrs",
                "ServiceCIDR",
                is_namespaced=False,
                subresources=(_status("ServiceCIDR"),),
            ),
        ),
    ),
    GroupVersion(
        "policy",
        "v1",
        (
            Resource(
                "poddisruptionbudgets",
                "PodDisruptionBudget",
                short_names=("pdb",),
                subresources=(_status("PodDisruptionBudget"),),
            ),
        ),
    ),
    GroupVersion(
        "rbac.authorization.k8s.io",
        "v1",
        (
            Resource("clusterrolebindings", "ClusterRoleBinding", is_namespaced=False),
            Resource("clusterroles", "ClusterRole", is_namespaced=False),
            Resource("rolebindings", "RoleBinding"),
            Resource("roles", "Role"),
        ),
    ),
    GroupVersion(
        "storage.k8s.io",
        "v1",
        (
            Resource("csidrivers", "CSIDriver", is_namespaced=False),
            Resource("csinodes", "CSINode", is_namespaced=False),
            Resource("csistoragecapacities", "CSIStorageCapacity"),
            Resource("storageclasses", "StorageClass", is_namespaced=False, short_names=("sc",)),
            Resource(
                "volumeattachments",
                "VolumeAttachment",
                is_namespaced=False,
                subresources=(_status("VolumeAttachment"),),
            ),
            Resource(
                "volumeattributesclasses",
                "VolumeAttributesClass",
                is_namespaced=False,
                short_names=("vac",),
            ),
        ),
    ),
    GroupVersion(
        "admissionregistration.k8s.io",
        "v1",
        (
            Resource(
                "mutatingadmissionpolicies",
                "MutatingAdmissionPolicy",
                is_namespaced=False,
                categories=("api-extensions",),
            ),
            Resource(
                "mutatingadmissionpolicybindings",
                "MutatingAdmissionPolicyBinding",
                is_namespaced=False,
                categories=("api-extensions",),
            ),
            Resource(
                "mutatingwebhookconfigurations",
                "MutatingWebhookConfiguration",
                is_namespaced=False,
                categories=("api-extensions",),
            ),
            Resource(
                "validatingadmissionpolicies",
                "ValidatingAdmissionPolicy",
                is_namespaced=False,
                categories=("api-extensions",),
                subresources=(_status("ValidatingAdmissionPolicy"),),
            ),
            Resource(
                "validatingadmissionpolicybindings",
                "ValidatingAdmissionPolicyBinding",
                is_namespaced=False,
                categories=("api-extensions",),
            ),
            Resource(
                "validatingwebhookconfigurations",
                "ValidatingWebhookConfiguration",
                is_namespaced=False,
                categories=("api-extensions",),
            ),
        ),
    ),
    GroupVersion(
        "apiextensions.k8s.io",
        "v1",
        (
            Resource(
                "customresourcedefinitions",
                "CustomResourceDefinition",
                is_namespaced=False,
                short_names=("crd", "crds"),
                categories=("api-extensions",),
                subresources=(_status("CustomResourceDefinition"),),
            ),
        ),
    ),
    GroupVersion(
        "scheduling.k8s.io",
        "v1",
        (Resource("priorityclasses", "PriorityClass", is_namespaced=False, short_names=("pc",)),),
    ),
    GroupVersion(
        "coordination.k8s.io",
        "v1",
        (Resource("leases", "Lease"),),
    ),
    GroupVersion(
        "node.k8s.io",
        "v1",
        (Resource("runtimeclasses", "RuntimeClass", is_namespaced=False),),
    ),
    GroupVersion(
        "discovery.k8s.io",
        "v1",
        (Resource("endpointslices", "EndpointSlice"),),
    ),
    GroupVersion(
        "resource.k8s.io",
        "v1",
        (
            Resource("deviceclasses", "DeviceClass", is_namespaced=False),
            Resource("resourceclaims", "ResourceClaim", subresources=(_status("ResourceClaim"),)),
            Resource("resourceclaimtemplates", "ResourceClaimTemplate"),
            Resource("resourceslices", "ResourceSlice", is_namespaced=False),
        ),
    ),
    GroupVersion(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        (
            Resource(
                "flowschemas",
                "FlowSchema",
                is_namespaced=False,
                subresources=(_status("FlowSchema"),),
            ),
            Resource(
                "prioritylevelconfigurations",
                "PriorityLevelConfiguration",
                is_namespaced=False,
                subresources=(_status("PriorityLevelConfiguration"),),
            ),
        ),
    ),
)


# Served only where somebody asks for them, as behind a feature gate.
_ALPHA: Final = (
    GroupVersion(
        "scheduling.k8s.io",
        "v1alpha2",
        (
            Resource("podgroups", "PodGroup", subresources=(_status("PodGroup"),)),
            Resource("workloads", "Workload"),
        ),
    ),
)


def _completed(served: GroupVersion) -> GroupVersion:
    resources = tuple(
        msgspec.structs.replace(resource, group=served.group, version=served.version)
        for resource in served.resources
    )
    return GroupVersion(served.group, served.version, resources)


# The order is that of discovery.
GROUP_VERSIONS: Final = tuple(_completed(served) for served in _TABLE)
ALPHA_GROUP_VERSIONS: Final = tuple(_completed(served) for served in _ALPHA)
