"""FakeExtender is an HTTP extender in memory: no sockets, scripted answers.

extender = FakeExtender({"filter": lambda asked: {"NodeNames": asked["NodeNames"][:1]}})
connect = {"http://here": extender}.__getitem__     # by urlPrefix, as the scheduler asks
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

Question: TypeAlias = "dict[str, Any]"
Answer: TypeAlias = "object | Callable[[Question], object | Awaitable[object]]"


class Asked(NamedTuple):
    """One request.

    Attributes:
        verb: The last part of its path.
        url: Its URL.
        question: The decoded body.
        timeout_seconds: The scheduler's timeout.
    """

    verb: str
    url: str
    question: Question
    timeout_seconds: float


class FakeExtender:
    """An extender transport with scripted answers.

    Attributes:
        answers: Verb -> answer: a value to encode as JSON, bytes to return unchanged, an int as
            HTTP status, an exception to raise, or a function of the question, optionally async,
            that returns one of these. Other verbs get a 404.
        asked: The requests so far.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.asked: list[Asked] = []

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """Return the status and body of the scripted answer."""
        verb = url.rpartition("/")[2]
        question = json.loads(body)
        self.asked.append(Asked(verb, url, question, timeout_seconds))
        answer = self.answers.get(verb, 404)
        if callable(answer):
            answer = answer(question)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            return answer, b""
        return 200, answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    @property
    def verbs(self) -> list[str]:
        """The verbs of all requests, in order."""
        return [asked.verb for asked in self.asked]
