"""Hand-written rules of pods, their templates and containers.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodSpec and around, v1.36)
Differs:  containers may always be privileged. Of what only a kubelet reads
          (resolvers, kernel settings, mirror pods, options of volumes and mounts, security
          contexts, user and process namespaces, hooks, the downward API, when to restart, ephemeral
          containers), only the rules of the tables are checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kubesched.api.go_text import go_quote
from kubesched.api.names import label_key_errors, label_value_errors
from kubesched.api.tolerations import EFFECTS
from kubesched.apiserver.amounts import check_overhead, check_resources
from kubesched.apiserver.formats import FORMS, dns_label, dns_subdomain, no_backsteps
from kubesched.apiserver.plain import Plain, entries
from kubesched.apiserver.status import FieldErrors
from kubesched.apiserver.validation.metadata import (
    check_annotations,
    check_labels,
    check_requirement,
)
from kubesched.apiserver.validation.rules import Check

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_ONLY_OF_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NO_POLICY: Final = "must specify restartPolicy when restart rules are used"
_REFERENCES: Final = (
    *("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"),
    "fileKeyRef",
)
_NOT_IN_EPHEMERAL: Final = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *(*_PROBES, "lifecycle"),
)


def _claims_of(spec: Plain) -> list[str]:
    """Return the names of a pod's claims on devices."""
    return [claim["name"] for claim in spec.get("resourceClaims") or () if claim["name"]]


def _check_containers(spec: Plain, path: str, errors: FieldErrors) -> None:
    claims = _claims_of(spec)
    # Volumes with errors cannot be mounted.
    broken = {f"{error.path.partition(']')[0]}]" for error in errors}
    volumes = [one["name"] for at, one in entries(spec, path, "volumes") if at not in broken]
    names: list[str] = []
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for at, container in entries(spec, path, kind):
            _check_container(container, volumes, claims, at, errors)
            if kind == "ephemeralContainers":
                for name in filter(container.get, _NOT_IN_EPHEMERAL):
                    errors.forbidden(f"{at}.{name}", "cannot be set for an Ephemeral Container")
            elif kind == "containers" or container.get("restartPolicy") == "Always":
                _check_probes(container, at, errors)
            else:
                _check_ends(container, at, errors)
            if container["name"] and container["name"] in names:
                errors.duplicate(f"{at}.name", container["name"])
            names.append(container["name"])
    _check_host_ports(entries(spec, path, "containers"), errors)
    for container in spec.get("initContainers") or ():
        # Upstream counts from 0 here, whichever container it is.
        _check_host_ports([(f"{path}.initContainers[0]", container)], errors)


def _check_container(
    container: Plain,
    volumes: Collection[str],
    claims: Collection[str],
    path: str,
    errors: FieldErrors,
) -> None:
    _check_volumes(container, volumes, path, errors)
    check_resources(container, path, claims, errors)
    if container.get("restartPolicyRules") and container.get("restartPolicy") is None:
        errors.required(f"{path}.restartPolicy", _NO_POLICY)
    for policy in container.get("resizePolicy") or ():
        for value, supported in (
            (policy["resourceName"], ("cpu", "memory")),
            (policy["restartPolicy"], ("NotRequired", "RestartContainer")),
        ):
            if not value:
                errors.required(f"{path}.resizePolicy")
            elif value not in supported:
                errors.not_supported(f"{path}.resizePolicy", value, supported)


def _check_variable(variable: Plain, path: str, errors: FieldErrors) -> None:
    source, at = variable.get("valueFrom"), f"{path}.valueFrom"
    if source is not None and any(source.values()) and variable.get("value"):
        errors.invalid(at, "", "may not be specified when `value` is not empty")
    elif source is not None:
        _check_source(source, _REFERENCES, at, errors)


def _check_variables(source: Plain, path: str, errors: FieldErrors) -> None:
    # Upstream does not report the position.
    _check_source(source, ("configMapRef", "secretRef"), path.rpartition("[")[0], errors)


def _check_source(source: Plain, kinds: Sequence[str], path: str, errors: FieldErrors) -> None:
    """Add a field error for a variable without a source, or with several."""
    given = [name for name in kinds if source.get(name) is not None]
    if not given:
        *others, last = [f"`{name}`" for name in kinds]
        errors.invalid(path, "", f"must specify one of: {', '.join(others)} or {last}")
    elif len(given) > 1:
        errors.invalid(path, "", "may not have more than one field specified at a time")


def _check_volumes(
    container: Plain, volumes: Collection[str], path: str, errors: FieldErrors
) -> None:
    for kind, where in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        for at, one in entries(container, path, kind):
            if one["name"] not in volumes:
                errors.not_found(f"{at}.name", one["name"])
            if kind == "volumeDevices" and no_backsteps(one[where]):
                errors.invalid(f"{at}.{where}", one[where], "can not contain backsteps ('..')")


def _check_probes(container: Plain, path: str, errors: FieldErrors) -> None:
    for name in _PROBES:
        probe = container.get(name)
        if probe and name != "readinessProbe" and probe["successThreshold"] != 1:
            successes = probe["successThreshold"]
            errors.invalid(f"{path}.{name}.successThreshold", successes, "must be 1")


def _check_ends(container: Plain, path: str, errors: FieldErrors) -> None:
    """Add field errors for probes and hooks of a container that ends before others start."""
    for name in ("lifecycle", *_PROBES):
        if container.get(name) is not None:
            errors.drop(f"{path}.{name}")
            errors.forbidden(f"{path}.{name}", _ONLY_OF_SIDECARS)
    if container.get("restartPolicy") is None:
        errors.drop(f"{path}.restartPolicyRules")


def _check_host_ports(containers: Iterable[tuple[str, Plain]], errors: FieldErrors) -> None:
    errors.repeated(
        (
            f"{at}.hostPort",
            f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}",
        )
        for path, container in containers
        for at, port in entries(container, path, "ports")
        if port.get("hostPort")
    )


VOLUME_SOURCES: Final = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image", "local"),
)
"""In the order in which upstream looks for them."""
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"


def _check_pod_spec(spec: Plain, path: str, errors: FieldErrors) -> None:
    _check_containers(spec, path, errors)
    if spec.get("resources") is not None:
        check_resources(spec, path, _claims_of(spec), errors)
    if spec.get("overhead"):
        check_overhead(spec["overhead"], f"{path}.overhead", errors)
    _check_host(spec, path, errors)
    _check_gates(spec, path, errors)
    _check_spreading(spec, path, errors)
    os = spec.get("os")
    if os is not None and not os["name"]:
        errors.required(f"{path}.os.name")
    elif os is not None and os["name"] not in ("linux", "windows"):
        errors.not_supported(f"{path}.os", os["name"], ("linux", "windows"))


# What belongs to the pod as a whole.


def _check_host(spec: Plain, path: str, errors: FieldErrors) -> None:
    """Add field errors for fields that contradict the use of the node's network or names."""
    if spec.get("hostNetwork"):
        _check_host_network(spec, path, errors)
    override, field = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if override is not None:
        for other in ("setHostnameAsFQDN", "hostNetwork"):
            if spec.get(other):
                errors.forbidden(field, f"may not be specified when {other} is true")
        if len(override.encode()) > 64:
            errors.too_long(field, 64)
        errors.each(field, override, dns_subdomain(override))


def _check_host_network(spec: Plain, path: str, errors: FieldErrors) -> None:
    for at, container in entries(spec, path, "containers"):
        for where, port in entries(container, at, "ports"):
            host_port = port.get("hostPort", 0)
            # Templates need not give it.
            if (path == "spec" or host_port) and host_port != port["containerPort"]:
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.invalid(f"{where}.hostPort", host_port, detail)


def _check_gates(spec: Plain, path: str, errors: FieldErrors) -> None:
    names = [(at, gate["name"]) for at, gate in entries(spec, path, "schedulingGates")]
    for at, name in names:
        errors.each(at, name, label_key_errors(name))
    errors.repeated(names)


def _check_spreading(spec: Plain, path: str, errors: FieldErrors) -> None:
    pairs = [
        (
            f"{at}.{{topologyKey, whenUnsatisfiable}}",
            f"{{{one['topologyKey']}, {one['whenUnsatisfiable']}}}",
        )
        for at, one in entries(spec, path, "topologySpreadConstraints")
    ]
    for index, pair in enumerate(pairs):
        # Upstream reports all but the last one.
        if pair[1] in (later for _, later in pairs[index + 1 :]):
            errors.duplicate(*pair)


# Objects that other objects contain in several places.


def one_of(what: str, members: Sequence[str], shown: Mapping[str, str] = {}) -> Check:
    """Return a check that an object has exactly one of some fields.

    `what` these are is shown in messages, with other names for those in `shown`. Upstream looks for
    them in the order of `members`.
    """

    def check(value: Plain, path: str, errors: FieldErrors) -> Sequence[str]:
        given = [name for name in members if value.get(name) is not None]
        if not given:
            errors.required(path, f"must specify a {what}")
        for name in given[1:]:
            detail = f"may not specify more than 1 {what}"
            errors.forbidden(f"{path}.{shown.get(name, name)}", detail)
        return given[1:]

    return check


def check_toleration(toleration: Plain, path: str, errors: FieldErrors) -> None:
    """Add field errors for a toleration."""
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    if key:
        errors.each(f"{path}.key", key, label_key_errors(key))
    elif operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        errors.invalid(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.invalid(f"{path}.effect", effect, detail)
    if operator in ("", "Equal"):
        if wrong := label_value_errors(value):
            errors.invalid(f"{path}.operator", value, ";".join(wrong))
    elif operator != "Exists":
        is_comparison = operator in ("Gt", "Lt")
        words = ("Equal", "Exists", "Lt", "Gt") if is_comparison else ("Equal", "Exists")
        errors.not_supported(f"{path}.operator", operator, words)
    elif value:
        errors.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    if effect and effect not in EFFECTS:
        errors.not_supported(f"{path}.effect", effect, EFFECTS)


def check_taints(spec: Plain, errors: FieldErrors) -> None:
    """Add field errors for the taints of a node; their path is upstream's."""
    seen: list[tuple[str, str]] = []
    for at, taint in entries(spec, "metadata", "taints"):
        key, effect = taint["key"], taint["effect"]
        errors.each(f"{at}.key", key, label_key_errors(key))
        if wrong := label_value_errors(taint.get("value", "")):
            errors.invalid(f"{at}.value", taint["value"], ";".join(wrong))
        if not effect:
            errors.required(f"{at}.effect")
        elif effect not in EFFECTS:
            errors.not_supported(f"{at}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            errors.duplicate(at, taint, "taints must be unique by key and effect pair")
        seen.append((key, effect))


def _check_node_selector(selector: Plain, path: str, errors: FieldErrors) -> None:
    if not selector.get("nodeSelectorTerms"):
        errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for at, term in entries(selector, path, "nodeSelectorTerms"):
        _check_node_term(term, at, errors)


def _check_node_term(
    term: Plain, path: str, errors: FieldErrors, *, checks_values: bool = True
) -> None:
    for at, one in entries(term, path, "matchExpressions"):
        check_requirement(one, at, errors, is_of_nodes=True, checks_values=checks_values)
    for at, one in entries(term, path, "matchFields"):
        if one["operator"] not in ("In", "NotIn"):
            errors.invalid(f"{at}.operator", one["operator"], "not a valid selector operator")
        elif len(one.get("values") or ()) != 1:
            detail = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            errors.required(f"{at}.values", detail)
        if one["key"] != "metadata.name":
            errors.invalid(f"{at}.key", one["key"], "not a valid field selector key")
            continue
        for where, value in entries(one, at, "values"):
            errors.each(where, value, dns_subdomain(value))


def _check_preferred_term(term: Plain, path: str, errors: FieldErrors) -> None:
    # Values that no label can have are allowed in preferences.
    _check_node_term(term["preference"], f"{path}.preference", errors, checks_values=False)


def _check_affinity_term(term: Plain, path: str, errors: FieldErrors) -> None:
    for namespace in term.get("namespaces") or ():
        errors.each(f"{path}.namespace", namespace, dns_label(namespace))
    _check_label_keys(term, path, errors)
    if not term["topologyKey"]:
        errors.required(f"{path}.topologyKey", "can not be empty")
    errors.each(f"{path}.topologyKey", term["topologyKey"], label_key_errors(term["topologyKey"]))


def _check_constraint(constraint: Plain, path: str, errors: FieldErrors) -> None:
    action = constraint["whenUnsatisfiable"]
    domains = constraint.get("minDomains")
    if domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.invalid(f"{path}.minDomains", domains, detail)
    _check_label_keys(constraint, path, errors)


def _check_label_keys(owner: Plain, path: str, errors: FieldErrors) -> None:
    """Add field errors for the label keys whose values come from the pod itself."""
    selector, names = owner.get("labelSelector"), ("matchLabelKeys", "mismatchLabelKeys")
    matched, mismatched = (owner.get(name) or () for name in names)
    for name in names:
        if owner.get(name) and selector is None:
            errors.forbidden(f"{path}.{name}", _NO_SELECTOR)
            continue
        for at, key in entries(owner, path, name):
            errors.each(at, key, label_key_errors(key))
    seen = set((selector or {}).get("matchLabels") or ())
    for expression in (selector or {}).get("matchExpressions") or ():
        # One expression is what the server itself adds for a key.
        key = expression["key"]
        if key in matched and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.invalid(f"{path}[{matched.index(key)}]", key, detail)
        seen.add(key)
    for at, key in entries(owner, path, "matchLabelKeys"):
        if key in mismatched:
            errors.invalid(at, key, "exists in both matchLabelKeys and mismatchLabelKeys")


def _check_claim(claim: Plain, path: str, errors: FieldErrors) -> None:
    names = ("resourceClaimName", "resourceClaimTemplateName")
    count, shown = sum(claim.get(name) is not None for name in names), [f"`{one}`" for one in names]
    if not count:
        errors.invalid(path, claim, f"must specify one of: {', '.join(shown)}")
    elif count > 1:
        errors.invalid(path, claim, f"at most one of {' or '.join(shown)} may be specified")


def _check_template(template: Plain, path: str, errors: FieldErrors) -> None:
    metadata = template.get("metadata") or {}
    check_labels(metadata.get("labels"), f"{path}.labels", errors)
    check_annotations(metadata.get("annotations"), f"{path}.annotations", errors)


def check_new_pod(pod: Plain, errors: FieldErrors) -> None:
    """Add field errors for what pods may not have when they are created."""
    if pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.forbidden("spec.nodeName", detail)


def _check_pod(pod: Plain, _path: str, errors: FieldErrors) -> None:
    spec, name = pod["spec"], pod["metadata"].get("name")
    for at, container in entries(spec, "spec", "containers", "initContainers"):
        image = container.get("image", "")
        errors.each(f"{at}.image", image, FORMS["not_padded"](image))
    for at, volume in entries(spec, "spec", "volumes"):
        if volume.get("ephemeral") is not None and volume["name"] and name:
            claim = f"{name}-{volume['name']}"
            for wrong in dns_subdomain(claim):
                errors.invalid(f"{at}.name", volume["name"], f"PVC name {go_quote(claim)}: {wrong}")


CHECKS: Final[Mapping[str, Check]] = {
    "core_v1/EnvFromSource": _check_variables,
    "core_v1/EnvVar": _check_variable,
    "core_v1/LifecycleHandler": one_of("handler type", ("exec", "httpGet", "tcpSocket", "sleep")),
    "core_v1/NodeSelector": _check_node_selector,
    "core_v1/PodAffinityTerm": _check_affinity_term,
    "core_v1/PodResourceClaim": _check_claim,
    "core_v1/PodTemplateSpec": _check_template,
    "core_v1/Probe": one_of("handler type", ("exec", "httpGet", "tcpSocket", "grpc")),
    "core_v1/Toleration": check_toleration,
    "core_v1/TopologySpreadConstraint": _check_constraint,
    "core_v1/Volume": one_of(
        "volume type", VOLUME_SOURCES, {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
    ),
    "meta_v1/LabelSelectorRequirement": check_requirement,
}
LATE_CHECKS: Final[Mapping[str, Check]] = {
    "core_v1/Pod": _check_pod,
    "core_v1/PodSpec": _check_pod_spec,
    "core_v1/PreferredSchedulingTerm": _check_preferred_term,
}
