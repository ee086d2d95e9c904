"""`kubesched evaluate`: answers to recorded scenarios, or a comparison with the records.

Rejects:  empty files, and files that cannot be read or decompressed; lines before the error are
          answered.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from kubesched.api.decode import unpacked
from kubesched.cli.errors import EXIT_DIFFERENT, naming, write_errors
from kubesched.cli.files import check_inputs
from kubesched.cli.output import TextTable, Writer, write_line, writer
from kubesched.cli.streams import stdout
from kubesched.config.feature_gates import FeatureGates
from kubesched.inputs.errors import EXIT_INPUT, UserError
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import (
    AnsweredLine,
    Difference,
    Evaluator,
    answer_lines,
    differences,
)

_SUFFIXES: Final = (".gz", ".jsonl", ".json")
_SHOWN_CHARACTERS_MAX: Final = 300
_DIFFERENCES_PER_CASE_MAX: Final = 3
_CLUSTER_START: Final = re.compile(
    rb'\s*(?:---|#|(?:apiVersion|kind|items|- \w+):|\{\s*"(?:apiVersion|kind|items)"|[{\[]\s*$)'
)


def evaluate(files: Sequence[Path], feature_gates: str, check: bool, show: int) -> int:
    """Print the answers to scenarios, or compare them with the records; return the exit code.

    `show` is the number of differing cases to show per file.
    """
    evaluator = Evaluator(in_tree_registry(), FeatureGates.parse(feature_gates))
    if check:
        return _check_files(evaluator, files, show)
    check_inputs(files)
    return _print_answers(evaluator, files)


# Answers.


def _print_answers(evaluator: Evaluator, files: Sequence[Path]) -> int:
    """Write one line of JSON per scenario and return the exit code."""
    encoder = msgspec.json.Encoder()
    failed = False
    for file in files:
        for answered in _answered(evaluator, file):
            failed |= answered.is_error
            # Flushed at once: the writer of a pipe may be waiting for the answer.
            write_line(encoder.encode(answered.answer).decode())
            with naming("stdout"):
                stdout().flush()
    return EXIT_DIFFERENT if failed else 0


def _answered(evaluator: Evaluator, file: Path) -> Iterator[AnsweredLine]:
    is_empty = True
    with read_lines(file) as found:
        lines = iter(found)
        first = next(lines, b"").removeprefix(BOM_UTF8)
        if _CLUSTER_START.match(first):
            raise UserError(
                f"{_name_of(file)}: expected a scenario on each line, as `jq -c .` writes it, and "
                f"it begins like the objects of a cluster; `kubesched simulate {file}` reads these"
            )
        for answered in answer_lines(evaluator, chain([first], lines)):
            is_empty = False
            yield answered
    if is_empty:
        raise UserError(f"{_name_of(file)}: it is empty; expected a scenario on each line")


def _name_of(file: Path) -> str:
    return "stdin" if str(file) == "-" else str(file)


@contextmanager
def read_lines(file: Path) -> Iterator[Iterable[bytes]]:
    """Open a file or stdin, decompressing gzip; raises UserError if it cannot be read."""
    name = _name_of(file)
    try:
        if str(file) == "-":
            yield unpacked(sys.stdin.buffer)
        else:
            with file.open("rb") as stream:
                yield unpacked(stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{name}: it is not a complete gzip file: {error}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"{name}: it cannot be read: {error.strerror or error}") from error


# Checks.


class FamilyCheck(msgspec.Struct):
    """The comparison of one file with its records."""

    family: str
    cases: int = 0
    equal: int = 0
    different: int = 0
    errors: int = 0
    shown: list[tuple[AnsweredLine, list[Difference]]] = msgspec.field(default_factory=list)


def _check_files(evaluator: Evaluator, files: Sequence[Path], show: int) -> int:
    """Write the numbers of equal and different cases per file, and the first differences."""
    checks: list[FamilyCheck] = []
    unreadable = False
    for file in files:
        check = FamilyCheck(family_of(file))
        checks.append(check)
        try:
            for answered in _answered(evaluator, file):
                _count(check, answered, show)
        except UserError as error:
            write_errors(error.messages)
            unreadable = True
    _write_checks(writer(), checks)
    if unreadable:
        return EXIT_INPUT
    return EXIT_DIFFERENT if any(check.equal != check.cases for check in checks) else 0


def family_of(file: Path) -> str:
    """Return the file's name without its suffixes."""
    name = file.name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return "stdin" if name == "-" else name


def _count(check: FamilyCheck, answered: AnsweredLine, show: int) -> None:
    check.cases += 1
    if answered.is_error or answered.expected is None:
        check.errors += 1
        found = []
    else:
        found = list(differences(answered.expected, answered.answer))
        if not found:
            check.equal += 1
            return
        check.different += 1
    if len(check.shown) < show:
        check.shown.append((answered, found))


def _write_checks(out: Writer, checks: Sequence[FamilyCheck]) -> None:
    numbers = ("cases", "equal", "different", "errors")
    families = [check.family for check in checks]
    counts = [[getattr(check, number) for number in numbers] for check in checks]
    if len(checks) > 1:
        families.append("total")
        counts.append([sum(column) for column in zip(*counts, strict=True)])
    rows = [(name, *map(str, row)) for name, row in zip(families, counts, strict=True)]
    out.table(TextTable(("family", *numbers), rows, numbers), indent=0)
    for check in checks:
        for answered, found in check.shown:
            _write_case(out, check.family, answered, found)


def _write_case(
    out: Writer, family: str, answered: AnsweredLine, found: Sequence[Difference]
) -> None:
    out.heading(f"{family} line {answered.number}: {answered.name or '(no name)'}")
    if answered.is_error:
        out.line(f"error: {answered.answer['error']}", indent=2)
    elif answered.expected is None:
        out.line("error: the line has no `expected` to compare with", indent=2)
    for difference in found[:_DIFFERENCES_PER_CASE_MAX]:
        out.line(difference.path, indent=2)
        out.line(f"expected {_shortened(difference.expected)}", indent=4)
        out.line(f"got      {_shortened(difference.got)}", indent=4)
    out.rest(len(found) - _DIFFERENCES_PER_CASE_MAX, dim=True)


def _shortened(text: str) -> str:
    if len(text) <= _SHOWN_CHARACTERS_MAX:
        return text
    return f"{text[:_SHOWN_CHARACTERS_MAX]}…"
