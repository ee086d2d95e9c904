"""The finished runs of a sweep, in a file to which each is appended as it ends.

A process that is killed while it writes leaves an incomplete line, which is ignored. A run counts
as finished as long as nothing that it depends on has another digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from kubesched.inputs.errors import UserError
from kubesched.sweep.plan import SweepRun
from kubesched.sweep.running import SweepOutcome
from kubesched.sweep.spec import Scalar


class _Line(msgspec.Struct, frozen=True):
    """A finished run.

    Attributes:
        key: What tells it apart.
        digests: What it depended on.
        outcome: What came of it.
    """

    key: tuple[Scalar, ...]
    digests: dict[str, str]
    outcome: SweepOutcome


class SweepJournal:
    """Keeps the outcomes of finished runs."""

    def __init__(self, file: Path) -> None:
        """Read what is there.

        Raises:
            UserError: The file is something else.
            OSError: It cannot be read.
        """
        self._file = file
        self._lines: dict[tuple[Scalar, ...], _Line] = {}
        data = file.read_bytes() if file.exists() else b""
        *whole, rest = data.split(b"\n")
        decoder = msgspec.json.Decoder(_Line)
        for text in whole:
            with suppress(msgspec.MsgspecError):
                line = decoder.decode(text)
                self._lines[line.key] = line
        if whole and not self._lines:
            words = "it has no finished runs of a sweep; remove it, or name another file with -o"
            raise UserError(f"{file}: {words}")
        self._is_cut_off = bool(rest)

    def outcome(self, run: SweepRun) -> SweepOutcome | None:
        """Return the outcome of a run, or None if it is not finished."""
        line = self._lines.get(run.key)
        return line.outcome if line and line.digests == run.cell.digests else None

    def changed(self, runs: Iterable[SweepRun]) -> dict[str, int]:
        """Return what has changed since runs finished, with the number of these runs."""
        found: Counter[str] = Counter()
        for run in runs:
            line = self._lines.get(run.key)
            if line is not None:
                own = run.cell.digests
                names = own.keys() | line.digests.keys()
                found.update(name for name in names if own.get(name) != line.digests.get(name))
        return dict(sorted(found.items()))

    def add(self, run: SweepRun, outcome: SweepOutcome) -> None:
        """Append a finished run.

        Raises:
            OSError: The file cannot be written.
        """
        line = _Line(run.key, run.cell.digests, outcome)
        self._lines[line.key] = line
        with self._file.open("ab") as stream:
            # What was cut off becomes a line of its own.
            stream.write(b"\n" * self._is_cut_off + msgspec.json.encode(line) + b"\n")
        self._is_cut_off = False
