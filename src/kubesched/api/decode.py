"""Loading of objects from files and directories: JSON, YAML, JSON lines, optionally gzipped.

Upstream: kubectl's reading of files: cli-runtime/pkg/resource (v1.36)
Rejects:  empty files, which a failed command leaves behind.
Differs:  directories are always read recursively, in order of names, without hidden files;
          upstream accepts an empty file next to others.
"""

import codecs
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import msgspec

from kubesched.api.codec import (
    DecodeError,
    Loaded,
    Skipped,
    Source,
    empty_error,
    json_error,
    objects_in,
    yaml_objects,
)

STANDARD_INPUT: Final = "-"
_SUFFIXES: Final = (".json", ".yaml", ".yml", ".jsonl")
_LISTED_SUFFIXES: Final = f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
_YAML_START: Final = re.compile(rb"\s*(?:#|---|-\s|[A-Za-z]\w*:)")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_TRAILING: Final = "trailing characters"
_LOGS: Final = re.compile(
    rb"^==== START logs for container [^\n]*\n.*?==== END logs for container [^\n]*$",
    re.MULTILINE | re.DOTALL,
)
"""The logs of a container in the output of `kubectl cluster-info dump`."""


def load(
    paths: Iterable[str | Path],
    skipped: Skipped | None = None,
    *,
    namespace: str = "default",
) -> Iterator[Loaded]:
    """Yield the objects of files and, recursively, of directories; `-` is standard input.

    The files of a directory are read in the order of their names. `skipped` counts the
    `apiVersion/Kind` of objects of unknown kinds, and of empty lists of one kind. Namespaced
    objects that name no namespace get the given one. Raises DecodeError if a file cannot be read,
    or something in it cannot be decoded.
    """
    skipped = Skipped() if skipped is None else skipped
    for path in paths:
        if str(path) == STANDARD_INPUT:
            data = sys.stdin.buffer.read()
            yield from load_bytes(data, STANDARD_INPUT, skipped, namespace=namespace)
            continue
        files = files_in(Path(path))
        if not files:
            raise DecodeError(Source(str(path), 0), f"no file in it ends in {_LISTED_SUFFIXES}")
        for file in files:
            yield from load_bytes(_read(file), str(file), skipped, namespace=namespace)


def files_in(path: Path) -> list[Path]:
    """Return the files to read for a path: itself, or those of a directory, in order.

    Raises DecodeError if a directory cannot be read.
    """
    if not path.is_dir():
        return [path]
    found = []
    try:
        for entry in sorted(path.iterdir()):
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                # A link could lead to a parent directory, and recursion would never end.
                found += [] if entry.is_symlink() else files_in(entry)
            elif entry.name.removesuffix(".gz").endswith(_SUFFIXES):
                found.append(entry)
    except OSError as error:
        raise DecodeError(Source(str(path), 0), f"it cannot be read: {error.strerror}") from None
    return found


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DecodeError(Source(str(file), 0), f"it cannot be read: {reason}") from None


def decompressed(data: bytes, file: str) -> bytes:
    """Return a file's content, decompressed if it is gzip; raises DecodeError if it is damaged."""
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DecodeError(Source(file, 0), f"it is not gzip: {error}") from None


def unpacked(stream: BinaryIO) -> BinaryIO:
    """Return a stream at its beginning, or one that decompresses it if it is gzip."""
    if not hasattr(stream, "peek"):
        stream = io.BufferedReader(cast("io.RawIOBase", stream))
    is_gzip = cast("io.BufferedReader", stream).peek(2)[:2] == _GZIP_MAGIC
    return cast("BinaryIO", gzip.GzipFile(fileobj=stream)) if is_gzip else stream


def load_bytes(
    data: bytes, file: str, skipped: Skipped, *, namespace: str = "default"
) -> Iterator[Loaded]:
    """Yield the objects of a file's content; the arguments are those of `load`."""
    data = content_of(data, file)
    name = file.removesuffix(".gz")
    is_json = name.endswith((".json", ".jsonl"))
    if not is_json and data[:256].lstrip()[:1] not in (b"{", b"["):
        yield from yaml_objects(data.decode(), file, skipped, namespace=namespace)
        return
    parts: Iterable[Any] = _json_documents(data, file)
    if not is_json:
        try:
            # Parsing as JSON, if that is possible, is many times faster than as YAML.
            parts = list(parts)
        except DecodeError:
            yield from yaml_objects(data.decode(), file, skipped, namespace=namespace)
            return
    for number, part in enumerate(parts, 1):
        yield from objects_in(part, Source(file, number), skipped, namespace=namespace)


def _json_documents(data: bytes, file: str) -> Iterator[Any]:
    """Yield the values of JSON text: a single one, one per line, or concatenated ones."""
    if not data.strip():
        raise empty_error(file)
    if _YAML_START.match(data):
        raise DecodeError(Source(file, 0), "it is not JSON; if it is YAML, end its name in .yaml")
    try:
        whole = msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        if _TRAILING not in str(error):
            raise json_error(error, data, Source(file)) from None
        yield from _several_documents(data, file)
    except RecursionError:
        raise DecodeError(Source(file), "it is nested too deeply") from None
    else:
        yield _object_or_array(whole, Source(file))


def _several_documents(data: bytes, file: str) -> Iterator[Any]:
    at = 0
    number = 1
    while at < len(data):
        end = data.find(b"\n", at)
        line = data[at:] if end < 0 else data[at:end]
        if not line.strip():
            at += len(line) + 1
            continue
        value = _line_value(line)
        if value is None:
            # Not one per line: parse the rest as concatenated values.
            rest = _without_logs(data[at:]).decode()
            yield from _concatenated(rest, file, number, data.count(b"\n", 0, at))
            return
        yield _object_or_array(value, Source(file, number))
        at += len(line) + 1
        number += 1


def _without_logs(data: bytes) -> bytes:
    """Return the text with the lines of containers' logs left empty."""
    return _LOGS.sub(lambda logs: b"\n" * logs[0].count(b"\n"), data)


def _line_value(line: bytes) -> msgspec.Raw | None:
    try:
        return msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _concatenated(text: str, file: str, number: int, lines: int) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        source = Source(file, number)
        try:
            _, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            message = error.msg.removesuffix(" at")
            where = f"{message} at line {lines + error.lineno}, column {error.colno}"
            raise DecodeError(source, f"it is not JSON: {where}") from None
        except (RecursionError, ValueError) as error:
            raise DecodeError(source, f"it cannot be read: {error}") from None
        yield _object_or_array(text[at:end].encode(), source)
        at = end
        number += 1


def _object_or_array(value: bytes | msgspec.Raw, source: Source) -> bytes | msgspec.Raw:
    if bytes(memoryview(value)[:64]).lstrip()[:1] not in (b"{", b"["):
        raise DecodeError(source, "expected `object`, got another JSON value", path="$")
    return value


def content_of(data: bytes, file: str) -> bytes:
    """Return a file's text, decompressed, in UTF-8 and without a byte order mark.

    UTF-16, which PowerShell writes, is recognized by its mark. Raises DecodeError.
    """
    data, source = decompressed(data, file), Source(file, 0)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError as error:
            raise DecodeError(source, f"it is not UTF-16: {error}") from None
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError as error:
        reason = f"{error.reason} (byte {error.start})"
        remedy = "of compressed files, only gzip can be read"
        raise DecodeError(source, f"it is not UTF-8: {reason}; {remedy}") from None
    return data
