"""Workloads that keep pods running: replica sets, deployments, stateful and daemon sets.

Upstream: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubesched.api.label_format import label_key_errors, label_value_errors
from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import type_of
from kubesched.apiserver.validation.claims import claim_spec_faults
from kubesched.apiserver.validation.internal_form import ordered
from kubesched.apiserver.validation.labels import annotation_faults, label_faults, selector_faults
from kubesched.apiserver.validation.metadata import (
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.numbers import (
    above_hundred_faults,
    int_or_percent_faults,
    int_or_percent_number,
    negative_faults,
)
from kubesched.apiserver.validation.pod_spec import pod_spec_faults

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
NO_MATCH: Final = "`selector` does not match template `labels`"
_UPDATABLE: Final = (
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
)
_SET_IMMUTABLE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)


def template_faults(template: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with a template of pods."""
    metadata = template["metadata"]
    yield from label_faults(metadata.get("labels"), f"{path}.labels")
    yield from annotation_faults(metadata.get("annotations"), f"{path}.annotations")
    yield from pod_spec_faults(template["spec"], None, f"{path}.spec", is_pod=False)
    if template["spec"].get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{path}.spec.ephemeralContainers", detail)


def is_readable(selector: Plain | None) -> bool:
    """Whether a selector can be read at all; none can, and so can an empty one."""
    found = selector or {}
    return all(
        not label_key_errors(key) and not label_value_errors(value)
        for key, value in (found.get("matchLabels") or {}).items()
    ) and all(
        one["operator"] in _OPERATORS
        and not label_key_errors(one["key"])
        and bool(one.get("values")) == (one["operator"] in ("In", "NotIn"))
        and not any(label_value_errors(value) for value in one.get("values") or ())
        for one in found.get("matchExpressions") or ()
    )


def matches(selector: Plain | None, labels: Plain) -> bool:
    """Whether a readable selector takes labels; an empty one takes all, none takes nothing."""
    if selector is None:
        return False
    requirements = (selector.get("matchLabels") or {}).items()
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in requirements) and all(
        _satisfies(one, labels) for one in expressions
    )


def _satisfies(expression: Plain, labels: Plain) -> bool:
    key: str = expression["key"]
    operator: str = expression["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) == (operator == "Exists")
    is_listed: bool = key in labels and labels[key] in expression["values"]
    return is_listed == (operator == "In")


def _selector_faults(selector: Plain | None, path: str, kind: str) -> Iterator[FieldFault]:
    if selector is None:
        yield required(path)
        return
    yield from selector_faults(selector, path)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        shown = ordered("LabelSelector", selector)
        yield invalid(path, shown, f"empty selector is invalid for {kind}")


def _matching_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    labels = spec["template"]["metadata"].get("labels") or {}
    if not matches(spec.get("selector"), labels):
        yield invalid(f"{path}.template.metadata.labels", labels or None, NO_MATCH)


def _always_faults(template: Plain, kind: str, path: str) -> Iterator[FieldFault]:
    policy = template["spec"].get("restartPolicy", "")
    if policy != "Always":
        yield not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(f"{path}.spec.activeDeadlineSeconds", detail)


def _replica_set_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    yield from negative_faults(spec, "spec", "replicas", "minReadySeconds")
    yield from _selector_faults(spec.get("selector"), "spec.selector", "deployment")
    yield from _replica_template_faults(spec)


def _replica_template_faults(spec: Plain) -> Iterator[FieldFault]:
    if not is_readable(spec.get("selector")):
        shown = ordered("LabelSelector", spec["selector"])
        yield invalid("spec.selector", shown, "invalid label selector")
        return
    yield from _matching_faults(spec, "spec")
    yield from template_faults(spec["template"], "spec.template")
    yield from _always_faults(spec["template"], "ReplicaSet", "spec.template")


def replica_set_faults(replica_set: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new replica set."""
    yield from metadata_faults(replica_set["metadata"], True, dns_subdomain)
    yield from _replica_set_spec_faults(replica_set["spec"])


def replica_set_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a replica set."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _replica_set_spec_faults(new["spec"])
    yield from _fixed_selector_faults(new, old)


def _fixed_selector_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    selector, before = new["spec"].get("selector"), old["spec"].get("selector")
    shown = None if selector is None else ordered("LabelSelector", selector)
    if selector != before:
        yield from immutable_faults(shown, before, "spec.selector")


def _deployment_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    yield from negative_faults(spec, "spec", "replicas")
    yield from _selector_faults(spec.get("selector"), "spec.selector", "deployment")
    yield from _replica_template_faults(spec)
    yield from _deployment_strategy_faults(spec["strategy"])
    names = ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    yield from negative_faults(spec, "spec", *names)
    seconds = spec.get("progressDeadlineSeconds")
    if seconds is not None and seconds <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        yield invalid("spec.progressDeadlineSeconds", seconds, detail)


def _deployment_strategy_faults(strategy: Plain) -> Iterator[FieldFault]:
    path, kind = "spec.strategy", strategy.get("type", "")
    rolling = strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(f"{path}.rollingUpdate", detail)
    elif kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": _rolling_shown(rolling)}
        yield not_supported(path, shown, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        yield from _rolling_faults(rolling, f"{path}.rollingUpdate")


def _rolling_shown(rolling: Plain | None) -> Plain | None:
    if rolling is None:
        return None
    return {
        "MaxUnavailable": rolling.get("maxUnavailable", 0),
        "MaxSurge": rolling.get("maxSurge", 0),
    }


def _rolling_faults(rolling: Plain, path: str) -> Iterator[FieldFault]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from int_or_percent_faults(unavailable, f"{path}.maxUnavailable")
    yield from int_or_percent_faults(surge, f"{path}.maxSurge")
    if not int_or_percent_number(unavailable) and not int_or_percent_number(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        yield invalid(f"{path}.maxUnavailable", unavailable, detail)
    yield from above_hundred_faults(unavailable, f"{path}.maxUnavailable")


def deployment_faults(deployment: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new deployment."""
    yield from metadata_faults(deployment["metadata"], True, dns_subdomain)
    yield from _deployment_spec_faults(deployment["spec"])


def deployment_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a deployment."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _deployment_spec_faults(new["spec"])
    yield from _fixed_selector_faults(new, old)


def _stateful_set_spec_faults(spec: Plain, *, is_new: bool) -> Iterator[FieldFault]:
    policy = spec.get("podManagementPolicy", "")
    if not policy:
        yield required("spec.podManagementPolicy")
    elif policy not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", policy, detail)
    yield from _stateful_strategy_faults(spec["updateStrategy"])
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        word = retention.get(name, "Retain")
        if word not in ("Retain", "Delete"):
            field = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            yield not_supported(field, word, ("Retain", "Delete"))
    if is_new:
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            yield from claim_spec_faults(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
    yield from negative_faults(spec, "spec", "replicas", "minReadySeconds")
    yield from negative_faults(spec.get("ordinals") or {}, "spec.ordinals", "start")
    name = spec.get("serviceName", "")
    if is_new and name:
        yield from each("spec.serviceName", name, dns_label(name))
    yield from _selector_faults(spec.get("selector"), "spec.selector", "statefulset")
    if is_readable(spec.get("selector")):
        yield from _stateful_template_faults(spec)
    else:
        yield invalid("spec.selector", ordered("LabelSelector", spec["selector"]), "")
    yield from _always_faults(spec["template"], "StatefulSet", "spec.template")


def _stateful_template_faults(spec: Plain) -> Iterator[FieldFault]:
    yield from _matching_faults(spec, "spec")
    template = _with_claim_volumes(spec)
    yield from template_faults(template, "spec.template")
    metadata = template["metadata"]
    yield from label_faults(metadata.get("labels"), "spec.template.labels")
    yield from annotation_faults(metadata.get("annotations"), "spec.template.annotations")


def _with_claim_volumes(spec: Plain) -> Plain:
    """Return the template with the volumes that claims of the set become."""
    template = spec["template"]
    claims = spec.get("volumeClaimTemplates") or ()
    names = list(dict.fromkeys(one["metadata"].get("name", "") for one in claims))
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    volumes += [one for one in template["spec"].get("volumes") or () if one["name"] not in names]
    pod: dict[str, Any] = {
        name: one for name, one in template["spec"].items() if name not in ("hostname", "subdomain")
    }
    return {**template, "spec": {**pod, "volumes": volumes} if volumes else pod}


def _stateful_strategy_faults(strategy: Plain) -> Iterator[FieldFault]:
    path, kind = "spec.updateStrategy", strategy.get("type", "")
    rolling = strategy.get("rollingUpdate")
    shown = {
        "Partition": (rolling or {}).get("partition", 0),
        "MaxUnavailable": (rolling or {}).get("maxUnavailable"),
    }
    if not kind:
        yield required(path)
    elif kind == "OnDelete":
        if rolling is not None:
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            yield invalid(f"{path}.rollingUpdate", shown, detail)
    elif kind != "RollingUpdate":
        strategy_shown = {"Type": kind, "RollingUpdate": None if rolling is None else shown}
        yield invalid(path, strategy_shown, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        yield from negative_faults(rolling, f"{path}.rollingUpdate", "partition")


def stateful_set_faults(stateful_set: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new stateful set."""
    yield from metadata_faults(stateful_set["metadata"], True, dns_label)
    yield from _stateful_set_spec_faults(stateful_set["spec"], is_new=True)


def stateful_set_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a stateful set."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _stateful_set_spec_faults(new["spec"], is_new=False)
    after, before = (
        {name: one for name, one in each_["spec"].items() if name not in _UPDATABLE}
        for each_ in (new, old)
    )
    set_type = type_of("apps", "v1", "StatefulSet")
    assert set_type is not None, "the fields of stateful sets are known"
    if not set_type.fields["spec"].type.is_equal(after, before):
        yield forbidden("spec", _SET_IMMUTABLE)


def _daemon_set_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    selector = spec.get("selector")
    yield from selector_faults(selector, "spec.selector")
    if is_readable(selector):
        yield from _matching_faults(spec, "spec")
    if selector is not None and not any(selector.values()):
        shown = ordered("LabelSelector", selector)
        yield invalid("spec.selector", shown, "empty selector is invalid for daemonset")
    yield from template_faults(spec["template"], "spec.template")
    yield from _always_faults(spec["template"], "DaemonSet", "spec.template")
    yield from negative_faults(spec, "spec", "minReadySeconds")
    yield from _daemon_strategy_faults(spec["updateStrategy"])
    yield from negative_faults(spec, "spec", "revisionHistoryLimit")


def _daemon_strategy_faults(strategy: Plain) -> Iterator[FieldFault]:
    path, kind = "spec.updateStrategy", strategy.get("type", "")
    rolling = strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": _rolling_shown(rolling)}
        yield not_supported(path, shown, ("RollingUpdate", "OnDelete"))
        return
    path = f"{path}.rollingUpdate"
    unavailable, surge = ((rolling or {}).get(name, 0) for name in ("maxUnavailable", "maxSurge"))
    for check in (int_or_percent_faults, above_hundred_faults):
        yield from check(unavailable, f"{path}.maxUnavailable")
        yield from check(surge, f"{path}.maxSurge")
    has_unavailable, has_surge = int_or_percent_number(unavailable), int_or_percent_number(surge)
    if has_unavailable and has_surge:
        detail = "may not be set when maxUnavailable is non-zero"
        yield invalid(f"{path}.maxSurge", surge, detail)
    elif not has_unavailable and not has_surge:
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def daemon_set_faults(daemon_set: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new daemon set."""
    yield from metadata_faults(daemon_set["metadata"], True, dns_subdomain)
    yield from _daemon_set_spec_faults(daemon_set["spec"])


def daemon_set_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a daemon set."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _fixed_selector_faults(new, old)
    yield from _daemon_set_spec_faults(new["spec"])


def _replication_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    path, selector, template = "spec.template", spec.get("selector") or {}, spec.get("template")
    yield from negative_faults(spec, "spec", "minReadySeconds")
    if not selector:
        yield required("spec.selector")
    yield from negative_faults(spec, "spec", "replicas")
    if template is None:
        yield required(path)
        return
    labels = template["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        yield invalid(f"{path}.metadata.labels", labels or None, NO_MATCH)
    yield from template_faults(template, path)
    yield from _always_faults(template, "ReplicationController", path)


def replication_controller_faults(controller: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new replication controller."""
    yield from metadata_faults(controller["metadata"], True, dns_subdomain, checks_prefix=False)
    yield from _replication_spec_faults(controller["spec"])


def replication_controller_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a replication controller."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _replication_spec_faults(new["spec"])


def pod_template_faults(template: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new pod template."""
    yield from metadata_faults(template["metadata"], True, dns_subdomain)
    yield from template_faults(template["template"], "template")


def pod_template_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a pod template."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from template_faults(new["template"], "template")
