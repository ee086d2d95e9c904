"""Reports of a dry run: what happens when they cannot be written."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kubesched.cli.run import ReportWriter
from kubesched.client.connect import new_event_loop


def test_a_reader_that_went_is_noticed_at_the_next_report() -> None:
    """Nobody who reports is blamed: it is said once, and raised at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    said: list[str] = []
    output = os.fdopen(writing, "w", encoding="utf-8")
    reports = ReportWriter(output)
    reports.on_failure = lambda: said.append("failed")
    reports.check()
    reports.write({"action": "bind"})
    reports.write({"action": "bind"})
    assert ["failed"] == said
    with pytest.raises(BrokenPipeError):
        reports.check()
    with pytest.raises(BrokenPipeError):
        output.close()


def test_a_reader_that_goes_is_noticed_without_a_report() -> None:
    """As when `head` has had its line and nothing else is decided."""

    async def main() -> None:
        reading, writing = os.pipe()
        with os.fdopen(writing, "w", encoding="utf-8") as output:
            reports, failed = ReportWriter(output), asyncio.Event()
            reports.on_failure = failed.set
            reports.follow_reader()
            reports.write({"action": "bind"})
            await asyncio.sleep(0.01)
            assert not failed.is_set()
            assert b'{"action":"bind"}\n' == os.read(reading, 100)
            os.close(reading)
            async with asyncio.timeout(10):
                await failed.wait()
            with pytest.raises(BrokenPipeError):
                reports.check()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())


def test_a_file_has_no_reader_to_follow(tmp_path: Path) -> None:
    """Reports go there until the end."""

    async def main() -> None:
        with (tmp_path / "out").open("w", encoding="utf-8") as output:
            reports = ReportWriter(output)
            reports.follow_reader()
            reports.write({"a": 1})
            reports.check()

    asyncio.run(main())
    assert '{"a":1}\n' == (tmp_path / "out").read_text(encoding="utf-8")
