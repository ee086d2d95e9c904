"""Files of the command line: inputs are checked before any is read, outputs are written whole.

Rejects:  as outputs: `-`, because stdout has the report; directories; files that are inputs; one
          file for two options.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from kubesched.api.decode import STANDARD_INPUT, files_in
from kubesched.cli.errors import naming, printable
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import read_problem


def check_inputs(files: Iterable[Path | None]) -> None:
    """Check that files and directories can be read, except None, and `-` once; raises UserError."""
    given = [*files]
    if given.count(Path(STANDARD_INPUT)) > 1:
        raise UserError("`-` is given twice, but standard input can be read only once")
    messages = [
        f"{file}: {problem}"
        for file in dict.fromkeys(given)
        if file is not None and (problem := read_problem(file))
    ]
    if messages:
        raise UserError(*messages)


def short_names(files: Iterable[Path]) -> list[str]:
    """Return short, distinct names of files."""
    paths = [str(file) for file in files]
    stems = [Path(path.removesuffix(".gz")).stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    return [f"{name} ({i})" if paths.count(name) > 1 else name for i, name in enumerate(paths, 1)]


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Check, before the simulation runs, that output files can be written and are not inputs.

    The files are given by the options that name them. Raises UserError with one line for each that
    cannot, and DecodeError if a directory cannot be read.
    """
    given = {flag: file for flag, file in outputs.items() if file is not None}
    read = [
        file
        for path in inputs
        if path is not None and str(path) != STANDARD_INPUT
        for file in files_in(path)
    ]
    messages: list[str] = []
    before: dict[str, Path] = {}
    for flag, file in given.items():
        problem = _write_problem(file) or _clash(file, before, read)
        if problem:
            messages.append(f"{flag} {file}: {problem}")
        before[flag] = file
    if messages:
        raise UserError(*messages)


def _write_problem(file: Path) -> str:
    if str(file) == "-":
        return "stdout has the report; name a file"
    if not file.parent.is_dir():
        return f"there is no directory {file.parent}"
    if file.is_dir():
        return "this is a directory; name a file"
    # A file is written beside the old one, then renamed.
    is_writable = os.access(file if _is_device(file) else file.resolve().parent, os.W_OK)
    return "" if is_writable else f"it cannot be written: {os.strerror(errno.EACCES)}"


def _clash(file: Path, before: Mapping[str, Path], read: Iterable[Path]) -> str:
    if _is_device(file):
        return ""
    for other in read:
        if _is_same(file, other):
            return f"this would overwrite {other}, which is read; name another file"
    for flag, other in before.items():
        if _is_same(file, other):
            return f"this is the file of {flag} {other}; name another"
    return ""


def _is_device(file: Path) -> bool:
    """Whether the file exists and is not a regular file."""
    return file.exists() and not file.is_file()


def _is_same(file: Path, other: Path) -> bool:
    try:
        return file.samefile(other)
    except OSError:
        return file.resolve() == other.resolve()


@contextmanager
def replacing(file: Path, *, keeps_part: bool) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes a new version of a file, which replaces it on success.

    On failure the file remains unchanged; with `keeps_part`, the incomplete version is kept as
    FILE.partial. Devices and pipes are written directly.
    """
    is_device = _is_device(file)
    target = file.resolve()
    beside = file if is_device else target.with_name(f"{target.name}.partial")
    stream = beside.open("wb")

    def write(part: bytes) -> None:
        with naming(str(file)):
            stream.write(part)

    try:
        try:
            yield write
        finally:
            with naming(str(file)):
                stream.close()
    except BaseException:
        if not is_device:
            _leave(file, beside, keeps_part=keeps_part)
        raise
    if not is_device:
        beside.replace(target)


def _leave(file: Path, beside: Path, *, keeps_part: bool) -> None:
    if not keeps_part or not beside.stat().st_size:
        beside.unlink()
        return
    text = f"{file} is not written; {beside} has the part until then"
    click.echo(f"kubesched: {printable(text)}", err=True)


def write_file(file: Path, data: bytes) -> None:
    """Replace a file as a whole, or leave it unchanged; raises OSError with its name."""
    with replacing(file, keeps_part=False) as write:
        write(data)
