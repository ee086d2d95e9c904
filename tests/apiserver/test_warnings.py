"""Warnings about what is accepted."""

# ruff: noqa: E501  # messages read better in one piece

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.resources import RESOURCES, Resource
from kubesched.apiserver.warnings import sendable, warnings_of_new, warnings_of_update

NULL = "a null labelSelector results in matching no pod"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
            {
                "topologySpreadConstraints": [
                    {"topologyKey": "rack", "labelSelector": {}},
                    {"topologyKey": "zone"},
                ]
            },
            [
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
            {"terminationGracePeriodSeconds": -1},
            [
                (
                    "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
                    "will be treated as 1"
                )
            ],
            id="grace period",
        ),
    ],
)
def test_pods(spec: dict[str, Any], expected: list[str]) -> None:
    """Probable mistakes give a warning with the field."""
    assert expected == about_pod(spec)


def test_names_of_pods() -> None:
    """A name that is no host name is warned of."""
    assert about_pod({}, "a.b") == [
        (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            "behavior; a DNS label is recommended: [must not contain dots]"
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
def test_names_with_dots(
    kind: str, api_version: str, is_told: bool
) -> None:  # a column of the table
    """A dot in the name of a new workload gives a warning if its pods are named after it."""
    obj = {"metadata": {"name": "a.b"}, "spec": {}}
    resource = found(kind, api_version)
    assert ([WORKLOAD_NAME] if is_told else []) == warnings_of_new(resource, obj)
    assert [] == warnings_of_update(resource, obj, obj, "")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["a", "b", "a", ""], ("a", "b"), id="each once"),
        pytest.param(["a\nb", "c", "\x7f"], ("c",), id="no control characters"),
        pytest.param(["a" * 4096], ("a" * 4096,), id="what just fits"),
        pytest.param(["a" * 4096, "b"], ("a" * 256, "b"), id="too much is cut"),
        pytest.param(["a" * 4097], ("a" * 256,), id="one that is too long"),
        pytest.param(["ä" * 300, "b" * 4000], ("ä" * 256, "b" * 256), id="characters, not bytes"),
    ],
)
def test_warnings_are_sent_once(texts: list[str], expected: tuple[str, ...]) -> None:
    """Each text is sent once, up to a total size."""
    assert expected == sendable(texts)


def test_too_many_warnings() -> None:
    """Warnings are shortened, and dropped when the total size is reached."""
    short = [f"{number:03d}" for number in range(400)]
    long = [f"{number:03d}" + "x" * 300 for number in range(400)]
    assert tuple(short) == sendable(short)
    sent = sendable([*short, *long])
    # After 1,200 characters of short ones there is room for eleven of the others, cut to 256.
    assert len(sent) == 400 + 11
    assert sent[400:] == tuple(one[:256] for one in long[:11])


@given(st.lists(st.text(max_size=400), max_size=40))
def test_order_is_kept(texts: list[str]) -> None:
    """The warnings sent are prefixes of the given texts, in order."""
    rest = iter(dict.fromkeys(texts))
    assert all(any(text.startswith(one) for text in rest) for one in sendable(texts))
