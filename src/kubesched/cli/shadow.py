"""`kubesched shadow` and `kubesched replay`: decisions of a scheduler compared with kubesched's."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.errors import EXIT_DIFFERENT, EXIT_INTERRUPTED
from kubesched.cli.flags import (
    FILE_PATH,
    AnswerOptions,
    answer_options,
    record_option,
    table_options,
)
from kubesched.cli.output import write_answer
from kubesched.inputs.sources import ClusterSource


@click.command()
@table_options("shadow")
@record_option
@answer_options
def shadow(
    asked: AnswerOptions,
    kubeconfig: Path | None,
    context: str,
    scheduler_name: str,
    duration: float | None,
    record: Path | None,
) -> None:
    """Decide beside another scheduler, and report where both differ and why.

    It watches the live cluster and writes nothing. For each pending pod of the other
    scheduler, it makes a decision of its own, as `kubesched run` would. It compares this with the
    node that the pod is bound to, or with the message of a pod that stays pending. Give the other
    scheduler's configuration with --config, and its feature gates.

    Both may choose differently where nodes have the same score, where the cluster changed in
    between, and in clusters of more than 100 nodes, of which schedulers look at some only. These
    cases are told apart; what remains is listed with the scores, or with what the node lacks.

    The report follows at Ctrl-C or after --duration. With --record, `kubesched replay` compares
    again later, with other configurations too. A recording holds what `kubesched snapshot` keeps,
    no credentials, and the messages of pending pods.

    \b
    Examples:
      kubesched shadow
      kubesched shadow --context production --config scheduler.yaml --duration 8h -o json
    """
    from kubesched.cli.files import check_inputs, check_outputs
    from kubesched.cli.shadow_run import run_shadow, write_shadow

    config = asked.scheduler.config
    check_inputs([config])
    check_outputs({"--html": asked.html, "--record": record}, [config, kubeconfig])
    source = ClusterSource(kubeconfig=kubeconfig, context=context)
    report = run_shadow(asked.scheduler, source, scheduler_name, duration, record)
    write_answer(report, asked.output, write_shadow, asked.html)


@click.command()
@click.argument("recording", type=FILE_PATH)
@answer_options
def replay(asked: AnswerOptions, recording: Path) -> int:
    """Make the decisions of a RECORDING again, and show where they would differ now.

    A recording is written by `kubesched run`, `shadow` or `simulate` with --record FILE; `-` is
    stdin. It holds the cluster, what changed, and the decisions. Each pod is decided again in the
    cluster as it was, with the plugins and the configuration of now; then the recorded decision
    takes effect. Give the configuration of the recorded scheduler with --config to test a new
    version of kubesched or of a plugin, or another one to see what it would change.

    Decisions are the same, ties, or different: each difference is listed with the scores of both
    nodes, or with what the recorded node lacks now. In a recording of `shadow`, whose decisions
    were seen a little later, some are the same only shortly before or after.

    The exit code is 1 if a decision is different, else 0. Ctrl-C prints the report until then,
    with exit code 130.

    \b
    Examples:
      kubesched replay monday.jsonl.gz --config scheduler.yaml
      kubesched replay monday.jsonl.gz --config packing.yaml -o json
      kubesched simulate scenario.yaml --record run.jsonl && kubesched replay run.jsonl
    """
    from kubesched.cli.files import check_inputs, check_outputs
    from kubesched.cli.shadow_run import run_replay, write_replay

    inputs = [recording, asked.scheduler.config]
    check_inputs(inputs)
    check_outputs({"--html": asked.html}, inputs)
    report = run_replay(asked.scheduler, recording)
    write_answer(report, asked.output, write_replay, asked.html)
    if report.partial:
        return EXIT_INTERRUPTED
    return EXIT_DIFFERENT if report.different else 0
