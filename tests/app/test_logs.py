"""The forms of log lines, which are those of kube-scheduler 1.36, and verbosities."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubesched.app.logs import LogOptions, Logs, matches, parse_modules
from kubesched.framework.structured_log import (
    V0,
    V2,
    V3,
    V5,
    V10,
    ObjectRef,
    level_of,
    verbosity_of,
    write,
)

LOG = logging.getLogger("kubesched.app.test_logs")


@contextmanager
def logs(options: LogOptions) -> Iterator[tuple[Logs, io.StringIO]]:
    """Log to a StringIO."""
    stream = io.StringIO()
    started = Logs(options, stream, stream)
    started.start()
    try:
        yield started, stream
    finally:
        started.stop()


def written(level: int, message: str, form: str = "text", /, **fields: object) -> str:
    """Return the line of one message; in text without its header."""
    with logs(LogOptions(verbosity=10, logging_format=form)) as (_, stream):
        write(LOG, level, message, **fields)
    text = stream.getvalue()
    return text.partition("] ")[2] if form == "text" else text


def test_header_is_klogs() -> None:
    """Severity, month and day, time to the microsecond, process in seven places, file and line."""
    with logs(LogOptions()) as (_, stream):
        LOG.info("plain %d", 1)
        LOG.warning("careful")
        LOG.error("bad")
        write(LOG, V0, "structured")
    head = r"\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "
    lines = stream.getvalue().splitlines()
    expected = ("Iplain 1", "Wcareful", "Ebad", 'I"structured"')
    for text, line in zip(expected, lines, strict=True):
        assert re.fullmatch(text[0] + head + re.escape(text[1:]), line), line
        assert len(line.partition(" test_logs")[0]) == 21 + 1 + 7


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"pod": ObjectRef("p", "ns")}, ' pod="ns/p"', id="object"),
        pytest.param({"node": ObjectRef("n")}, ' node="n"', id="object without namespace"),
        pytest.param({"a": 'say "x"\t'}, ' a="say \\"x\\"\\t"', id="text"),
        pytest.param(
            {"n": 3, "f": 1.5, "b": True, "z": None}, " n=3 f=1.5 b=true z=null", id="simple"
        ),
        pytest.param({"l": ["a", "b"], "d": {"k": 1}}, ' l=["a","b"] d={"k":1}', id="structured"),
        pytest.param({"s": frozenset(("b", "a"))}, ' s={"a":{},"b":{}}', id="set"),
        pytest.param({"err": ValueError("oh")}, ' err="oh"', id="error"),
        pytest.param({"t": "a\n\nb\n"}, " t=<\n\ta\n\t\n\tb\n >", id="lines"),
        pytest.param({"t": "a\nb", "x": 1}, " t=<\n\ta\n\tb\n > x=1", id="lines and more"),
    ],
)
def test_fields_as_text(fields: dict[str, object], expected: str) -> None:
    """Values have klog's form."""
    assert f'"Said"{expected}\n' == written(V0, "Said", **fields)


def test_recorded_lines_of_kube_scheduler() -> None:
    """The same fields give the same line, without the header."""
    pod = ObjectRef.of("default/p2")
    line = written(
        V2, "Successfully bound pod to node", pod=pod, node="n1", evaluatedNodes=2, feasibleNodes=2
    )
    assert (
        '"Successfully bound pod to node" pod="default/p2" node="n1"'
        " evaluatedNodes=2 feasibleNodes=2\n"
    ) == line
    moved = written(
        V5,
        "Pod moved to an internal scheduling queue",
        pod=pod,
        event="UnschedulablePodAdd",
        queue="Active",
    )
    assert (
        '"Pod moved to an internal scheduling queue" pod="default/p2"'
        ' event="UnschedulablePodAdd" queue="Active"\n'
    ) == moved


def test_json_lines() -> None:
    """Time in milliseconds, caller, message, verbosity, then the fields; references are objects."""
    line = json.loads(written(V5, "Said", "json", pod=ObjectRef("p", "ns"), n=1, t="a\nb"))
    assert ["ts", "caller", "msg", "v", "pod", "n", "t"] == list(line)
    assert 1.6e12 < line["ts"] < 1e14
    assert re.fullmatch(r"app/test_logs\.py:\d+", line["caller"])
    assert {"name": "p", "namespace": "ns"} == line["pod"]
    assert ("Said", 5, 1, "a\nb") == (line["msg"], line["v"], line["n"], line["t"])
    failed = json.loads(written(logging.ERROR, "Failed", "json", err=ValueError("oh")))
    assert ("oh", False) == (failed["err"], "v" in failed)


@pytest.mark.parametrize("form", ["text", "json"])
def test_exceptions_have_their_stack(form: str, tmp_path: Path) -> None:
    """The exception is a field, and its stack trace is shown."""
    with logs(LogOptions(logging_format=form)) as (_, stream):
        try:
            (tmp_path / "none").read_text()
        except OSError:
            LOG.exception("Failed to %s", "go")
    text = stream.getvalue()
    assert ('"Failed to go" err="[Errno 2]' if form == "text" else '"err":"[Errno 2]') in text
    assert "in test_exceptions_have_their_stack" in text


@pytest.mark.parametrize(("verbosity", "wanted"), [(0, 1), (2, 2), (4, 3), (9, 4), (10, 5)])
def test_verbosity(verbosity: int, wanted: int) -> None:
    """Messages up to the verbosity are written."""
    with logs(LogOptions(verbosity=verbosity)) as (_, stream):
        for level in (V0, V2, V3, V5, V10):
            write(LOG, level, "x")
    assert wanted == stream.getvalue().count("\n")
    assert logging.DEBUG == V10 == level_of(10)
    assert (1, 10, 0) == (level_of(99), verbosity_of(V10), verbosity_of(logging.ERROR))


def test_verbosity_changes_while_running() -> None:
    """A changed verbosity applies at once, and is restored at the end."""
    before = logging.getLogger("kubesched").level
    with logs(LogOptions()) as (running, stream):
        write(LOG, V5, "unwanted")
        assert "successfully set klog.logging.verbosity to 5" == running.set_verbosity("5")
        write(LOG, V5, "wanted")
    assert 1 == stream.getvalue().count("\n")
    assert before == logging.getLogger("kubesched").level


def test_modules_have_verbosities_of_their_own() -> None:
    """The first matching pattern of `--vmodule` applies."""
    other = logging.getLogger("kubesched.queue.other")
    modules = parse_modules(["test_l*=3,other=0"])
    with logs(LogOptions(verbosity=2, modules=modules)) as (_, stream):
        for log in (LOG, other):
            write(log, V2, "two")
            write(log, V3, "three")
    assert 2 == stream.getvalue().count("\n")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("loop", True, id="last name"),
        pytest.param("lo?p", True, id="wildcard"),
        pytest.param("scheduler", False, id="room"),
        pytest.param("kubesched/scheduler/*", True, id="path"),
        pytest.param("kubesched.scheduler.loop", True, id="whole name"),
        pytest.param("*/queue/*", False, id="other path"),
    ],
)
def test_patterns_of_modules(pattern: str, expected: bool) -> None:
    """A pattern without a slash is matched with the last part of the name."""
    assert expected == matches(pattern, "kubesched.scheduler.loop")


@pytest.mark.parametrize("text", ["loop", "=3", "loop=x", "loop=-1", "loop=99999999999"])
def test_invalid_patterns(text: str) -> None:
    """A pattern needs a name and a number."""
    with pytest.raises(ValueError, match=r"pattern=N|parsing verbosity"):
        parse_modules([text])


def test_warnings_of_libraries_are_written() -> None:
    """Loggers of other packages use the same handler."""
    with logs(LogOptions()) as (_, stream):
        logging.getLogger("asyncio").warning("slow")
    assert stream.getvalue().endswith("] slow\n")


def test_streams_are_split_by_severity() -> None:
    """Errors go to the first stream, other messages to the second."""
    errors, information = io.StringIO(), io.StringIO()
    split = Logs(LogOptions(splits_stream=True), errors, information)
    split.start()
    LOG.info("fine")
    LOG.warning("careful")
    LOG.error("bad")
    split.stop()
    assert ["bad"] == [line.partition("] ")[2] for line in errors.getvalue().splitlines()]
    others = [line.partition("] ")[2] for line in information.getvalue().splitlines()]
    assert ["fine", "careful"] == others
