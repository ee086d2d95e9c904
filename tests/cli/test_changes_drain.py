"""`kubesched drain`: what it prints, its exit codes, and wrong input."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cluster import document, node, owned, pod, refused, run, write


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a dump of three nodes, the first with a pod of every kind."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
    }
    return write(
        tmp_path,
        [
            node("alpha"),
            node("beta", "2"),
            node("gamma", "1"),
            owned(pod("web-1", "2", node_name="alpha"), "web"),
            owned(pod("db-0", "500m", node_name="alpha"), "db", "StatefulSet"),
            owned(pod("agent-1", "100m", node_name="alpha"), "agent", "DaemonSet"),
            pod("bare", "100m", node_name="alpha"),
            owned(pod("agent-2", "100m", node_name="gamma"), "agent", "DaemonSet"),
            budget,
        ],
    )


def test_text(cluster: Path) -> None:
    """The answer, the flags, pods without a node, and where the others go."""
    result = run("drain", "alpha", cluster, "--complete")
    assert result.exit_code == 1
    assert result.stdout == (
        "Not every pod of alpha finds a place: 1 moves, 1 waits for a disruption budget,\n"
        "1 would not come back.\n"
        "kubectl drain needs --ignore-daemonsets --force.\n"
        "\n"
        "What finds no place\n"
        "  shop/bare would not come back: it has no controller\n"
        "  shop/db-0 waits for shop/db:\n"
        "      the budget needs 1 healthy pod and has 1\n"
        "\n"
        "From alpha\n"
        "  shop/web-1 to beta\n"
        "  1 pod of DaemonSets, or static: not evicted\n"
    )


def test_a_node_whose_pods_stay(cluster: Path) -> None:
    """No pod has to move, so the drain is possible."""
    result = run("drain", "gamma", "beta", "--cluster", cluster, "--complete")
    assert 0 == result.exit_code
    assert result.stdout.startswith("gamma and beta: nothing has to move.\n")


def test_nodes_as_kubectl_prints_their_names(cluster: Path) -> None:
    """A node that is named twice is drained once."""
    report = document("drain", "Node/alpha", "alpha", cluster)
    assert ["alpha"] == report["nodes"]


def test_nodes_with_labels(cluster: Path) -> None:
    """A selector stands for the names of its nodes."""
    named = run("drain", "alpha", cluster, "-o", "json")
    selected = run("drain", "-l", "kubernetes.io/hostname=alpha", cluster, "-o", "json")
    assert (named.exit_code, named.stdout) == (selected.exit_code, selected.stdout)


def test_the_report(cluster: Path) -> None:
    """Every pod of the node has a fate."""
    report = document("drain", "alpha", cluster)
    fates = {one["pod"]: one["fate"] for one in report["pods"]}
    expected = {"shop/web-1": "Moved", "shop/db-0": "Waits", "shop/agent-1": "Stays"}
    assert {**expected, "shop/bare": "Lost"} == fates


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["alpa", "cluster.json"], "alpa: there is no such node; did you mean alpha?"),
        (
            ["deploy/web", "cluster.json"],
            "deploy/web: it is not a node, and there is no such file; name a node",
        ),
        (["cluster.json"], "cluster.json: it is a file; name a node before it"),
        ([], "name a node, or give a --selector such as pool=a"),
        (
            ["alpha", "-l", "pool=a", "cluster.json"],
            "alpha: there is a --selector already; leave out one",
        ),
        (["-l", "pool=z", "cluster.json"], "--selector pool=z: no node has these labels"),
        (["alpha", "none.json"], "none.json: it cannot be read: No such file or directory"),
    ],
)
def test_wrong_words(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    """The error has the remedy."""
    monkeypatch.chdir(cluster.parent)
    assert message == refused("drain", *words)


def test_a_page_that_cannot_be_written(cluster: Path) -> None:
    """The error comes before the trial; input files are not overwritten."""
    error = refused("drain", "alpha", cluster, "--html", "no/x.html")
    assert "--html no/x.html: there is no directory no" == error
    before = cluster.read_text()
    error = refused("drain", "alpha", cluster, "--html", cluster)
    assert error.startswith(f"--html {cluster}: this would overwrite {cluster}, which is read")
    assert before == cluster.read_text()


def test_a_page_beside_the_text(cluster: Path) -> None:
    """The text and the exit code are the same."""
    page = cluster.with_name("page.html")
    with_page = run("drain", "alpha", cluster, "--html", page)
    alone = run("drain", "alpha", cluster)
    assert (alone.exit_code, alone.stdout) == (with_page.exit_code, with_page.stdout)
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_many_nodes_and_reasons(tmp_path: Path) -> None:
    """The first ones are shown, and how many others there are."""
    nodes = [f"n-{at}" for at in range(10, 40)]
    pods = [owned(pod(f"web-{name}", node_name=name), f"web-{name}") for name in nodes]
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": f"web-{name}"}}},
        }
        for name in nodes[:8]
    ]
    spare = [node(f"spare-{at}", "9") for at in range(3)]
    cluster = write(tmp_path, [*map(node, nodes), *spare, *pods, *budgets])
    text = run("drain", *nodes, cluster, "--complete").stdout
    assert "for shop/n-14:" in text
    assert "\n  and 3 pods for other reasons; -o json shows all\n" in text
    assert "\nFrom n-37\n  shop/web-n-37 to spare-" in text
    assert text.endswith("\nFrom other nodes\n  n-38 and n-39; -o json shows all\n")
