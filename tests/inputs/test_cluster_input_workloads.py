"""Workloads whose pods are missing are errors: commands do not create their pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cluster import Json, node, pod, run, write

REMEDY = (
    "only Pods are placed here; ask `kubesched fit`, or write each of its pods as a Pod with the "
    "spec of its template"
)
VERSIONS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}


def workload(kind: str, name: str = "w", uid: str = "", **spec: object) -> Json:
    """Return a workload; with a uid it comes from an API server."""
    metadata = {"name": name, "namespace": "shop", **({"uid": uid} if uid else {})}
    return {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def owned_pod(owner: Json, labels: dict[str, str] | None = None) -> Json:
    """Return a pod that a workload owns."""
    made = pod("made")
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "uid": "1"}
    made["metadata"] |= {"labels": labels or {}}
    made["metadata"]["ownerReferences"] = [{**reference, "name": owner["metadata"]["name"]}]
    return made


def refusal(file: Path, kind: str) -> str:
    """Return the error about a file with one workload."""
    return f"kubesched: error: {file}: document 1: items[0]: {kind} shop/w: {REMEDY}\n"


@pytest.mark.parametrize("uid", ["", "1"])
@pytest.mark.parametrize("kind", VERSIONS)
def test_workloads_cannot_be_placed(kind: str, uid: str, tmp_path: Path) -> None:
    """For every kind of workload `--pods` exits with 2 and gives the remedy."""
    cluster = write(tmp_path, [node("n"), pod("p")])
    batch = write(tmp_path, [workload(kind, uid=uid)], "batch.json")
    result = run("simulate", cluster, "--pods", batch)
    assert (2, "", refusal(batch, kind)) == (result.exit_code, result.stdout, result.stderr)


@pytest.mark.parametrize("kind", VERSIONS)
@pytest.mark.parametrize("command", [["simulate"], ["explain", "p"]])
def test_manifests_of_workloads_lack_their_pods(
    command: list[str], kind: str, tmp_path: Path
) -> None:
    """Without a uid, no controller has created the pods."""
    manifest = write(tmp_path, [workload(kind)], "app.json")
    result = run(*command, write(tmp_path, [node("n"), pod("p")]), manifest)
    assert (2, refusal(manifest, kind)) == (result.exit_code, result.stderr)


def test_workloads_and_nodes_without_pods(tmp_path: Path) -> None:
    """Such a dump was most likely meant to be placed."""
    files = write(tmp_path, [node("n"), workload("Deployment", uid="1")])
    result = run("simulate", files)
    assert 2 == result.exit_code
    assert REMEDY in result.stderr


@pytest.mark.parametrize("pods", [[], [pod("p")]], ids=["no pods", "other pods"])
def test_a_stored_workload_without_pods_can_be_asked_about(
    pods: list[Json], tmp_path: Path
) -> None:
    """Nothing is to be placed, so there is nothing to refuse or to warn about."""
    files = write(tmp_path, [node("n"), *pods, workload("Deployment", uid="1")])
    for command in (("why", "deploy/w"), ("top",)):
        result = run(*command, files)
        assert (0, "") == (result.exit_code, result.stderr)


def test_running_workloads_cannot_be_placed_again(tmp_path: Path) -> None:
    """`--pods` refuses a workload even if the dump has its pods."""
    running = workload("StatefulSet", uid="1")
    cluster = write(tmp_path, [node("n"), running, owned_pod(running)])
    other = workload("Deployment", "other", uid="2")
    again = write(tmp_path, [other], "again.json")
    result = run("simulate", cluster, "--pods", again)
    assert 2 == result.exit_code
    assert "Deployment shop/other" in result.stderr
    assert "StatefulSet" not in result.stderr


def test_workloads_with_their_pods_are_accepted(tmp_path: Path) -> None:
    """So are owners of owners, workloads that select a pod, and workloads of no replicas."""
    deployment, job = workload("Deployment", "d"), workload("Job", "j")
    replica_set = workload("ReplicaSet", "d-1")
    replica_set["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1"}
    ]
    by_job = owned_pod(job)
    by_job["metadata"]["name"] = "by-job"
    objects = [
        node("n"),
        deployment,
        replica_set,
        job,
        workload("StatefulSet", "selects", selector={"matchLabels": {"app": "a"}}),
        workload("ReplicationController", "too", selector={"app": "a"}),
        workload("Deployment", "zero", replicas=0),
        owned_pod(replica_set, {"app": "a"}),
        by_job,
    ]
    result = run("simulate", write(tmp_path, objects), "-o", "json")
    assert (0, "") == (result.exit_code, result.stderr)


def test_workloads_of_a_dump_without_pods_are_a_warning(tmp_path: Path) -> None:
    """The cluster's controller has created no pods for them, so there are none to place."""
    objects = [
        node("n"),
        pod("p"),
        workload("Deployment", uid="1"),
        workload("CronJob", uid="2"),
        workload("CronJob", "v", uid="3"),
    ]
    result = run("simulate", write(tmp_path, objects), "-o", "json")
    assert 0 == result.exit_code
    assert (
        "kubesched: warning: workloads without pods in the files are not expanded: "
        "2 CronJob, 1 Deployment\n"
    ) == result.stderr


def test_long_lists_are_cut(tmp_path: Path) -> None:
    """After ten lines, the number of the others follows."""
    objects = [workload("Job", f"j{at}") for at in range(12)]
    result = run(
        "simulate",
        write(tmp_path, [node("n"), pod("p")]),
        "--pods",
        write(tmp_path, objects, "batch.json"),
    )
    assert "and 2 more workloads" in result.stderr
    assert 11 == len(result.stderr.splitlines())


def test_workloads_among_the_objects_of_a_scenario(tmp_path: Path) -> None:
    """They are field errors unless their pods are there."""
    scenario = tmp_path / "scenario.yaml"
    objects = write(tmp_path, [node("n"), pod("p"), workload("Deployment")])
    scenario.write_text(f"version: 1\nduration: 10s\nobjects: [{objects}]\n")
    for command in (("simulate", scenario), ("compare", scenario, scenario)):
        result = run(*command)
        assert (2, "") == (result.exit_code, result.stdout)
        assert f"{objects}: document 1: items[2]: Deployment shop/w: {REMEDY}\n" in result.stderr
    owner = workload("ReplicaSet", uid="1")
    write(tmp_path, [node("n"), owned_pod(owner), owner])
    assert 0 == run("simulate", scenario).exit_code
