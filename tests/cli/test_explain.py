"""`kubesched explain`: what it prints for a pod that fits, one that does not, and odd ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubesched.cli.explain import candidate_table, deciding_plugins, score_table, verdict_table
from kubesched.explain.report import (
    Answer,
    NodeScore,
    NodeVerdict,
    PluginScore,
    PreemptionCandidate,
    PreemptionExplanation,
    Victim,
)

from .cluster import GPU_TAINT, Json, config, document, node, pod, refused, run, shop, write


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return the shop's dump."""
    return write(tmp_path, shop())


def test_schedulable_pod(cluster: Path) -> None:
    """The outcome comes first, then the scores, then the rejections."""
    result = run("explain", "web-1", cluster)
    assert result.exit_code == 0
    assert not result.stderr
    assert result.stdout == (
        "Pod shop/web-1 goes to beta.\n"
        "It fits 2 of 4 nodes; beta scores highest, 462 to 439 of alpha.\n"
        "\n"
        "Scores\n"
        "  RANK  NODE   TOTAL  NodeResourcesFit  NodeResourcesBalancedAllocation\n"
        "     1  beta     462                87                               75\n"
        "     2  alpha    439                68                               71\n"
        "  the same for all: TaintToleration 300, DynamicResources 0, ImageLocality 0\n"
        "  nothing to score: NodeAffinity, VolumeBinding, PodTopologySpread,\n"
        "    InterPodAffinity\n"
        "\n"
        "Why not the other nodes\n"
        "  1 node: node(s) had untolerated taint(s) (TaintToleration,\n"
        "    UnschedulableAndUnresolvable)\n"
        "      delta: taint dedicated=gpu:NoSchedule\n"
        "  1 node: Insufficient cpu (NodeResourcesFit)\n"
        "      gamma: cpu: requested 1, free 0.5 of 2\n"
    )


def test_unschedulable_pod(tmp_path: Path) -> None:
    """Reasons are grouped, and the preemption names its victims."""
    objects = [*shop(), pod("big", "7500m", priority=100), pod("busy", "3", node_name="beta")]
    result = run("explain", "shop/big", write(tmp_path, objects))
    assert result.exit_code == 0
    assert result.stdout == (
        "Pod shop/big fits none of 4 nodes.\n"
        "As far as is known, evicting 1 pod on beta would make room for it.\n"
        "\n"
        "Not known, because the input has none of these\n"
        "  PodDisruptionBudgets: they protect pods from eviction\n"
        "  to know, also read what this prints: kubectl get pdb -A -o json\n"
        "\n"
        "Why not\n"
        "  2 nodes: Insufficient cpu (NodeResourcesFit, UnschedulableAndUnresolvable)\n"
        "      alpha: cpu: requested 7.5, free 3.5 of 4\n"
        "      gamma: cpu: requested 7.5, free 0.5 of 2\n"
        "  1 node: Insufficient cpu (NodeResourcesFit)\n"
        "      beta: cpu: requested 7.5, free 5 of 8\n"
        "  1 node: node(s) had untolerated taint(s) (TaintToleration,\n"
        "    UnschedulableAndUnresolvable)\n"
        "      delta: taint dedicated=gpu:NoSchedule\n"
        "\n"
        "Preemption\n"
        "  NODE  CHOSEN  VICTIMS  TOP PRIORITY  BUDGETS VIOLATED  WHO\n"
        "  beta  yes           1             0                 ?  shop/busy\n"
        "  3 nodes: evicting pods cannot cure the rejection\n"
        "\n"
        "What kubectl shows\n"
        "  0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient\n"
        "    cpu.\n"
        "\n"
        "Tried again after\n"
        "  NodeResourcesFit: Pod deleted, Pod requests lowered, Node added, Node\n"
        "    allocatable updated, DeviceClass added, DeviceClass updated\n"
        "  TaintToleration: Node added, Node taints updated, Pod tolerations updated\n"
    )


def test_json(cluster: Path) -> None:
    """JSON has apiVersion and kind first, and every node's answer and scores."""
    found = document("explain", "web-1", cluster)
    assert list(found)[:4] == ["apiVersion", "kind", "pod", "schedulerName"]
    assert (found["apiVersion"], found["kind"]) == ("kubesched.dev/v1", "PodExplanation")
    assert found["outcome"] == "Schedulable"
    assert found["node"] == "beta"
    answers = {verdict["node"]: verdict["rejections"] for verdict in found["nodes"]}
    assert [] == answers["alpha"] == answers["beta"]
    assert answers["delta"] == [
        {
            "plugin": "TaintToleration",
            "code": "UnschedulableAndUnresolvable",
            "reasons": ["node(s) had untolerated taint(s)"],
            "detail": "taint dedicated=gpu:NoSchedule",
        }
    ]
    for score in found["scores"]:
        assert score["total"] == sum(part["weighted"] for part in score["scores"])
        for part in score["scores"]:
            assert part["weighted"] == part["normalized"] * part["weight"]


def test_yaml(cluster: Path) -> None:
    """YAML and JSON are the same document, also of a dump on stdin."""
    as_yaml = run("explain", "web-1", "-", "-o", "yaml", stdin=cluster.read_text()).stdout
    assert document("explain", "web-1", cluster) == yaml.safe_load(as_yaml)
    assert as_yaml.startswith("apiVersion: kubesched.dev/v1\nkind: PodExplanation\n")


def test_output_repeats(cluster: Path) -> None:
    """The same question has the same answer, byte for byte."""
    first = run("explain", "web-1", cluster, "-o", "json").stdout
    assert first == run("explain", "web-1", cluster, "-o", "json").stdout


def test_node_narrows_the_tables(cluster: Path) -> None:
    """With --node only that node's answer and scores are shown."""
    result = run("explain", "web-1", cluster, "--node", "delta")
    assert "Node by node" in result.stdout
    table = result.stdout.partition("Node by node\n")[2].splitlines()
    assert table[1].split()[:3] == ["delta", "no", "TaintToleration"]
    assert len(table) == 2
    found = document("explain", "web-1", cluster, "--node", "beta")
    assert [verdict["node"] for verdict in found["nodes"]] == ["beta"]
    assert [score["node"] for score in found["scores"]] == ["beta"]


def test_all_filters(tmp_path: Path) -> None:
    """With --all-filters each node has every filter that rejects it."""
    objects = [node("tiny", "1", taints=[GPU_TAINT]), pod("web-1", "2", nodeSelector={"a": "b"})]
    file = write(tmp_path, objects)
    first = document("explain", "web-1", file)["nodes"][0]
    every = document("explain", "web-1", file, "--all-filters")
    assert [answer["plugin"] for answer in first["rejections"]] == ["TaintToleration"]
    plugins = [answer["plugin"] for answer in every["nodes"][0]["rejections"]]
    assert plugins == ["TaintToleration", "NodeAffinity", "NodeResourcesFit"]
    assert every["allFilters"] is True
    assert "Every filter, node by node" in run("explain", "web-1", file, "--all-filters").stdout


def test_top(cluster: Path) -> None:
    """--top is the number of nodes in the table of scores."""
    result = run("explain", "web-1", cluster, "--top", "1")
    assert "Scores, best 1 of 2" in result.stdout


def test_bound_pod(cluster: Path) -> None:
    """A bound pod is explained as if it were pending, and a note says so."""
    result = run("explain", "db-0", cluster, COLUMNS="100")
    note = "Note: The pod is on gamma; this is how it would be placed again, without it there."
    assert note in result.stdout
    found = document("explain", "db-0", cluster)
    assert found["boundTo"] == "gamma"
    # Its own 1500m are gone from gamma, so it fits there again.
    assert found["feasibleCount"] == 3


def test_finished_pod(tmp_path: Path) -> None:
    """A finished pod is explained as if it were new."""
    objects = [node("alpha"), pod("job-1", node_name="alpha", status={"phase": "Succeeded"})]
    result = run("explain", "job-1", write(tmp_path, objects))
    assert result.stdout.startswith(
        "Pod shop/job-1 goes to alpha.\nIt is the only node there is.\n"
    )
    assert "The pod has finished (Succeeded)" in result.stdout


def test_gated_pod(tmp_path: Path) -> None:
    """A gated pod is not tried; the gate and what opens it are named."""
    objects = [node("alpha"), pod("web-1", schedulingGates=[{"name": "example.com/quota"}])]
    result = run("explain", "web-1", write(tmp_path, objects))
    assert result.stdout == (
        "Pod shop/web-1 is held back by SchedulingGates: waiting for scheduling gates:\n"
        "[example.com/quota].\n"
        "\n"
        "Tried again after\n"
        "  SchedulingGates: Pod scheduling gates removed\n"
    )


def test_no_nodes(tmp_path: Path) -> None:
    """Without nodes the message is upstream's."""
    result = run("explain", "web-1", write(tmp_path, [pod("web-1")]))
    assert result.stdout.startswith("Pod shop/web-1 cannot be placed: there are no nodes.\n")
    assert "no nodes available to schedule pods" in result.stdout


def test_restricted_by_pre_filter(tmp_path: Path) -> None:
    """The nodes that PreFilter plugins allow come first."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["beta"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    bound = pod("web-1", "20", affinity={"nodeAffinity": required})
    result = run("explain", "web-1", write(tmp_path, [node("alpha"), node("beta"), bound]))
    assert "Before looking at nodes\n  NodeAffinity leaves only beta.\n" in result.stdout
    assert "1 node not looked at: node(s) didn't satisfy plugin(s) [NodeAffinity]" in result.stdout


def test_not_allowed_to_preempt(tmp_path: Path) -> None:
    """The reason is shown."""
    full = [node("alpha"), pod("busy", "4", node_name="alpha")]
    waiting = pod("web-1", priority=5, preemptionPolicy="Never")
    result = run("explain", "web-1", write(tmp_path, [*full, waiting]))
    assert "It may not preempt other pods: not eligible due to preemptionPolicy=Never." in (
        result.stdout
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["web-2"], "pod web-2: there is no such pod; did you mean shop/web-1?"),
        (["pod/zzz"], "pod/zzz: there is no such pod; there is only shop/web-1"),
        (["shop/zzz"], "pod shop/zzz: there is no such pod; there is only shop/web-1"),
        (["web-1", "--node", "alhpa"], "--node alhpa: there is no such node; did you mean alpha?"),
        pytest.param(
            ["web-1", "--profile", "defualt-scheduler"],
            "--profile defualt-scheduler: the configuration has no such profile; did you mean "
            "default-scheduler?",
            id="profile",
        ),
        (
            ["web-1", "--feature-gates", "Nope=true"],
            "--feature-gates: unrecognized feature gate: Nope",
        ),
        (
            ["web-1", "--config", "missing.yaml"],
            "missing.yaml: it cannot be read: No such file or directory",
        ),
        (
            ["web-1", "--plugin", "nonsense"],
            "--plugin nonsense: write module:Class or path/to/file.py:Class",
        ),
    ],
)
def test_users_mistakes(cluster: Path, arguments: list[str], message: str) -> None:
    """The error has the remedy."""
    name, *options = arguments
    assert message == refused("explain", name, cluster, *options)


def test_ambiguous_name(tmp_path: Path) -> None:
    """A name in two namespaces is an error."""
    objects = [pod("web-1"), pod("web-1", namespace="test")]
    error = refused("explain", "web-1", write(tmp_path, objects))
    assert error.endswith("there are 2 of that name; write one of shop/web-1, test/web-1")


def test_other_scheduler(tmp_path: Path) -> None:
    """A pod of another scheduler is an error, unless --profile is given."""
    file = write(tmp_path, [node("alpha"), pod("web-1", schedulerName="other")])
    assert "spec.schedulerName is other" in refused("explain", "web-1", file)
    again = run("explain", "web-1", file, "--profile", "default-scheduler")
    assert again.exit_code == 0


def test_only_unknown_kinds(tmp_path: Path) -> None:
    """The error of a dump without nodes and pods lists its kinds."""
    item: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    result = run("explain", "web-1", write(tmp_path, [item]))
    assert result.exit_code == 2
    assert "v1/ConfigMap" in result.stderr
    assert "there are no pods\n" in result.stderr


def test_sampling_is_mentioned(tmp_path: Path) -> None:
    """All nodes are evaluated; a note says if the configuration samples them."""
    nodes = [node(f"node-{at:03}") for at in range(150)]
    file = write(tmp_path, [*nodes, pod("web-1")])
    sampling = config(tmp_path, "percentageOfNodesToScore: 10\n")
    result = run("explain", "web-1", file, "--config", sampling)
    assert "It fits 150 of 150 nodes" in result.stdout
    note = "With percentageOfNodesToScore 10 the search ends after 100 nodes that fit"
    assert note in result.stdout
    assert note not in run("explain", "web-1", file).stdout


# Reports as rows and columns.


def score(plugin: str, weighted: int, *, raw: int | None = None, weight: int = 1) -> PluginScore:
    """Return a score."""
    normalized = weighted // weight
    return PluginScore(plugin, normalized if raw is None else raw, normalized, weight, weighted)


SCORES = (
    NodeScore("a", 1, 150, (score("Fit", 50), score("Taint", 100, weight=2), score("Image", 0))),
    NodeScore(
        "b", 2, 60, (score("Fit", 50), score("Taint", 10, raw=7, weight=2), score("Image", 0))
    ),
)


def test_scores_show_what_decides() -> None:
    """Only plugins whose scores differ have a column."""
    assert deciding_plugins(SCORES) == ("Taint",)
    table = score_table(SCORES, deciding_plugins(SCORES))
    taint = "Taint \N{MULTIPLICATION SIGN}2"
    assert ("rank", "node", "total", taint) == table.headings
    assert ("rank", "total", taint) == table.numbers
    assert [("1", "a", "150", "100"), ("2", "b", "60", "10 (7→5)")] == table.rows


def test_verdicts() -> None:
    """A node has a row per rejection, one if it fits or was not tried."""
    answer = Answer("P", "Unschedulable", ("x", "y"), "detail")
    table = verdict_table(
        [
            NodeVerdict("a", feasible=True),
            NodeVerdict("b", feasible=False, rejections=(answer, answer)),
            NodeVerdict("c", feasible=False, tried=False),
        ]
    )
    assert [row[:2] for row in table.rows] == [
        ("a", "yes"),
        ("b", "no"),
        ("b", "no"),
        ("c", "not tried"),
    ]
    assert table.rows[1] == ("b", "no", "P", "Unschedulable", "x, y", "detail")


def test_candidates() -> None:
    """The chosen candidate comes first, then those that tie, then the others by harm."""

    def candidate(node: str, priority: int, count: int = 1) -> PreemptionCandidate:
        return PreemptionCandidate(node, (Victim("d/v", priority),) * count)

    preemption = PreemptionExplanation(
        eligible=True,
        candidates=(candidate("a", 9), candidate("b", 1, 5), candidate("c", 0), candidate("d", 0)),
        chosen="c",
        ties=("c", "d"),
    )
    rows = candidate_table(preemption, 3).rows
    assert [(row[0], row[1]) for row in rows] == [("c", "yes"), ("d", "ties"), ("b", "")]
    assert rows[2][2:] == ("5", "1", "0", "d/v, d/v, d/v and 2 more")
