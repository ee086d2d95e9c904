"""FakeExtender is an HTTP extender in memory: no sockets, answers from a script.

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
        url: Where it went.
        question: The decoded body.
        timeout_seconds: How long the scheduler would wait.
    """

    verb: str
    url: str
    question: Question
    timeout_seconds: float


class FakeExtender:
    """A transport that ends in a script instead of a server.

    Attributes:
        answers: Verb -> the answer: a value that becomes JSON, bytes as they are, an int that is
            an HTTP status, an exception to raise, or a function of the question, perhaps async,
            that returns one of these. A verb that is missing is not found (404).
        asked: The requests so far.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.asked: list[Asked] = []

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """Answer from the script."""
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
        """What it was asked, in order."""
        return [asked.verb for asked in self.asked]
