"""`kubesched run`: errors before anything runs, and reports of a dry run."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kubesched import __version__
from kubesched.cli.run import ReportWriter
from kubesched.client.connect import new_event_loop
from tests.loops import in_real_time

from .cluster import config, run

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b\n---\na: b\n", "expected one document, found 2"),
        ("kind: Pod", 'kind: Unsupported value: "Pod"'),
        (None, "cannot read file: No such file"),
    ],
)
def test_an_error_of_the_configuration_names_the_file(
    text: str | None, words: str, tmp_path: Path
) -> None:
    """The messages are those of `simulate --config`, the exit code is kube-scheduler's."""
    file = tmp_path / "config.yaml"
    if text is not None:
        file.write_text(text)
    result = run("run", "--config", file)
    assert 1 == result.exit_code
    assert result.output.startswith(f"kubesched: error: {file}: {words}")


def test_arguments_of_plugins_are_checked_with_the_rest(tmp_path: Path) -> None:
    """All errors of a configuration are reported at once."""
    file = config(
        tmp_path,
        "parallelism: -1\nprofiles:\n- schedulerName: a\n  pluginConfig:\n"
        "  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}\n",
    )
    lines = run("run", "--config", file).output.splitlines()
    fields = [line.removeprefix(f"kubesched: error: {file}: ").partition(":")[0] for line in lines]
    assert ["parallelism", "profiles[0].pluginConfig[0].args.hardPodAffinityWeight"] == fields


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param(
            "profiles:\n- pluginConfig:\n"
            "  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}\n",
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
            id="plugins",
        ),
        pytest.param(
            "extenders:\n- {urlPrefix: https://x, tlsConfig: {caFile: /nothing/ca.pem}}\n",
            "extenders (urlPrefix https://x).tlsConfig",
            id="extenders",
        ),
    ],
)
def test_a_configuration_that_cannot_be_run_is_not_written(
    text: str, field: str, tmp_path: Path
) -> None:
    """As with kube-scheduler, what is written can be run."""
    file = config(tmp_path, text)
    written = tmp_path / "written.yaml"
    result = run("run", "--config", file, "--write-config-to", written)
    assert 1 == result.exit_code
    assert f"{file}: {field}: " in result.output
    assert not written.exists()


def test_the_written_configuration_has_the_plugins(tmp_path: Path) -> None:
    """Those that flags add, once, also when it is read again with the same flags."""
    plugin = ROOT / "examples" / "plugins" / "keep_gpu_nodes_free.py"
    added = ("--plugin", f"{plugin}:KeepGpuNodesFree", "--write-config-to")
    file = tmp_path / "config.yaml"
    assert 0 == run("run", *added, file).exit_code
    again = run("run", "--config", file, *added, "-").stdout
    assert file.read_text() == again
    assert 1 == again.count("KeepGpuNodesFree")


def test_a_configuration_that_cannot_be_written_names_the_flag(tmp_path: Path) -> None:
    """A directory is not replaced, and the line says which flag named it."""
    result = run("run", "--write-config-to", tmp_path)
    assert 1 == result.exit_code
    assert result.output.startswith(f"kubesched: error: --write-config-to {tmp_path}: ")


def test_examples_name_the_cluster_where_it_counts() -> None:
    """`--kubeconfig` has no effect beside `--config`, so no example has both."""
    lines = run("run", "--help").stdout.splitlines()
    assert [] == [line for line in lines if "--kubeconfig ~" in line and "--config " in line]


def test_an_error_of_a_flag_names_no_file(tmp_path: Path) -> None:
    """The error is not one of the file."""
    result = run("run", "--config", tmp_path / "c", "--feature-gates", "Nonsense=true")
    assert 1 == result.exit_code
    assert str(tmp_path) not in result.output


def test_a_closed_pipe_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kubesched run --write-config-to - | true` prints nothing."""

    def broken(**_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("kubesched.cli.run.run", broken)
    assert "" == run("run").output


# The first lines of the log.


class Ended:
    """A process that ends at once."""

    stop = None

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def run(self) -> int:
        """Return the exit code."""
        return 0


def test_the_log_begins_with_version_and_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of extenders are left out, and flags that have no effect are named."""
    monkeypatch.setattr("kubesched.cli.run.SchedulerProcess", Ended)
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders:\n- urlPrefix: https://x\n  filterVerb: f\n  tlsConfig: {keyData: c2VjcmV0}\n"
    )
    result = run(
        *("run", "--config", file, "--master", "http://x", "-v", "2", "--kube-api-qps", "5")
    )
    lines = [line.partition("] ")[2] or line for line in result.output.splitlines()]
    assert f'"Starting kubesched" version="{__version__}"' == lines[0]
    assert '"Using component config" config=<' == lines[1]
    assert "\t- filterVerb: f" in lines
    assert "c2VjcmV0" not in result.output
    assert "--kube-api-qps has no effect beside --config" == lines[-1]


# Reports of a dry run.


def test_a_reader_that_went_is_noticed_at_the_next_report() -> None:
    """Writing does not raise; the failure is reported once, and raised at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    said: list[str] = []
    output = os.fdopen(writing, "w", encoding="utf-8")
    reports = ReportWriter(output)
    reports.on_failure = lambda: said.append("failed")
    reports.check()
    reports.write({"action": "bind"})
    reports.write({"action": "bind"})
    assert ["failed"] == said
    with pytest.raises(BrokenPipeError):
        reports.check()
    with pytest.raises(BrokenPipeError):
        output.close()


def test_a_reader_that_goes_is_noticed_without_a_report() -> None:
    """As when `head` has had its line and nothing else is decided."""

    async def main() -> None:
        reading, writing = os.pipe()
        with os.fdopen(writing, "w", encoding="utf-8") as output:
            reports, failed = ReportWriter(output), asyncio.Event()
            reports.on_failure = failed.set
            reports.follow_reader()
            reports.write({"action": "bind"})
            await asyncio.sleep(0.01)
            assert not failed.is_set()
            assert b'{"action":"bind"}\n' == os.read(reading, 100)
            os.close(reading)
            async with asyncio.timeout(10):
                await failed.wait()
            with pytest.raises(BrokenPipeError):
                reports.check()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())


@in_real_time
async def test_a_file_has_no_reader_to_follow(tmp_path: Path) -> None:
    """Reports go there until the end."""
    with (tmp_path / "out").open("w", encoding="utf-8") as output:
        reports = ReportWriter(output)
        reports.follow_reader()
        reports.write({"a": 1})
        reports.check()
    assert '{"a":1}\n' == (tmp_path / "out").read_text(encoding="utf-8")
