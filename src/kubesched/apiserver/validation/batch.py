"""Jobs, and jobs by the clock.

Upstream: pkg/apis/batch/validation/validation.go (v1.36)
Differs:  policies about failures and successes, and the form of schedules, are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import ordered
from kubesched.apiserver.validation.labels import selector_faults
from kubesched.apiserver.validation.metadata import (
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.numbers import negative_faults
from kubesched.apiserver.validation.workloads import NO_MATCH, is_readable, matches, template_faults

_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_RESTART_POLICIES: Final = ("OnFailure", "Never")
_MODES: Final = ("NonIndexed", "Indexed")
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_INDEXES_MAX: Final = 100_000
_CRON_NAME_MAX: Final = 52
_FIXED: Final = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy")


def _job_spec_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    yield from negative_faults(spec, path, *_COUNTS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        yield not_supported(f"{path}.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _index_faults(spec, path)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
    yield from template_faults(spec["template"], f"{path}.template")
    policy = spec["template"]["spec"].get("restartPolicy", "")
    field = f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always"):
        yield required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in _RESTART_POLICIES:
        yield not_supported(field, policy, _RESTART_POLICIES)


def _index_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    count, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    if count is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    elif failed is not None and failed > count:
        detail = "must be less than or equal to completions"
        yield invalid(f"{path}.maxFailedIndexes", failed, detail)
    for name in ("parallelism", "maxFailedIndexes"):
        if (spec.get(name) or 0) > _INDEXES_MAX:
            detail = f"must be less than or equal to {_INDEXES_MAX}"
            if name == "parallelism":
                detail += " when completion mode is Indexed"
            yield invalid(f"{path}.{name}", spec[name], detail)


def new_job_faults(job: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new job."""
    yield from metadata_faults(job["metadata"], True, dns_subdomain)
    yield from _whole_spec_faults(job)


def _whole_spec_faults(job: Plain) -> Iterator[FieldFault]:
    spec = job["spec"]
    yield from _job_spec_faults(spec, "spec")
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from selector_faults(selector, "spec.selector")
    labels = spec["template"]["metadata"].get("labels") or {}
    if is_readable(selector) and not matches(selector, labels):
        yield invalid("spec.template.metadata.labels", labels or None, NO_MATCH)


def job_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a job."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _whole_spec_faults(new)
    spec, before = new["spec"], old["spec"]
    if spec.get("completionMode") != "Indexed":
        completions = spec.get("completions")
        yield from immutable_faults(completions, before.get("completions"), "spec.completions")
    if spec.get("selector") != before.get("selector"):
        shown = ordered("LabelSelector", spec["selector"]) if spec.get("selector") else None
        yield from immutable_faults(shown, before.get("selector"), "spec.selector")
    may_change = before.get("suspend") and not old["status"].get("startTime")
    if not may_change and spec["template"] != before["template"]:
        yield from immutable_faults(spec["template"], before["template"], "spec.template")
    for name in _FIXED:
        yield from immutable_faults(spec.get(name), before.get(name), f"spec.{name}")


def job_status_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a job's status."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from negative_faults(new["status"], "status", "active", "succeeded", "failed")


def cron_job_faults(cron_job: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a job by the clock."""
    yield from metadata_faults(cron_job["metadata"], True, dns_subdomain)
    name = cron_job["metadata"].get("name", "")
    if len(name.encode()) > _CRON_NAME_MAX:
        yield invalid("metadata.name", name, f"must be no more than {_CRON_NAME_MAX} characters")
    yield from _cron_spec_faults(cron_job["spec"])


def _cron_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    if not spec["schedule"]:
        yield required("spec.schedule")
    names = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from negative_faults(spec, "spec", *names)
    policy = spec.get("concurrencyPolicy", "")
    if policy not in _CONCURRENCY:
        yield not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY)
    template = spec["jobTemplate"]["spec"]
    path = "spec.jobTemplate.spec"
    yield from _job_spec_faults(template, path)
    if template.get("manualSelector"):
        detail = "cannot be set to true"
        yield from each(f"{path}.manualSelector", True, (detail,))
    if template.get("selector") is not None:
        yield forbidden(f"{path}.selector", "`selector` will be auto-generated")


def cron_job_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a job by the clock."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _cron_spec_faults(new["spec"])
