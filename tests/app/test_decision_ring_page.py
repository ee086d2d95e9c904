"""Queries of /debug/decisions and their responses."""

from __future__ import annotations

import json

import pytest

from kubesched.app.decision_ring import DecisionQuery, decision_page
from kubesched.app.http_exchange import HttpRequest, HttpResponse
from kubesched.explain.decision_records import DecisionRecords


def ask(query: str) -> tuple[HttpResponse, list[DecisionQuery]]:
    """Return the response to a query, and the query as it was parsed, if it was."""
    parsed: list[DecisionQuery] = []

    def read(given: DecisionQuery) -> DecisionRecords:
        parsed.append(given)
        return DecisionRecords(leads=True, capacity=5, recorded=7)

    path = "/debug/decisions"
    return decision_page(HttpRequest(path=path, target=f"{path}{query}"), read), parsed


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", DecisionQuery(), id="all"),
        pytest.param("?limit=3", DecisionQuery(limit=3), id="limit"),
        pytest.param("?node=n1", DecisionQuery(node="n1"), id="node"),
        pytest.param("?pod=a/b", DecisionQuery(pod="a/b"), id="pod"),
        pytest.param("?pod=a%2Fb&limit=", DecisionQuery(pod="a/b"), id="escaped"),
    ],
)
def test_queries(query: str, expected: DecisionQuery) -> None:
    """The document has its kind and the records' numbers."""
    response, parsed = ask(query)
    assert [expected] == parsed
    assert (200, "application/json") == (response.status, response.content_type)
    assert json.loads(response.body) == {
        "apiVersion": "kubesched.dev/v1",
        "kind": "DecisionRecords",
        "leads": True,
        "capacity": 5,
        "recorded": 7,
        "records": [],
        "queue": None,
    }


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?pod=web", "pod=web: write NAMESPACE/NAME\n"),
        ("?pod=shop/", "pod=shop/: write NAMESPACE/NAME\n"),
        ("?limit=0", "limit=0: write a number from 1\n"),
        ("?limit=-1", "limit=-1: write a number from 1\n"),
        ("?limit=x", "limit=x: write a number from 1\n"),
    ],
)
def test_invalid_queries(query: str, message: str) -> None:
    """The message names the parameter and what to write."""
    response, parsed = ask(query)
    assert (400, message.encode()) == (response.status, response.body)
    assert [] == parsed
