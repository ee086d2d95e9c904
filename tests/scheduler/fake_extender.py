"""FakeExtender is an HTTP extender in memory: no sockets, scripted answers.

extender = FakeExtender({"filter": lambda asked: {"NodeNames": asked["NodeNames"][:1]}})
connect = {"http://here": extender}.__getitem__     # by urlPrefix, as the scheduler asks
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from kubesched.config.types import ExtenderConfiguration
from kubesched.scheduler.extenders import Extenders

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


def keep(*names: str, **failed: str) -> dict[str, object]:
    """Answer a filter request with the nodes to keep and the reasons of others."""
    return {"NodeNames": list(names), "FailedNodes": failed}


def nodes(*names: str) -> dict[str, object]:
    """Answer a filter request with nodes, as an extender without a cache does."""
    return {"Nodes": {"items": [{"metadata": {"name": name}} for name in names]}}


def rate(**amounts: int) -> list[dict[str, object]]:
    """Answer a prioritize request."""
    return [{"Host": name, "Score": score} for name, score in amounts.items()]


def extenders_of(*scripts: tuple[FakeExtender, Mapping[str, Any]]) -> Extenders:
    """Make extenders with the verbs of their scripts and further fields; their URLs are numbers."""
    fakes = {f"http://{at}": fake for at, (fake, _) in enumerate(scripts)}
    configurations = []
    for url, (fake, fields) in zip(fakes, scripts, strict=True):
        verbs = {f"{verb}_verb": verb for verb in fake.answers}
        known = {"url_prefix": url, "node_cache_capable": True, "weight": 1}
        configurations.append(ExtenderConfiguration(**{**known, **verbs, **fields}))
    return Extenders(configurations, lambda found: fakes[found.url_prefix])
