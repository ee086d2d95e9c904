"""Journal keeps the objects of a server in one SQLite file, many writes to a transaction.

Upstream: none; upstream's storage is etcd.
Rejects:  files of other programs or of another layout, and a file that another process has open.
Invariants: what `write` returned from is on the disk; a crash loses whole transactions, never a
            part of one.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kubesched.apiserver.plain import Plain, decode, encode
from kubesched.cluster.store import Key

# What tells our files from others: "ksbx", and the version of the tables.
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
_REMOVE: Final = "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?"
_NEWEST: Final = "UPDATE newest SET version = ?"
_ALL: Final = "SELECT kind, namespace, name, version, body FROM objects ORDER BY created"


class JournalError(Exception):
    """The file cannot be used; the message says which, why, and what to do."""


class Entry(NamedTuple):
    """One write.

    Attributes:
        key: Of the object.
        version: That the write made.
        plain: The object; None if it was deleted.
    """

    key: Key
    version: int
    plain: Plain | None


class Journal:
    """One open file; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open a file, or make one.

        Raises:
            JournalError: It cannot be used.
        """
        self._path = path
        with self._named():
            # A lock that is held will not be given up: there is no use in waiting.
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

    def load(self) -> tuple[list[tuple[Key, Plain, int]], int]:
        """Return the objects with their versions, oldest first, and the newest version.

        The version is 0 if nothing was ever written.

        Raises:
            JournalError: The file is broken.
        """
        with self._named():
            version: int = self._connection.execute("SELECT version FROM newest").fetchone()[0]
            rows = self._connection.execute(_ALL).fetchall()
        return [(Key(kind, space, name), decode(body), v) for kind, space, name, v, body in rows], (
            version
        )

    def write(self, entries: Sequence[Entry]) -> None:
        """Keep writes, in their order; return when they are on the disk.

        Raises:
            JournalError: They are not.
        """
        with self._named():
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            for key, version, plain in entries:
                if plain is None:
                    run(_REMOVE, key)
                else:
                    run(_PUT, (*key, version, version, encode(plain)))
            run(_NEWEST, (entries[-1].version,))
            run("COMMIT")

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        self._connection.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Say in errors which file it was."""
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
