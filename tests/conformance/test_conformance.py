"""Every recorded decision of kube-scheduler 1.36 is made again and compared value by value."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.cli.evaluate import family_of, read_lines
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import AnsweredLine, Evaluator, answer_lines, differences

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.jsonl.gz"))
# Random scenarios, wilder than the recorded ones, answered by kube-scheduler 1.36 all the same.
RANDOM = sorted((DATA / "random").glob("*.jsonl.gz"))
GATES = {"taints-comparison": {"TaintTolerationComparisonOperators": True}}
SHOWN = 5


def _problem(answered: AnsweredLine) -> str:
    """Return what differs in a case, "" if nothing does."""
    if answered.is_error:
        return f"{answered.name}: {answered.answer['error']}"
    found = list(differences(answered.expected, answered.answer))
    if not found:
        return ""
    first = found[0]
    return f"{answered.name}: {first.path}: expected {first.expected}, got {first.got}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        *(pytest.param(file, id=family_of(file)) for file in FILES),
        *(pytest.param(file, id=f"random-{family_of(file)}") for file in RANDOM),
    ],
)
def test_decisions_of_a_family_equal_the_recorded_ones(file: Path) -> None:
    """Case by case."""
    gates = FeatureGates.of(GATES.get(family_of(file), {}))
    evaluator = Evaluator(in_tree_registry(), gates)
    with read_lines(file) as lines:
        problems = [_problem(answered) for answered in answer_lines(evaluator, lines)]
    wrong = [text for text in problems if text]
    assert problems, "the family has cases"
    assert not wrong, f"{len(wrong)} of {len(problems)} differ:\n" + "\n".join(wrong[:SHOWN])


def test_all_families_are_there() -> None:
    """19 families, and random cases of each."""
    assert 19 == len(FILES)
    assert {family_of(file) for file in FILES} <= {family_of(file) for file in RANDOM}
