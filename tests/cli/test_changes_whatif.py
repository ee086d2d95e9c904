"""`kubesched whatif`: what it prints, its exit codes, and wrong plans."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from .cluster import document, manifest, node, owned, pod, refused, run, write


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a dump of two nodes, with a pod each."""
    objects = [
        node("alpha"),
        node("beta"),
        owned(pod("web-1", "2", node_name="alpha"), "web"),
        pod("bare", node_name="beta"),
    ]
    return write(tmp_path, objects)


def written(cluster: Path, *steps: object) -> Path:
    """Return a plan beside the cluster."""
    file = cluster.parent / "plan.yaml"
    file.write_text(yaml.safe_dump({"steps": list(steps)}))
    return file


def test_text(cluster: Path) -> None:
    """The answer, the steps, the pods, and the use of the cluster."""
    plan = written(cluster, {"removeNode": "alpha"}, {"cordon": "beta"})
    result = run("whatif", plan, cluster, "--complete")
    assert 0 == result.exit_code
    assert result.stdout == (
        "The plan works: 1 pod moves.\n"
        "\n"
        "Steps\n"
        "  1. remove alpha with 1 pod\n"
        "  2. cordon beta\n"
        "\n"
        "Moved\n"
        "  shop/web-1 from alpha to beta\n"
        "\n"
        "Requested of allocatable\n"
        "  RESOURCE             BEFORE             AFTER\n"
        "  cpu            3 of 8 (38%)      3 of 4 (75%)\n"
        "  memory    2Gi of 16Gi (12%)  2Gi of 8Gi (25%)\n"
        "  pods          2 of 220 (1%)     2 of 110 (2%)\n"
        "  2 → 1 node, 0 → 0 pending pods\n"
    )


def test_a_plan_from_stdin_with_a_manifest(cluster: Path) -> None:
    """Files of steps are beside the plan, or below the working directory."""
    write(cluster.parent, [manifest("Deployment", replicas=2)], "web.json")
    plan = written(cluster, {"apply": "web.json"}, {"removeNode": "beta"})
    report = document("whatif", plan, cluster, code=1)
    assert ["shop/bare"] == [one["pod"] for one in report["lost"]]
    assert 2 == len(report["created"])


def test_a_drain_without_budgets_among_the_files(cluster: Path) -> None:
    """It depends on them; a node that is removed does not."""
    for step, expected in (({"drain": "alpha"}, True), ({"removeNode": "alpha"}, False)):
        unknown = document("whatif", written(cluster, step), cluster)["unknown"]
        assert expected is ("PodDisruptionBudget" in [one["kind"] for one in unknown])


def test_wrong_plans(cluster: Path) -> None:
    """One line per field error, with the file and the path."""
    plan = written(cluster, {"drains": "alpha"}, {"addNodes": {"count": "x", "like": "alpha"}})
    result = run("whatif", plan, cluster)
    assert 2 == result.exit_code
    assert result.stderr.splitlines() == [
        f"kubesched: error: {plan}: steps[0].drains: there is no such step; did you mean drain?",
        f"kubesched: error: {plan}: steps[1].addNodes.count: expected `int`, got `str`",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: [{drain: alpa}]", "steps[0].drain: alpa: there is no such node; did you mean"),
        ("steps: [{apply: none.yaml}]", "steps[0].apply.file: none.yaml: there is no such file"),
        ("steps: [", "it is not YAML: "),
        ("steps: []\n---\nsteps: []", "a plan is one document, and there are 2"),
    ],
)
def test_wrong_plans_on_stdin(cluster: Path, text: str, message: str) -> None:
    """The error names stdin."""
    assert refused("whatif", "-", cluster, stdin=text).startswith(f"stdin: {message}")
