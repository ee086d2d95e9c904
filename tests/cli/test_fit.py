"""`kubesched fit`: what it prints, its exit codes, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from .cluster import Json, document, manifest, node, owned, pod, refused, run, write
from .live import live


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a dump of two nodes with room for five CPUs."""
    return write(tmp_path, [node("alpha", "4"), node("beta", "2"), pod("db-0", node_name="alpha")])


def written(tmp_path: Path, *items: Json) -> Path:
    """Return a file with manifests as helm prints them."""
    file = tmp_path / "manifests.yaml"
    file.write_text("---\n".join(yaml.safe_dump(item) for item in items))
    return file


def test_text(cluster: Path, tmp_path: Path) -> None:
    """The answer, the workloads, the nodes, and the reasons."""
    big = manifest("StatefulSet", "big", "3", replicas=2)
    file = written(tmp_path, manifest("Deployment", replicas=2), big)
    result = run("fit", file, "--cluster", cluster, "--complete")
    assert result.exit_code == 1
    assert result.stdout == (
        "It does not fit: 2 of 4 pods fit.\n"
        "\n"
        "Workloads\n"
        "  KIND         NAME      PODS  THERE  FIT\n"
        "  Deployment   shop/web     2      0    2\n"
        "  StatefulSet  shop/big     2      0    0\n"
        "\n"
        "Where they go\n"
        "  web: alpha, beta\n"
        "\n"
        "Why not all of StatefulSet shop/big\n"
        "  2 pods: shop/big-0 and shop/big-1\n"
        "      0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate,\n"
        "        preemption: 0/2 nodes are available: 1 No preemption victims found for\n"
        "        incoming pod, 1 Preemption is not helpful for scheduling.\n"
    )


def test_all_kinds_fit(cluster: Path, tmp_path: Path) -> None:
    """There is no warning about objects of Kubernetes that are not workloads."""
    job = manifest("Job", "batch")
    job["apiVersion"] = "batch/v1"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    other = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "x"}}
    file = written(
        tmp_path, manifest("Deployment"), service, other, job, manifest("DaemonSet", "agent", "0.1")
    )
    result = run("fit", file, "--cluster", cluster, "--complete")
    assert (0, "") == (result.exit_code, result.stderr)
    assert "It fits: 4 pods in a cluster of 2 nodes.\n" in result.stdout


def test_a_generated_name(cluster: Path, tmp_path: Path) -> None:
    """Manifests with `generateName` can be tried."""
    job = manifest("Job", replicas=1)
    job["apiVersion"] = "batch/v1"
    job["metadata"] = {"generateName": "run-", "namespace": "shop"}
    report = document("fit", written(tmp_path, job), "--cluster", cluster)
    assert ("run-1", True) == (report["workloads"][0]["name"], report["fits"])


def test_standard_input_and_replicas(cluster: Path) -> None:
    """Pods without a namespace are in that of -n."""
    deployment = manifest("Deployment")
    del deployment["metadata"]["namespace"]
    arguments = ("--cluster", cluster, "-n", "front", "--replicas", "web=5")
    report = document("fit", "-", *arguments, stdin=yaml.safe_dump(deployment), code=0)
    (found,) = report["workloads"]
    assert ("front", 5, 5) == (found["namespace"], found["wanted"], found["placed"])
    assert {"alpha": 3, "beta": 2} == {one["node"]: one["pods"] for one in found["nodes"]}


def test_lines_fit_80_columns(cluster: Path, tmp_path: Path) -> None:
    """Long messages are wrapped."""
    file = written(tmp_path, manifest("Deployment", replicas=9))
    shape = ("--node-template", "cpu=4,memory=8Gi")
    result = run("fit", file, "--cluster", cluster, "--complete", "--max", *shape)
    assert 80 >= max(map(len, result.stdout.splitlines()))
    assert "With 1 node of cpu=4,memory=8Gi, everything fits." in result.stdout


def test_a_node_in_a_file_is_a_shape(cluster: Path, tmp_path: Path) -> None:
    """It can have a price."""
    file = written(tmp_path, manifest("Deployment", replicas=9))
    shape = write(tmp_path, [node("large", "2")], "node.json")
    arguments = ("--cluster", cluster, "--node-template", f"{shape},price=2.5")
    missing = document("fit", file, *arguments)["missingNodes"]
    assert [{"shape": "large", "count": 2}] == missing["nodes"]
    assert 5 == missing["price"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replicas", "many"], "--replicas many: write a number up to 100000, or NAME=NUMBER"),
        (
            ["--replicas", "wbe=3"],
            "--replicas wbe=3: no workload in the manifests has this name; did you mean web?",
        ),
        (
            ["--node-template", "cpu=4"],
            "--node-template cpu=4: memory missing; write it as cpu=8,memory=32Gi",
        ),
        (["--node-template", "cpu=4,memory=x"], "--node-template cpu=4,memory=x: memory=x: "),
        (
            ["--node-template=cpu=4,memory=1Gi,price=2", "--node-template=cpu=1,memory=1Gi"],
            "--node-template cpu=1,memory=1Gi: it has no price, but another has; add ,price=P",
        ),
    ],
)
def test_wrong_arguments(cluster: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    """The error has the remedy."""
    file = written(tmp_path, manifest("Deployment"))
    assert refused("fit", file, "--cluster", cluster, *arguments).startswith(message)


def test_unknown_fields_of_stdin(cluster: Path) -> None:
    """As of files: helm prints there."""
    item = manifest("Deployment")
    item["spec"]["replica"] = 2
    result = run("fit", "-", "--cluster", cluster, stdin=yaml.safe_dump(item))
    assert "stdin: Deployment shop/web: unknown field spec.replica\n" in result.stderr


def test_the_pods_of_custom_resources_are_not_counted(cluster: Path) -> None:
    """Only their controllers know how many there are."""
    kinds = (("ray.io/v1", "RayCluster"), ("jobset.x-k8s.io/v1", "JobSet"))
    custom: list[Json] = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}} for version, kind in kinds
    ]
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}}

    def of(*items: Json) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    text = of(manifest("Deployment"), *custom, ingress)
    result = run("fit", "-", "--cluster", cluster, stdin=text)
    assert not result.exit_code
    assert result.stderr == (
        "kubesched: warning: not read: JobSet and RayCluster; pods that their controllers may "
        "create are not counted\n"
    )
    error = refused("fit", "-", "--cluster", cluster, stdin=of(*custom))
    assert error.startswith("stdin: no workload in it that is known, only JobSet and RayCluster;")


def test_wrong_manifests(cluster: Path, tmp_path: Path) -> None:
    """Errors name the file, the document and the field."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    file = written(tmp_path, service)
    error = refused("fit", file, "--cluster", cluster)
    assert error.startswith(f"{file}: no workload in it; ")
    error = refused("fit", "-", "--cluster", cluster, stdin=json.dumps(service))
    assert error.startswith("stdin: no workload in it; ")
    file = written(tmp_path, owned(pod("web-1-x"), "web-1"))
    words = "ReplicaSet web-1 creates what is in it; name a file with that workload"
    assert refused("fit", file, "--cluster", cluster).startswith(f"{file}: {words}")
    bad = manifest("Deployment", "bad", replicas=-1)
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    bad["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    file = written(tmp_path, service, bad)
    lines = run("fit", file, "--cluster", cluster).stderr.splitlines()
    place = f"kubesched: error: {file}: document 2: Deployment shop/bad: "
    assert f"{place}the number of pods is -1; write 0 or more" == lines[0]
    assert lines[1].startswith(
        f"{place}spec.template.spec.containers[0].resources.requests: Invalid value"
    )


def test_max_is_for_one_workload(cluster: Path, tmp_path: Path) -> None:
    """A DaemonSet cannot have it either."""
    file = written(tmp_path, manifest("Deployment"), manifest("Deployment", "db"))
    error = refused("fit", file, "--cluster", cluster, "--max")
    assert error.startswith("--max: there are 2 workloads")
    file = written(tmp_path, manifest("DaemonSet"))
    error = refused("fit", file, "--cluster", cluster, "--max")
    assert error.startswith("--max: a DaemonSet has one pod per node")


def test_max_ends_in_large_clusters(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text says so, as it does not have what stops the next pod."""
    monkeypatch.setattr("kubesched.answers.fit._MORE_MAX", 8)
    file = written(tmp_path, manifest("Deployment", cpu="10m"))
    result = run("fit", file, "--cluster", cluster, "--complete", "--max")
    assert "  At least 8 more pods of Deployment shop/web fit.\n" in result.stdout
    assert result.stdout.endswith("  Counting ended there; more may fit.\n")


def test_a_live_cluster(tmp_path: Path) -> None:
    """Manifests without a namespace are in that of the context."""
    deployment = manifest("Deployment", replicas=3)
    del deployment["metadata"]["namespace"]
    file = written(tmp_path, deployment)
    objects = [node("alpha"), node("beta", "2"), pod("bare", node_name="beta")]
    with live(tmp_path, objects) as kubeconfig:
        fits = document("fit", file, "--kubeconfig", kubeconfig, code=0)
        drained = run("drain", "beta", "-o", "json", KUBECONFIG=str(kubeconfig))
    (found,) = fits["workloads"]
    assert ("shop", 3) == (found["namespace"], found["placed"])
    assert ["Lost"] == [one["fate"] for one in json.loads(drained.stdout)["pods"]]


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    """A controller could not create its pod either."""
    taken = owned(pod("db-0", node_name="alpha"), "other")
    cluster = write(tmp_path, [node("alpha"), taken])
    error = refused("fit", written(tmp_path, manifest("StatefulSet", "db")), "--cluster", cluster)
    assert error.startswith('pods "db-0" already exists, and belongs to')
