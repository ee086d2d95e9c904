"""Explanations show what kube-scheduler 1.36 decided, node by node, for every recorded family."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kubesched.answers.pod_answers import explain_pod
from kubesched.api.scheme import KINDS
from kubesched.cli.evaluate_files import family_of, read_lines
from kubesched.config.feature_gates import FeatureGates
from kubesched.explain.report import Answer, PodExplanation, PodOutcome
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import Evaluator

from .test_conformance import FILES, GATES

Recorded = Mapping[str, Any]


def _cases(file: Path) -> Iterator[tuple[Recorded, Recorded]]:
    """Yield the scenarios of one pod whose profile exists, with what was recorded."""
    with read_lines(file) as lines:
        for line in lines:
            case = json.loads(line)
            expected = case["expected"]
            if "pod" in case["scenario"] and not {"preenqueue", "errors"} & expected.keys():
                yield case["scenario"], expected


def _rejection(answer: Answer) -> Recorded:
    plugin = {"plugin": answer.plugin} if answer.plugin else {}
    return {**plugin, "code": answer.code, "reasons": list(answer.reasons)}


def _shown(explanation: PodExplanation) -> Recorded:
    """Return what an explanation shows, in the form of the records."""
    nodes = explanation.nodes
    shown: dict[str, Any] = {
        "filter": {v.node: _rejection(v.rejections[0]) for v in nodes if v.tried and v.rejections},
        "feasible": [verdict.node for verdict in nodes if verdict.feasible],
    }
    if explanation.scores:
        shown["totals"] = {score.node: score.total for score in explanation.scores}
        shown["best"] = sorted(s.node for s in explanation.scores if s.rank == 1)
    if explanation.outcome is PodOutcome.UNSCHEDULABLE:
        shown["fit_error"] = explanation.message
    preemption = explanation.preemption
    if preemption is not None and preemption.candidates:
        shown["candidates"] = {
            one.node: ([victim.pod for victim in one.victims], one.pdb_violations)
            for one in preemption.candidates
        }
    return shown


def _expected(recorded: Recorded) -> Recorded:
    found = {name: recorded[name] for name in ("filter", "feasible")}
    found |= {name: recorded[name] for name in ("totals", "fit_error") if name in recorded}
    if "totals" in recorded:
        found["best"] = recorded["best"]
    candidates = recorded.get("preemption", {}).get("candidates")
    if candidates:
        found["candidates"] = {
            node: (one["victims"], one.get("pdb_violations", 0)) for node, one in candidates.items()
        }
    return found


@pytest.mark.slow
@pytest.mark.parametrize("file", [f for f in FILES if family_of(f) != "sequences"], ids=family_of)
def test_explanations_show_what_was_recorded(file: Path) -> None:
    """Rejections with plugin, code and reasons; totals; the message; candidates and victims."""
    evaluator = Evaluator(in_tree_registry(), FeatureGates.of(GATES.get(family_of(file), {})))
    cases = list(_cases(file))
    assert cases, "the family has cases of one pod"
    for scenario, recorded in cases:
        cluster, info = evaluator.prepare(scenario)
        cluster.declare_complete(kind.type for kind in KINDS)
        explanation = explain_pod(cluster, info, all_filters=False)
        assert _shown(explanation) == _expected(recorded), recorded["name"]
