"""kubectl's requests and output with our server equal those recorded with the real one."""

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
        return await conversation.replay(), conversation

    return run(hold())


def _now() -> datetime:
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


def test_the_table_lists_every_conversation() -> None:
    """And no other."""
    assert names() == sorted(TABLE)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_conversation_agrees(name: str) -> None:
    """Answers and output, with as many comparisons as the table says."""
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
def test_a_changed_record_is_a_difference(change: Callable[[Plain], object], noticed: str) -> None:
    """Of the right kind."""
    record = load("get-pods")
    change(record)
    differences, _ = _held(record)
    assert len(differences) >= 1
    assert all(noticed in one.what for one in differences)


def test_an_answer_longer_by_a_byte_differs() -> None:
    """In its size."""
    record = load("get-nodes")
    _request(record, "/nodes/n1")["response_bytes"] += 1
    _, held = _held(record)
    assert {"/api/v1/nodes/n1"} == held.other_sizes
