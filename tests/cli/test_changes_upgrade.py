"""`kubesched upgrade` and `kubesched compact`: what they print, and their exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cluster import document, node, owned, pod, refused, run, write


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a dump of a pool of two nodes, and of another node with a bare pod."""
    objects = [
        node("alpha", labels={"pool": "a"}),
        node("beta", labels={"pool": "a"}),
        node("gamma", "2"),
        owned(pod("web-1", "2", node_name="alpha"), "web"),
        pod("bare", node_name="gamma"),
    ]
    return write(tmp_path, objects)


def test_an_upgrade(cluster: Path) -> None:
    """The order, and how many pods move."""
    result = run("upgrade", "-l", "pool=a", cluster, "--complete")
    assert 0 == result.exit_code
    assert result.stdout == (
        "All 2 nodes with pool=a can be upgraded, in 2 steps of at most 1 node: 2 pods\n"
        "move.\n"
        "\n"
        "Order\n"
        "  1. alpha: 1 pod moves\n"
        "  2. beta: 1 pod moves\n"
    )


def test_a_blocked_upgrade(cluster: Path) -> None:
    """The node is named with the pod that blocks it."""
    result = run("upgrade", "--selector", "!pool", cluster, "--complete")
    assert 1 == result.exit_code
    assert result.stdout == (
        "None of 1 node with !pool can be upgraded.\n"
        "\n"
        "Blocked\n"
        "  gamma\n"
        "    shop/bare would not come back: it has no controller\n"
    )
    assert 0 == run("upgrade", "--selector", "!pool", cluster, "--force").exit_code


def test_an_upgrade_of_all_nodes(cluster: Path) -> None:
    """It needs no selector; pods without a controller are not counted as moved."""
    result = run("upgrade", "--force", cluster, "--complete")
    assert 0 == result.exit_code
    assert result.stdout == (
        "All 3 nodes can be upgraded, in 3 steps of at most 1 node: 2 pods move, 1 pod\n"
        "without a controller goes for good.\n"
        "\n"
        "Order\n"
        "  1. alpha: 1 pod moves\n"
        "  2. beta: 1 pod moves\n"
        "  3. gamma: 0 pods move, 1 pod without a controller goes for good\n"
    )


def test_a_compaction_that_costs_a_pod(cluster: Path) -> None:
    """The first sentence and the step name it."""
    result = run("compact", "--force", cluster, "--complete")
    assert result.stdout.startswith(
        "2 of 3 nodes can be removed, one after another; 1 pod without a controller goes\n"
        "for good.\n"
        "\n"
        "Order\n"
        "  1. beta: 0 pods move\n"
    )
    steps = document("compact", "--force", cluster)["removable"]
    assert {"gamma": 1, "beta": 0} == {step["nodes"][0]: step["lost"] for step in steps}


def test_a_compaction(cluster: Path) -> None:
    """The nodes that can go, and what keeps the others."""
    result = run("compact", cluster, "--complete")
    assert 0 == result.exit_code
    assert result.stdout == (
        "1 of 3 nodes can be removed, one after another.\n"
        "\n"
        "Order\n"
        "  1. beta: 0 pods move\n"
        "\n"
        "Needed\n"
        "  alpha\n"
        "    shop/web-1 stays pending:\n"
        "        0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were\n"
        "          unschedulable.\n"
        "  gamma\n"
        "    shop/bare would not come back: it has no controller\n"
        "\n"
        "Requested of allocatable\n"
        "  RESOURCE            BEFORE              AFTER\n"
        "  cpu          3 of 10 (30%)       3 of 6 (50%)\n"
        "  memory    2Gi of 24Gi (8%)  2Gi of 16Gi (12%)\n"
        "  pods         2 of 330 (1%)      2 of 220 (1%)\n"
        "  3 → 2 nodes, 0 → 0 pending pods\n"
    )


@pytest.mark.parametrize("words", [("drain", "alpha"), ("upgrade", "-l", "pool=a"), ("compact",)])
def test_budgets_that_are_not_among_the_files(cluster: Path, words: tuple[str, ...]) -> None:
    """Evictions depend on them."""
    unknown = document(*words, cluster)["unknown"]
    assert ("PodDisruptionBudget", "Victims") in [(one["kind"], one["decides"]) for one in unknown]
    assert [] == document(*words, cluster, "--complete")["unknown"]


def test_the_nodes_of_a_compaction(cluster: Path) -> None:
    """Only those that the selector names may go."""
    report = document("compact", "-l", "!pool", cluster)
    assert ["gamma"] == [one["node"] for one in report["kept"]]
    assert not report["removable"]
    result = run("compact", "-l", "pool=a", cluster)
    assert result.stdout.startswith("1 of 2 nodes with pool=a can be removed, one after another.")


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("pol=a", "--selector pol=a: no node has these labels; did you mean pool=a?"),
        ("pool in", "--selector pool in: "),
    ],
)
@pytest.mark.parametrize("command", ["upgrade", "compact"])
def test_wrong_selectors(cluster: Path, command: str, selector: str, message: str) -> None:
    """The error has the remedy."""
    assert refused(command, "-l", selector, cluster).startswith(message)


@pytest.mark.parametrize("command", ["upgrade", "compact"])
@pytest.mark.parametrize("word", ["alpha", "node/alpha"])
def test_names_of_nodes(command: str, word: str) -> None:
    """They take files; the error tells how to name a node."""
    remedy = "nodes are named with --selector kubernetes.io/hostname=alpha"
    assert f"{word}: there is no such file; {remedy}" == refused(command, word)
