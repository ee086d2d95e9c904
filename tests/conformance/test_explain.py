"""Explanations compared with recorded decisions of kube-scheduler 1.36, node by node."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from kubesched.answers.pod_explanation import explain_pod
from kubesched.api.scheme import KINDS
from kubesched.cli.evaluate import family_of, read_lines
from kubesched.config.feature_gates import FeatureGates
from kubesched.explain.report import Answer, PodExplanation, PodOutcome
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator import evaluate
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.evaluate import Evaluator
from kubesched.snapshot.pod_info import PodInfo

from .test_conformance import FILES, GATES

Recorded = Mapping[str, Any]


def _cases(file: Path) -> Iterator[tuple[Recorded, Recorded]]:
    """Yield the scenarios with their recorded decisions."""
    with read_lines(file) as lines:
        for line in lines:
            case = json.loads(line)
            yield case["scenario"], case["expected"]


def _rejection(answer: Answer) -> Recorded:
    plugin = {"plugin": answer.plugin} if answer.plugin else {}
    return {**plugin, "code": answer.code, "reasons": list(answer.reasons)}


def _shown(explanation: PodExplanation) -> Recorded:
    """Return the contents of an explanation, in the form of the records."""
    nodes = explanation.nodes
    if explanation.held_by is not None:
        held = _rejection(explanation.held_by)
        return {"filter": {}, "feasible": [], "preenqueue": held, "state": explanation.outcome}
    shown: dict[str, Any] = {
        "filter": {v.node: _rejection(v.rejections[0]) for v in nodes if v.tried and v.rejections},
        "feasible": [verdict.node for verdict in nodes if verdict.feasible],
    }
    if explanation.scores:
        shown["totals"] = {score.node: score.total for score in explanation.scores}
        shown["best"] = sorted(s.node for s in explanation.scores if s.rank == 1)
    if explanation.outcome is PodOutcome.ERROR:
        return {"errors": explanation.message, **shown}
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
    found = {name: recorded[name] for name in ("filter", "feasible") if name in recorded}
    found |= {
        name: recorded[name] for name in ("totals", "fit_error", "preenqueue") if name in recorded
    }
    if "preenqueue" in recorded:
        found["state"] = PodOutcome.GATED
    if "errors" in recorded:
        # The scheduler reports one of them.
        (found["errors"],) = recorded["errors"]
    if "totals" in recorded:
        found["best"] = recorded["best"]
    candidates = recorded.get("preemption", {}).get("candidates")
    if candidates:
        found["candidates"] = {
            node: (one["victims"], one.get("pdb_violations", 0)) for node, one in candidates.items()
        }
    return found


def _check_sequences(file: Path) -> None:
    shown: list[Recorded] = []

    def attempt(cluster: ClusterState, info: PodInfo) -> Any:
        cluster.cache.declare_complete(kind.type for kind in KINDS)
        explanation = explain_pod(cluster, info, all_filters=False)
        shown.append({"pod": info.key, **_shown(explanation)})
        return attempted(cluster, info)

    attempted = evaluate._attempt
    evaluator = Evaluator(in_tree_registry(), FeatureGates())
    with patch.object(evaluate, "_attempt", attempt):
        for scenario, recorded in _cases(file):
            shown.clear()
            evaluator.evaluate(scenario)
            steps = [{"pod": step["pod"], **_expected(step)} for step in recorded["steps"]]
            assert steps == [_like(one, step) for one, step in zip(shown, steps, strict=True)], (
                recorded["name"]
            )


def _like(shown: Recorded, step: Recorded) -> Recorded:
    """Return the parts that a step of a sequence records, too."""
    return {name: value for name, value in shown.items() if name in step}


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=family_of)
def test_explanations_show_what_was_recorded(file: Path) -> None:
    """Rejections with plugin, code and reasons; totals; the message; candidates and victims.

    Of a sequence, every attempt of every pod is explained, in the cluster as it is by then.
    """
    if family_of(file) == "sequences":
        _check_sequences(file)
        return
    evaluator = Evaluator(in_tree_registry(), FeatureGates.of(GATES.get(family_of(file), {})))
    cases = list(_cases(file))
    assert cases, "the family has cases of one pod"
    for scenario, recorded in cases:
        cluster, info = evaluator.prepare(scenario)
        cluster.cache.declare_complete(kind.type for kind in KINDS)
        explanation = explain_pod(cluster, info, all_filters=False)
        assert _shown(explanation) == _expected(recorded), recorded["name"]
