"""`why --scheduler` against a running process with its secure port, on loopback."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from kubesched.app.options import Options, ServingOptions
from kubesched.app.process import EXIT_FAILED
from tests.app.test_process import ADMIN_TOKEN, PODS, TOKEN, Cluster, options_with, playing
from tests.cli.cluster import Json, node, pod, refused, run
from tests.cli.live import live, write_kubeconfig
from tests.client.scripted_server import free_port
from tests.loops import in_real_time

pytestmark = pytest.mark.slow

Ask = Callable[..., Awaitable[Result]]


@asynccontextmanager
async def asking(
    tmp_path: Path, *, token: str = ADMIN_TOKEN, **changes: int
) -> AsyncIterator[tuple[Cluster, Ask]]:
    """Run a scheduler with a port; yield its cluster, and `why` as a function."""
    port = free_port()
    serving = ServingOptions(bind_address="127.0.0.1", secure_port=port)
    options: Options = msgspec.structs.replace(options_with(**changes), serving=serving)
    async with playing(options) as cluster:
        kubeconfig = write_kubeconfig(tmp_path / "config", cluster.server.url, token=token)

        async def ask(*words: str, url: str = f"https://127.0.0.1:{port}") -> Result:
            common = ("--kubeconfig", kubeconfig, "-n", "default", "--scheduler", url)
            return await asyncio.to_thread(run, "why", *words, *common, COLUMNS="300")

        yield cluster, ask
    assert EXIT_FAILED == cluster.exit_code


def untimed(text: str) -> str:
    """Return the text with times replaced."""
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)


async def _large(cluster: Cluster) -> None:
    """Add a pod that fits nowhere, and wait until it was tried."""
    await cluster.add_node("n1", "2")
    await cluster.add_pod("large", "4")
    await cluster.until(f"{PODS}/large", lambda pod: "conditions" in pod["status"])


@in_real_time
async def test_the_queue_and_the_last_decisions(tmp_path: Path) -> None:
    """They follow the computed answer, and are in the document."""
    async with asking(tmp_path) as (cluster, ask):
        await _large(cluster)
        shown = await ask("large", "--insecure-skip-tls-verify")
        assert shown.exit_code == 0, shown.stderr
        assert (
            "\nIn the queue\n"
            "  waits for an event that may help, since TIME\n"
            "  tried 1 time\n"
            "  rejected by NodeResourcesFit\n"
            "\nLast decisions\n"
            "  TIME  rejected by NodeResourcesFit\n"
            "\nTried again after\n"
            "  NodeResourcesFit: Pod deleted, "
        ) in untimed(shown.stdout)
        found = await ask("large", "--insecure-skip-tls-verify", "-o", "json")
        document: Json = json.loads(found.stdout)
        assert "Unschedulable" == document["queue"]["part"]
        assert ["Rejected"] == [record["outcome"] for record in document["records"]]
        assert [] == document["notes"]


@in_real_time
async def test_evicted_pod(tmp_path: Path) -> None:
    """The preemptor is in the records, though the pod is deleted."""
    async with asking(tmp_path) as (cluster, ask):
        await cluster.add_node("n1", "2")
        await cluster.add_pod("cheap", "2", priority=0)
        await cluster.until(f"{PODS}/cheap", lambda pod: "nodeName" in pod["spec"])
        await cluster.send(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "high"}, "value": 9},
        )
        await cluster.add_pod("dear", "2", priorityClassName="high")
        await cluster.until(
            f"{PODS}/dear", lambda pod: bool(pod["status"].get("nominatedNodeName"))
        )
        ending = await ask("cheap", "--insecure-skip-tls-verify")
        evicted = (
            "the scheduler evicted it from n1 at TIME to make room for default/dear; evicting pods "
            "helped on no other node."
        )
        lines = untimed(ending.stdout).splitlines()
        assert f"Pod default/cheap is being deleted: {evicted}" == lines[0]
        await cluster.send(
            "DELETE",
            f"{PODS}/cheap",
            {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0},
        )
        await cluster.until(f"{PODS}/dear", lambda pod: "nodeName" in pod["spec"])
        gone = await ask("cheap", "--insecure-skip-tls-verify")
        assert gone.exit_code == 0, gone.stderr
        lines = untimed(gone.stdout).splitlines()
        assert f"Pod default/cheap is gone: {evicted}" == lines[0]
        assert "  TIME  evicted for default/dear" in lines
        assert "  TIME  placed on n1" in lines
        nobody = await ask("nobody", "--insecure-skip-tls-verify")
        assert 2 == nobody.exit_code
        assert "kubesched: error: pod nobody: there is no such pod" in nobody.stderr


NOTE = "Note: The scheduler at https://127.0.0.1:PORT was not asked: "


@pytest.mark.parametrize(
    ("token", "records", "words", "reason"),
    [
        pytest.param(
            ADMIN_TOKEN,
            10,
            (),
            "tls: certificate verify failed: self-signed certificate in certificate chain; "
            "--insecure-skip-tls-verify accepts any certificate.",
            id="certificate",
        ),
        pytest.param(
            TOKEN,
            10,
            ("--insecure-skip-tls-verify",),
            "you may not get /debug/decisions; ask for a ClusterRole with that nonResourceURL.",
            id="forbidden",
        ),
        pytest.param(
            ADMIN_TOKEN,
            0,
            ("--insecure-skip-tls-verify",),
            "it keeps no decisions: it runs with --decision-records 0, or is not kubesched.",
            id="no-records",
        ),
    ],
)
@in_real_time
async def test_without_an_answer_there_is_a_note(
    tmp_path: Path, token: str, records: int, words: tuple[str, ...], reason: str
) -> None:
    """The rest is computed from the API server's objects."""
    async with asking(tmp_path, token=token, decision_records=records) as (cluster, ask):
        await _large(cluster)
        shown = await ask("large", *words)
        assert shown.exit_code == 0, shown.stderr
        head, note, *_ = shown.stdout.splitlines()
        assert head == "Pod default/large does not fit the only node, which has too little cpu."
        assert f"{NOTE}{reason}" == re.sub(r":\d+ ", ":PORT ", note)
        assert "In the queue" not in shown.stdout


@in_real_time
async def test_refused_connection(tmp_path: Path) -> None:
    """A refused connection is reported as a note."""
    async with asking(tmp_path) as (cluster, ask):
        await _large(cluster)
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            shown = await ask("large", url=f"https://127.0.0.1:{bound.getsockname()[1]}")
        assert shown.exit_code == 0, shown.stderr
        assert "connection refused" in shown.stdout.splitlines()[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ("--scheduler", "https://127.0.0.1:1", "cluster.json"),
            "--scheduler asks about a live cluster, and there are files; leave out one",
            id="files",
        ),
        pytest.param(
            ("--insecure-skip-tls-verify",),
            "--insecure-skip-tls-verify is about --scheduler, which is not given",
            id="alone",
        ),
    ],
)
def test_conflicting_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    """The error names the option to leave out."""
    monkeypatch.chdir(tmp_path)
    Path("cluster.json").write_text("{}")
    assert message == refused("why", "web", *words)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://x", "unsupported scheme 'ftp' in 'ftp://x', must be http or https"),
        ("http://10.0.0.1:10259", "credentials need https"),
        ("https://", "host must be a URL or a host:port pair: 'https://'"),
    ],
)
def test_invalid_addresses(tmp_path: Path, url: str, problem: str) -> None:
    """No request is sent."""
    with live(tmp_path, [node("n1"), pod("web")]) as kubeconfig:
        error = refused("why", "web", "--kubeconfig", kubeconfig, "--scheduler", url)
    assert f"--scheduler {url}: {problem}" == error
