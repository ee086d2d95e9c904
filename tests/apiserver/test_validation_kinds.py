"""What the tables do not say about jobs, addresses, and about who has a role."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kubesched.apiserver.plain import Plain

from .verdicts import changed, created, resource_of

_JOB = resource_of("Job", "batch")
_INVALID = "FieldValueInvalid"


def _stored(*, suspend: bool) -> Plain:
    containers = [{"name": "c", "image": "i"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    body = {"metadata": {"name": "j"}, "spec": {"suspend": suspend, "template": template}}
    job: Plain = created(_JOB, body)["object"]
    return {**job, "metadata": {**job["metadata"], "resourceVersion": "1"}}


def _causes(old: Plain, **spec: Any) -> list[tuple[str, str]]:
    new = deepcopy(old)
    pod = new["spec"]["template"]["spec"]
    pod.update(spec)
    verdict = changed(_JOB, old, new, "")
    return [(reason, field) for reason, field, _ in verdict.get("causes", ())]


@pytest.mark.parametrize("suspend", [False, True])
def test_the_pods_of_a_job_stay_as_they_are(suspend: bool) -> None:
    """A suspended job names the field below."""
    expected = [(_INVALID, "spec.template.spec" if suspend else "spec.template")]
    containers = [{"name": "c", "image": "other"}]
    assert expected == _causes(_stored(suspend=suspend), containers=containers)


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"pool": "a"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"schedulingGates": [{"name": "example.com/queue"}]},
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
        {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_a_suspended_job_can_be_placed(spec: dict[str, Any]) -> None:
    """Queues say where its pods run before they resume it."""
    assert [] == _causes(_stored(suspend=True), **spec)
    assert [(_INVALID, "spec.template")] == _causes(_stored(suspend=False), **spec)


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        (
            {"completionMode": "Indexed", "parallelism": 2},
            ("spec.completions", "Required value: when completion mode is Indexed"),
        ),
        (
            {"backoffLimitPerIndex": 0},
            ("spec.backoffLimitPerIndex", "Invalid value: 0: requires indexed completion mode"),
        ),
    ],
    ids=lambda value: next(iter(value)),
)
def test_limits_of_indexes_need_indexes(spec: dict[str, Any], cause: tuple[str, str]) -> None:
    """An indexed job has a number of them, and only such a job limits their failures."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec = {**spec, "template": {"spec": pod}}
    verdict = created(_JOB, {"metadata": {"name": "j"}, "spec": spec})
    assert [cause] == [(field, message) for _, field, message in verdict["causes"]]


@pytest.mark.parametrize(
    ("policy", "reason"), [("Always", "FieldValueRequired"), ("Often", "FieldValueNotSupported")]
)
def test_jobs_end(policy: str, reason: str) -> None:
    """Their pods are not restarted for ever."""
    template = {"spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}}
    verdict = created(_JOB, {"metadata": {"name": "j"}, "spec": {"template": template}})
    causes = {field: reason for reason, field, _ in verdict["causes"]}
    assert reason == causes["spec.template.spec.restartPolicy"]


@pytest.mark.parametrize(
    ("kind", "subject", "expected"),
    [
        ("ClusterRoleBinding", {}, {"subjects[0].namespace": "FieldValueRequired"}),
        ("ClusterRoleBinding", {"namespace": "a"}, {}),
        ("RoleBinding", {}, {}),
        (
            "RoleBinding",
            {"apiGroup": "rbac.authorization.k8s.io"},
            {"subjects[0].apiGroup": "FieldValueNotSupported"},
        ),
    ],
)
def test_service_accounts_with_a_role(
    kind: str, subject: dict[str, str], expected: dict[str, str]
) -> None:
    """They are of a namespace, and of no group; an account that cannot exist gets no role."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    account = {"kind": "ServiceAccount", "name": "robot", **subject}
    body = {"metadata": {"name": "b"}, "roleRef": role, "subjects": [account]}
    verdict = created(resource_of(kind, "rbac.authorization.k8s.io"), body)
    causes = {field: reason for reason, field, _ in verdict.get("causes", ())}
    assert expected == causes


_NO_FIVE = "must have five fields, or be a word such as @daily"


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("*/5 8-18 * jan,feb mon", ""),
        ("0 0 ? * 1", ""),
        ("@daily", ""),
        ("@every 1h30m", ""),
        ("often", _NO_FIVE),
        ("@often", _NO_FIVE),
        ("* * * *", _NO_FIVE),
        ("* * * * * *", _NO_FIVE),
        ("TZ=UTC * * * * *", _NO_FIVE),
        ("*/70 * * * *", ""),
        ("60 * * * *", "'60' is not within 0 and 59"),
        ("0 0 L * *", "'L' is neither a number nor a name"),
        ("*/x 0 * * *", "'x' is neither a number nor a name"),
        ("5-1 * * * *", "'5-1' is not within 0 and 59"),
        ("0 0 * * 7", "'7' is not within 0 and 6"),
    ],
)
def test_the_schedule_of_a_cron_job_is_one(schedule: str, problem: str) -> None:
    """Five fields, or a word; the zone has a field of its own."""
    containers = [{"name": "c", "image": "i"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}}
    verdict = created(resource_of("CronJob", "batch"), {"metadata": {"name": "c"}, "spec": spec})
    cause = (_INVALID, "spec.schedule", f'Invalid value: "{schedule}": {problem}')
    assert ([cause] if problem else []) == list(map(tuple, verdict.get("causes", ())))


@pytest.mark.parametrize(
    ("zone", "is_valid"),
    [
        ("Europe/Berlin", True),
        ("UTC", True),
        ("Mars/Olympus", False),
        ("Europe", False),
        ("Local", False),
        ("/etc/localtime", False),
    ],
)
def test_the_time_zone_of_a_cron_job_is_one(zone: str, is_valid: bool) -> None:
    """A name of the database of time zones."""
    containers = [{"name": "c", "image": "i"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    spec = {"schedule": "@daily", "timeZone": zone, "jobTemplate": {"spec": {"template": template}}}
    verdict = created(resource_of("CronJob", "batch"), {"metadata": {"name": "c"}, "spec": spec})
    causes = [(reason, field) for reason, field, _ in verdict.get("causes", ())]
    assert ([] if is_valid else [(_INVALID, "spec.timeZone")]) == causes


def test_an_address_is_the_name_of_its_object() -> None:
    """Of both families."""
    resource = resource_of("IPAddress", "networking.k8s.io")
    spec = {"parentRef": {"resource": "services", "name": "s"}}
    names = ("10.0.0.1", "fe80::1", "ten")
    assert [201, 201, 422] == [
        created(resource, {"metadata": {"name": one}, "spec": spec})["status"] for one in names
    ]


def test_conditions_of_services_are_kept_as_they_are() -> None:
    """They need neither a time nor a reason."""
    resource = resource_of("Service")
    body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    old = created(resource, body)["object"]
    new = {**old, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert 200 == changed(resource, old, new, "status")["status"]
