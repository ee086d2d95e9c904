"""`kubesched top`: what it prints, what it reads, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.cli.top import kubectl_amount

from .cluster import Json, document, node, pod, refused, run, shop, write
from .live import live

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a dump of four nodes."""
    return write(tmp_path, [*shop(), pod("big", "6", nodeSelector={"disk": "ssd"})])


def test_nodes(cluster: Path) -> None:
    """Nodes are the default; the fullest is first, and the total last."""
    result = run("top", cluster)
    assert result.exit_code == 0
    assert result.stdout == (
        "Requested on 4 nodes: 11% of cpu, 6% of memory, 0% of pods.\n"
        "2 pending pods request cpu 7, memory 2Gi.\n"
        "\n"
        "NODE       CPU  CPU%    MEMORY  MEMORY%   PODS  PODS%\n"
        "gamma  1500m/2   75%   1Gi/8Gi      12%  1/110     1%\n"
        "alpha   500m/4   12%   1Gi/8Gi      12%  1/110     1%\n"
        "beta       0/8    0%     0/8Gi       0%  0/110     0%\n"
        "delta      0/4    0%     0/8Gi       0%  0/110     0%\n"
        "total     2/18   11%  2Gi/32Gi       6%  2/440     0%\n"
    )


def test_groups_of_pods(cluster: Path) -> None:
    """Amounts are of the cluster, and pending pods are counted beside."""
    result = run("top", "namespaces", cluster)
    assert result.stdout.splitlines()[3:] == [
        "NAMESPACE  NODES  CPU  CPU%  MEMORY  MEMORY%  PODS  PODS%  PENDING",
        "shop           2    2   11%     2Gi       6%     2     0%        2",
        "total          4    2   11%     2Gi       6%     2     0%        2",
    ]


def test_room_for_amounts(cluster: Path) -> None:
    """The sentence says that taints are ignored."""
    lines = run("top", cluster, "--room", "cpu=2,memory=1Gi", "--sort-by", "room").stdout
    assert "Room for 7 more pods of cpu=2,memory=1Gi; taints and cordons are ignored.\n" in lines
    rooms = [(line.split()[0], line.split()[-1]) for line in lines.splitlines()[5:]]
    assert rooms == [("beta", "4"), ("delta", "2"), ("alpha", "1"), ("gamma", "0"), ("total", "7")]


def test_room_for_a_pod(cluster: Path) -> None:
    """The plugins decide: two nodes are too small or tainted."""
    report = document("top", "nodes", cluster, "--room-like", "web-1")
    assert report["kind"] == "TopReport"
    assert {row["name"]: row["room"] for row in report["rows"]} == {
        "gamma": 0,
        "alpha": 3,
        "beta": 8,
        "delta": 0,
    }
    assert report["room"]["total"] == report["total"]["room"] == 11
    assert report["room"]["byPlugins"] is True


def test_no_room(cluster: Path) -> None:
    """The reasons are those of kubectl."""
    result = run("top", "zones", cluster, "--room-like", "pod/big")
    assert (
        "No room for shop/big.\n"
        "It fits nowhere: 2 node(s) didn't match Pod's node affinity/selector, 1\n"
        "Insufficient cpu, 1 node(s) had untolerated taint(s).\n"
    ) in result.stdout


def test_what_is_not_known_is_reported(tmp_path: Path) -> None:
    """The room of a pod with a claim depends on claims, which the files lack."""
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    file = write(tmp_path, [node("n"), pod("db", volumes=[claim])])
    assert "Not known" in run("top", file, "--room-like", "db").stdout


def test_rows_that_are_not_shown(cluster: Path) -> None:
    """The text counts them, the document has them."""
    result = run("top", cluster, "--top", "1")
    assert result.stdout.splitlines()[-3].startswith("gamma")
    assert result.stdout.splitlines()[-1] == "and 3 more; --top 4 shows all"
    assert len(document("top", cluster, "--top", "1")["rows"]) == 4


def test_no_nodes(tmp_path: Path) -> None:
    """There is no table then."""
    result = run("top", write(tmp_path, [pod("p")]))
    assert result.stdout == "There are no nodes.\n1 pending pod requests cpu 1, memory 1Gi.\n"


def test_pools(tmp_path: Path) -> None:
    """A given label takes precedence over the known ones."""
    label = "cloud.google.com/gke-nodepool"
    nodes = [node("a", labels={label: "small", "team": "red"}), node("b", labels={"team": "red"})]
    file = write(tmp_path, nodes)
    found = document("top", "pools", file)
    assert found["poolLabel"] == label
    assert [row["name"] for row in found["rows"]] == ["", "small"]
    given = document("top", "pools", file, "--pool-label", "team")
    assert [(row["name"], row["nodes"]) for row in given["rows"]] == [("red", 2)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["node"], "node: there is no such file; did you mean nodes?"),
        (["nodes", "--sort-by", "mem"], "--sort-by mem: no node has and no pod requests it; did"),
        (["--sort-by", "x"], "--sort-by x: no node has and no pod requests it; there are cpu, me"),
        (["--sort-by", "room"], "--sort-by room: no room is counted; add --room or --room-like"),
        (["--room", "cpus=1"], "--room cpus: no node has and no pod requests it; did you"),
        (["--room", "cpu=x"], "--room: cpu: 'x' is not a quantity; write 2, 500m or 4Gi"),
        (["--room", "cpu=1", "--room-like", "web-1"], "--room and --room-like are two shapes"),
        (["owners", "--room", "cpu=1"], "--room is for nodes, pools and zones"),
        (["owners", "--room-like", "web-1"], "--room-like is for nodes, pools and zones"),
        (["--room-like", "web-2"], "pod web-2: there is no such pod; did you mean"),
        (["--room-like", "other"], "--room-like other: it is for the scheduler mine; name one"),
        (["pools"], "known to name its pool; add --pool-label KEY, such as disk"),
        (["pools", "--pool-label", "disc"], "no node has this label; did you mean disk?"),
        (["zones", "--pool-label", "disk"], "--pool-label is for pools, and the rows are zones"),
    ],
)
def test_users_mistakes(tmp_path: Path, arguments: list[str], error: str) -> None:
    """The error names the option, what is wrong and what is right."""
    file = write(tmp_path, [*shop(), pod("other", schedulerName="mine")])
    assert error in refused("top", *arguments, file)


def test_stdin(cluster: Path) -> None:
    """A dash is a file, with and without the name of the rows."""
    text = cluster.read_text()
    for arguments in (["-"], ["nodes", "-"]):
        assert run("top", *arguments, stdin=text).stdout == run("top", cluster).stdout


@pytest.mark.slow
def test_a_live_cluster(tmp_path: Path) -> None:
    """The current context is read if there is no file."""
    objects: list[Json] = [node("n", labels={ZONE: "a"}), pod("p", "1", node_name="n")]
    with live(tmp_path, objects) as kubeconfig:
        result = run("top", "zones", "--room", "cpu=1", KUBECONFIG=str(kubeconfig))
    assert result.exit_code == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("a ")]
    assert line.split() == ["a", "1", "1/4", "25%", "1Gi/8Gi", "12%", "1/110", "1%", "3"]


# Tables fit their width, whatever names and resources there are.

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
