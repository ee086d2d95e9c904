"""The tables of `kubesched top` fit their width, whatever names and resources there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.cli.top import kubectl_amount

from .cluster import Json, node, pod, run, write

GROUPS = ("nodes", "pools", "zones", "namespaces", "priorities", "owners")
LONG = "recommendation-service-of-the-department-with-the-longest-name-of-all"
RESOURCES = {
    "nvidia.com/gpu": "8",
    "vpc.amazonaws.com/pod-eni": "54",
    "smarter-devices/fuse": "20",
    "ephemeral-storage": "18242267924",
    "memory": "32386532Ki",
    "cpu": "7910m",
}


@pytest.mark.parametrize(
    ("resource", "number", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 3500, "3500m"),
        ("cpu", 8000, "8"),
        ("cpu", 143920, "144"),
        ("cpu", 1234567, "1235"),
        ("memory", 0, "0"),
        ("memory", 5376 << 20, "5376Mi"),
        ("memory", 32 << 30, "32Gi"),
        ("memory", 32386532 << 10, "31627Mi"),
        ("memory", (200_000 << 20) + 1, "195Gi"),
        ("memory", 1000, "1Ki"),
        ("memory", 200_000 << 40, "200000Ti"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("nvidia.com/gpu", 1234567, "1234567"),
    ],
)
def test_amounts(resource: str, number: int, text: str) -> None:
    """Units are kubectl's, and digits few."""
    assert kubectl_amount(resource, number) == text


def _wide(name: str, count: int) -> list[Json]:
    """Return nodes with many resources, pods that request them, and a pending pod."""
    objects: list[Json] = []
    for at in range(count):
        place = f"{name}-{at}"[-63:]
        labels = {"topology.kubernetes.io/zone": place, "karpenter.sh/nodepool": place}
        made = node(place, labels=labels)
        made["status"]["allocatable"] |= RESOURCES
        there = pod(place, namespace=place, node_name=place, priority=10**9 - at)
        objects += [made, there]
        there["spec"]["priorityClassName"] = place
        requests = there["spec"]["containers"][0]["resources"]["requests"]
        requests |= dict.fromkeys(RESOURCES, "1")
        requests["memory"] = "1337Mi"
    return [*objects, pod("waits", priority=3)]


@pytest.mark.parametrize("name", ["n", LONG])
@pytest.mark.parametrize("group", GROUPS)
def test_tables_fit(tmp_path: Path, group: str, name: str) -> None:
    """Of 80 columns and others; cpu, memory and pods are there; nothing of a name is lost."""
    file = write(tmp_path, _wide(name, 3))
    room = ["--room", "cpu=1"] if group in GROUPS[:3] else []
    for width in (80, 120, 160):
        result = run("top", group, file, *room, COLUMNS=str(width))
        assert result.exit_code == 0, result.stderr
        heading, *rows = result.stdout.split("\n\n")[1].splitlines()
        assert max(len(line) for line in (heading, *rows)) <= width
        table = rows[: next(at for at, row in enumerate([*rows, "Left"]) if row.startswith("Left"))]
        for resource in ("CPU", "MEMORY", "PODS"):
            assert resource in heading
        names = "".join(line.split("  ")[0] for line in table)
        assert f"{name}-2"[-63:] in names


def test_resources_that_do_not_fit_are_named(tmp_path: Path) -> None:
    """The one that is sorted by is shown first."""
    file = write(tmp_path, _wide("n", 1))
    heading, *_, last, end = run("top", file).stdout.split("\n\n")[1].splitlines()
    assert heading.split()[:3] == ["NODE", "CPU", "CPU%"]
    assert [last, end] == [
        "Left out for width: smarter-devices/fuse, vpc.amazonaws.com/pod-eni,",
        "ephemeral-storage; see --sort-by RESOURCE, or -o json.",
    ]
    for name in ("smarter-devices/fuse", "fuse"):
        result = run("top", file, "--sort-by", name)
        heading = result.stdout.split("\n\n")[1].splitlines()[0]
        assert heading.split()[:3] == ["NODE", "FUSE", "FUSE%"]
