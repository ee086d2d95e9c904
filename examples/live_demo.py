"""A scheduler at work on a live cluster, told as it happens; `make demo` runs it.

It runs inside of `kubesched sandbox`, which hands it the cluster in KUBECONFIG. Every line with a
time is something that was seen on the API server at that moment.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import click
import msgspec

from kubesched.api.core import Lease, Node, Pod
from kubesched.api.decode import load
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import kind_of
from kubesched.client.connect import connect, find_settings
from kubesched.client.informers import Informers
from kubesched.client.requests import Request, Rest, path_of

HERE = Path(__file__).resolve().parent / "live-demo"
COLUMNS_MAX = 100
PATIENCE_SECONDS = 25.0


def say(text: str) -> None:
    """Write a paragraph that fits the terminal."""
    columns = min(shutil.get_terminal_size().columns, COLUMNS_MAX)
    click.echo()
    for line in textwrap.wrap(" ".join(text.split()), max(columns - 1, 20)):
        click.secho(line, fg="green")
    click.echo()


class Story:
    """Watches the cluster, and tells what happens.

    Attributes:
        pods: By name, as last seen.
        leader: The identity of the replica that leads.
    """

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.zones: dict[str, str] = {}
        self.leader = ""
        self.replicas: dict[str, str] = {}
        self._began = time.monotonic()
        self._changed = asyncio.Event()

    def tell(self, text: str, **style: Any) -> None:
        """Write a line with the time."""
        click.secho(f"{time.monotonic() - self._began:5.1f} s  ", dim=True, nl=False)
        click.secho(text, **style)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something was seen."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    # What the informers say.

    def added(self, item: KubeObject, /) -> None:
        """Take in an object that came."""
        if isinstance(item, Node):
            self.zones[item.metadata.name] = item.metadata.labels["topology.kubernetes.io/zone"]
        elif isinstance(item, Pod):
            self._take_pod(None, item)
        elif isinstance(item, Lease) and item.metadata.name == "kube-scheduler":
            self._take_lease(item)
        self._changed.set()

    def updated(self, _old: KubeObject, new: KubeObject, /) -> None:
        """Take in an object that changed."""
        if isinstance(new, Pod):
            self._take_pod(self.pods.get(new.metadata.name), new)
            self._changed.set()
        else:
            self.added(new)

    def deleted(self, item: KubeObject, /, *, is_final_state_known: bool = True) -> None:
        """Take in that an object is gone."""
        if isinstance(item, Pod):
            self.pods.pop(item.metadata.name, None)
            self._changed.set()

    def _take_pod(self, old: Pod | None, new: Pod) -> None:
        name, node = new.metadata.name, new.spec.node_name
        self.pods[name] = new
        if node and not (old and old.spec.node_name):
            self.tell(f"{name} goes to {node} in zone {self.zones[node]}")
        if new.status.nominated_node_name and not (old and old.status.nominated_node_name):
            self.tell(f"{name} is nominated to {new.status.nominated_node_name}", fg="yellow")
        if new.metadata.deletion_timestamp and not (old and old.metadata.deletion_timestamp):
            because = [
                each.message for each in new.status.conditions if each.type == "DisruptionTarget"
            ]
            self.tell(
                f"{name} has to leave {node}: {because[0] if because else 'deleted'}", fg="red"
            )
        was_told = {each.message for each in old.status.conditions} if old else set()
        for condition in new.status.conditions:
            if condition.reason == "Unschedulable" and condition.message not in was_told:
                self.tell(f"{name} waits: {condition.message}", fg="yellow")

    def _take_lease(self, lease: Lease) -> None:
        holder = lease.spec.holder_identity or ""
        if holder and holder != self.leader:
            self.leader = holder
            replica = self.replicas.setdefault(holder, "AB"[len(self.replicas) % 2])
            self.tell(f"replica {replica} leads", bold=True)


async def create(rest: Rest, file: str) -> None:
    """Create the objects of a file."""
    for item, _ in load([str(HERE / file)]):
        path = path_of(kind_of(type(item)), item.metadata.namespace)
        await rest.send(Request(method="POST", path=path, body=msgspec.json.encode(item)))


async def start_replica(folder: Path) -> Process:
    """Start `kubesched run`, as one would in a cluster."""
    config = folder / "scheduler.yaml"
    text = (HERE / "scheduler.yaml").read_text(encoding="utf-8")
    config.write_text(
        f"{text}clientConnection: {{kubeconfig: {os.environ['KUBECONFIG']}}}\n", encoding="utf-8"
    )
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubesched", "run", "--config", config, "--secure-port", "0"),
        stdin=DEVNULL,
        stderr=(folder / "scheduler.log").open("a"),
    )


_SAVED = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/services",
    "/apis/apps/v1/replicasets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
)


async def explain(rest: Rest, folder: Path, pod: str) -> None:
    """Save the cluster, and ask why a pod waits."""
    lists = [await rest.send(Request(path=path)) for path in _SAVED]
    dump = folder / "cluster.json"
    dump.write_bytes(b"\n".join(lists))
    click.secho(f"$ kubesched explain {pod} cluster.json\n", bold=True)
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubesched", "explain", pod, dump)
    )
    await asking.wait()


async def tell_all(story: Story, rest: Rest, folder: Path) -> None:
    """Tell the story."""
    say("""
        A cluster on this machine: an API server, and six nodes in three zones that exist only as
        objects. Two replicas of the scheduler start; one of them will lead.
    """)
    replicas: dict[str, Process] = {}
    try:
        replicas["A"] = await start_replica(folder)
        await story.until(lambda: bool(story.leader))
        replicas["B"] = await start_replica(folder)
        say("A web shop and its batch jobs arrive: twelve pods that fill the nodes nearly up.")
        await create(rest, "workload.yaml")
        await story.until(
            lambda: sum(bool(pod.spec.node_name) for pod in story.pods.values()) >= 12
        )
        say("The checkout needs 2.5 CPUs, and no node has that left. But it is more important.")
        await create(rest, "checkout.yaml")
        await story.until(lambda: is_bound(story, "checkout"))
        say("The batch job that had to go is created anew by its ReplicaSet. Why does it wait?")
        await story.until(lambda: bool(waiting(story)))
        await explain(rest, folder, waiting(story)[0])
        say("Now the leader is killed, so that it cannot give up its lease. And another pod comes.")
        replicas["A"].send_signal(signal.SIGKILL)
        story.tell("replica A is killed", fg="red")
        await create(rest, "late.yaml")
        await story.until(lambda: is_bound(story, "late"))
        say("""
            Replica B took over when the lease had run out, and went on where A had stopped. Try it
            yourself: `.venv/bin/kubesched sandbox` runs a cluster for as long as you like.
        """)
    finally:
        for replica in replicas.values():
            with suppress(ProcessLookupError):  # it has ended
                replica.terminate()
            await replica.wait()


def is_bound(story: Story, name: str) -> bool:
    """Whether a pod has its node."""
    return name in story.pods and bool(story.pods[name].spec.node_name)


def waiting(story: Story) -> list[str]:
    """Return the pods that have been tried, and wait."""
    return [
        name
        for name, pod in story.pods.items()
        if not pod.spec.node_name
        and any(each.reason == "Unschedulable" for each in pod.status.conditions)
    ]


async def main() -> None:
    """Watch, and tell."""
    rest = connect(find_settings(kubeconfig=os.environ["KUBECONFIG"]), qps=-1)
    story = Story()
    informers = Informers(rest, story, Random(0))  # noqa: S311 - spreads pauses
    for type_ in (Node, Pod, Lease):
        informers.add(kind_of(type_))
    following = asyncio.ensure_future(informers.run())
    try:
        await informers.wait_for_sync()
        with tempfile.TemporaryDirectory() as folder:
            await tell_all(story, rest, Path(folder))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await rest.aclose()


if __name__ == "__main__":
    if "KUBECONFIG" not in os.environ:
        sys.exit("run this as `make demo`, or: kubesched sandbox -- python examples/live_demo.py")
    asyncio.run(main())
