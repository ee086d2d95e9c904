"""DurableServer is an API server whose answers tell of nothing that a crash could take back.

Writes of the same moment share one transaction: what comes while one is on its way to the disk goes
with the next.

Upstream: none; upstream's storage is etcd.
Invariants: an answer, or a line of a watch, leaves when everything that was written up to then is
            on the disk; versions go on after a restart where they ended, and a watch from before
            it is told that it is too old (410).
Differs:  after a write that could not be kept nothing is answered any more but errors.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kubesched.apiserver.journal import Entry, Journal, JournalError
from kubesched.apiserver.refusals import refused
from kubesched.apiserver.request import Request, Response
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.stored_object import StoredObject
from kubesched.cluster.store import Change, ChangeType


class GroupCommit:
    """Brings writes to a journal, as many at once as have come, in a thread of its own.

    Attributes:
        failure: Why writes can no longer be kept; None while they can.
    """

    def __init__(self, journal: Journal, on_failure: Callable[[JournalError], None]) -> None:
        """Take where writes go, and who is told once that they no longer do."""
        self.failure: JournalError | None = None
        self._journal = journal
        self._on_failure = on_failure
        self._thread = ThreadPoolExecutor(1, "kubesched-journal")
        self._pending: list[Entry] = []
        self._added = self._kept = 0
        self._writing: asyncio.Task[None] | None = None
        self._is_due = False

    def add(self, change: Change[StoredObject]) -> None:
        """Take a write; it goes to the disk soon, whether anybody waits for it or not."""
        plain = None if change.type is ChangeType.DELETED else change.value.plain
        self._pending.append(Entry(change.key, change.version, plain))
        self._added += 1
        if not self._is_due and self._writing is None:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._begin)

    async def flushed(self) -> None:
        """Return when everything taken so far is on the disk.

        Raises:
            JournalError: It never will be.
        """
        wanted = self._added
        while self._kept < wanted:
            if self.failure is not None:
                raise self.failure
            # One who is cancelled does not cancel what others wait for.
            await asyncio.shield(self._begin())

    def _begin(self) -> asyncio.Task[None]:
        self._is_due = False
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        return self._writing

    async def _write(self) -> None:
        entries, self._pending = self._pending, []
        loop = asyncio.get_running_loop()
        try:
            if entries and self.failure is None:
                await loop.run_in_executor(self._thread, self._journal.write, entries)
                self._kept += len(entries)
        except JournalError as error:
            self.failure = error
            self._on_failure(error)
        finally:
            self._writing = None
        if self._pending and self.failure is None:
            self._begin()

    async def close(self) -> None:
        """Keep what is left, and close the file; closing twice is fine."""
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
        """Go on with the objects of a file, or begin with those that every cluster has.

        Args:
            path: The file; made if there is none.
            arguments: As for `ApiServer`.
            on_failure: Told once if writes can no longer be kept.
            options: As for `ApiServer`.

        Raises:
            JournalError: The file cannot be used.
        """
        journal = Journal(path)
        try:
            super().__init__(*arguments, **options)
            self.is_restored = self._restore(journal)
        except BaseException:
            journal.close()
            raise
        self._commits = GroupCommit(journal, on_failure)
        self.registry.store.on_write = self._commits.add

    def _restore(self, journal: Journal) -> bool:
        """Take the objects of a file, or give it those that there are; return which."""
        store = self.registry.store
        objects, version = journal.load()
        if version:
            store.restore([(key, StoredObject(plain), own) for key, plain, own in objects], version)
            self.registry.follow_definitions()
            return True
        found = [Entry(key, own, stored.plain) for key, stored, own in store.everything()]
        journal.write(sorted(found, key=lambda entry: entry.version))
        return False

    async def handle(self, request: Request) -> Response:
        """Return the answer to a request, once all it may tell of is on the disk."""
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
