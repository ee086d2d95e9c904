"""Scenarios line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import Evaluator
from kubesched.simulator.scenario_lines import answer_lines

EVALUATOR = Evaluator(in_tree_registry(), FeatureGates())
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}}
SCENARIO = {"name": "s", "pod": POD}


def test_lines_are_answered_one_by_one() -> None:
    """An answer is there before the next line is asked for."""
    asked: list[int] = []

    def lines() -> Iterator[bytes]:
        for number in (1, 2):
            asked.append(number)
            yield json.dumps(SCENARIO).encode()

    answers = answer_lines(EVALUATOR, lines())
    assert next(answers).answer["name"] == "s"
    assert asked == [1]


def test_blank_lines_count_but_have_no_answer() -> None:
    """The number is that of the line in its file."""
    found = list(answer_lines(EVALUATOR, [b"\n", b"  \n", json.dumps(SCENARIO).encode()]))
    assert [answered.number for answered in found] == [3]


def test_expectation_is_handed_on() -> None:
    """What was recorded comes with the answer."""
    line = json.dumps({"scenario": SCENARIO, "expected": {"name": "s"}}).encode()
    (answered,) = answer_lines(EVALUATOR, [line])
    assert answered.expected == {"name": "s"}
    assert answered.answer["fit_error"] == "no nodes available to schedule pods"


def test_configuration_faults_are_told_with_their_fields() -> None:
    """All faults of a configuration are in the error."""
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
def test_whatever_the_values_there_is_an_answer(values: dict[str, object]) -> None:
    """Wrong types anywhere are answered, never raised, and never called our own fault."""
    line = json.dumps({"name": "s", "pod": POD, **values}).encode()
    (answered,) = answer_lines(EVALUATOR, [line])
    assert not str(answered.answer.get("error", "")).startswith("internal error")


@given(st.binary(max_size=40))
def test_whatever_the_bytes_there_is_an_answer(line: bytes) -> None:
    """Any line but a blank one has exactly one answer."""
    found = list(answer_lines(EVALUATOR, [line]))
    assert len(found) == (1 if line.strip() else 0)
