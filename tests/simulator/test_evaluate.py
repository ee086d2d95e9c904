"""Answers to scenarios, line by line, and differences between answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import ABSENT, Difference, Evaluator, answer_lines, differences
from tests.cli.cluster import node, pod

EVALUATOR = Evaluator(in_tree_registry(), FeatureGates())


def _evaluate(plugins: object) -> dict[str, Any]:
    scenario = {
        "name": "x",
        "objects": [node("n", "1"), pod("there", "1", node_name="n")],
        "pod": pod("pod", "1", priority=10),
        "config": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
        },
    }
    return EVALUATOR.evaluate(scenario)


def test_a_preemption_that_ends_in_an_error_is_not_reported() -> None:
    """If the dry run only fails, the answer has the error alone."""
    answer = _evaluate({"preFilter": {"disabled": [{"name": "PodTopologySpread"}]}})
    assert "Error" == answer["postfilter_code"]
    assert "PodTopologySpread" in answer["postfilter_message"]
    assert "preemption" not in answer
    assert "Insufficient cpu" in answer["fit_error_filter"]
    assert ["n"] == _evaluate({})["preemption"]["best"]


def test_a_sequence_of_more_pods_than_an_hour_has_seconds() -> None:
    """Each starts a second after the one before, and preemption reads when."""
    gated = pod("gated", schedulingGates=[{"name": "wait"}])
    pods = [*[gated] * 3600, pod("first"), pod("second", priority=10)]
    scenario = {"name": "x", "objects": [node("n", "1")], "pods": pods, "preempt": True}
    assert {"shop/second": "n"} == EVALUATOR.evaluate(scenario)["placements"]


# Line by line.

PENDING = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}}
SCENARIO = {"name": "s", "pod": PENDING}


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
    """It is not changed."""
    line = json.dumps({"scenario": SCENARIO, "expected": {"name": "s"}}).encode()
    (answered,) = answer_lines(EVALUATOR, [line])
    assert answered.expected == {"name": "s"}
    assert answered.answer["fit_error"] == "no nodes available to schedule pods"


def test_the_answer_has_all_field_errors_of_a_configuration() -> None:
    """Each has its path."""
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


VALUES = st.recursive(
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
@given(st.dictionaries(st.sampled_from(["name", "pod", "pods", "objects", "config"]), VALUES))
def test_wrong_types_are_answered_with_an_error(values: dict[str, object]) -> None:
    """They are never raised, and never called an internal error."""
    line = json.dumps({"name": "s", "pod": PENDING, **values}).encode()
    (answered,) = answer_lines(EVALUATOR, [line])
    assert not str(answered.answer.get("error", "")).startswith("internal error")


@given(st.binary(max_size=40))
def test_every_line_has_one_answer(line: bytes) -> None:
    """Whatever its bytes, unless it is blank."""
    found = list(answer_lines(EVALUATOR, [line]))
    assert len(found) == (1 if line.strip() else 0)


# Differences between answers.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", max_size=2), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        pytest.param({"a": 1}, {"a": 2}, [("a", "1", "2")], id="value"),
        pytest.param({"a": 1}, {}, [("a", "1", ABSENT)], id="missing"),
        pytest.param({}, {"a": 1}, [("a", ABSENT, "1")], id="unexpected"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, [("a[1]", "2", "3")], id="element"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, [("a", "[1,2]", "[1]")], id="length"),
        pytest.param(
            {"a": [1, 2]}, {"a": [2, 1]}, [("a[0]", "1", "2"), ("a[1]", "2", "1")], id="order"
        ),
        pytest.param({"a": {"b": True}}, {"a": {"b": 1}}, [("a.b", "true", "1")], id="type"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, [], id="order-of-keys"),
    ],
)
def test_a_difference_has_its_path_and_both_values(
    expected: Any, got: Any, found: list[tuple[str, str, str]]
) -> None:
    """There is one for each key that differs."""
    assert [Difference(*parts) for parts in found] == list(differences(expected, got))


@given(JSON, JSON)
def test_no_difference_if_and_only_if_json_is_equal(left: Any, right: Any) -> None:
    """This holds for any two values."""

    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [typed(item) for item in value]
        return (type(value).__name__, value)

    assert (typed(left) == typed(right)) == (not list(differences(left, right)))
