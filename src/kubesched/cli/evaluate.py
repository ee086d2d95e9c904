"""`kubesched evaluate`: answer recorded scenarios, or check them."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.options import IntRange, feature_gates_option, files_argument


@click.command()
@files_argument
@feature_gates_option
@click.option(
    "--check",
    is_flag=True,
    help="Compare with the recorded decisions instead of printing answers; exit 1 if any differs.",
)
@click.option(
    "--show",
    type=IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="With --check: how many differing cases of a family to show.",
)
def evaluate(
    files: tuple[Path, ...], feature_gates: tuple[str, ...], check: bool, show: int
) -> int:
    """Answer recorded scenarios, or check them.

    A scenario is a cluster and a pod to place, or several pods to place one after another, as a
    JSON object on a line of its own; FILES hold such lines, compressed or not, `-` is stdin. Each
    line is answered with a line of JSON, in order: what every plugin said about every node, the
    scores, the message, the preemption. A line that cannot be answered is answered with an object
    that has `error` and `line`; the others are answered all the same, and the exit code is 1.
    docs/conformance.md describes the format.

    \b
    Examples:
      kubesched evaluate scenarios.jsonl > answers.jsonl
      kubesched evaluate --check tests/conformance/data/preemption.jsonl.gz
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be rewrapped
    from kubesched.cli.evaluate_files import check_files, print_answers
    from kubesched.cli.files import look_for_files
    from kubesched.config.feature_gates import FeatureGates
    from kubesched.plugins.registry import in_tree_registry
    from kubesched.simulator.evaluate import Evaluator

    gates = FeatureGates.parse(",".join(feature_gates))
    evaluator = Evaluator(in_tree_registry(), gates)
    if check:
        return check_files(evaluator, files, show)
    look_for_files(files)
    return print_answers(evaluator, files)
