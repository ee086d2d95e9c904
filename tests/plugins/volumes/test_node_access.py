"""Which rows can use a volume."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.meta import LabelSelector, NodeSelector, TopologySelectorTerm
from kubesched.plugins.volumes.node_access import NodeAccess, label_terms
from kubesched.testing.builders import make_node, make_table
from tests.plugins.volume_objects import terms

values = st.sampled_from("abc")
labels = st.dictionaries(st.sampled_from("xy"), values, max_size=2)
term = st.dictionaries(st.sampled_from("xy"), st.lists(values, min_size=1, max_size=3), max_size=2)


@pytest.mark.slow
@given(st.lists(labels, max_size=8), st.lists(st.lists(term, max_size=2), max_size=30))
def test_selectors(
    nodes: list[dict[str, str]], selectors: list[list[dict[str, list[str]]]]
) -> None:
    """Rows and masks are those of the rule."""
    table = make_table([make_node(f"n{i}", labels=one) for i, one in enumerate(nodes)])
    access = NodeAccess(table)
    for any_of in selectors:
        selector = msgspec.convert(terms(*any_of), NodeSelector)
        expected = [
            row
            for row, has in enumerate(nodes)
            if any(t and all(has.get(key) in wanted for key, wanted in t.items()) for t in any_of)
        ]
        assert expected == access.of_terms(label_terms(selector)).tolist()
        assert expected == access.mask_of_selector(selector).nonzero()[0].tolist()
        topologies = msgspec.convert(
            [
                {"matchLabelExpressions": [{"key": k, "values": v} for k, v in t.items()]}
                for t in any_of
            ],
            tuple[TopologySelectorTerm, ...],
        )
        everywhere = list(range(len(nodes))) if not any_of else expected
        assert everywhere == access.of_topologies(topologies).tolist()


@given(st.lists(labels, max_size=6), labels, st.sampled_from(["In", "NotIn", "Exists", "Near"]))
def test_label_selectors(nodes: list[dict[str, str]], equal: dict[str, str], operator: str) -> None:
    """Label selectors match labels; a malformed one matches nothing."""
    wanted = {"In": ["a", "b"], "NotIn": ["a", "b"]}.get(operator, [])
    selector = msgspec.convert(
        {
            "matchLabels": equal,
            "matchExpressions": [{"key": "x", "operator": operator, "values": wanted}],
        },
        LabelSelector,
    )
    rules: dict[str, Callable[[dict[str, str]], bool]] = {
        "In": lambda has: has.get("x") in ("a", "b"),
        "NotIn": lambda has: has.get("x") not in ("a", "b"),
        "Exists": lambda has: "x" in has,
        "Near": lambda _: False,
    }
    rule = rules[operator]
    expected = [
        row
        for row, has in enumerate(nodes)
        if all(has.get(key) == text for key, text in equal.items()) and rule(has)
    ]
    access = NodeAccess(make_table([make_node(f"n{i}", labels=one) for i, one in enumerate(nodes)]))
    assert expected == access.of_labels(selector).tolist()
    assert [] == access.of_labels(None).tolist()
    assert list(range(len(nodes))) == access.of_labels(LabelSelector()).tolist()


def test_rows_of_several_values_are_ascending() -> None:
    """Values are in any order, may be repeated, and may be those of no node."""
    access = NodeAccess(
        make_table([make_node(f"n{i}", labels={"x": "ba"[i % 2]}) for i in range(4)])
    )
    for wanted, rows in (["a", "v"], [1, 3]), (["a", "b", "a"], [0, 1, 2, 3]), (["v"], []):
        selector = msgspec.convert(terms({"x": wanted}), NodeSelector)
        assert rows == access.of_terms(label_terms(selector)).tolist()
