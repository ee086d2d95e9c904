"""DurableServer is an API server that answers only after its writes are on the disk.

Concurrent writes share a transaction: those that arrive during one join the next.

Upstream: none; upstream's storage is etcd.
Invariants: an answer, or a line of a watch, is sent when all earlier writes are on the disk; after
            a restart, versions continue, and a watch from before it gets the answer that its
            version is too old (410).
Differs:  after a write that could not be stored, every answer is an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubesched.apiserver.plain import Plain, decode, encode
from kubesched.apiserver.request import ApiRequest, Response, refused
from kubesched.apiserver.server import ApiServer, fill
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.stored_object import StoredObject
from kubesched.cluster.store import Change, ChangeType, Key


class GroupCommit:
    """Writes all waiting entries to a journal at once, in a separate thread.

    `failure` is why writes can no longer be stored; None while they can.
    """

    def __init__(self, journal: Journal, on_failure: Callable[[JournalError], None]) -> None:
        """Set up; `on_failure` is called once, when writes can no longer be stored."""
        self.failure: JournalError | None = None
        self._journal = journal
        self._on_failure = on_failure
        self._thread = ThreadPoolExecutor(1, "kubesched-journal")
        self._pending: list[Entry] = []
        self._added = self._kept = 0
        self._writing: asyncio.Task[None] | None = None

    def add(self, change: Change[StoredObject]) -> None:
        """Queue a write; it goes to the disk soon, even if no request waits for it."""
        plain = None if change.type is ChangeType.DELETED else change.value.plain
        self._pending.append(Entry(change.key, change.version, plain))
        self._added += 1
        self._begin()

    async def flushed(self) -> None:
        """Return when all that is queued is on the disk; raises JournalError if that fails."""
        wanted = self._added
        while self._kept < wanted:
            if self.failure is not None:
                raise self.failure
            assert self._writing is not None, "a write begins when something is queued"
            # Cancelling one waiter must not cancel the write that others wait for.
            await asyncio.shield(self._writing)

    def _begin(self) -> None:
        if self._pending and self._writing is None and self.failure is None:
            # The task starts in the next turn of the loop, and takes what is queued until then.
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        entries, self._pending = self._pending, []
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._journal.write, entries)
            self._kept += len(entries)
        except JournalError as error:
            self.failure = error
            self._on_failure(error)
        finally:
            self._writing = None
        self._begin()

    async def close(self) -> None:
        """Store what is still queued, and close the file; closing twice is fine."""
        with contextlib.suppress(JournalError):
            await self.flushed()
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()
        self._journal.close()


class DurableServer(ApiServer):
    """An API server on a file."""

    def __init__(
        self,
        path: Path,
        *arguments: Any,
        on_failure: Callable[[JournalError], None] = lambda _: None,
        **options: Any,
    ) -> None:
        """Load the objects of a file, or create it with those that every cluster has.

        Raises JournalError if it cannot be used. `on_failure` is called once, when writes can no
        longer be stored. The other arguments are those of `ApiServer`.
        """
        journal = Journal(path)
        try:
            super().__init__(*arguments, **options)
            self.is_restored = self._restore(journal)
        except BaseException:
            journal.close()
            raise
        self._commits = GroupCommit(journal, on_failure)
        self.registry.store.on_write.append(self._commits.add)

    def _restore(self, journal: Journal) -> bool:
        """Load the objects of a file, or store the initial ones; return whether it had any."""
        store = self.registry.store
        objects, version = journal.load()
        if version:
            store.restore(((key, StoredObject(plain)) for key, plain in objects), version)
            self.registry.follow_definitions()
            fill(self.registry)
        found = [
            Entry(key, own, stored.plain)
            for key, stored in store.everything()
            if (own := int(stored.plain["metadata"]["resourceVersion"])) > version
        ]
        if found:
            journal.write(sorted(found, key=lambda entry: entry.version))
        return bool(version)

    async def handle(self, request: ApiRequest) -> Response:
        """Return the answer to a request, after all writes that it may show are on the disk."""
        answer = await super().handle(request)
        if answer.stream is not None:
            answer.stream = self._lines(answer.stream)
            return answer
        try:
            await self._commits.flushed()
        except JournalError as error:
            return refused(StatusError(500, "InternalError", f"Internal error occurred: {error}"))
        return answer

    async def _lines(self, stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        async with contextlib.aclosing(stream) as lines:
            async for line in lines:
                try:
                    await self._commits.flushed()
                except JournalError:
                    return
                yield line

    async def stop(self) -> None:
        """End all watches, listen no more, and close the file; stopping twice is fine."""
        await super().stop()
        await self._commits.close()


# The file.

# Marks our files: "ksbx", and the version of the tables.
_APPLICATION: Final = 0x6B736278
_LAYOUT: Final = 1
_TABLES: Final = (
    (
        "CREATE TABLE objects (kind TEXT, namespace TEXT, name TEXT, created INTEGER NOT NULL,"
        " version INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, namespace, name))"
        " WITHOUT ROWID"
    ),
    "CREATE TABLE newest (version INTEGER NOT NULL)",
    "INSERT INTO newest VALUES (0)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_LAYOUT}",
)
_PUT: Final = (
    "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (kind, namespace, name)"
    " DO UPDATE SET version = excluded.version, body = excluded.body"
)
_ALL: Final = "SELECT kind, namespace, name, body FROM objects ORDER BY created"


class JournalError(Exception):
    """The file cannot be used; the message says which, why, and what to do."""


class Entry(NamedTuple):
    """One write, with the version that it made; `plain` is None for a deletion."""

    key: Key
    version: int
    plain: Plain | None


class Journal:
    """One open file; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open a file, or make one; raises JournalError if it cannot be used."""
        self._path = path
        with self._named():
            # Another process holds the lock until it ends, so waiting is pointless.
            self._connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
        try:
            with self._named():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        self._check_kind()
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("BEGIN IMMEDIATE")
        if self._pragma("user_version") == 0:
            for statement in _TABLES:
                run(statement)
        run("COMMIT")

    def _check_kind(self) -> None:
        application, layout = self._pragma("application_id"), self._pragma("user_version")
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (application, layout) not in {(0, 0), (_APPLICATION, _LAYOUT)} or (
            tables and not application
        ):
            raise JournalError(
                f"{self._path}: is not the data of a sandbox of this version; name another file"
            )

    def _pragma(self, name: str) -> int:
        found: int = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return found

    def load(self) -> tuple[list[tuple[Key, Plain]], int]:
        """Return the objects, oldest first, and the newest version, 0 if nothing was ever written.

        Raises JournalError if the file is broken.
        """
        with self._named():
            version: int = self._connection.execute("SELECT version FROM newest").fetchone()[0]
            rows = self._connection.execute(_ALL).fetchall()
        return [(Key(*key), decode(body)) for *key, body in rows], version

    def write(self, entries: Sequence[Entry]) -> None:
        """Store writes on the disk, in order; raises JournalError if that fails."""
        with self._named():
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            for key, version, plain in entries:
                if plain is None:
                    run("DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", key)
                else:
                    run(_PUT, (*key, version, version, encode(plain)))
            run("UPDATE newest SET version = ?", (entries[-1].version,))
            run("COMMIT")

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        self._connection.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors."""
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: {_words(error)}") from error


def _words(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text:
        return "another process has it open; stop that one, or name another file"
    if "unable to open" in text or "readonly" in text:
        return f"{text}; the file and its directory must be writable"
    if "not a database" in text:
        return f"{text}; name another file"
    return text
