"""Names of pods are completed from a live cluster, and never with an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from kubesched.cli.main import kubesched
from tests.cli.cluster import node, pod
from tests.cli.live import live

pytestmark = pytest.mark.slow


def completed(*words: str, incomplete: str = "") -> list[str]:
    """Return what a shell would offer."""
    shell = ShellComplete(kubesched, {}, "kubesched", "_KUBESCHED_COMPLETE")
    return [item.value for item in shell.get_completions(list(words), incomplete)]


def test_pending_pods_are_offered(tmp_path: Path) -> None:
    """Those of the namespace that the context, an option or the word names."""
    objects = [
        node("n1"),
        pod("web-1"),
        pod("web-2"),
        pod("db-0"),
        pod("web-3", node_name="n1"),
        pod("web-9", namespace="other"),
    ]
    with live(tmp_path, objects) as kubeconfig:
        asked = ("why", "--kubeconfig", str(kubeconfig))
        assert ["web-1", "web-2"] == completed(*asked, incomplete="web")
        assert ["web-9"] == completed(*asked, "-n", "other")
        assert ["other/web-9"] == completed(*asked, incomplete="other/w")
        explain = ("explain", "--kubeconfig", str(kubeconfig))
        assert ["db-0"] == completed(*explain, incomplete="d")


def test_nothing_is_offered_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell that completes has no place for errors."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert [] == completed("why")
    assert ("", "") == capsys.readouterr()


@pytest.mark.parametrize("words", [("drain", "node-1"), ("top",), ("top", "zones"), ("why", "web")])
def test_shells_complete_files(words: tuple[str, ...]) -> None:
    """Also where an argument may be something else than a file."""
    shell = ShellComplete(kubesched, {}, "kubesched", "_KUBESCHED_COMPLETE")
    assert ["file"] == [item.type for item in shell.get_completions([*words], "clu")]
