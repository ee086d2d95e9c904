"""`kubesched sandbox`: a cluster of its own for a command, or until Ctrl-C."""

from __future__ import annotations

import base64
import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from kubesched.api.codec import DecodeError
from kubesched.cli.sandbox import node_template, read_node
from kubesched.cli.sandbox_scheduler import configuration_text, read_document
from kubesched.cluster.nodes import NodeTemplate
from kubesched.inputs.errors import UserError
from kubesched.sandbox.access import CONTEXT

from .cluster import Json, refused, run

# What a command does in most tests: it keeps a copy of the way in.
KEEP = 'cp "$KUBECONFIG" kept'
FLAGS: dict[str, Any] = {
    "node_cpu": "8",
    "node_memory": "32Gi",
    "node_pods": "110",
    "node_resources": (),
    "node_labels": (),
    "node_taints": (),
    "zones": (),
    "node_template": None,
}


class Cluster:
    """A cluster seen through its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        found = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster = found["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.url = cluster["server"]
        self.token = found["users"][0]["user"]["token"]
        self._tls = ssl.create_default_context(cadata=authority)

    def ask(self, path: str, body: Json | None = None, token: str | None = None) -> Any:
        """Read something, or create it."""
        request = urllib.request.Request(  # noqa: S310 - our own server
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self.token if token is None else token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, context=self._tls) as answer:  # noqa: S310 - the same
            return json.load(answer)


@contextmanager
def running(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], Cluster, list[str]]]:
    """A sandbox in a process of its own: the process, the cluster, and what it said."""
    # A killed sandbox leaves its files.
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "kubesched", "sandbox", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": folder},
        ) as process,
    ):
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line.rstrip())
            if "Ctrl-C" in line:
                break
        [file] = re.findall(r"export KUBECONFIG=(.*)", "\n".join(said)) or [""]
        try:
            yield process, Cluster(Path(file)), said
        finally:
            process.kill()


def end(process: subprocess.Popen[Any], how: signal.Signals) -> int:
    """Send a signal, and return the exit code."""
    process.send_signal(how)
    return process.wait(10)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_until_interrupted(how: signal.Signals, tmp_path: Path) -> None:
    """It prints how to connect, answers requests with the token, and removes its files."""
    file = tmp_path / "kubeconfig"
    arguments = ("--nodes", 2, "--no-scheduler", "--kubeconfig", file)
    with running(*arguments) as (process, cluster, said):
        assert said[0].startswith("A cluster with 2 nodes is running at https://127.0.0.1:")
        assert 0o600 == file.stat().st_mode & 0o777
        nodes = cluster.ask("/api/v1/nodes")["items"]
        assert ["node-0", "node-1"] == [node["metadata"]["name"] for node in nodes]
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            cluster.ask("/api/v1/nodes", token="guessed")  # noqa: S106 - that is the point
        refused.value.close()
        assert 0 == end(process, how)
    assert not file.exists()


@pytest.mark.slow
def test_the_scheduler_places_pods_and_kubelets_run_them() -> None:
    """A pod that is created is on a node and runs soon after; the scheduler ends with the rest."""
    with running("--nodes", 1, "--start-latency", "10ms") as (process, cluster, _):
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        cluster.ask("/api/v1/namespaces/default/pods", pod)
        assert "Running" == _phase_at_last(cluster)
        children = _children(process.pid)
        assert 1 == len(children)
        assert 0 == end(process, signal.SIGTERM)
        assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.slow
def test_feature_gates_enable_their_kinds() -> None:
    """With the gates of pod groups, a gang can be created, and its pods run."""
    gates = "GenericWorkload=true,GangScheduling=true"
    with running("--nodes", 1, "--start-latency", "10ms", "--feature-gates", gates) as ran:
        process, cluster, _ = ran
        group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
        cluster.ask("/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups", group)
        containers = [{"name": "c", "image": "i"}]
        spec = {"containers": containers, "schedulingGroup": {"podGroupName": "g"}}
        pod = cluster.ask(
            "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec}
        )
        assert {"podGroupName": "g"} == pod["spec"]["schedulingGroup"]
        assert "Running" == _phase_at_last(cluster)
        assert 0 == end(process, signal.SIGTERM)


def _phase_at_last(cluster: Cluster) -> str:
    """Watch the pod until it runs."""
    path = "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=20"
    request = urllib.request.Request(  # noqa: S310 - our own server
        cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"}
    )
    phase = ""
    with urllib.request.urlopen(request, context=cluster._tls) as lines:  # noqa: S310 - the same
        for line in lines:
            phase = json.loads(line)["object"]["status"]["phase"]
            if phase == "Running":
                break
    return phase


def _children(process: int) -> list[str]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8")
    return found.split()


@pytest.mark.slow
def test_killed_sandbox(tmp_path: Path) -> None:
    """Its scheduler ends too; acknowledged writes and the token are there after a restart."""
    data, file = tmp_path / "data.sqlite", tmp_path / "kubeconfig"
    arguments = ("--nodes", 1, "--data", data, "--kubeconfig", file)
    with running(*arguments) as (process, cluster, said):
        assert f"It is kept in {data}." in said
        [child] = _children(process.pid)
        cluster.ask("/api/v1/namespaces", {"metadata": {"name": "mine"}})
        token = cluster.token
        end(process, signal.SIGKILL)
    assert _is_gone(int(child))
    with running(*arguments, "--no-scheduler") as (process, cluster, said):
        assert f"It goes on from {data}." in said
        assert "mine" == cluster.ask("/api/v1/namespaces/mine")["metadata"]["name"]
        assert token == cluster.token
        assert 1 == len(cluster.ask("/api/v1/nodes")["items"])
        assert 0 == end(process, signal.SIGINT)


def _is_gone(process: int) -> bool:
    """Wait for the end of a process that is not a child of this one."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    with os.fdopen(handle) as waited:
        return bool(select.select([waited], [], [], 10)[0])


@pytest.mark.slow
def test_command_in_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBECONFIG names the cluster while the command runs; then nothing is left."""
    monkeypatch.chdir(tmp_path)
    result = run("sandbox", "--no-scheduler", "--", "sh", "-c", f"{KEEP}; echo $KUBECONFIG > path")
    assert (0, "") == (result.exit_code, result.output)
    assert CONTEXT == yaml.safe_load(Path("kept").read_text(encoding="utf-8"))["current-context"]
    assert not Path(Path("path").read_text(encoding="utf-8").strip()).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        pytest.param(["sh", "-c", "exit 7"], 7, "", id="its-code"),
        pytest.param(["sh", "-c", "kill -9 $$"], 137, "", id="its-signal"),
        pytest.param(["no-such-command"], 127, "no-such-command: command not found", id="missing"),
        pytest.param(["/"], 126, "/: cannot be run: Permission denied", id="no-program"),
    ],
)
def test_exit_code_of_a_command(command: list[str], code: int, words: str) -> None:
    """The exit code is the command's, as in a shell."""
    result = run("sandbox", "--nodes", 0, "--no-scheduler", "--", *command)
    assert code == result.exit_code
    assert words in result.output


@pytest.mark.slow
def test_interrupted_before_the_command(tmp_path: Path) -> None:
    """Ctrl-C ends a sandbox that still starts; the command does not run, and nothing is left."""
    words = ["sandbox", "--nodes", "20000", "--no-scheduler", "--", "touch", str(tmp_path / "ran")]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-m", "kubesched", *words], env=environment) as process:  # noqa: S603 - our own program
        while not any(tmp_path.glob("kubesched-sandbox-*/*")):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        assert 130 == end(process, signal.SIGINT)
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.slow
def test_port_in_use(tmp_path: Path) -> None:
    """The message names the port and the remedy; nothing is left behind."""
    file = tmp_path / "kubeconfig"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = refused("sandbox", "--port", port, "--kubeconfig", file)
    assert f"port {port} of 127.0.0.1 is taken; name another with --port" in error
    assert not file.exists()


@pytest.mark.slow
def test_a_scheduler_that_fails_ends_the_sandbox(tmp_path: Path) -> None:
    """The error has the last lines of its log."""
    config = tmp_path / "config.yaml"
    config.write_text("profiles: [{plugins: {score: {enabled: [{name: Nonsense}]}}}]")
    result = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "kubesched", "sandbox", "--config", config],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 1 == result.returncode
    assert "the scheduler ended with code" in result.stderr
    assert f"{config}: profiles[0].plugins.score.enabled[0]: " in result.stderr


@pytest.mark.slow
def test_the_error_of_a_scheduler_does_not_wait_for_the_command(tmp_path: Path) -> None:
    """It is shown while the command runs."""
    plugin = ["--plugin", f"{tmp_path}/no.py:Plugin"]
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "kubesched", "sandbox", "--nodes", "0", *plugin, "--", "cat"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert "no.py: no such file" in process.stderr.readline()
        assert process.poll() is None
        process.communicate()
    assert 1 == process.returncode


@pytest.mark.slow
def test_a_scheduler_that_is_killed_ends_the_sandbox() -> None:
    """The error names the signal, without lines of the log."""
    with running("--nodes", 0) as (process, _, _):
        [child] = _children(process.pid)
        os.kill(int(child), signal.SIGKILL)
        assert 1 == process.wait(10)
        assert process.stderr is not None
        expected = "kubesched: error: the scheduler was ended by SIGKILL\n"
        assert expected == process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--node-cpu", "many"], "--node-cpu: 'many' is not a quantity"),
        (["--node-label", "x"], "--node-label: 'x' has no name and value"),
        (["--node-taint", "x"], "--node-taint: 'x': write KEY=VALUE:EFFECT"),
        (["--node-template", "no.yaml"], "--node-template no.yaml: it cannot be read"),
        (["--kubeconfig", "no/dir/k"], "cannot be written"),
        (["--data", "no/dir/d"], "--data: no/dir/d: unable to open"),
        (["--node-label", "a=b c"], "the API server refuses the node"),
        (["--nodes", "x"], "'--nodes': 'x' is not a valid integer."),
        (["--nodes", "-1"], "is not in the range"),
        (["--start-latency", "-1s"], "-1s is negative; write 0s"),
        (["--run-time=-1h"], "-1h is negative"),
        (["--zones", ","], "'--zones': it has no names"),
        (["--feature-gates", "No=true"], "unrecognized feature gate: No"),
        (["--config", "nope"], "--config nope: it cannot be read: No such"),
    ],
)
def test_wrong_options(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has the remedy, and nothing is started."""
    monkeypatch.chdir(tmp_path)
    assert words in refused("sandbox", "--no-scheduler", *arguments, "--", "true")


@pytest.mark.slow
def test_kubeconfig_of_a_running_sandbox(tmp_path: Path) -> None:
    """A second sandbox is refused; a file that was replaced meanwhile is not removed."""
    file = tmp_path / "kubeconfig"
    arguments = ("--nodes", 0, "--no-scheduler", "--kubeconfig", file)
    with running(*arguments) as (process, cluster, _):
        written = file.read_text()
        error = refused("sandbox", *arguments, "--", "true")
        assert error.startswith(f"{file}: belongs to a running sandbox; name another")
        assert written == file.read_text()
        assert [] == cluster.ask("/api/v1/nodes")["items"]
        file.write_text("another's")
        assert 0 == end(process, signal.SIGINT)
    assert "another's" == file.read_text()


def test_flags_become_a_template() -> None:
    """Quantities are checked and written as the API server writes them."""
    flags = {
        "node_memory": "1024Mi",
        "node_resources": ("example.com/gpu=8",),
        "node_labels": ("pool=a", "empty="),
        "node_taints": ("gpu=yes:NoSchedule", "slow:PreferNoSchedule"),
        "zones": ("a", "b"),
    }
    expected = NodeTemplate(
        {
            "cpu": "8",
            "memory": "1Gi",
            "pods": "110",
            "ephemeral-storage": "100Gi",
            "example.com/gpu": "8",
        },
        {"pool": "a", "empty": ""},
        (
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {"key": "slow", "effect": "PreferNoSchedule"},
        ),
        ("a", "b"),
    )
    assert expected == node_template(FLAGS | flags)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: {", "did not find expected"),
        ("--- {}\n--- {}\n", "holds 2 documents"),
        ("", "holds 0 documents"),
        ("kind: Pod", "is a Pod"),
        ("spec: 1", "spec is not an object"),
        ("metadata: {labels: [a]}", r"metadata\.labels: expected `object`"),
        ("status: {capacity: x}", r"status\.capacity: expected `object`"),
    ],
)
def test_node_template(text: str, words: str, tmp_path: Path) -> None:
    """A file with other content is refused."""
    file = tmp_path / "node.yaml"
    file.write_text(text)
    with pytest.raises((UserError, DecodeError), match=words):
        read_node(file)


def test_a_template_leaves_out_what_the_server_sets(tmp_path: Path) -> None:
    """A node can be copied from kubectl; identities and versions are left out."""
    file = tmp_path / "node.yaml"
    file.write_text(
        "kind: Node\nmetadata: {name: n, uid: u, resourceVersion: '7', labels: {a: b}}\n"
        "spec: {providerID: x}\nstatus: {capacity: {cpu: 4}, addresses: [{address: a}]}\n"
    )
    expected = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"providerID": "x"},
        "status": {"capacity": {"cpu": 4}},
    }
    assert expected == read_node(file)


def test_configuration_of_the_scheduler(tmp_path: Path) -> None:
    """The sandbox sets only the connection and turns the election off."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "profiles: [{schedulerName: mine}]\nleaderElection: {leaderElect: true}\n"
        "clientConnection: {kubeconfig: other, contentType: x}\n"
    )
    found = yaml.safe_load(
        configuration_text(read_document("--config", file, "configuration"), Path("here"))
    )
    assert [{"schedulerName": "mine"}] == found["profiles"]
    assert {"leaderElect": False} == found["leaderElection"]
    assert ("here", "x") == tuple(
        found["clientConnection"][n] for n in ("kubeconfig", "contentType")
    )
    assert "KubeSchedulerConfiguration" == found["kind"]
    other = configuration_text({"clientConnection": [1]}, Path("here"))
    assert [1] == yaml.safe_load(other)["clientConnection"]


def test_help() -> None:
    """The help lists what runs and what does not, how it ends, and common examples."""
    text = " ".join(run("sandbox", "--help").output.split())
    for words in (
        "nothing is executed",
        "runs until Ctrl-C",
        "kubesched sandbox --nodes 1000 --zones a,b,c",
        "kubesched sandbox --nodes 10 -- ./test.sh",
        "sandbox/exit-code",
    ):
        assert words in text
