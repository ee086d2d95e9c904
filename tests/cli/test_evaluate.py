"""`kubesched evaluate`: answers in order, checks, and every kind of hostile line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kubesched.simulator.evaluate import Evaluator

from .cluster import Json, node, pod, refused, run


def scenario(name: str = "one", cpu: str = "1", **more: object) -> Json:
    """Return a scenario with two nodes."""
    return {
        "name": name,
        "objects": [node("alpha"), node("beta", "8")],
        "pod": pod("p", cpu),
        **more,
    }


def lines_of(text: str) -> list[Json]:
    """Return the lines of JSON."""
    return [json.loads(line) for line in text.splitlines()]


def write_lines(file: Path, lines: Sequence[object]) -> Path:
    """Write one line of JSON each."""
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def test_answers_in_order(tmp_path: Path) -> None:
    """Every scenario has its answer, in the order of the lines; blank lines have none."""
    file = tmp_path / "s.jsonl"
    file.write_text(f"{json.dumps(scenario('b'))}\n\n  \n{json.dumps(scenario('a', '9'))}\n")
    result = run("evaluate", file)
    assert result.exit_code == 0
    first, second = lines_of(result.stdout)
    assert first["name"] == "b"
    assert first["feasible"] == ["alpha", "beta"]
    assert first["best"] == ["beta"]
    assert second["name"] == "a"
    assert second["fit_error"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_only_the_scenario_counts(tmp_path: Path) -> None:
    """A line with an expectation is answered like the scenario alone."""
    alone = run("evaluate", write_lines(tmp_path / "a.jsonl", [scenario()]))
    wrapped = {"expected": {"name": "lie"}, "scenario": scenario()}
    assert alone.stdout == run("evaluate", write_lines(tmp_path / "b.jsonl", [wrapped])).stdout


def test_reads_gzip_and_stdin(tmp_path: Path) -> None:
    """Compressed files, stdin and compressed stdin have the same answers."""
    plain = write_lines(tmp_path / "a.jsonl", [scenario()])
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    answers = {
        run("evaluate", plain).stdout,
        run("evaluate", packed).stdout,
        run("evaluate", "-", stdin=plain.read_bytes()).stdout,
        run("evaluate", "-", stdin=packed.read_bytes()).stdout,
    }
    assert len(answers) == 1
    assert answers.pop().startswith('{"name":"one"')


def test_a_byte_order_mark(tmp_path: Path) -> None:
    """PowerShell writes one."""
    file = write_lines(tmp_path / "scenarios.jsonl", [scenario()])
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert "error" not in lines_of(run("evaluate", file).stdout)[0]


def test_several_files(tmp_path: Path) -> None:
    """Files are answered one after another; line numbers start again."""
    first = write_lines(tmp_path / "a.jsonl", [scenario("a"), 1])
    second = write_lines(tmp_path / "b.jsonl", [2])
    result = run("evaluate", first, second)
    assert result.exit_code == 1
    assert [line.get("line") for line in lines_of(result.stdout)] == [None, 2, 1]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        pytest.param(b"nonsense", "it is not JSON: ", id="no-json"),
        pytest.param(b"[[[", "it is not JSON: ", id="cut-off"),
        pytest.param(b"[" * 100_000, "it is nested too deeply", id="deep"),
        pytest.param(b'{"a":' * 100_000, "it is nested too deeply", id="deep-objects"),
        pytest.param(b"\xff\xfe", "it is not UTF-8: ", id="no-utf-8"),
        pytest.param(b'"\\ud800"', "it is not JSON: ", id="surrogate"),
        pytest.param(b"[]", "an object is required", id="array"),
        pytest.param(b"null", "an object is required", id="null"),
        pytest.param(b"{}", "scenario.name: a string is required", id="empty"),
        pytest.param(b'{"scenario": 1}', "scenario: an object is required", id="scenario"),
        pytest.param(b'{"name": 1}', "scenario.name: a string is required", id="name"),
        pytest.param(b'{"scenario": {}, "expected": []}', "expected: an object", id="expected"),
        pytest.param(b'{"name": "x"}', "scenario.pod: required", id="no-pod"),
        pytest.param(b'{"name": "x", "objects": {}}', "scenario.objects: a list", id="objects"),
        pytest.param(b'{"name": "x", "objects": [1]}', "scenario.objects[0]: ", id="object"),
        pytest.param(b'{"name": "x", "config": 3, "pod": {}}', "scenario.config: ", id="config"),
        pytest.param(
            b'{"name": "x", "config": {"kind": "Nope"}, "pod": {}}',
            "scenario.config: ",
            id="config-kind",
        ),
        pytest.param(b'{"name": "x", "pods": {"a": 1}}', "scenario.pods: a list", id="pods"),
        pytest.param(b'{"name": "x", "pod": []}', "scenario.pod: an object", id="pod"),
    ],
)
def test_malformed_line(tmp_path: Path, line: bytes, error: str) -> None:
    """A malformed line is answered with an error, and the next is answered all the same."""
    file = tmp_path / "s.jsonl"
    file.write_bytes(line + b"\n" + json.dumps(scenario()).encode() + b"\n")
    result = run("evaluate", file)
    assert result.exit_code == 1
    assert not result.stderr
    bad, good = lines_of(result.stdout)
    assert bad["error"].startswith(error)
    assert bad["line"] == 1
    assert good["best"] == ["beta"]


HOSTILE_PODS = [
    pytest.param({"spec": {"containers": "x"}}, id="wrong-type"),
    pytest.param({"spec": {"priority": 10**30}}, id="huge-number"),
    pytest.param({"spec": {"priority": 1.5}}, id="fraction"),
    pytest.param({"metadata": None}, id="no-metadata"),
    pytest.param({"metadata": {"name": ["a"]}}, id="name-list"),
    pytest.param({"kind": "Unicorn"}, id="unknown-kind"),
    pytest.param({"kind": "Node"}, id="other-kind"),
    pytest.param(
        {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}}, id="quantity"
    ),
    pytest.param({"spec": {"schedulerName": "nobody"}}, id="scheduler"),
]


@pytest.mark.parametrize("change", HOSTILE_PODS)
def test_hostile_pod(tmp_path: Path, change: Json) -> None:
    """A pod that cannot be is an error that names the scenario, never a traceback."""
    file = write_lines(tmp_path / "s.jsonl", [scenario(pod={**pod("p"), **change})])
    result = run("evaluate", file)
    assert result.exit_code == 1
    (answer,) = lines_of(result.stdout)
    assert answer["error"].startswith("scenario.pod")
    assert answer["name"] == "one"


@pytest.mark.parametrize(
    "quantity", ["1e999999999", "9" * 5000, "-1", "1e-999999999", "0x10", "٣", 10**25, True]
)
def test_absurd_quantity(tmp_path: Path, quantity: object) -> None:
    """An absurd amount is an answer or an error, at once."""
    absurd = pod("p")
    absurd["spec"]["containers"][0]["resources"]["requests"]["cpu"] = quantity
    result = run("evaluate", write_lines(tmp_path / "s.jsonl", [scenario(pod=absurd)]))
    (answer,) = lines_of(result.stdout)
    assert "error" in answer or "feasible" in answer


def test_objects_of_one_name(tmp_path: Path) -> None:
    """Two nodes of one name, or a pod twice, end in an answer or an error, not in a traceback."""
    twice = [node("alpha"), node("alpha", "8"), pod("q", node_name="alpha"), pod("q")]
    result = run("evaluate", write_lines(tmp_path / "s.jsonl", [scenario(objects=twice)]))
    assert len(lines_of(result.stdout)) == 1
    assert not result.stderr


def test_crash_inside_is_an_error_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error concerns its line only."""

    def crashing(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(Evaluator, "evaluate", crashing)
    result = run("evaluate", write_lines(tmp_path / "s.jsonl", [scenario()]))
    assert result.exit_code == 1
    assert lines_of(result.stdout) == [
        {"error": "internal error: ZeroDivisionError: oops", "line": 1, "name": "one"}
    ]


@pytest.mark.slow
def test_cut_off_gzip(tmp_path: Path) -> None:
    """A truncated file is named; the scenarios before are answered."""
    file = tmp_path / "s.jsonl.gz"
    content = "".join(f"{json.dumps(scenario(str(at)))}\n" for at in range(200))
    file.write_bytes(gzip.compress(content.encode())[:-100])
    result = run("evaluate", file)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"kubesched: error: {file}: it is not a complete gzip file: ")
    assert len(lines_of(result.stdout)) > 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.jsonl", "No such file or directory"),
        ("", "Is a directory"),
    ],
)
def test_unreadable_file(tmp_path: Path, name: str, words: str) -> None:
    """A file that cannot be read is the user's mistake."""
    assert words in refused("evaluate", tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Pod\n",
        "---\nkind: Pod\n",
        '{\n  "apiVersion": "v1"',
        '{"kind": "List"}',
    ],
)
def test_objects_of_a_cluster(tmp_path: Path, text: str) -> None:
    """A dump is named as one, with the command that reads it, not line by line."""
    file = tmp_path / "cluster"
    file.write_text(text)
    assert refused("evaluate", file).endswith(f"`kubesched simulate {file}` reads these")


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_nothing_to_answer(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A file without a line is named, whether it is answered or checked."""
    file = tmp_path / "s.jsonl"
    file.write_text("\n \n")
    message = f"{file}: it is empty; expected a scenario on each line"
    result = run("evaluate", *options, file)
    assert (2, f"kubesched: error: {message}\n") == (result.exit_code, result.stderr)


def test_feature_gates(tmp_path: Path) -> None:
    """Feature gates reach the plugins."""
    taint = {"key": "size", "value": "10", "effect": "NoSchedule"}
    toleration = {"key": "size", "operator": "Gt", "value": "5", "effect": "NoSchedule"}
    objects = [node("alpha", taints=[taint])]
    case = scenario(objects=objects, pod=pod("p", tolerations=[toleration]))
    file = write_lines(tmp_path / "s.jsonl", [case])
    gate = "TaintTolerationComparisonOperators=true"
    assert lines_of(run("evaluate", file).stdout)[0]["feasible"] == []
    with_gate = run("evaluate", file, "--feature-gates", gate)
    assert lines_of(with_gate.stdout)[0]["feasible"] == ["alpha"]


# Checks.


def recorded(name: str, **wrong: object) -> Json:
    """Return a case whose expectation is right, except for what is given."""
    result = run("evaluate", "-", stdin=json.dumps(scenario(name)))
    return {"scenario": scenario(name), "expected": {**json.loads(result.stdout), **wrong}}


def test_check_passes(tmp_path: Path) -> None:
    """Without differences there is a table, and exit code 0."""
    file = write_lines(tmp_path / "resources.jsonl", [recorded("a"), recorded("b")])
    result = run("evaluate", "--check", file)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "FAMILY     CASES  EQUAL  DIFFERENT  ERRORS",
        "resources      2      2          0       0",
    ]


def test_check_shows_differences(tmp_path: Path) -> None:
    """A difference is shown with line, name, key, expected and got, and the exit code is 1."""
    wrong = recorded("b", best=["alpha"], extra=True)
    file = write_lines(tmp_path / "x.jsonl", [recorded("a"), wrong, scenario("c"), 7])
    result = run("evaluate", "--check", file)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "FAMILY  CASES  EQUAL  DIFFERENT  ERRORS",
        "x           4      1          1       2",
        "",
        "x line 2: b",
        "  best[0]",
        '    expected "alpha"',
        '    got      "beta"',
        "  extra",
        "    expected true",
        "    got      (absent)",
        "",
        "x line 3: c",
        "  error: the line has no `expected` to compare with",
        "",
        "x line 4: (no name)",
        "  error: an object is required",
    ]


def test_check_sums_up(tmp_path: Path) -> None:
    """With several files there is a total; --show 0 hides the differences."""
    good = write_lines(tmp_path / "good.jsonl", [recorded("a")])
    bad = write_lines(tmp_path / "bad.jsonl", [recorded("a", best=[])])
    result = run("evaluate", "--check", "--show", "0", good, bad)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "FAMILY  CASES  EQUAL  DIFFERENT  ERRORS",
        "good        1      1          0       0",
        "bad         1      0          1       0",
        "total       2      1          1       0",
    ]
