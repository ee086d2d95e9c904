"""A server on a file: what it has acknowledged is there after a crash."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubesched.apiserver.durable import DurableServer, Entry, Journal, JournalError
from kubesched.cluster.store import Key
from tests.loops import in_real_time

from . import durable_writer
from .test_server import POD, PODS, ask

MAPS = "/api/v1/namespaces/default/configmaps"
KEY = Key("configmaps", "default", "a")


@asynccontextmanager
async def on_file(path: Path) -> AsyncIterator[DurableServer]:
    """Run a server on a file, and stop it in order."""
    server = DurableServer(path, random=random.Random(1))
    try:
        yield server
    finally:
        await server.stop()


@in_real_time
async def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    """After a restart there is what there was before, with its versions, and the next is newer."""

    def everything(server: DurableServer) -> tuple[object, int]:
        store = server.registry.store
        return sorted((key, stored.plain) for key, stored in store.everything()), store.version

    path = tmp_path / "data.sqlite"
    async with on_file(path) as server:
        await ask(server, "POST", PODS, POD)
        await ask(server, "POST", MAPS, {"metadata": {"name": "gone"}})
        await ask(server, "DELETE", f"{MAPS}/gone")
        before = everything(server)
    async with on_file(path) as server:
        assert before == everything(server)


@in_real_time
async def test_system_objects_keep_their_uids(tmp_path: Path) -> None:
    """Objects that every cluster has keep their uids over a restart."""
    uids = []
    for _ in range(2):
        async with on_file(tmp_path / "data.sqlite") as server:
            answer = await ask(server, "GET", "/api/v1/namespaces/kube-system")
            uids.append(json.loads(answer.body)["metadata"]["uid"])
    assert uids[0] == uids[1]


@in_real_time
async def test_missing_system_objects_are_added(tmp_path: Path) -> None:
    """A file without roles, written earlier or damaged, gets them."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"
    path, uids = tmp_path / "data.sqlite", []
    async with on_file(path) as server:
        assert 200 == (await ask(server, "DELETE", role)).status
    for _ in range(2):
        async with on_file(path) as server:
            uids.append(json.loads((await ask(server, "GET", role)).body)["metadata"]["uid"])
    assert uids[0] == uids[1]


@in_real_time
async def test_a_watch_from_before_a_restart_gets_410(tmp_path: Path) -> None:
    """Changes are not kept over a restart, so the client lists again."""
    path = tmp_path / "data.sqlite"
    async with on_file(path) as server:
        version = server.registry.store.version
        await ask(server, "POST", PODS, POD)
    async with on_file(path) as server:
        query = {"watch": ("1",), "resourceVersion": (str(version),)}
        answer = await ask(server, "GET", PODS, query=query)
        assert answer.stream is not None
        lines = [line async for line in answer.stream]
    assert 410 == json.loads(lines[0])["object"]["code"]


@in_real_time
async def test_a_watch_goes_on_from_the_newest_version(tmp_path: Path) -> None:
    """A client that is up to date can continue its watch after a restart."""
    path = tmp_path / "data.sqlite"
    async with on_file(path) as server:
        await ask(server, "POST", MAPS, {"metadata": {"name": "first"}})
        version = server.registry.store.version
    async with on_file(path) as server:
        query = {"watch": ("1",), "resourceVersion": (str(version),)}
        answer = await ask(server, "GET", MAPS, query=query)
        await ask(server, "POST", MAPS, {"metadata": {"name": "second"}})
        assert answer.stream is not None
        line = await anext(answer.stream)
        await answer.stream.aclose()
    assert "second" == json.loads(line)["object"]["metadata"]["name"]


@in_real_time
async def test_writes_of_one_moment_share_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many writes at once cost few transactions, and each is kept when it is answered."""
    sizes: list[int] = []
    write = Journal.write

    def counted(self: Journal, entries: list[Entry]) -> None:
        sizes.append(len(entries))
        write(self, entries)

    async with on_file(tmp_path / "data.sqlite") as server:
        monkeypatch.setattr(Journal, "write", counted)
        bodies = [{"metadata": {"name": f"m{index}"}} for index in range(100)]
        await asyncio.gather(*(ask(server, "POST", MAPS, body) for body in bodies))
    assert 100 == sum(sizes)
    assert len(sizes) <= 5


@in_real_time
async def test_writes_are_visible_once_they_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the writer nor readers nor watchers see a write before it is synced."""
    kept: list[str] = []
    write = Journal.write

    def noted(self: Journal, entries: list[Entry]) -> None:
        write(self, entries)
        kept.extend(entry.key.name for entry in entries)

    async def told(work: Awaitable[object]) -> bool:
        await work
        return "m" in kept

    async with on_file(tmp_path / "data.sqlite") as server:
        monkeypatch.setattr(Journal, "write", noted)
        query = {"watch": ("1",), "resourceVersion": (str(server.registry.store.version),)}
        watch = await ask(server, "GET", MAPS, query=query)
        assert watch.stream is not None
        found = await asyncio.gather(
            told(ask(server, "POST", MAPS, {"metadata": {"name": "m"}})),
            told(ask(server, "GET", f"{MAPS}/m")),
            told(anext(watch.stream)),
        )
        await watch.stream.aclose()
    assert all(found)


@in_real_time
async def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests get 500 from then on; the owner is notified once."""

    def full(self: Journal, entries: list[Entry]) -> None:
        raise JournalError("data.sqlite: database or disk is full")

    failures: list[str] = []
    server = DurableServer(
        tmp_path / "data.sqlite", on_failure=lambda error: failures.append(str(error))
    )
    monkeypatch.setattr(Journal, "write", full)
    answers = [
        await ask(server, "POST", MAPS, {"metadata": {"name": "m"}}),
        await ask(server, "GET", MAPS),
        await ask(server, "POST", MAPS, {"metadata": {"name": "n"}}),
    ]
    await server.stop()
    assert [500, 500, 500] == [answer.status for answer in answers]
    assert ["data.sqlite: database or disk is full"] == failures


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"no database at all " * 100, "file is not a database", id="text"),
        pytest.param(None, "is not the data of a sandbox", id="other-program"),
    ],
)
def test_other_files_are_left_alone(tmp_path: Path, content: bytes | None, words: str) -> None:
    """A file that is not ours is refused and stays as it is."""
    path = tmp_path / "file"
    if content is None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE photos (name TEXT)")
        connection.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=words):
        Journal(path)
    assert before == path.read_bytes()


def test_a_file_has_one_user(tmp_path: Path) -> None:
    """A second server on the same file is refused at once."""
    path = tmp_path / "data.sqlite"
    journal = Journal(path)
    with pytest.raises(JournalError, match="another process has it open"):
        Journal(path)
    journal.close()
    Journal(path).close()


def test_missing_directory(tmp_path: Path) -> None:
    """The message names the file and what it needs."""
    with pytest.raises(JournalError, match=r"nowhere/x: unable to open .* must be writable"):
        Journal(tmp_path / "nowhere" / "x")


def test_a_journal_keeps_the_order_of_creation(tmp_path: Path) -> None:
    """Objects are restored in the order in which they were created."""
    journal = Journal(tmp_path / "x")
    names = ["b", "a", "c"]
    keys = [KEY._replace(name=name) for name in names]
    journal.write([Entry(key, version, {}) for version, key in enumerate(keys, 2)])
    journal.write([Entry(keys[0], 5, {"x": 1}), Entry(keys[1], 6, None)])
    assert ([(keys[0], {"x": 1}), (keys[2], {})], 6) == journal.load()
    journal.close()


# Crashes.

# Its children are forks of a process that has imported the server.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["pytest", durable_writer.__name__])


def _crash(path: Path, seed: int, lines: int, seconds: float) -> list[str]:
    """Kill a writing process after some lines and a delay; return what it printed.

    A busy machine would write nothing in a time alone.
    """
    receiver, sender = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=durable_writer.run, args=(path, seed, sender))
    process.start()
    sender.close()
    with receiver, os.fdopen(os.dup(receiver.fileno()), "rb") as output:
        first = b"".join(output.readline() for _ in range(1 + lines))
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        rest = output.read()
    timer.join()
    process.join()
    assert -signal.SIGKILL == process.exitcode
    return (first + rest).decode().splitlines()


def _note(lines: list[str], known: dict[str, set[str]]) -> None:
    """Write down what each object may be: the last acknowledged state, or one that was tried."""
    for line in lines[1:]:
        word, name, value = line.split(" ")
        if word == "try":
            known.setdefault(name, {"None"}).add(value)
        else:
            known[name] = {value}


@pytest.mark.slow
def test_a_crash_loses_no_acknowledged_write(tmp_path: Path) -> None:
    """The server is killed at any moment, again and again on the same file.

    Each of eight writers has one write under way at most; that one may be kept or not.
    """
    generator = random.Random(7)
    path = tmp_path / "data.sqlite"
    known: dict[str, set[str]] = {}
    acknowledged, newest = 0, 0
    for round_ in range(50):
        lines = _crash(path, round_, generator.randrange(100), generator.uniform(0.0, 0.01))
        acknowledged += sum(1 for line in lines if line.startswith("done"))
        _note(lines, known)
        journal = Journal(path)
        objects, version = journal.load()
        journal.close()
        found = {key.name: plain["data"]["value"] for key, plain in objects if _is_ours(key)}
        for name, possible in known.items():
            assert found.get(name, "None") in possible
            known[name] = {found.get(name, "None")}
        assert found.keys() <= known.keys()
        assert newest <= version
        newest = version
    assert acknowledged > 500


def _is_ours(key: Key) -> bool:
    return key.kind == "configmaps" and key.name.startswith("w")
