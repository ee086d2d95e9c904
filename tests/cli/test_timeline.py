"""`kubesched simulate` over time, and `kubesched compare`."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
import yaml

from kubesched.cli.output import Writer
from kubesched.cli.timeline import _write
from kubesched.simulator.timeline_report import (
    Histogram,
    MoveCount,
    ResourceReport,
    TimelineReport,
    Totals,
    WaitReport,
)

from .cluster import config, document, interrupting, node, refused, run, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "openb-like"

SCENARIO = """
version: 1
name: small
duration: 20m
seed: 3
nodes:
  - {name: node, count: 2, allocatable: {cpu: 4, memory: 8Gi}}
workloads:
  - name: w
    pods: {every: 1m, runTime: {fixed: 5m}}
    requests: {cpu: 1}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a scenario's file."""
    file = tmp_path / "small.yaml"
    file.write_text(SCENARIO)
    return file


def test_scenario_as_table(scenario: Path) -> None:
    """A document with a version and no kind is played over time."""
    result = run("simulate", scenario)
    assert (0, "") == (result.exit_code, result.stderr)
    assert result.stdout.startswith("small: 20 min simulated, seed 3\n\nTotals\n")


@pytest.mark.slow
def test_scenario_as_document(scenario: Path, tmp_path: Path) -> None:
    """JSON and YAML hold the report; options change seed and duration; files are written."""
    html, log = tmp_path / "r.html", tmp_path / "d.jsonl"
    options = ("--seed", 5, "--duration", "10m", "--html", html, "--decision-log", log)
    found = document("simulate", scenario, *options)
    assert ("kubesched.dev/v1", "TimelineReport") == (found["apiVersion"], found["kind"])
    assert (5, 600.0) == (found["seed"], found["durationSeconds"])
    assert found["decisions"] == len(log.read_text().splitlines())
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert found == yaml.safe_load(run("simulate", scenario, "-o", "yaml", *options).stdout)


def test_trace_with_times() -> None:
    """With --times pods of an openb trace come and go; without it they are placed once."""
    files = (EXAMPLE / "nodes.csv", "--pods", EXAMPLE / "pods.csv")
    found = document("simulate", *files, "--times", "--duration", "24h")
    assert "TimelineReport" == found["kind"]
    assert 0 < found["totals"]["arrived"] < 400


def test_a_trace_without_pods(tmp_path: Path) -> None:
    """There is no time to simulate."""
    file = tmp_path / "pods.csv"
    file.write_text("name,cpu_milli,memory_mib,num_gpu\n")
    message = refused("simulate", EXAMPLE / "nodes.csv", file, "--times")
    assert f"--times: {file}: there are no pods" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--top", 3), "--top is not for"),
        (("--profile", "p"), "--profile is not for"),
        (("--duration", "soon"), "invalid duration"),
        (("--html", "nowhere/r.html"), "there is no directory"),
        (("--times",), "--times is for openb lists"),
        (("--config", "missing.yaml"), "missing.yaml"),
    ],
)
def test_wrong_options(scenario: Path, options: tuple[object, ...], message: str) -> None:
    """Options that exclude each other are an error of the user."""
    assert message in refused("simulate", scenario, *options)


def test_wrong_scenario(tmp_path: Path) -> None:
    """Each error has a line with the file."""
    file = tmp_path / "wrong.yaml"
    file.write_text("version: 1\nduration: 1h\nnods: []\nworkloads: [{name: w}]\n")
    result = run("simulate", file)
    assert 2 == result.exit_code
    lines = result.stderr.splitlines()
    assert 2 == len(lines)
    assert all(line.startswith(f"kubesched: error: {file}: ") for line in lines)


def test_every_missing_file_of_a_scenario(tmp_path: Path) -> None:
    """All files that it names are looked for, except a configuration that another replaces."""
    file, other = tmp_path / "s.yaml", config(tmp_path)
    file.write_text(SCENARIO + "objects: [o.json]\nscheduler: {configurationFile: c.yaml}\n")
    fault = "it cannot be read: No such file or directory"
    objects = f"{file}: objects[0]: {tmp_path / 'o.json'}: {fault}"
    configuration = f"{file}: scheduler.configurationFile: {tmp_path / 'c.yaml'}: {fault}"
    result = run("simulate", file)
    assert (2, [objects, configuration]) == (result.exit_code, _exception_text(result.stderr))
    assert [objects] == _exception_text(run("simulate", file, "--config", other).stderr)
    missing = [f"{name}: {fault}" for name in ("a.yaml", "b.yaml", "c.yaml")]
    result = run("compare", "a.yaml", "b.yaml", "--config", "c.yaml")
    assert (2, missing) == (result.exit_code, _exception_text(result.stderr))


def _exception_text(stderr: str) -> list[str]:
    return [line.removeprefix("kubesched: error: ") for line in stderr.splitlines()]


def test_options_over_time_are_not_for_dumps(tmp_path: Path) -> None:
    """A dump has no time to simulate."""
    error = refused("simulate", write(tmp_path, [node("n")]), "--duration", "1h")
    assert error.startswith("--duration is for simulations over time")


def test_interruption(scenario: Path) -> None:
    """Ctrl-C ends with a report of what happened until then; the log is kept beside its place."""
    log, html = scenario.parent / "d.jsonl", scenario.parent / "r.html"
    log.write_text("old\n")
    options = ("--plugin", interrupting(scenario.parent), "--decision-log", log, "--html", html)
    before = signal.getsignal(signal.SIGINT)
    result = run("simulate", scenario, *options)
    assert 130 == result.exit_code
    assert "simulated before it was interrupted, seed 3\n" in result.stdout
    assert "simulated before it was interrupted" in html.read_text()
    assert f"{log} is not written; {log}.partial has the part until then" in result.stderr
    assert ["old\n", 3] == [log.read_text(), len(Path(f"{log}.partial").read_text().splitlines())]
    assert before is signal.getsignal(signal.SIGINT)
    found = document("simulate", scenario, *options[:2])
    assert (True, 2) == (found["partial"], found["totals"]["attempts"])
    assert 0 == run("simulate", scenario, "--decision-log", log).exit_code
    assert log.read_text().startswith('{"at":')
    assert not Path(f"{log}.partial").exists()


def test_an_interrupted_comparison(scenario: Path) -> None:
    """Reports of different lengths are not compared."""
    other = scenario.with_name("other.yaml")
    other.write_text(SCENARIO)
    html = scenario.parent / "c.html"
    plugin = interrupting(scenario.parent)
    result = run("compare", scenario, other, "--plugin", plugin, "--html", html)
    assert (130, "") == (result.exit_code, result.stdout)
    assert "no comparison: small was interrupted; see --duration" in result.stderr
    assert not html.exists()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (
            ("--html", "small.yaml"),
            "--html small.yaml: this would overwrite small.yaml, which is read; name another file",
        ),
        (
            ("--decision-log", "link.yaml"),
            "--decision-log link.yaml: this would overwrite small.yaml, which is read",
        ),
        (
            ("--html", "dumps/d.json"),
            "--html dumps/d.json: this would overwrite dumps/d.json, which is read",
        ),
        (
            ("--html", "both", "--decision-log", "dumps/../both"),
            "--decision-log dumps/../both: this is the file of --html both; name another",
        ),
        (("--html", "-"), "--html -: stdout has the report; name a file"),
    ],
)
def test_outputs_overwrite_nothing(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], fault: str
) -> None:
    """An input file or another option's file is not overwritten."""
    monkeypatch.chdir(scenario.parent)
    text = f"{SCENARIO}objects: [dumps]\n"
    scenario.write_text(text)
    Path("link.yaml").symlink_to(scenario)
    Path("dumps").mkdir()
    dump = write(Path("dumps"), [node("n")], "d.json").read_text()
    assert refused("simulate", "small.yaml", *options).startswith(fault)
    assert not Path("both").exists()
    if "--decision-log" not in options:
        assert refused("compare", "small.yaml", "small.yaml", *options).startswith(fault)
    assert [text, dump] == [scenario.read_text(), Path("dumps/d.json").read_text()]


def test_full_disk(scenario: Path) -> None:
    """The error names the file; devices are written directly."""
    for flag in ("--html", "--decision-log"):
        error = refused("simulate", scenario, flag, "/dev/full")
        assert "/dev/full: No space left on device" == error
    null = ("--html", "/dev/null", "--decision-log", "/dev/null")
    assert 0 == run("simulate", scenario, *null).exit_code


def test_unwritable_directory(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported before the simulation begins."""
    monkeypatch.setattr(os, "access", lambda _file, mode: mode != os.W_OK)
    html = scenario.parent / "r.html"
    error = refused("simulate", scenario, "--html", html)
    assert f"--html {html}: it cannot be written: Permission denied" == error


def test_compare_configurations(scenario: Path, tmp_path: Path) -> None:
    """One scenario with two configurations: the same seed, each with its own numbers."""
    other = config(tmp_path, "profiles: [{schedulerName: other}]\n", "b.yaml")
    configs = ("--config", config(tmp_path, name="a.yaml"), "--config", other)
    html = tmp_path / "c.html"
    found = document("compare", scenario, *configs, "--html", html)
    assert ("TimelineComparison", ["a", "b"], 3) == (found["kind"], found["runs"], found["seed"])
    values = {row["name"]: row["values"] for row in found["measures"]}
    assert [20, 0] == values["pods bound"]
    kinds = re.findall(r'"apiVersion":"kubesched.dev/v1","kind":"(\w+)"', html.read_text())
    assert ["TimelineComparison", "TimelineReport", "TimelineReport"] == kinds
    assert "pods bound" in run("compare", scenario, *configs).stdout
    # A single one is compared with the scenario's own.
    headings = run("compare", scenario, *configs[:2]).stdout.splitlines()[0].split()
    assert ["WHAT", scenario.stem.upper(), "A"] == headings


def test_compare_long_names(scenario: Path) -> None:
    """Columns are letters then, as for clusters."""
    long = scenario.with_name(f"{'long' * 15}.yaml")
    long.write_text(scenario.read_text())
    lines = run("compare", scenario, long).stdout.splitlines()
    assert [f"A: {scenario.stem}", f"B: {long.stem}"] == lines[:2]
    assert ["WHAT", "A", "B"] == lines[2].split()


@pytest.mark.parametrize("count", [1, 2])
def test_compare_needs_two_that_last_equally_long(
    scenario: Path, tmp_path: Path, count: int
) -> None:
    """One alone, and different durations, are turned away."""
    longer = tmp_path / "longer.yaml"
    longer.write_text(SCENARIO.replace("20m", "30m"))
    assert 2 == run("compare", *(scenario, longer)[:count]).exit_code


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "dump.json",
            '{"apiVersion": "v1", "kind": "List", "items": []}',
            "this holds Kubernetes objects, not a scenario; a scenario describes what happens",
        ),
        (
            "config.yaml",
            "# " + "x" * 300 + "\napiVersion: kubescheduler.config.k8s.io/v1\n",
            "clusters with clusters; a configuration is --config FILE",
        ),
        (
            "nodes.csv",
            (EXAMPLE / "nodes.csv").read_text(),
            "this is a list of the openb trace, not a scenario; name it in one",
        ),
        ("s.yaml", "duration: 1h\n", "version: Required value"),
    ],
)
def test_compare_takes_scenarios(scenario: Path, name: str, content: str, message: str) -> None:
    """The error names the file, what compare takes, and the remedy."""
    file = scenario.with_name(name)
    file.write_text(content)
    error = refused("compare", scenario, file)
    assert error.startswith(f"{file}: ")
    assert message in error


def test_compare_takes_files(scenario: Path) -> None:
    """Stdin and directories are not scenarios."""
    for given in ("-", scenario.parent):
        error = refused("compare", scenario, given, stdin=SCENARIO)
        assert error.startswith(f"{given}: a scenario is a file, and this is")


# The report as text.


def _report(**parts: object) -> TimelineReport:
    empty: dict[str, object] = dict.fromkeys(TimelineReport.__struct_fields__, ())
    head = {"scenario": "night", "seed": 1, "partial": False, "duration_seconds": 7200.0}
    counts = {"totals": Totals(lost=1234), "wait_histogram": Histogram((), (0,))}
    numbers = {"relists": 0, "checks": 3, "decisions": 4, "decision_digest": "00ff"}
    fields: dict[str, object] = {**empty, **head, **counts, **numbers, **parts}
    return TimelineReport(**fields)  # type: ignore[arg-type]  # checked by name only


def test_totals(capsys: pytest.CaptureFixture[str]) -> None:
    """Totals always follow the headline; tables without rows are left out."""
    _write(Writer(), _report(partial=True))
    lines = capsys.readouterr().out.splitlines()
    head = "night: 2 h simulated before it was interrupted, seed 1"
    assert [head, "", "Totals"] == lines[:3]
    assert "pods lost: stopped before their end, and not created again  1,234" in lines
    assert "times all invariants were checked" == lines[-1].rpartition("  ")[0].strip()


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts are aligned to the left, numbers to the right, and absent ones are dashes."""
    waits = WaitReport("all", 2, 1, 1, 0, 90.0, 90.0, 90.0, 90.0, 90.0, 2.5)
    none = WaitReport("5", 0, 0, 0, 0, None, None, None, None, None, 0.0)
    resources = ResourceReport("cpu", None, 0.5, 0.25, 0.125)
    moves = MoveCount("", "Active", "UnschedulablePodAdd", 2)
    _write(Writer(), _report(waits=(waits, none), resources=(resources,), moves=(moves,)))
    expected = """\
From creation to binding, by priority
PRIORITY  ARRIVED  BOUND  PENDING  PREEMPTED     MEAN      P50      P90      P99      MAX  \
POD HOURS PENDING
all             2      1        1          0  1.5 min  1.5 min  1.5 min  1.5 min  1.5 min  \
              2.5
5               0      0        0          0        -        -        -        -        -  \
                0

Requested of allocatable
RESOURCE  MEAN  PEAK  AT THE END  FRAGMENTED
cpu          -  50 %        25 %      12.5 %

Moves in the queue
FROM  TO      EVENT                COUNT
-     Active  UnschedulablePodAdd      2
"""
    written = capsys.readouterr().out
    assert expected == written[written.index("From creation") :]
