"""`kubesched compare` on clusters: what it prints, what it takes, and what it refuses."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from .cluster import config, document, interrupting, node, pod, refused, run, write
from .live import live

SCENARIO = "version: 1\nduration: 1h\nnodes: [{count: 1, capacity: {cpu: 1}}]\n"
PACK = (
    "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: "
    "{type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}]}]\n"
)


@pytest.fixture
def monday(tmp_path: Path) -> Path:
    """Return a cluster with two nodes, a pod on the first one, and two pending pods."""
    objects = [node("n1", "8"), node("n2", "2"), pod("db", "1", node_name="n1")]
    return write(tmp_path, [*objects, pod("web", "2"), pod("big", "4")], "monday.json")


@pytest.fixture
def tuesday(tmp_path: Path) -> Path:
    """Return the same a day later: n1 is smaller, and there is another pod."""
    objects = [node("n1", "2"), node("n2", "2"), pod("db", "1", node_name="n1")]
    later = [*objects, pod("web", "2"), pod("big", "4"), pod("new", "500m")]
    return write(tmp_path, later, "tuesday.json")


def test_text(monday: Path, tuesday: Path) -> None:
    """Differences come first, then totals."""
    result = run("compare", monday, tuesday, "--complete")
    assert result.exit_code == 0
    assert result.stdout == (
        "tuesday, compared with monday: 1 pod lands elsewhere, 1 pod no longer fits, 1\n"
        "pod is new.\n"
        "\n"
        "Land elsewhere\n"
        "  shop/web: n1 → n2\n"
        "\n"
        "No longer fit\n"
        "  shop/big: n1 → -\n"
        "      in tuesday: Insufficient cpu\n"
        "\n"
        "Pods in monday only (gone), or in tuesday only (new)\n"
        "  Pod shop/new: 1 new\n"
        "\n"
        "Totals, after the pending pods were placed\n"
        "  WHAT                   MONDAY  TUESDAY\n"
        "  nodes                       2        2\n"
        "  pods on nodes               3        3\n"
        "  pods placed            2 of 2   2 of 3\n"
        "  pods that did not fit       0        1\n"
        "  cpu requested             70%      88%\n"
        "  memory requested          19%      19%\n"
        "  pods requested             1%       1%\n"
        "  cpu fragmented            42%     100%\n"
        "  memory fragmented         92%     100%\n"
    )


def test_clusters_that_do_not_differ(monday: Path) -> None:
    """The text is one sentence."""
    text = run("compare", monday, monday, "--complete").stdout.partition("\n\n")[0]
    assert " ".join(text.split()) == f"{monday} (2): every pod ends as in {monday} (1)."


def test_configurations(tmp_path: Path) -> None:
    """One cluster under two; the seed is the same."""
    file = write(tmp_path, [node("n1", "4"), node("n2", "8"), pod("web", "2")])
    files = (config(tmp_path, name="spread.yaml"), config(tmp_path, PACK, "pack.yaml"))
    found = document("compare", file, *(f"--config={one}" for one in files), "--seed", "7")
    assert (found["kind"], found["seed"]) == ("ClusterComparison", 7)
    assert [each["name"] for each in found["clusters"]] == ["spread", "pack"]
    (difference,) = found["differences"]
    assert difference["elsewhere"] == [
        {"pod": "shop/web", "before": "n2", "after": "n1", "why": "", "scheduled": True}
    ]


def test_one_configuration(monday: Path, tuesday: Path, tmp_path: Path) -> None:
    """It is used for each cluster."""
    other = config(tmp_path, "profiles: [{schedulerName: other}]\n")
    found = document("compare", monday, tuesday, "--config", other)
    assert [each["summary"]["ignored"] for each in found["clusters"]] == [2, 3]


@pytest.mark.slow
def test_live_and_saved(tmp_path: Path, monday: Path) -> None:
    """A snapshot of before, and the cluster as it is."""
    with live(tmp_path, [node("n1", "8"), node("n2", "2")]) as kubeconfig:
        by_context = run("compare", monday, "--context", "dev", KUBECONFIG=str(kubeconfig))
        by_file = run("compare", monday, "--kubeconfig", kubeconfig)
    assert by_context.exit_code == 0, by_context.stderr
    assert by_context.stdout == by_file.stdout
    assert by_context.stdout.startswith("dev, compared with monday: 3 pods are gone.\n")


def test_a_compressed_file_and_stdin(monday: Path) -> None:
    """Both can be clusters."""
    packed = monday.with_name("packed.json.gz")
    packed.write_bytes(gzip.compress(monday.read_bytes()))
    result = run("compare", packed, "-", stdin=monday.read_text())
    assert result.stdout.startswith("stdin: every pod ends as in packed.\n")


def test_a_pipe(monday: Path) -> None:
    """As `<(kubectl get -o json ...)` in a shell: it can be read only once."""
    reader, writer = os.pipe()
    os.write(writer, monday.read_bytes())
    os.close(writer)
    try:
        result = run("compare", monday, f"/dev/fd/{reader}")
    finally:
        os.close(reader)
    assert f"{reader}: every pod ends as in monday." == result.stdout.partition("\n")[0]


def test_long_names_fit(tmp_path: Path, monday: Path) -> None:
    """Columns are letters then."""
    names = [f"{'a' * 40}-{at}.json" for at in range(2)]
    for name in names:
        (tmp_path / name).write_bytes(monday.read_bytes())
    result = run("compare", *(tmp_path / name for name in names), "--complete")
    totals = result.stdout.split("were placed\n")[1].splitlines()
    assert totals[:3] == [f"  A: {'a' * 40}-0", f"  B: {'a' * 40}-1", totals[2]]
    assert totals[2].split() == ["WHAT", "A", "B"]
    assert max(map(len, totals)) <= 80


def test_more_clusters_than_letters(tmp_path: Path) -> None:
    """Two letters follow one."""
    file = write(tmp_path, [node("n1")], "a.json")
    result = run("compare", *[file] * 28, "--complete")
    assert 0 == result.exit_code, result.output
    assert ["Z", "AA", "AB"] == next(
        line.split()[-3:] for line in result.stdout.splitlines() if line.split()[:1] == ["WHAT"]
    )


def test_few_pods_are_shown(tmp_path: Path) -> None:
    """The others are counted."""
    pods = [pod(f"p{at}", "1", node_name="n1") for at in range(4)]
    moved = [pod(f"p{at}", "1", node_name="n2") for at in range(4)]
    nodes = [node("n1"), node("n2")]
    files = [
        write(tmp_path, [*nodes, *pods], "a.json"),
        write(tmp_path, [*nodes, *moved], "b.json"),
    ]
    lines = run("compare", *files, "--top", "3").stdout.splitlines()
    at = lines.index("Run on another node")
    assert lines[at + 3 : at + 5] == ["  shop/p2: n1 → n2", "  and 1 more; --top 4 shows all"]


def test_a_single_configuration(monday: Path, tmp_path: Path) -> None:
    """It is compared with the default one."""
    result = run("compare", monday, "--config", config(tmp_path, name="mine.yaml"))
    assert 0 == result.exit_code, result.output
    assert "mine: every pod ends as in default." == result.stdout.splitlines()[0]


def test_a_plugin_that_is_interrupted(monday: Path, tuesday: Path, tmp_path: Path) -> None:
    """Nothing is written then."""
    result = run("compare", monday, tuesday, "--plugin", interrupting(tmp_path))
    assert (result.exit_code, result.stdout) == (130, "")
    assert "no comparison: monday was interrupted" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "there is nothing to compare: name files, or --context NAME"),
        (["monday.json"], "there is nothing to compare: give a second cluster, or --config"),
        (
            ["monday.json", "monday.json", "--config", "c.yaml", "--config", "c.yaml"],
            "give several clusters or several --config, not both",
        ),
        (["s.yaml", "monday.json"], "monday.json: this holds Kubernetes objects, not a scenario"),
        (["monday.json", "s.yaml"], "monday.json: this holds Kubernetes objects, not a scenario"),
        (["monday.json", "p.csv"], "p.csv: must be a scenario: a mapping with `version: 1`"),
        (
            ["s.yaml", "--context", "dev"],
            "s.yaml: this is not a cluster; clusters are compared with",
        ),
        (["monday.json", "monday.json", "--html", "no/x"], "--html no/x: there is no directory no"),
        (["monday.json", "monday.json", "--duration", "1h"], "--duration is for scenarios"),
        (["s.yaml", "s.yaml", "--complete"], "--complete is for clusters, and these are scenarios"),
        (["monday.json", "c.yaml"], "c.yaml: nothing to schedule was found, only objects of kind"),
        (["-", "-"], "`-` is given twice, but standard input can be read only once"),
    ],
)
def test_users_mistakes(
    monday: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: str
) -> None:
    """The error comes before anything is simulated."""
    monkeypatch.chdir(monday.parent)
    Path("s.yaml").write_text(SCENARIO)
    Path("p.csv").write_text("name,arrival\n")
    config(Path(), name="c.yaml")
    assert error in refused("compare", *arguments)


def test_invalid_objects(monday: Path) -> None:
    """The file is named, as everywhere."""
    broken = monday.with_name("broken.json")
    broken.write_text('{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod"}]}')
    assert str(broken) in refused("compare", monday, broken)
