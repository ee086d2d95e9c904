"""What kube-scheduler 1.36 sent in the recorded scenarios, but for reads and leases."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet

from kubesched.client.requests import Request

Plain = dict[str, Any]

_FILE: Final = Path(__file__).parent / "data" / "recorded_writes.json.gz"


@cache
def recorded_writes() -> dict[str, list[Plain]]:
    """Return the requests of each scenario, in the order of their arrival."""
    writes: dict[str, list[Plain]] = json.loads(gzip.decompress(_FILE.read_bytes()))
    return writes


def recorded_cases(is_chosen: Callable[[Plain], object]) -> list[ParameterSet]:
    """Return the chosen requests as parameters of a test, each with its scenario."""
    return [
        pytest.param(write, id=f"{name}-{at}")
        for name, writes in recorded_writes().items()
        for at, write in enumerate(writes)
        if is_chosen(write)
    ]


class Answering:
    """A server with a list of responses, which records the requests.

    Attributes:
        sent: The requests.
        answers: Bodies, objects, or errors to raise; b"{}" when there are none left.
    """

    def __init__(self, *answers: bytes | Plain | Exception) -> None:
        self.sent: list[Request] = []
        self.answers = list(answers)

    async def send(self, request: Request) -> bytes:
        """Keep the request and answer."""
        self.sent.append(request)
        answer = self.answers.pop(0) if self.answers else b"{}"
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def stream(self, request: Request) -> Any:
        """Not used."""
        raise AssertionError(request)

    @property
    def in_short(self) -> list[tuple[str, str, Any]]:
        """Method, path and body of each request."""
        return [
            (request.method, request.path, json.loads(request.body) if request.body else None)
            for request in self.sent
        ]
