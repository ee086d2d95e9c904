"""`kubesched evaluate`: answer recorded scenarios, or check them."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.flags import feature_gates_option, files_argument, table_options


@click.command()
@files_argument
@feature_gates_option
@table_options("evaluate")
def evaluate(files: tuple[Path, ...], feature_gates: str, check: bool, show: int) -> int:
    """Answer recorded scenarios, or check them.

    A scenario is a cluster and a pod to place, or several pods to place in order, as a JSON object
    on one line. FILES hold such lines, compressed or not; `-` is stdin. For each line, one line of
    JSON is printed: the answer of every plugin for every node, scores, message and preemption. For
    an invalid line it is an object with `error` and `line`, and the exit code is 1 in the end.
    docs/conformance.md describes the format.

    \b
    Examples:
      kubesched evaluate scenarios.jsonl > answers.jsonl
      kubesched evaluate --check tests/conformance/data/preemption.jsonl.gz
    """
    from kubesched.cli.evaluate_files import check_files, print_answers
    from kubesched.cli.files import check_inputs
    from kubesched.config.feature_gates import FeatureGates
    from kubesched.plugins.registry import in_tree_registry
    from kubesched.simulator.evaluate import Evaluator

    gates = FeatureGates.parse(feature_gates)
    evaluator = Evaluator(in_tree_registry(), gates)
    if check:
        return check_files(evaluator, files, show)
    check_inputs(files)
    return print_answers(evaluator, files)
