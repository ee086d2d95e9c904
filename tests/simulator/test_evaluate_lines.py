"""Scenarios line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import Evaluator, answer_lines

EVALUATOR = Evaluator(in_tree_registry(), FeatureGates())
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}}
SCENARIO = {"name": "s", "pod": POD}


def test_lines_are_answered_one_by_one() -> None:
    """Each answer is returned before the next line is read."""
    asked: list[int] = []

    def lines() -> Iterator[bytes]:
        for number in (1, 2):
            asked.append(number)
            yield json.dumps(SCENARIO).encode()

    answers = answer_lines(EVALUATOR, lines())
    assert next(answers).answer["name"] == "s"
    assert asked == [1]


def test_blank_lines_are_counted_and_not_answered() -> None:
    """Line numbers are those of the file."""
    found = list(answer_lines(EVALUATOR, [b"\n", b"  \n", json.dumps(SCENARIO).encode()]))
    assert [answered.number for answered in found] == [3]


def test_the_answer_has_the_recorded_expectation() -> None:
    """Unchanged."""
    line = json.dumps({"scenario": SCENARIO, "expected": {"name": "s"}}).encode()
    (answered,) = answer_lines(EVALUATOR, [line])
    assert answered.expected == {"name": "s"}
    assert answered.answer["fit_error"] == "no nodes available to schedule pods"


def test_the_answer_has_all_field_errors_of_a_configuration() -> None:
    """With their paths."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": -1,
        "percentageOfNodesToScore": 101,
    }
    line = json.dumps({**SCENARIO, "config": config}).encode()
    (answered,) = answer_lines(EVALUATOR, [line])
    assert "scenario.config: parallelism: " in answered.answer["error"]
    assert "scenario.config: percentageOfNodesToScore: " in answered.answer["error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "pod", "pods", "objects", "config", "kind", "metadata", "spec"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["name", "pod", "pods", "objects", "config"]), JSON))
def test_wrong_types_are_answered_with_an_error(values: dict[str, object]) -> None:
    """They are never raised, and never called an internal error."""
    line = json.dumps({"name": "s", "pod": POD, **values}).encode()
    (answered,) = answer_lines(EVALUATOR, [line])
    assert not str(answered.answer.get("error", "")).startswith("internal error")


@given(st.binary(max_size=40))
def test_every_line_has_one_answer(line: bytes) -> None:
    """Whatever its bytes, unless it is blank."""
    found = list(answer_lines(EVALUATOR, [line]))
    assert len(found) == (1 if line.strip() else 0)
