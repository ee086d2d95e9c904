"""What kubectl asks and prints is the same with our server as it was with the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

import pytest

from kubesched.apiserver.server import ApiServer
from kubesched.simulator.virtual_loop import run
from tests.contract.placeholders import EPOCH

from .conversing import Conversation, load, names
from .printing import Plain
from .table import DIFFERENCES, OTHER_SIZES, TABLE, Compared, Difference


def _held(record: Plain) -> tuple[list[Difference], Conversation]:
    async def hold() -> tuple[list[Difference], Conversation]:
        server = ApiServer(now=_now, random=Random(1))
        conversation = Conversation(record, server, _now)
        return await conversation.hold(), conversation

    return run(hold())


def _now() -> datetime:
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


def test_the_table_is_complete() -> None:
    """Every conversation stands in the table, and nothing else does."""
    assert names() == sorted(TABLE)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_conversation(name: str) -> None:
    """Answers and what is printed of them agree, and as many are compared as the table says."""
    differences, held = _held(load(name))
    assert DIFFERENCES.get(name, []) == differences
    assert TABLE[name] == Compared(held.requests, held.outputs)
    assert set(OTHER_SIZES.get(name, {})) == held.other_sizes


def _request(record: Plain, path: str) -> Plain:
    requests = (one for each in record["commands"] for one in each["requests"])
    found: Plain = next(one for one in requests if one["path"].endswith(path))
    return found


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        pytest.param(lambda r: _request(r, "/pods").update(status=404), "status", id="status"),
        pytest.param(
            lambda r: _request(r, "/pods").update(response_content_type="text/plain"),
            "type",
            id="type",
        ),
        pytest.param(
            lambda r: _request(r, "/nosuch")["response"].update(message="?"), "response", id="error"
        ),
        pytest.param(
            lambda r: r["commands"][0].update(stdout=r["commands"][0]["stdout"] + "p9  1/1\n"),
            "stdout",
            id="row",
        ),
        pytest.param(
            lambda r: r["commands"][1].update(stdout=r["commands"][1]["stdout"].replace("R", "?")),
            "stdout",
            id="cell",
        ),
        pytest.param(
            lambda r: r["commands"][8].update(stdout=r["commands"][8]["stdout"].replace("Al", "?")),
            "stdout",
            id="object",
        ),
    ],
)
def test_differences_are_noticed(change: Callable[[Plain], object], noticed: str) -> None:
    """A change of the record is told as a difference of that kind."""
    record = load("get-pods")
    change(record)
    differences, _ = _held(record)
    assert len(differences) >= 1
    assert all(noticed in one.what for one in differences)


def test_sizes_are_noticed() -> None:
    """An answer that is a byte longer has another size."""
    record = load("get-nodes")
    _request(record, "/nodes/n1")["response_bytes"] += 1
    _, held = _held(record)
    assert {"/api/v1/nodes/n1"} == held.other_sizes
