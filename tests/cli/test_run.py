"""`kubesched run`: what is said before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cluster import config, run

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: b\n---\na: b\n", "expected one document, found 2", id="documents"),
        pytest.param("kind: Pod", 'kind: Unsupported value: "Pod"', id="kind"),
        pytest.param(None, "cannot read file: No such file", id="missing"),
    ],
)
def test_an_error_of_the_configuration_names_the_file(
    text: str | None, words: str, tmp_path: Path
) -> None:
    """As `simulate --config` says it, but with kube-scheduler's exit code."""
    file = tmp_path / "config.yaml"
    if text is not None:
        file.write_text(text)
    result = run("run", "--config", file)
    assert 1 == result.exit_code
    assert result.output.startswith(f"kubesched: error: {file}: {words}")


def test_arguments_of_plugins_are_checked_with_the_rest(tmp_path: Path) -> None:
    """Whoever mends a configuration sees all of its errors at once."""
    file = config(
        tmp_path,
        "parallelism: -1\nprofiles:\n- schedulerName: a\n  pluginConfig:\n"
        "  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}\n",
    )
    lines = run("run", "--config", file).output.splitlines()
    fields = [line.removeprefix(f"kubesched: error: {file}: ").partition(":")[0] for line in lines]
    assert ["parallelism", "profiles[0].pluginConfig[0].args.hardPodAffinityWeight"] == fields


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
    """The file has nothing to do with it."""
    result = run("run", "--config", tmp_path / "c", "--feature-gates", "Nonsense=true")
    assert 1 == result.exit_code
    assert str(tmp_path) not in result.output


def test_a_reader_that_went_is_no_error_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `kubesched run --write-config-to - | true`: nothing is said."""

    def broken(**_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("kubesched.cli.run.run", broken)
    assert "" == run("run").output
