"""`kubesched simulate`: what it prints, what it takes, and what it turns away."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .cluster import Json, document, interrupting, node, pod, refused, run, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "openb-like"
NODES, PODS = EXAMPLE / "nodes.csv", EXAMPLE / "pods.csv"


def zone(name: str) -> dict[str, str]:
    """Return the label of a zone."""
    return {"topology.kubernetes.io/zone": name}


def shop() -> list[Json]:
    """Return two nodes in zones, a pod on one, and pods of which one must evict and one waits."""
    return [
        node("alpha", "4", labels=zone("z1")),
        node("beta", "2", labels=zone("z2")),
        pod("old", "4", node_name="alpha"),
        pod("web", "1"),
        pod("boss", "4", priority=10),
        pod("huge", "9"),
        pod("gated", schedulingGates=[{"name": "later"}]),
        pod("foreign", schedulerName="other"),
    ]


def simulated(*arguments: object, stdin: str | bytes | None = None) -> Any:
    """Run with JSON output and return it."""
    return document("simulate", *arguments, stdin=stdin, code=0)


# Output.


def test_summary(tmp_path: Path) -> None:
    """The numbers come first, then the reasons, then the use of zones and nodes."""
    result = run("simulate", write(tmp_path, shop()))
    assert result.exit_code == 0
    assert result.stdout == (
        "As far as is known, 2 of 4 pods placed, on 2 of 2 nodes.\n"
        "1 pod did not fit.\n"
        "1 pod held back by SchedulingGates.\n"
        "1 pod evicted for 1 other; nothing creates them again.\n"
        "1 pod ignored: belongs to another scheduler (other).\n"
        "\n"
        "Not known, because the input has none of these\n"
        "  PodDisruptionBudgets: they protect pods from eviction\n"
        "  to know, also read what this prints: kubectl get pdb -A -o json\n"
        "\n"
        "What did not fit, and why\n"
        "  1 pod: Insufficient cpu (NodeResourcesFit)\n"
        "      shop/huge\n"
        "\n"
        "Requested of allocatable\n"
        "  RESOURCE  ALLOCATABLE  BEFORE  AFTER      SHARE\n"
        "  cpu                 6       4      5  67% → 83%\n"
        "  memory           16Gi     1Gi    2Gi   6% → 12%\n"
        "  pods              220       1      2    0% → 1%\n"
        "\n"
        "Zones\n"
        "  ZONE  NODES  PLACED       CPU    MEMORY     PODS\n"
        "  z1        1       1      100%       12%       1%\n"
        "  z2        1       1  0% → 50%  0% → 12%  0% → 1%\n"
        "\n"
        "Nodes, fullest first\n"
        "  NODE   ZONE  PLACED       CPU    MEMORY     PODS\n"
        "  alpha  z1         1      100%       12%       1%\n"
        "  beta   z2         1  0% → 50%  0% → 12%  0% → 1%\n"
    )
    assert "scheduling cycles in" in result.stderr


def test_json(tmp_path: Path) -> None:
    """JSON has everything, and no wall-clock figures."""
    found = simulated(write(tmp_path, shop()))
    assert ("kubesched.dev/v1", "SimulationReport") == (found["apiVersion"], found["kind"])
    assert {"shop/boss": "alpha", "shop/web": "beta"} == {
        entry["pod"]: entry["node"] for entry in found["placements"]
    }
    assert ["shop/huge"] == [entry["pod"] for entry in found["unplaced"]]
    assert ["shop/gated"] == [entry["pod"] for entry in found["gated"]]
    assert ["other"] == [entry["schedulerName"] for entry in found["ignored"]]
    (eviction,) = found["evictions"]
    assert ("shop/old", "alpha", "shop/boss") == (
        eviction["pod"],
        eviction["node"],
        eviction["preemptor"],
    )
    assert ["z1", "z2"] == [entry["zone"] for entry in found["zones"]]
    assert not found["partial"]
    assert {4, 2} == {found["summary"]["pods"], found["summary"]["placed"]}
    assert not [key for key in found["summary"] if "second" in key.lower()]


def test_yaml(tmp_path: Path) -> None:
    """YAML and JSON are the same document."""
    cluster = write(tmp_path, shop())
    result = run("simulate", cluster, "-o", "yaml")
    assert simulated(cluster) == yaml.safe_load(result.stdout)
    assert not result.stderr


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param("placements", "Placements: 2", id="placements"),
        pytest.param("unplaced", "Did not fit: 1", id="unplaced"),
        pytest.param("zones", "Zones, requested of allocatable", id="zones"),
        pytest.param("nodes", "Nodes, requested of allocatable", id="nodes"),
        pytest.param("summary", "2 of 4 pods placed", id="summary"),
    ],
)
def test_show(tmp_path: Path, section: str, expected: str) -> None:
    """Each section can be had alone, and all of them with --all."""
    cluster = write(tmp_path, shop())
    alone = run("simulate", cluster, "--show", section).stdout
    assert expected in alone
    assert ("2 of 4 pods placed" in alone) == (section == "summary")
    assert expected in run("simulate", cluster, "--all").stdout


def test_eviction_is_shown_with_the_placements(tmp_path: Path) -> None:
    """Victims are listed below their preemptor."""
    shown = run("simulate", write(tmp_path, shop()), "--show", "placements").stdout
    assert "shop/old evicted from alpha for shop/boss" in shown
    assert "shop/boss  alpha         2  shop/old" in shown


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([node("n")], "There are no pods to place.\n", id="no pods"),
        pytest.param(
            [pod("p")], "None of 1 pod can be placed: there are no nodes.\n", id="no nodes"
        ),
    ],
)
def test_nothing_to_do(tmp_path: Path, objects: list[Json], expected: str) -> None:
    """Without pending pods there is a sentence, and exit code 0."""
    result = run("simulate", write(tmp_path, objects))
    assert result.exit_code == 0
    assert result.stdout.startswith(expected)


# Input.


def test_pods_are_placed_whatever_they_say(tmp_path: Path) -> None:
    """A pod of --pods is pending, and what else is in the file joins the cluster."""
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 100,
    }
    batch = write(
        tmp_path,
        [
            pod("a", node_name="elsewhere"),
            pod("b", status={"phase": "Succeeded"}),
            pod("c", "4", priorityClassName="high"),
            high,
        ],
        "batch.json",
    )
    text = batch.read_text().replace('"priority": 0, ', "")
    batch.write_text(text)
    cluster = write(tmp_path, [node("n", "4"), node("m", "4"), pod("x", "1", node_name="n")])
    found = simulated(cluster, "--pods", batch)
    placements = {entry["pod"]: entry["node"] for entry in found["placements"]}
    assert {"shop/a", "shop/b", "shop/c"} == set(placements)
    # The class was found: its pod came first and took the empty node.
    assert "shop/c" == found["placements"][0]["pod"]


def test_profile_takes_all_pending_pods(tmp_path: Path) -> None:
    """--profile makes other schedulers' pods this one's."""
    found = simulated(write(tmp_path, shop()), "--profile", "default-scheduler")
    assert [] == found["ignored"]
    assert "shop/foreign" in {entry["pod"] for entry in found["placements"]}


def test_stdin_and_compression(tmp_path: Path) -> None:
    """A compressed dump is read from stdin."""
    data = write(tmp_path, shop()).read_bytes()
    expected = simulated("-", stdin=data)
    assert expected == simulated("-", stdin=gzip.compress(data))
    assert 2 == expected["summary"]["placed"]


def test_stdin_only_once() -> None:
    """Standard input cannot be both the cluster and the pods."""
    error = refused("simulate", "-", "--pods", "-", stdin="")
    assert "`-` is given twice, but standard input can be read only once" == error


def test_duplicates_are_an_error(tmp_path: Path) -> None:
    """Two objects of one kind and name are a mistake; both places are named."""
    first = write(tmp_path, [node("n"), pod("p")], "a.json")
    second = write(tmp_path, [node("n")], "b.json")
    place = "document 1: items[0]"
    error = f"{second}: {place}: Node n is in {first}: {place} already; remove one"
    assert error == refused("simulate", first, second)
    twice = refused("simulate", first, "--pods", first)
    assert f"{first}: it is given twice; leave one out" == twice


def test_warnings(tmp_path: Path) -> None:
    """Each pod on an unknown node or with an unknown class has a line."""
    vague = pod("vague", priorityClassName="none")
    del vague["spec"]["priority"]
    heavy = pod("heavy", runtimeClassName="kata")
    remedy = "write the overhead, nodeSelector and tolerations into pods"
    objects = [node("n"), pod("lost", node_name="gone"), vague, heavy]
    result = run("simulate", write(tmp_path, objects), "-o", "json")
    assert result.stderr.splitlines() == [
        "kubesched: warning: not counted, because their nodes are not in the input: 1 pod on gone",
        "kubesched: warning: priority 0 is used for pods of PriorityClasses not in the input: none",
        f"kubesched: warning: not read: RuntimeClass kata; {remedy}",
    ]


# The openb trace.


@pytest.mark.slow
def test_openb_lists() -> None:
    """Lists are read by their header; every pod ends somewhere, and no GPU is given twice."""
    found = simulated(NODES, "--pods", PODS, "--seed", 1)
    summary = found["summary"]
    assert (60, 400, 400) == (
        summary["nodes"],
        summary["pods"],
        summary["placed"] + summary["unplaced"],
    )
    for entry in found["nodes"]:
        for use in entry["resources"]:
            assert use["requestedAfter"] <= use["allocatable"]
    gpus = {use["resource"]: use for use in summary["resources"]}["nvidia.com/gpu"]
    assert 1.0 == gpus["shareAfter"]


@pytest.mark.slow
def test_same_seed_same_bytes(tmp_path: Path) -> None:
    """Two processes with other hash seeds print the same bytes; another seed others."""
    packed = tmp_path / "pods.gz"
    packed.write_bytes(gzip.compress(PODS.read_bytes()))

    def output(seed: int, hash_seed: int) -> bytes:
        words = ["simulate", str(NODES), "--pods", str(packed), "--seed", str(seed), "-o", "json"]
        return subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-m", "kubesched", *words],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        ).stdout

    expected = output(1, 0)
    assert expected == output(1, 1)
    assert expected != output(2, 0)


def test_openb_errors(tmp_path: Path) -> None:
    """The error names file, line and column."""
    bad = tmp_path / "nodes.csv"
    bad.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,one,\n")
    error = f"{bad}: line 2: column 4 (gpu): a whole number is required, not 'one'"
    assert error == refused("simulate", bad)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert f"{other}: line 1: column name" in refused("simulate", other)


# Hostile input.


def test_names_with_any_characters(tmp_path: Path) -> None:
    """Control characters in names do not reach the terminal."""
    objects = [node("n\x1b[2J"), pod("p\n\x07"), pod("\u202eevil", "99")]
    result = run("simulate", write(tmp_path, objects), "--all")
    assert result.exit_code == 0
    assert not [character for character in "\x1b\x07\u202e" if character in result.stdout]


def claim(name: str, volume: str) -> Json:
    """Return a claim that is bound to a volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }


def test_references_in_circles_and_to_nowhere(tmp_path: Path) -> None:
    """Owners in a circle, claims bound crosswise and claims bound to nothing end in a report."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "shop", "name": "second", "uid": "2"},
        },
    }
    me = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    circle = pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "first"}}])
    circle["metadata"] |= {"uid": "p", "ownerReferences": [me]}
    lost = pod("q", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "third"}}])
    none = pod("r", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "fourth"}}])
    claims = [claim("first", "v"), claim("second", "v"), claim("third", "w")]
    found = simulated(write(tmp_path, [node("n"), volume, *claims, circle, lost, none]))
    assert 3 == found["summary"]["placed"] + found["summary"]["unplaced"]
    reasons = {entry["pod"]: entry["reasons"] for entry in found["unplaced"]}
    assert ['persistentvolumeclaim "fourth" not found'] == reasons["shop/r"]


@pytest.mark.parametrize(
    "cpu",
    [
        pytest.param("9223372036854775807", id="int64"),
        pytest.param("1e100", id="beyond int64"),
        pytest.param("-5", id="negative"),
        pytest.param("1n", id="tiny"),
    ],
)
def test_absurd_quantities(tmp_path: Path, cpu: str) -> None:
    """Amounts of any size are either used or turned away with a line."""
    for objects in ([node("n", cpu), pod("p")], [node("n"), pod("p", cpu), pod("q", cpu)]):
        result = run("simulate", write(tmp_path, objects), "--all")
        assert result.exit_code in {0, 2}, result.stderr
        if result.exit_code == 0:
            assert result.stdout


def many() -> Iterator[Json]:
    """Yield a dump of 40 nodes and 10,000 pods, 200 of which fit nowhere."""
    for at in range(40):
        found = node(f"n{at}", "64")
        found["status"]["allocatable"] |= {"memory": "256Gi", "pods": "300"}
        yield found
    for at in range(10_000):
        yield pod(f"p{at}", "100" if at % 50 == 0 else "200m")


@pytest.mark.slow
def test_many_pods(tmp_path: Path) -> None:
    """Pods that fit nowhere are not tried again and again while 9,800 others are placed."""
    file = tmp_path / "cluster.jsonl"
    with file.open("w") as stream:
        stream.writelines(f"{json.dumps(item)}\n" for item in many())
    summary = simulated(file)["summary"]
    assert (9_800, 200) == (summary["placed"], summary["unplaced"])
    assert 10_000 == summary["attempts"]


@pytest.mark.slow
def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C prints what has been decided, marked as partial, and ends with 130."""
    cluster = write(tmp_path, [node("n", "20"), *(pod(f"p{at}") for at in range(6))])
    words = ["simulate", cluster, "--plugin", interrupting(tmp_path)]
    before = signal.getsignal(signal.SIGINT)
    found = document(*words, code=130)
    assert found["partial"]
    assert (2, 4) == (found["summary"]["placed"], found["summary"]["notTried"])
    text = run(*words)
    assert (130, True) == (text.exit_code, "Interrupted: 4 pods not tried" in text.stdout)
    assert before is signal.getsignal(signal.SIGINT)


@pytest.mark.parametrize("command", [("simulate",), ("explain", "web-1")])
def test_empty_input(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The empty output of a failed kubectl is an error, as a file and on stdin."""
    file = tmp_path / "nodes.json"
    file.touch()
    for name, error in ((file, refused(*command, file)), ("stdin", refused(*command, "-"))):
        assert error.startswith(f"{name}: it is empty; expected objects")


@pytest.mark.parametrize(
    "command", [("simulate", "--pods", "a", "--config", "b"), ("explain", "p"), ("evaluate",)]
)
def test_every_missing_file_has_its_line(command: tuple[str, ...]) -> None:
    """All files are looked for before the first is read."""
    result = run(*command, "a", "b")
    fault = "it cannot be read: No such file or directory"
    lines = [f"kubesched: error: {name}: {fault}" for name in ("a", "b")]
    assert (2, lines) == (result.exit_code, result.stderr.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("simulate", ""), id="argument"),
        pytest.param(("simulate", "x", "--pods", ""), id="option"),
        pytest.param(("compare", "x", ""), id="scenario"),
        pytest.param(("evaluate", "--check", ""), id="lines"),
    ],
)
def test_empty_file_name(words: tuple[str, ...]) -> None:
    """An empty argument is an error, not the current directory."""
    assert "it is empty; is a variable not set?" in refused(*words)
