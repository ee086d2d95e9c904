"""The openb experiment: random source, orders, samples, runs on the synthetic trace, report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.codec import DecodeError
from kubesched.framework.plugin import UNSIGNED
from kubesched.inputs.loading import load_plugin
from kubesched.sweep.execution import case_of
from kubesched.sweep.functions import SweepCase
from kubesched.sweep.plan import SweepCell, SweepRun, plan_of
from kubesched.sweep.spec import load_sweep

from .running import EXAMPLES, gpu_sharing

go_random, openb_trace, runs = map(gpu_sharing, ("go_random", "openb_trace", "runs"))
report, sharing = map(gpu_sharing, ("report", "gpu_sharing"))

LIKE = EXAMPLES / "openb-like"
NODES, PODS = LIKE / "nodes.csv", LIKE / "pods.csv"
SWEEP = EXAMPLES / "gpu-sharing" / "openb.yaml"
POLICIES = [each.name for each in load_sweep(SWEEP).plugins]


@cache
def _cells() -> Mapping[str, SweepCell]:
    """Return the cells of the experiment by policy."""
    return {str(cell.labels["plugins"]): cell for cell in plan_of(load_sweep(SWEEP), SWEEP).cells}


def _case(policy: str, seed: int) -> SweepCase:
    return case_of(SweepRun(_cells()[policy], seed))


# The random source.


def test_the_random_source_equals_gos() -> None:
    """With Go's old default seed."""
    random = go_random.GoRandom(1)
    assert [81, 87, 47, 59, 81, 18, 25, 40, 56, 0] == [random.below(100) for _ in range(10)]


@pytest.mark.parametrize("draws", [0, 1, 272, 606, 607, 5_000])
def test_a_jump_equals_single_draws(draws: int) -> None:
    """The same numbers follow."""
    one, other = go_random.GoRandom(7), go_random.GoRandom(7)
    other._words = go_random._after(go_random.np.array(one._words, "u8"), draws).tolist()
    for _ in range(draws):
        one.word()
    assert [one.word() for _ in range(700)] == [other.word() for _ in range(700)]


def test_shuffles_are_permutations() -> None:
    """They differ by seed."""
    orders = set()
    for seed in range(5):
        random, items = go_random.GoRandom(seed), list(range(100))
        random.shuffle(items)
        places = random.permutation(100)
        assert list(range(100)) == sorted(items) == sorted(places)
        orders |= {tuple(items), tuple(places)}
    assert 10 == len(orders)


# The trace.


def _row(name: str, cpu: int = 1, gpus: int = 1, milli: int = 500, models: str = "") -> Any:
    return openb_trace.PodRow(name, cpu, 1, gpus, milli, models)


def test_the_target_has_the_most_frequent_kinds() -> None:
    """Up to 95 %; of equally frequent ones the larger comes first."""
    rows = [_row(f"a{at}", cpu=3) for at in range(90)]
    rows += [_row(f"b{at}", cpu=5) for at in range(4)]
    rows += [_row(f"c{at}", cpu=7, models="A|B") for at in range(4)]
    rows += [_row("d1", gpus=0, milli=0), _row("d2", gpus=0, milli=0)]
    found = openb_trace.target_of(rows)
    assert [(3, 90, ()), (7, 4, ("A", "B")), (5, 4, ())] == [
        (kind.milli_cpu, kind.pods, kind.models) for kind in found
    ]
    assert [3] == [kind.milli_cpu for kind in openb_trace.target_of(rows[:90] + rows[-2:])]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("gpus", [1, 9, 50])
def test_arrivals_request_130_percent(gpus: int, seed: int) -> None:
    """Copies are added at the end, or pods are removed, in the seed's order."""
    nodes = [openb_trace.NodeRow(f"n{at}", 1, 1, gpus, "") for at in range(10)]
    pods = [_row(f"p{at:03d}") for at in range(200)]
    found = openb_trace.arrivals(nodes, pods, seed)
    total, wanted = sum(pod.gpu_total for pod in found.pods), gpus * 13_000
    assert wanted - 500 < total <= wanted
    assert found == openb_trace.arrivals(nodes, pods, seed)
    copies = [pod.name for pod in found.pods[200:]]
    assert all(re.fullmatch(rf"p\d+-tuned-{at}", name) for at, name in enumerate(copies))
    assert sorted(pods) != found.pods[:200]
    assert [f"{at:04d}" for at in range(10)] == [node.name[:4] for node in found.nodes]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,cpu_milli\nx,1\n", "line 1: column memory_mib, num_gpu is missing; "),
        (
            "name,cpu_milli,memory_mib,num_gpu\nx,1,1,1\ny,1,-2,1\n",
            "line 3: column 3 (memory_mib): a whole number is required, not '-2'",
        ),
        ("sn,cpu_milli,memory_mib,gpu\nx,1,1,1\n", "this is not a list of pods; pods come first"),
    ],
)
def test_errors_name_file_line_and_column(text: str, problem: str, tmp_path: Path) -> None:
    """In one line."""
    file = tmp_path / "pods.csv"
    file.write_text(text)
    with pytest.raises((openb_trace.TraceError, DecodeError)) as refused:
        openb_trace.read_pods(file)
    assert str(refused.value).startswith(f"{file}: {problem}")


# Runs.


def test_samples_are_means_per_percent() -> None:
    """Pods that fail or need no GPU count, too; gaps get their neighbours' values."""
    pods = [_row("a", milli=400), _row("b", gpus=0, milli=0), _row("c"), _row("d", milli=900)]
    found = runs.allocated_at(pods, {"a": 1, "b": 1, "d": 1}, 100_000)
    assert (0.4, 0.4, 1.3, 1.3) == found[:4]
    assert {None} == set(found[4:])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_allocates_no_device_twice(policy: str) -> None:
    """Only pods that could not be placed are missing."""
    nodes, pods = openb_trace.read_nodes(NODES), openb_trace.read_pods(PODS)
    arriving = openb_trace.arrivals(nodes, pods, 42)
    case = _case(policy, 42)
    rehearsal = runs.rehearse(arriving, runs._with_arguments(case, pods))
    plugins = rehearsal.scheduler.profiles["default-scheduler"].plugins
    plugin: Any = plugins[case.plugins[0].name]
    table = rehearsal.scheduler.cache.nodes
    table.check()
    for row, name in enumerate(table.names):
        taken: dict[int, int] = {}
        for pod in table.pods[row].values():
            request = sharing.request_of(pod)
            devices = plugin.devices_of(pod, name)
            assert request.count == len(set(devices))
            for device in devices:
                taken[device] = taken.get(device, 0) + request.milli
        assert max(taken.values(), default=0) <= 1_000
        assert max(taken, default=-1) < plugin.gpus(table).count[row]
    placed, failed = rehearsal.outcomes.placements, rehearsal.outcomes.unplaced
    assert {pod.name for pod in arriving.pods} == placed.keys() | failed.keys()
    assert {1} == set(rehearsal.outcomes.attempts.values())
    assert failed


@pytest.mark.slow
def test_runs_with_and_without_memory_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every policy but the random one."""
    cases = [_case(policy, 43) for policy in POLICIES if policy != "random"]
    expected = [runs.run(case) for case in cases]
    monkeypatch.setattr(sharing.GpuSharing, "sign", lambda _self, _pod: UNSIGNED)
    assert expected == [runs.run(case) for case in cases]


@pytest.mark.parametrize(
    ("policy", "file"),
    [("random", "baselines.py:RandomNode"), ("fgd", "fgd.py:FragmentationGradientDescent")],
)
def test_a_policy_may_be_named_by_its_file(policy: str, file: str) -> None:
    """It gets the same arguments as one that is named by its module."""
    case = _case(policy, 42)
    by_file = load_plugin(f"{SWEEP.parent}/{file}")
    pods = openb_trace.read_pods(PODS)
    expected, found = (
        runs._with_arguments(each, pods).configuration
        for each in (case, replace(case, plugins=(by_file,)))
    )
    assert expected == found


@pytest.mark.slow
def test_runs_repeat_and_fgd_beats_random() -> None:
    """The same seed gives the same curve."""
    one, other = (runs.run(_case("random", 44)) for _ in range(2))
    assert one == other
    assert runs.run(_case("fgd", 44))["at_100"] > one["at_100"] + 1


# The report.

HEADER = ["input", "configuration", "plugins", "seed", "error", "pods", "at_90", "at_100", "at_130"]


def _results(tmp_path: Path, *rows: str) -> Path:
    file = tmp_path / "results.csv"
    file.write_text("\n".join((",".join(HEADER), *rows, "")))
    return file


def test_the_report_has_a_row_and_a_line_per_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Policies of one's own too, but not failed runs; the page needs no other file."""
    file = _results(
        tmp_path,
        "openb_pod_list_default,g,fgd,1,,9,90.0,95.0,95.5",
        "openb_pod_list_default,g,fgd,2,,9,90.0,96.0,",
        "openb_pod_list_default,g,fgd,3,raised,,,,",
        "openb_pod_list_default,g,best-fit,1,,9,90.0,92.0,93.0",
        "openb_pod_list_default,g,<mine>,1,,9,90.0,94.0,94.5",
    )
    page = tmp_path / "page.html"
    assert 0 == report.main([str(file), "--html", str(page)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [
        ["default", "Best", "fit", "1", "92.00", "-", "92.86", "-0.86", "93.00", "-"],
        ["default", "FGD", "2", "95.50", "0.71", "95.23", "+0.27", "95.50", "-", "95.39"],
        ["default", "<mine>", "1", "94.00", "-", "-", "-", "94.50", "-", "-"],
    ] == [line[:10] for line in lines[1:]]
    text = page.read_text()
    names = set(re.findall(r'class="name"[^>]*>([^<]*)<', text))
    assert {"Best fit", "FGD", "&lt;mine&gt;"} == names
    assert "http" not in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (None, "{}: this has no results of openb.yaml; name its CSV file"),
        (["a,g,fgd,1,raised,,,,"], "{}: every run has failed; column error has why"),
    ],
)
def test_other_files_are_errors(
    rows: list[str] | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with exit code 2."""
    file = NODES if rows is None else _results(tmp_path, *rows)
    assert 2 == report.main([str(file)])
    assert f"report: error: {problem.format(file)}\n" == capsys.readouterr().err


def test_published_means_are_compared() -> None:
    """A trace without published means has no difference."""
    run = report.Run("default", "fgd", 1, tuple([95.0] * 131))
    other = run._replace(trace="other")
    columns, rows = report.table([run, other])
    at = columns.index("Published")
    assert [("95.23", "-0.23"), ("-", "-")] == [row[at : at + 2] for row in rows]
    assert "Published" not in report.table([other]).columns


def test_labels_of_lines_do_not_overlap() -> None:
    """Close ones are moved apart around their middle."""
    random = Random(1)
    assert [10, 92.5, 107.5] == report.spread([10, 99, 101], 15)
    for _ in range(50):
        places = sorted(random.uniform(0, 100) for _ in range(6))
        found = report.spread(places, 12)
        assert all(b - a > 11.8 for a, b in pairwise(found))
