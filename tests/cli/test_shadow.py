"""`kubesched shadow` beside a running scheduler, as a process on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubesched.apiserver.request import User
from kubesched.app.process import EXIT_FAILED
from tests.app.test_process import ADMIN_TOKEN, PODS, Cluster, options_with, playing
from tests.cli.cluster import config, node, pod, refused
from tests.cli.live import live, write_kubeconfig
from tests.loops import in_real_time

pytestmark = pytest.mark.slow


class Process:
    """A running `kubesched shadow`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, kubeconfig: Path, *words: str) -> Process:
        """Start it, and wait until it compares."""
        found = await cls.begin(kubeconfig, *words)
        line = await found.message()
        assert line.startswith("Comparing, on http"), line
        return found

    @classmethod
    async def begin(cls, kubeconfig: Path, *words: str) -> Process:
        """Start it."""
        command = (sys.executable, "-m", "kubesched", "shadow", "--kubeconfig", str(kubeconfig))
        process = await asyncio.create_subprocess_exec(
            *command,
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
        )
        return cls(process)

    async def message(self) -> str:
        """Wait for the next line on stderr."""
        assert self._process.stderr is not None
        async with asyncio.timeout(20):
            return (await self._process.stderr.readline()).decode()

    async def end(self, number: int | None = signal.SIGINT) -> tuple[str, str, int | None]:
        """Send a signal; return stdout, the rest of stderr, and the exit code."""
        if number is not None:
            self._process.send_signal(number)
        async with asyncio.timeout(20):
            out, err = await self._process.communicate()
        return out.decode(), err.decode(), self._process.returncode


@asynccontextmanager
async def beside(tmp_path: Path) -> AsyncIterator[tuple[Cluster, Path]]:
    """Run a scheduler; yield its cluster, and a kubeconfig of it."""
    async with playing(options_with()) as cluster:
        yield (
            cluster,
            write_kubeconfig(tmp_path / "config", cluster.server.url, token=ADMIN_TOKEN),
        )
    assert EXIT_FAILED == cluster.exit_code


@in_real_time
async def test_it_agrees_with_the_same_scheduler(tmp_path: Path) -> None:
    """A binding and a rejection are compared; Ctrl-C ends it with the report, and 0."""
    async with beside(tmp_path) as (cluster, kubeconfig):
        await cluster.add_node("n1", "2")
        shadow = await Process.start(kubeconfig, "-o", "json")
        await cluster.add_pod("small", "1")
        await cluster.add_pod("large", "9")
        await cluster.until(f"{PODS}/small", lambda pod: "nodeName" in pod["spec"])
        await cluster.until(f"{PODS}/large", lambda pod: "conditions" in pod["status"])
        await asyncio.sleep(0.3)
        out, err, code = await shadow.end()
        assert ("", 0) == (err, code)
        report: dict[str, Any] = json.loads(out)
        expected = {"judged": 2, "bound": 1, "agreed": 2, "pending": 1, "different": 0}
        assert expected.items() <= report.items()
        pods = await cluster.send("GET", PODS)
        assert {"small", "large"} == {pod["metadata"]["name"] for pod in pods["items"]}


@in_real_time
async def test_a_server_that_went_away(tmp_path: Path) -> None:
    """The report says that decisions may be missing; nothing looks like a quiet cluster."""
    async with beside(tmp_path) as (cluster, kubeconfig):
        await cluster.add_node("n1", "2")
        shadow = await Process.start(kubeconfig, "-o", "json")
        await cluster.server.stop()
        assert (await shadow.message()).startswith("kubesched: warning: Reading from the ")
        out, _, code = await shadow.end()
        assert 0 == code
        [note] = json.loads(out)["notes"]
        assert note.startswith("The cluster could not be read at the end, so decisions are missing")
        assert note.endswith("connect: connection refused.")


@in_real_time
async def test_an_interrupt_before_the_cluster_is_known(tmp_path: Path) -> None:
    """There is no report: it would be about a cluster without nodes."""
    is_asked = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        kubeconfig = write_kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}")
        shadow = await Process.begin(kubeconfig)
        await is_asked.wait()
        assert ("", "\nkubesched: interrupted\n", 130) == await shadow.end()


@in_real_time
async def test_another_configuration_differs(tmp_path: Path) -> None:
    """It packs where the running scheduler spreads; the text names the plugin."""
    args = "{scoringStrategy: {type: MostAllocated}}"
    profile = f"{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}"
    pack = config(tmp_path, f"profiles: [{profile}]", "pack.yaml")
    async with beside(tmp_path) as (cluster, kubeconfig):
        await cluster.add_node("n1", "2")
        await cluster.add_node("n2", "8")
        shadow = await Process.start(kubeconfig, "--config", str(pack), "--duration", "2500ms")
        await cluster.add_pod("small", "1")
        await cluster.until(f"{PODS}/small", lambda pod: "nodeName" in pod["spec"])
        out, err, code = await shadow.end(None)
        assert ("", 0) == (err, code)
        lines = out.splitlines()
        assert "1 decision of default-scheduler in " in lines[0]
        assert lines[0].endswith(", on 2 nodes: all but 1 as kubesched's.")
        (line,) = (line for line in lines if "default/small" in line)
        assert "bound to n2, which scores lower than n1: " in line
        assert "(NodeResourcesFit " in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("--duration", "soon"), "write it as 90s, 30m or 1h30m", id="duration"),
        pytest.param((), "no cluster is named", id="no-cluster"),
        pytest.param(("--config", "none.yaml"), "none.yaml", id="no-file"),
        pytest.param(("--config", "two.yaml"), "--config has no profile default-s", id="profile"),
    ],
)
def test_wrong_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    """The error names what is wrong."""
    monkeypatch.chdir(tmp_path)
    config(tmp_path, "profiles: [{schedulerName: a}, {schedulerName: b}]\n", "two.yaml")
    assert message in refused("shadow", *words)


def test_without_permission(tmp_path: Path) -> None:
    """The error names what may not be watched, and the role."""
    nobody = User("nobody", ("system:authenticated",))
    with live(tmp_path, [node("n1"), pod("web")], user=nobody) as kubeconfig:
        line = refused("shadow", "--kubeconfig", kubeconfig)
    assert "you may not watch " in line
    assert line.endswith("in all namespaces; ask for the ClusterRole kubesched-reader")


def test_refused_connection(tmp_path: Path) -> None:
    """The error names the server and the reason."""
    kubeconfig = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    line = refused("shadow", "--kubeconfig", kubeconfig)
    assert "http://127.0.0.1:1: dial tcp " in line
    assert "connection refused" in line
