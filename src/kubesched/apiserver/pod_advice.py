"""Advice about pods: what is accepted in them and their templates, and hardly meant.

Upstream: pkg/api/{pod,persistentvolumeclaim,node} (v1.36)
Differs:  nothing is said about overlapping paths in volumes, old forms of addresses, and security
          annotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched.apiserver.formats import dns_label
from kubesched.apiserver.plain import Plain, get

_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
OLD_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_OLD_POD_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
OLD_POD_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
SHOWN_AS: Final = {"storageos": "storageOS"}


def about_hostname(pod: Plain) -> Iterator[str]:
    """Yield what is odd about the name of a pod."""
    faults = dns_label(pod["metadata"]["name"])
    if faults:
        yield (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            f"behavior; a DNS label is recommended: [{' '.join(faults)}]"
        )


def about_pod(pod: Plain, path: str) -> Iterator[str]:
    """Yield warnings about a pod or a template of pods.

    Args:
        pod: With metadata and spec.
        path: Of the pod in what is sent, with a dot behind; "" for the pod itself.
    """
    spec, at = pod.get("spec") or {}, f"{path}spec"
    for key in spec.get("nodeSelector") or ():
        if key in OLD_LABELS:
            yield f"{at}.nodeSelector[{key}]: {OLD_LABELS[key]}"
    yield from _node_affinity(spec, f"{at}.affinity.nodeAffinity")
    yield from _spread(spec, f"{at}.topologySpreadConstraints")
    yield from about_annotations(pod, _OLD_POD_ANNOTATIONS, path)
    for number, volume in enumerate(spec.get("volumes") or ()):
        yield from _pod_volume(volume, f"{at}.volumes[{number}]")
    yield from _duplicates(spec, "hostAliases", "ip", at)
    yield from _duplicates(spec, "imagePullSecrets", "name", at)
    yield from _empty_secrets(spec, at)
    yield from _fractions(spec.get("overhead") or {}, f"{at}.overhead")
    for where, container in _containers(spec, at):
        for name in ("limits", "requests"):
            amounts = (container.get("resources") or {}).get(name) or {}
            yield from _fractions(amounts, f"{where}.resources.{name}")
        yield from _environment(container, where)
    yield from _ports(spec, at)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield (
            f"{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
            "will be treated as 1"
        )
    yield from _pod_affinity(spec, f"{at}.affinity")


def _pod_volume(volume: Plain, at: str) -> Iterator[str]:
    for name, message in OLD_POD_VOLUMES.items():
        if name in volume:
            yield f"{at}.{SHOWN_AS.get(name, name)}: {message}"
    claim = get(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if claim is not None:
        yield from about_claim(claim, f"{at}.ephemeral.volumeClaimTemplate.spec")


def _containers(spec: Plain, at: str) -> Iterator[tuple[str, Plain]]:
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for number, container in enumerate(spec.get(name) or ()):
            yield f"{at}.{name}[{number}]", container


def _node_affinity(spec: Plain, at: str) -> Iterator[str]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    terms = get(spec, "affinity", "nodeAffinity", required, "nodeSelectorTerms")
    for number, term in enumerate(terms or ()):
        yield from about_term(term, f"{at}.{required}.nodeSelectorTerms[{number}]")
    for number, term in enumerate(get(spec, "affinity", "nodeAffinity", preferred) or ()):
        yield from about_term(
            term.get("preference") or {}, f"{at}.{preferred}[{number}].preference"
        )


def about_term(term: Plain, at: str) -> Iterator[str]:
    """Yield which labels are old in a term that selects nodes."""
    for number, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression["key"]
        if key in OLD_LABELS:
            yield f"{at}.matchExpressions[{number}].key: {key} is {OLD_LABELS[key]}"


def _spread(spec: Plain, at: str) -> Iterator[str]:
    for number, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        key = constraint.get("topologyKey", "")
        if key in OLD_LABELS:
            yield f"{at}[{number}].topologyKey: {key} is {OLD_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}[{number}].labelSelector: {_NO_SELECTOR}"


def _pod_affinity(spec: Plain, at: str) -> Iterator[str]:
    for name in ("podAffinity", "podAntiAffinity"):
        affinity = get(spec, "affinity", name) or {}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for number, term in enumerate(affinity.get(required) or ()):
            if term.get("labelSelector") is None:
                yield f"{at}.{name}.{required}[{number}].labelSelector: {_NO_SELECTOR}"
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        for number, term in enumerate(affinity.get(preferred) or ()):
            if get(term, "podAffinityTerm", "labelSelector") is None:
                where = f"{at}.{name}.{preferred}[{number}].podAffinityTerm.labelSelector"
                yield f"{where}: {_NO_SELECTOR}"


def about_annotations(obj: Plain, old: dict[str, str], path: str) -> Iterator[str]:
    """Yield which annotations are old."""
    present = get(obj, "metadata", "annotations") or {}
    for key, message in old.items():
        if key in present:
            yield f"{path}metadata.annotations[{key}]: {message}"


def _duplicates(spec: Plain, name: str, key: str, at: str) -> Iterator[str]:
    seen: list[Any] = []
    for number, one in enumerate(spec.get(name) or ()):
        value = one.get(key, "")
        if value in seen:
            yield f'{at}.{name}[{number}].{key}: duplicate {key} "{value}"'
        seen.append(value)


def _empty_secrets(spec: Plain, at: str) -> Iterator[str]:
    for number, one in enumerate(spec.get("imagePullSecrets") or ()):
        if not one.get("name"):
            yield f'{at}.imagePullSecrets[{number}].name: invalid empty name ""'


def _fractions(
    amounts: Plain, at: str, names: tuple[str, ...] = ("memory", "ephemeral-storage")
) -> Iterator[str]:
    for name in names:
        text = amounts.get(name)
        if text is not None and _is_fraction(text):
            yield f'{at}[{name}]: fractional byte value "{text}" is invalid, must be an integer'


def _is_fraction(text: str) -> bool:
    try:
        return parse_quantity(text).milli_value() % 1000 != 0
    except QuantityError:
        return False


def _environment(container: Plain, at: str) -> Iterator[str]:
    seen: list[str] = []
    for number, one in enumerate(container.get("env") or ()):
        name, value = one["name"], one.get("value", "")
        earlier = f"$({name})"
        is_kept = "valueFrom" not in one and value != earlier and earlier in value
        if name in seen and not is_kept:
            yield (
                f'{at}.env[{number}]: hides previous definition of "{name}", which may be dropped '
                "when using apply"
            )
        seen.append(name)


def _ports(spec: Plain, at: str) -> Iterator[str]:
    seen: list[tuple[str, Plain]] = []
    for where, container in _containers(spec, at):
        for number, port in enumerate(container.get("ports") or ()):
            here = f"{where}.ports[{number}]"
            for other_place, other in seen:
                verdict = _port_verdict(port, other)
                if verdict:
                    yield f"{here}: {verdict} port definition with {other_place}"
            seen.append((here, port))
    names: dict[str, str] = {}
    for where, port in seen:
        name = port.get("name")
        if name and name in names:
            other_place = names[name]
            yield (
                f'{where}: duplicate port name "{name}" with {other_place}, services and probes '
                f"that select ports by name will use {other_place}"
            )
        elif name:
            names[name] = where


def _port_verdict(port: Plain, other: Plain) -> str:
    """Return what is odd about two ports, "" if nothing is."""
    if any(port.get(name) != other.get(name) for name in ("containerPort", "protocol")):
        return ""
    address, other_address = port.get("hostIP", ""), other.get("hostIP", "")
    host, other_host = port.get("hostPort", 0), other.get("hostPort", 0)
    if (address, host) == (other_address, other_host):
        return "duplicate"
    if not host or not other_host:
        return "overlapping"
    is_ambiguous = host == other_host and bool(address) != bool(other_address)
    return "dangerously ambiguous" if is_ambiguous else ""


def about_claim(spec: Plain, at: str) -> Iterator[str]:
    """Yield which amounts of storage are no whole bytes."""
    for name in ("requests", "limits"):
        amounts = get(spec, "resources", name) or {}
        yield from _fractions(amounts, f"{at}.resources.{name}", ("storage",))
