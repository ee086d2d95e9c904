"""`kubesched replay`, and the recordings of `--record`."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from kubesched.app import shadow_judge
from tests.app.test_process import PODS
from tests.cli.cluster import config, document, interrupting, refused, run
from tests.cli.test_shadow import Process, beside

SCENARIOS = Path(__file__).resolve().parents[2] / "examples" / "scenarios"
SCENARIO = SCENARIOS / "batch-and-web.yaml"


@pytest.fixture(name="recording", scope="module")
def _recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("replay") / "run.jsonl.gz"
    result = run("simulate", SCENARIO, "--duration", "10m", "--record", file)
    assert 0 == result.exit_code, result.stderr
    assert [file] == list(file.parent.iterdir())
    return file


def test_the_same_configuration_decides_the_same(recording: Path) -> None:
    """Ties are counted, and not listed."""
    result = run("replay", recording)
    assert (0, "") == (result.exit_code, result.stderr)
    lines = result.stdout.splitlines()
    assert lines[0].endswith(", on 10 nodes: none would differ now.")
    assert ["same", "another node of the same score"] == [
        line.strip().rsplit(maxsplit=1)[0] for line in lines[4:]
    ]


def test_another_configuration(recording: Path) -> None:
    """The exit code is 1, and the plugin is named."""
    result = run("replay", recording, "--config", SCENARIOS / "pack.yaml")
    assert (1, "") == (result.exit_code, result.stderr)
    assert "would differ now." in result.stdout.splitlines()[0]
    assert "which scores lower than" in result.stdout
    assert "NodeResourcesFit" in result.stdout


def test_disagreements_that_are_not_kept_are_counted(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that are not written count, and the report says how many are in the document."""
    monkeypatch.setattr(shadow_judge, "KEPT_MAX", 12)
    arguments = ("replay", recording, "--config", SCENARIOS / "pack.yaml")
    different = document(*arguments)["different"]
    assert different > 12
    found = run(*arguments).stdout
    assert f"  and {different - 10} more; -o json has the first 12\n" in found


def test_stdin(recording: Path) -> None:
    """`-` is stdin, compressed or not."""
    results = [
        run("replay", "-", stdin=data)
        for data in (recording.read_bytes(), gzip.decompress(recording.read_bytes()))
    ]
    assert [0, 0] == [result.exit_code for result in results]
    assert results[0].stdout == results[1].stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("none.jsonl",), "none.jsonl: it cannot be read: No such file", id="no-file"),
        pytest.param((".",), ".: it is a directory; name the file of a recording", id="directory"),
        pytest.param(("cut.jsonl",), "cut.jsonl: line 2: the recording is cut off", id="cut-off"),
        pytest.param(
            ("cut.jsonl", "--config", "two.yaml"), "--config has no profile s; name one", id="names"
        ),
        pytest.param(("cut.jsonl", "--profile", "x"), "--profile x: the configur", id="profile"),
        pytest.param(("cut.jsonl", "--seed", "-1"), "'--seed'", id="seed"),
        pytest.param(("cut.jsonl", "--plugin", "no:where"), "--plugin no:where: ", id="plugin"),
    ],
)
def test_wrong_input(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names what is wrong."""
    monkeypatch.chdir(tmp_path)
    Path("cut.jsonl").write_text(
        '{"type":"RECORDING","version":1,"recordedBy":"run","schedulerNames":["s"]}\n'
    )
    config(tmp_path, "profiles: [{schedulerName: a}, {schedulerName: b}]\n", "two.yaml")
    assert message in refused("replay", *words)


def test_ctrl_c(recording: Path, tmp_path: Path) -> None:
    """The report is partial, and the exit code 130."""
    report = document("replay", recording, "--plugin", interrupting(tmp_path), code=130)
    assert (True, 2) == (report["partial"], report["judged"])


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_partial_recording(name: str, tmp_path: Path) -> None:
    """What was recorded until Ctrl-C is beside the file, and can be replayed."""
    file = tmp_path / name
    result = run("simulate", SCENARIO, "--plugin", interrupting(tmp_path), "--record", file)
    assert (130, False) == (result.exit_code, file.exists())
    assert f"{file} is not written; {file}.partial has the part until then" in result.stderr
    assert 1 <= document("replay", f"{file}.partial", code=0)["judged"]


def test_a_simulation_that_fails_leaves_no_recording(tmp_path: Path) -> None:
    """Nor part of one, if nothing was recorded."""
    scenario = tmp_path / "s.yaml"
    scenario.write_text("version: 1\nduration: 1m\nobjects: [none.yaml]\n")
    result = run("simulate", scenario, "--record", tmp_path / "run.jsonl")
    assert 2 == result.exit_code
    assert [scenario] == list(tmp_path.iterdir())


_SECRETS = ("hunter2-env", "hunter2-annotation", "hunter2-argument", "hunter2-message")


async def _recorded_live(tmp_path: Path, file: Path) -> str:
    """Record a shadow beside a scheduler that places one pod of two; return its report."""
    async with beside(tmp_path) as (cluster, kubeconfig):
        await cluster.add_node("n1", "2")
        shadow = await Process.start(kubeconfig, "-o", "json", "--record", str(file))
        container = {
            "name": "c",
            "image": "pause",
            "args": ["--password=hunter2-argument"],
            "env": [{"name": "PASSWORD", "value": "hunter2-env"}],
            "resources": {"requests": {"cpu": "1"}},
        }
        annotations = {"token": "hunter2-annotation"}
        metadata = {"name": "small", "annotations": annotations}
        await cluster.send(
            "POST", PODS, {"metadata": metadata, "spec": {"containers": [container]}}
        )
        await cluster.add_pod("large", "9")
        await cluster.until(f"{PODS}/small", lambda pod: "nodeName" in pod["spec"])
        await cluster.until(f"{PODS}/large", lambda pod: "conditions" in pod["status"])
        await asyncio.sleep(0.3)
        out, err, code = await shadow.end()
        assert ("", 0) == (err, code)
        return out


@pytest.mark.slow
def test_a_recording_of_a_live_cluster(tmp_path: Path) -> None:
    """It holds no credentials, and its replay is the report of the shadow."""
    file = tmp_path / "live.jsonl.gz"
    out = asyncio.run(_recorded_live(tmp_path, file))
    text = gzip.decompress(file.read_bytes()).decode()
    assert [] == [secret for secret in _SECRETS if secret in text]
    assert "hunter2" not in text
    again = document("replay", file, code=0)
    assert ("shadow", 2, 2) == (again["recordedBy"], again["judged"], again["same"])
    assert json.loads(out)["disagreements"] == again["disagreements"]
