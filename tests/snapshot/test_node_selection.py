from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.meta import NodeSelector
from kubesched.api.selectors import matches_node_selector
from kubesched.snapshot.node_selection import (
    match_node_selector,
    match_node_selector_term,
    match_required_node_affinity,
)
from kubesched.testing.builders import make_node, make_pod_info, make_table

Json: TypeAlias = "dict[str, object]"
Labels: TypeAlias = "dict[str, str]"

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near")
LABEL_VALUES = ("", "a", "b", "3", "07", "-5", "9223372036854775808")
VALUES = ("", "a", "b", "3", "7", "+4", "not valid", "9223372036854775808")

requirements = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["x", "y", "example.com/z", "not valid"]),
        "operator": st.sampled_from(OPERATORS[:-1] * 3 + OPERATORS),
        "values": st.lists(st.sampled_from(VALUES), max_size=3),
    }
)
fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
        "operator": st.sampled_from(["In", "In", "NotIn", "Exists"]),
        "values": st.lists(st.sampled_from(["node-0", "node-1", "nowhere", ""]), max_size=2),
    }
)
terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(requirements, max_size=2),
        "matchFields": st.one_of(st.just([]), st.lists(fields, max_size=2)),
    }
)
node_labels = st.lists(
    st.dictionaries(st.sampled_from(["x", "y", "example.com/z"]), st.sampled_from(LABEL_VALUES)),
    max_size=6,
)


def integer(text: str) -> int | None:
    """Parse a number as Go does."""
    if not re.fullmatch(r"[+-]?[0-9]+", text) or not -(2**63) <= int(text) < 2**63:
        return None
    return int(text)


def is_well_formed(requirement: Json) -> bool:
    """Whether upstream can parse the requirement."""
    key, operator, values = requirement["key"], requirement["operator"], requirement["values"]
    assert isinstance(values, list)
    counts = {
        "In": bool(values),
        "NotIn": bool(values),
        "Exists": not values,
        "DoesNotExist": not values,
        "Gt": len(values) == 1 and integer(values[0]) is not None,
        "Lt": len(values) == 1 and integer(values[0]) is not None,
    }
    labels = all(re.fullmatch(r"([A-Za-z0-9]([-\w.]*[A-Za-z0-9])?)?", value) for value in values)
    return key != "not valid" and counts.get(str(operator), False) and labels


def holds(requirement: Json, labels: Labels) -> bool:
    """Match one expression against one node."""
    label, values = labels.get(str(requirement["key"])), requirement["values"]
    assert isinstance(values, list)
    match requirement["operator"]:
        case "In":
            return label is not None and label in values
        case "NotIn":
            return label is None or label not in values
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
    number, bound = integer(label or ""), integer(values[0])
    if number is None or bound is None:
        return False
    return number > bound if requirement["operator"] == "Gt" else number < bound


def field_holds(requirement: Json, name: str) -> bool:
    """Match one field against one node."""
    value = name if requirement["key"] == "metadata.name" else ""
    return ([value] == requirement["values"]) == (requirement["operator"] == "In")


def term_matches(term: Mapping[str, list[Json]], labels: Labels, name: str) -> bool:
    """Match a term against one node, by the specification."""
    expressions, named = term["matchExpressions"], term["matchFields"]
    if not expressions and not named:
        return False
    if not all(is_well_formed(one) for one in expressions):
        return False
    for one in named:
        values = one["values"]
        assert isinstance(values, list)
        if one["operator"] not in {"In", "NotIn"} or len(values) != 1:
            return False
    return all(holds(one, labels) for one in expressions) and all(
        field_holds(one, name) for one in named
    )


@pytest.mark.slow
@given(node_labels, st.lists(terms, max_size=3), st.data())
@settings(max_examples=400, deadline=None)
def test_columns_equal_the_specification(
    labels: list[Labels], written: list[dict[str, list[Json]]], data: st.DataObject
) -> None:
    """Columns, the single-node matcher, a selection of rows and the specification agree."""
    table = make_table(make_node(f"node-{row}", labels=each) for row, each in enumerate(labels))
    selector = msgspec.convert({"nodeSelectorTerms": written}, NodeSelector)
    matched = match_node_selector(selector, table)
    expected = [
        any(term_matches(term, each, f"node-{row}") for term in written)
        for row, each in enumerate(labels)
    ]
    assert expected == matched.tolist()
    assert expected == [
        matches_node_selector(selector, each, f"node-{row}") for row, each in enumerate(labels)
    ]
    rows = data.draw(st.lists(st.integers(0, len(labels) - 1), unique=True)) if labels else []
    chosen = table.take(np.array(rows, np.intp))
    assert [expected[row] for row in rows] == match_node_selector(selector, chosen).tolist()
    for term, parsed in zip(written, selector.node_selector_terms, strict=True):
        assert [term_matches(term, each, f"node-{row}") for row, each in enumerate(labels)] == (
            match_node_selector_term(parsed, table).tolist()
        )


LABELS = {"x": "a", "y": "7"}
A_IS_X = {"matchExpressions": [{"key": "x", "operator": "In", "values": ["a"]}]}
INVALID = {"matchExpressions": [{"key": "x", "operator": "In"}]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, True, id="no-selector"),
        pytest.param({"node_selector": {}}, True, id="empty-selector"),
        pytest.param({"node_selector": {"x": "a", "y": "7"}}, True, id="all-labels"),
        pytest.param({"node_selector": {"x": "a", "z": ""}}, False, id="absent-is-not-empty"),
        pytest.param({"node_selector": {"not valid": "a"}}, False, id="selector-is-not-parsed"),
        pytest.param({"terms": []}, False, id="no-terms"),
        pytest.param({"terms": [{}]}, False, id="empty-term"),
        pytest.param({"terms": [{}, A_IS_X]}, True, id="empty-terms-are-dropped"),
        pytest.param({"terms": [INVALID]}, False, id="invalid-term"),
        pytest.param({"terms": [INVALID, A_IS_X]}, True, id="invalid-terms-are-skipped"),
        pytest.param({"node_selector": {"x": "b"}, "terms": [A_IS_X]}, False, id="both-count"),
        pytest.param({"node_selector": {"x": "a"}, "terms": [A_IS_X]}, True, id="both-hold"),
    ],
)
def test_required_node_affinity(fields: Json, expected: bool) -> None:
    """The node selector and the required affinity must both match."""
    affinity = None
    if "terms" in fields:
        terms_ = {"nodeSelectorTerms": fields["terms"]}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms_}
    selector = fields.get("node_selector")
    assert selector is None or isinstance(selector, dict)
    pod = make_pod_info(node_selector=selector, node_affinity=affinity)
    table = make_table([make_node(labels=LABELS)])
    assert [expected] == match_required_node_affinity(pod, table).tolist()


def test_many_values() -> None:
    """A long list of values gives the same result as a short one."""
    values = [f"v{number}" for number in range(0, 100, 2)]
    term = {"matchExpressions": [{"key": "x", "operator": "In", "values": values}]}
    selector = msgspec.convert({"nodeSelectorTerms": [term]}, NodeSelector)
    table = make_table(make_node(f"n{at}", labels={"x": f"v{at}"}) for at in range(100))
    assert [at % 2 == 0 for at in range(100)] == match_node_selector(selector, table).tolist()
