"""Recordings of `--record`, line by line.

Rejects:  files that are not a recording or are truncated, and lines that are not JSON, lack a field
          or contradict earlier ones; with file and line.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, Self

import msgspec

from kubesched.api.codec import DecodeError, UnknownKindError, decode_object
from kubesched.api.decode import STANDARD_INPUT, unpacked
from kubesched.api.meta import KubeObject
from kubesched.app.replay import RecordedEvent
from kubesched.inputs.errors import UserError
from kubesched.scheduler.decision_recorder import RECORDING_VERSION, LineType, RecordedLine

_NOT_ONE: Final = "it is not a recording; `kubesched shadow --record FILE` writes one"
_CUT_OFF: Final = 'the recording is cut off here; make this line {"type":"END","at":0} to replay it'
_CUT_OFF_GZIP: Final = (
    "the compressed recording is cut off here; `gzip -dc` unpacks what there is, and a replay of "
    "that tells how to end it"
)
_Key = tuple[type, str, str]


class RecordingInput:
    """A recording, whose first line is the header; to be used in a `with` statement.

    Attributes:
        decisions: The number of decisions that were read.
        skipped: The custom resources that no plugin has declared, as `Kind of apiVersion`.
    """

    def __init__(self, file: Path) -> None:
        """Open a file, which may be compressed with gzip; `-` is standard input.

        Raises UserError if it is not a recording, and OSError.
        """
        if file.is_dir():
            raise UserError(f"{file}: it is a directory; name the file of a recording")
        is_stdin = str(file) == STANDARD_INPUT
        self._name = "stdin" if is_stdin else str(file)
        if is_stdin or file.is_fifo():
            # Neither can be measured before it is read.
            self._file: BinaryIO = io.BytesIO(
                sys.stdin.buffer.read() if is_stdin else file.read_bytes()
            )
        else:
            self._file = file.open("rb")
        self._bytes = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        self._line = 0
        self._decode = msgspec.json.Decoder(RecordedLine).decode
        self._objects: dict[_Key, KubeObject] = {}
        self.decisions = 0
        self.skipped: dict[str, None] = {}
        try:
            self._lines = iter(unpacked(self._file))
            self.header = self._header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def share_read(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return self._file.tell() / self._bytes if self._bytes else 1.0

    def events(self) -> Iterator[tuple[float, RecordedEvent]]:
        """Yield what happened, in order, and when: seconds since the recording began.

        Raises UserError if a line is invalid, or the last one is missing.
        """
        while True:
            line = self._next()
            if line is None:
                self._fail(_CUT_OFF)
            if line.type is LineType.END:
                # Reading on checks the checksum of a compressed file.
                if self._next() is not None:
                    self._fail("a line follows the last one, which says END")
                return
            event = self._event(line)
            if event is not None:
                yield line.at, event
                self.decisions += line.type is LineType.DECIDED

    def _header(self) -> RecordedLine:
        found = self._next()
        if found is None:
            self._fail("it is empty")
        if found.type is not LineType.RECORDING or found.recorded_by is None:
            self._fail(_NOT_ONE)
        if found.version != RECORDING_VERSION:
            known = f"this kubesched reads version {RECORDING_VERSION}"
            self._fail(f"the recording has version {found.version}; {known}")
        return found

    def _next(self) -> RecordedLine | None:
        self._line += 1
        try:
            text = next(self._lines, None)
        except EOFError:
            self._fail(_CUT_OFF_GZIP)
        except (OSError, zlib.error) as error:
            self._fail(f"it cannot be read: {error}")
        if text is None:
            return None
        try:
            return self._decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if self._line == 1:
                self._fail(_NOT_ONE)
            if not isinstance(error, msgspec.ValidationError):
                self._fail(f"it is not JSON: {error}" if text.endswith(b"\n") else _CUT_OFF)
            self._fail(f"{str(error)[:1].lower()}{str(error)[1:]}")

    def _event(self, line: RecordedLine) -> RecordedEvent | None:
        """Return the event of a line; None for a custom resource that no plugin has declared."""
        match line.type:
            case LineType.ADDED | LineType.MODIFIED | LineType.DELETED:
                return self._object_event(line)
            case LineType.RECORDING:
                self._fail("a second recording begins; replay one at a time")
            case LineType.SYNCED:
                return lambda watch: watch.synced()
        decision = line.decision
        if decision is None:
            self._fail(f"{line.type} without `decision`")
        if line.type is LineType.UNDONE:
            return lambda watch: watch.undone(decision)
        return lambda watch: watch.decided(decision)

    def _object_event(self, line: RecordedLine) -> RecordedEvent | None:
        raw = bytes(line.object)
        if not raw:
            self._fail(f"{line.type} without `object`")
        try:
            item = decode_object(raw)
        except DecodeError as error:
            if isinstance(error, UnknownKindError) and "/" in error.api_version:
                self.skipped[f"{error.kind} of {error.api_version}"] = None
                return None
            self._fail(": ".join(filter(None, (error.object_name, error.path, error.problem))))
        metadata = item.metadata
        key = (type(item), metadata.namespace, metadata.name)
        old = self._objects.get(key)
        if (old is None) is not (line.type is LineType.ADDED):
            name = "/".join(filter(None, key[1:]))
            there = "is there already" if old is not None else "is not there"
            self._fail(f"{line.type}: {type(item).__name__} {name} {there}")
        if line.type is LineType.DELETED:
            del self._objects[key]
            is_known = not line.final_state_unknown
            return lambda watch: watch.deleted(item, is_final_state_known=is_known)
        self._objects[key] = item
        if old is None:
            return lambda watch: watch.added(item)
        return lambda watch: watch.updated(old, item)

    def _fail(self, problem: str) -> NoReturn:
        raise UserError(f"{self._name}: line {self._line}: {problem}")
