"""The openb experiment: its random source, orders and samples, runs on the look-alike, command."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from kubesched.framework.plugin import UNSIGNED

from .running import EXAMPLES, gpu_sharing

go_random, openb_trace, runs = map(gpu_sharing, ("go_random", "openb_trace", "runs"))
experiment, report, sharing = map(gpu_sharing, ("experiment", "report", "gpu_sharing"))

LIKE = EXAMPLES / "openb-like"
NODES, PODS = LIKE / "nodes.csv", LIKE / "pods.csv"


# The random source.


def test_the_random_source_is_that_of_go() -> None:
    """The numbers that every Go program without a seed of its own drew for years."""
    random = go_random.GoRandom(1)
    assert [81, 87, 47, 59, 81, 18, 25, 40, 56, 0] == [random.below(100) for _ in range(10)]


@pytest.mark.parametrize("draws", [0, 1, 272, 606, 607, 5_000])
def test_a_jump_equals_that_many_draws(draws: int) -> None:
    """The generator's words after the jump are the next numbers less those that they are from."""
    one, other = go_random.GoRandom(7), go_random.GoRandom(7)
    other._words = go_random._after(go_random.np.array(one._words, "u8"), draws).tolist()
    for _ in range(draws):
        one.word()
    assert [one.word() for _ in range(700)] == [other.word() for _ in range(700)]


def test_shuffles_and_permutations_have_everything_once() -> None:
    """And differ from seed to seed."""
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


def test_the_target_is_the_frequent_kinds_that_make_up_95_percent() -> None:
    """Of equally frequent ones the larger comes first, and the last one in may be the last due."""
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
def test_pods_arrive_until_they_ask_for_130_percent(gpus: int, seed: int) -> None:
    """Copies are added at the end, or pods are removed; the order is the seed's."""
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
        ("name,cpu_milli\nx,1\n", "column memory_mib, num_gpu is missing; give an openb list"),
        (
            "name,cpu_milli,memory_mib,num_gpu\nx,1,1,1\ny,1,-2,1\n",
            "line 3: column memory_mib: a whole number is required, not '-2'",
        ),
    ],
)
def test_errors_name_file_line_and_column(text: str, problem: str, tmp_path: Path) -> None:
    """One line."""
    file = tmp_path / "pods.csv"
    file.write_text(text)
    with pytest.raises(openb_trace.TraceError) as refused:
        openb_trace.read_pods(file)
    assert f"{file}: {problem}" == str(refused.value)


# Runs.


def test_samples_are_means_of_all_pods_that_round_to_a_percent() -> None:
    """Pods that fail or ask for no GPU give samples, too; gaps take their neighbours' samples."""
    pods = [_row("a", milli=400), _row("b", gpus=0, milli=0), _row("c"), _row("d", milli=900)]
    found = runs.allocated_at(pods, {"a": 1, "b": 1, "d": 1}, 100_000)
    assert (0.4, 0.4, 1.3, 1.3) == found[:4]
    assert {None} == set(found[4:])


@pytest.mark.parametrize("policy", runs.POLICIES)
def test_a_run_on_the_look_alike_places_pods_soundly(policy: str) -> None:
    """No device is given away twice, and only pods that could not be placed are missing."""
    nodes, pods = openb_trace.read_nodes(NODES), openb_trace.read_pods(PODS)
    arriving = openb_trace.arrivals(nodes, pods, 42)
    rehearsal = runs.rehearse(arriving, policy, openb_trace.target_of(pods), 42)
    plugins = rehearsal.scheduler.profiles["default-scheduler"].plugins
    plugin: Any = plugins[runs.POLICIES[policy].name]
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
def test_remembered_answers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every policy but the random one, with all plugins asked for every pod."""
    policies = [policy for policy in runs.POLICIES if policy != "random"]
    expected = [runs.run(NODES, "like", PODS, policy, 43) for policy in policies]
    monkeypatch.setattr(sharing.GpuSharing, "sign", lambda _self, _pod: UNSIGNED)
    found = [runs.run(NODES, "like", PODS, policy, 43) for policy in policies]
    assert [run.allocated for run in expected] == [run.allocated for run in found]


@pytest.mark.slow
def test_runs_repeat_and_fgd_allocates_more_than_random() -> None:
    """The same seed gives the same curve."""
    one, other = (runs.run(NODES, "like", PODS, "random", 44) for _ in range(2))
    assert one.allocated == other.allocated
    assert runs.run(NODES, "like", PODS, "fgd", 44).allocated[100] > one.allocated[100] + 1


# The command.


def _experiment(*arguments: object) -> int:
    code: int = experiment.main([*map(str, arguments), "--jobs", "1"])
    return code


@pytest.mark.slow
def test_finished_runs_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that was cut off while it was written is; the table has a line per policy."""
    results, page = tmp_path / "results.csv", tmp_path / "page.html"
    common = ("--policies", "best-fit,fgd", "-o", results, "--html", page)
    assert 0 == _experiment("--seeds", "1-2", *common)
    first = results.read_text()
    results.write_text(first[:-40])
    assert 0 == _experiment("--seeds", "1-3", *common)
    said = capsys.readouterr()
    assert "6 runs, 3 of them done before" in said.err
    assert 2 == said.err.count("runs, ")
    lines = said.out.splitlines()[-2:]
    assert [["pods", "Best", "fit", "3"], ["pods", "FGD", "3"]] == [
        line.split()[: 4 - at] for at, line in enumerate(lines)
    ]
    rows = list(csv.reader(results.read_text().splitlines()))
    assert [len(rows[0])] * 7 == [*map(len, rows)]
    assert first.splitlines()[:4] == results.read_text().splitlines()[:4]
    text = page.read_text()
    assert {"Best fit", "FGD"} == set(re.findall(r'class="name"[^>]*>([^<]*)<', text))
    assert "http" not in text
    assert "<script" not in text


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_sweep_that_was_stopped_goes_on(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    """It keeps the finished runs, and no process stays behind."""
    results = tmp_path / "results.csv"
    script = str(EXAMPLES / "gpu-sharing" / "experiment.py")
    command = [sys.executable, script, "--seeds", "1-99", "--jobs", "2", "-o", str(results)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own command
        assert process.stderr is not None
        lines = iter(process.stderr.readline, b"")
        assert b"594 runs, 0 of them done before\n" == next(lines)
        assert next(lines).startswith(b"[1/594] pods random seed 1: ")
        process.send_signal(sent)
        # The pipe ends when the last process that has it is gone.
        rest = b"".join(lines)
        assert code == process.wait(10)
    assert (b"the same command goes on" in rest) == (sent is signal.SIGINT)
    kept = len(results.read_text().splitlines()) - 1
    assert 1 <= kept <= 20
    found = experiment.Results(results)
    (trace,) = experiment.find_traces(LIKE, [])
    assert experiment.Task(trace, "random", 1) in found
    assert experiment.Task(trace, "fgd", 99) not in found


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--policies", "fgd,lru"], "--policies lru: the policies are random, dot-product, "),
        (["--seeds", "1-x"], "--seeds 1-x: write numbers or ranges, such as 42-51"),
        (["--seeds", "5-4"], "--seeds 5-4: the range is empty"),
        (["--trace", "default"], f"--trace default: {LIKE} has pods"),
        (["--traces", "/nowhere"], "--traces: /nowhere/openb_node_list_gpu_node.csv: no such file"),
        (["-o", str(NODES)], f"-o {NODES}: it has no results; name another file"),
    ],
)
def test_wrong_options_end_with_one_line(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and nothing is overwritten."""
    before = NODES.read_bytes()
    assert 2 == _experiment("-o", tmp_path / "results.csv", *arguments)
    said = capsys.readouterr().err
    assert said.startswith(f"experiment: error: {problem}")
    assert 1 == said.count("\n")
    assert before == NODES.read_bytes()


def test_published_means_are_compared() -> None:
    """The difference is that of the means; a trace without published ones has none."""
    run = runs.Run("default", "fgd", 1, 10, 1, 0.5, tuple([95.0] * 131))
    other = msgspec.structs.replace(run, trace="other")
    columns, rows = report.table([run, other])
    at = columns.index("Published")
    assert [("95.23", "-0.23"), ("-", "-")] == [row[at : at + 2] for row in rows]
    assert "Published" not in report.table([other]).columns


def test_names_of_lines_keep_apart() -> None:
    """Those that were closer keep their middle; the others stay."""
    random = Random(1)
    assert [10, 92.5, 107.5] == report.spread([10, 99, 101], 15)
    for _ in range(50):
        places = sorted(random.uniform(0, 100) for _ in range(6))
        found = report.spread(places, 12)
        assert all(b - a > 11.8 for a, b in pairwise(found))
