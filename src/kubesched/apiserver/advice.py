"""Advice: warnings about objects that are accepted and yet are hardly what was meant.

Upstream: pkg/api/{pod,node,persistentvolume,storage}, WarningsOnCreate and WarningsOnUpdate of
          pkg/registry/*/*/strategy.go (v1.36)
Differs:  nothing is said about overlapping paths in volumes, old forms of addresses and names in
          networks, security annotations, and keys that do not go with their certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubesched.apiserver.formats import dns_label
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.pod_advice import (
    OLD_LABELS,
    OLD_POD_VOLUMES,
    SHOWN_AS,
    about_annotations,
    about_claim,
    about_hostname,
    about_pod,
    about_term,
)
from kubesched.apiserver.resources import Resource

_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_VOLUME_ANNOTATIONS: Final = {
    _OLD_CLASS: ('deprecated since v1.8; use "storageClassName" attribute instead'),
    "volume.beta.kubernetes.io/mount-options": (
        'deprecated since v1.31; use "mountOptions" attribute instead'
    ),
}
_RECYCLE: Final = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
    "provisioning."
)
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "DaemonSet": ("spec", "template"),
    "Deployment": ("spec", "template"),
    "Job": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}
_NAMES_PODS: Final = frozenset(
    ("CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController")
)
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_COMPLETIONS_MAX: Final = 100_000
_PARALLELISM_MAX: Final = 10_000
_ENFORCE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_OLD_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_STATIC: Final = ".static.k8s.io"


def warnings_of_new(resource: Resource, obj: Plain) -> list[str]:
    """Return what to tell the user about a new object."""
    if resource.kind == "Pod":
        found = (*about_hostname(obj), *about_pod(obj, ""))
    elif resource.kind in _TEMPLATES:
        found = (
            *_workload_name(resource, obj),
            *_template(resource, obj),
            *_workload(resource, obj, None),
        )
    else:
        found = tuple(_others(resource, obj, None))
    return list(dict.fromkeys(found))


def warnings_of_update(resource: Resource, new: Plain, old: Plain, subresource: str) -> list[str]:
    """Return what to tell the user about a changed object."""
    # Pods and statuses change too often, and seldom by people.
    if subresource or resource.kind == "Pod":
        return []
    if resource.kind in _TEMPLATES:
        found = (*_changed_template(resource, new, old), *_workload(resource, new, old))
    else:
        found = tuple(_others(resource, new, old))
    return list(dict.fromkeys(found))


def _workload_name(resource: Resource, obj: Plain) -> Iterator[str]:
    faults = dns_label(obj["metadata"]["name"]) if resource.kind in _NAMES_PODS else []
    if faults:
        yield (
            "metadata.name: this is used in Pod names and hostnames, which can result in "
            f"surprising behavior; a DNS label is recommended: [{' '.join(faults)}]"
        )


def _template(resource: Resource, obj: Plain) -> Iterator[str]:
    path = _TEMPLATES[resource.kind]
    if resource.kind in {"CronJob", "Job"}:
        yield from _job(get(obj, *path[:-1]) or {}, ".".join(path[:-1]))
    template = get(obj, *path)
    if template is not None:
        yield from about_pod(template, f"{'.'.join(path)}.")


def _changed_template(resource: Resource, new: Plain, old: Plain) -> Iterator[str]:
    where: tuple[str, ...] = ("metadata", "generation")
    if resource.kind == "DaemonSet":
        where = ("metadata", "annotations", _TEMPLATE_GENERATION)
    if get(new, *where) != get(old, *where):
        # Upstream confuses the two here.
        yield from _template(resource, old if resource.kind == "ReplicationController" else new)


def _job(spec: Plain, at: str) -> Iterator[str]:
    if (
        spec.get("completionMode") == "Indexed"
        and (spec.get("completions") or 0) > _COMPLETIONS_MAX
        and (spec.get("parallelism") or 0) > _PARALLELISM_MAX
    ):
        yield (
            f"{at}: In Indexed Jobs with a number of completions higher than 10^5 and a "
            "parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes "
            "when a big number of indexes fail"
        )


def _workload(resource: Resource, new: Plain, old: Plain | None) -> Iterator[str]:
    """Yield warnings about what only some workloads have."""
    spec = new.get("spec") or {}
    if resource.kind == "StatefulSet":
        for number, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            at = f"spec.volumeClaimTemplates[{number}]"
            yield from about_claim(claim.get("spec") or {}, at if old is None else f"{at}.Spec")
        if (spec.get("revisionHistoryLimit") or 0) < 0:
            yield (
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a "
                "value >= 0 is recommended"
            )
    if resource.kind == "CronJob" and old is not None and "TZ" in spec.get("schedule", ""):
        yield (
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


def _others(resource: Resource, new: Plain, old: Plain | None) -> Iterator[str]:
    if resource.kind == "CSIDriver":
        yield from _driver(new, old)
    elif resource.kind == "ServiceAccount":
        yield from _service_account(new, old)
    elif resource.kind in _ADVICE:
        yield from _ADVICE[resource.kind](new)


def _node(node: Plain) -> Iterator[str]:
    spec = node.get("spec") or {}
    if "configSource" in spec:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _volume(volume: Plain) -> Iterator[str]:
    yield from about_annotations(volume, _OLD_VOLUME_ANNOTATIONS, "")
    spec = volume.get("spec") or {}
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}"
    terms = get(spec, "nodeAffinity", "required", "nodeSelectorTerms")
    for number, term in enumerate(terms or ()):
        yield from about_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{number}]")
    for name in ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"):
        if name in spec:
            yield f"spec.{SHOWN_AS.get(name, name)}: {OLD_POD_VOLUMES[name]}"


def _storage_class(storage_class: Plain) -> Iterator[str]:
    for number, term in enumerate(storage_class.get("allowedTopologies") or ()):
        for place, expression in enumerate(term.get("matchLabelExpressions") or ()):
            message = OLD_LABELS.get(expression["key"])
            if message is not None:
                where = f"allowedTopologies[{number}].matchLabelExpressions[{place}].key"
                yield f"{where}: {message}"


def _volume_claim(claim: Plain) -> Iterator[str]:
    old = {_OLD_CLASS: _OLD_VOLUME_ANNOTATIONS[_OLD_CLASS]}
    yield from about_annotations(claim, old, "")
    yield from about_claim(claim.get("spec") or {}, "spec")


def _driver(new: Plain, old: Plain | None) -> Iterator[str]:
    spec = new.get("spec") or {}
    tokens = spec.get("tokenRequests") or ()
    is_unchanged = old is not None and tokens == (get(old, "spec", "tokenRequests") or ())
    if tokens and not is_unchanged and "serviceAccountTokenInSecrets" not in spec:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to "
            "true to prevent possible logging of tokens in volume attributes"
        )


def _service_account(new: Plain, old: Plain | None) -> Iterator[str]:
    is_old = old is not None and _ENFORCE_SECRETS in (get(old, "metadata", "annotations") or {})
    if not is_old and _ENFORCE_SECRETS in (get(new, "metadata", "annotations") or {}):
        yield (
            f"metadata.annotations[{_ENFORCE_SECRETS}]: deprecated in v1.32+; prefer separate "
            "namespaces to isolate access to mounted secrets"
        )


def _runtime_class(runtime_class: Plain) -> Iterator[str]:
    for key in get(runtime_class, "scheduling", "nodeSelector") or ():
        if key in OLD_LABELS:
            yield f"scheduling.nodeSelector: {OLD_LABELS[key]}"


def _slice(device_slice: Plain) -> Iterator[str]:
    driver = get(device_slice, "spec", "driver") or ""
    if driver != driver.lower():
        yield (
            f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase '
            "characters"
        )


def _ingress(ingress: Plain) -> Iterator[str]:
    is_annotated = _INGRESS_CLASS in (get(ingress, "metadata", "annotations") or {})
    if is_annotated and get(ingress, "spec", "ingressClassName") is None:
        yield (
            f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' "
            "instead"
        )


def _service(service: Plain) -> Iterator[str]:
    spec = service.get("spec") or {}
    if _OLD_HINTS in (get(service, "metadata", "annotations") or {}):
        yield (
            f"annotation {_OLD_HINTS} is deprecated, please use "
            "service.kubernetes.io/topology-mode instead"
        )
    is_name = spec.get("type") == "ExternalName"
    is_headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    if is_headless:
        for name in ("loadBalancerIP", "externalIPs"):
            if spec.get(name):
                yield f"spec.{name} is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    if spec.get("externalIPs") and not is_headless and not is_name:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if is_name and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if not is_name and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _static_name(obj: Plain) -> Iterator[str]:
    if obj["metadata"]["name"].endswith(_STATIC):
        yield (
            f'metadata.name: names ending with "{_STATIC}" are reserved for static manifest-based '
            "configurations and cannot be managed via the API"
        )


_ADVICE: Final[Mapping[str, Callable[[Plain], Iterator[str]]]] = {
    "Ingress": _ingress,
    "MutatingAdmissionPolicy": _static_name,
    "MutatingAdmissionPolicyBinding": _static_name,
    "MutatingWebhookConfiguration": _static_name,
    "Node": _node,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _volume_claim,
    "ResourceSlice": _slice,
    "RuntimeClass": _runtime_class,
    "Service": _service,
    "StorageClass": _storage_class,
    "ValidatingAdmissionPolicy": _static_name,
    "ValidatingAdmissionPolicyBinding": _static_name,
    "ValidatingWebhookConfiguration": _static_name,
}
