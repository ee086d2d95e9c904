"""`kubesched shadow` and `kubesched replay`: decisions beside others, and the differences.

Rejects:  configurations without a profile for the scheduler to compare with; configurations without
          a profile for a scheduler of the recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from kubesched.app.replay import replayed
from kubesched.app.shadow import Shadow
from kubesched.app.signals import handled_signals
from kubesched.cli.asking import AnswerOptions, watched
from kubesched.cli.errors import EXIT_DIFFERENT, EXIT_INTERRUPTED, write_warnings
from kubesched.cli.files import check_inputs, check_outputs
from kubesched.cli.output import TextTable, Writer, write_answer
from kubesched.cli.snapshot import recording_to
from kubesched.client.connect import new_event_loop
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.explain.sentences import count
from kubesched.explain.shadow_report import ReplayReport, ShadowReport, ShadowVerdict
from kubesched.framework.registry import SchedulerSetup
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import live_target
from kubesched.inputs.loading import in_file, load_scheduler
from kubesched.inputs.recording_input import RecordingInput
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import showing
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedBy
from kubesched.simulator import virtual_loop
from kubesched.simulator.timeline_report import duration, percent

_EXAMPLES_MAX: Final = 10
_HEADINGS: Final = {
    ShadowVerdict.DIFFERENT: "Different",
    ShadowVerdict.SAMPLED: "Lower score, in a cluster of which schedulers look at a part",
    ShadowVerdict.CHANGED: "The cluster changed in between",
    ShadowVerdict.TIE: "Ties",
}


def shadow(
    asked: AnswerOptions,
    kubeconfig: Path | None,
    context: str,
    scheduler_name: str,
    seconds: float | None,
    record: Path | None,
) -> None:
    """Compare with a scheduler until Ctrl-C, SIGTERM or the end of the time; write the report.

    `record` is the file for events and decisions.
    """
    options = asked.scheduler
    check_inputs([options.config])
    check_outputs({"--html": asked.html, "--record": record}, [options.config, kubeconfig])
    setup = _for_schedulers(load_scheduler(options), options.profile, (scheduler_name,))
    settings, _ = live_target(ClusterSource(kubeconfig=kubeconfig, context=context))
    with (
        recording_to(record, RecordedBy.SHADOW) as recorder,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
        in_file(options.config),
    ):
        report = runner.run(_shadow(setup, settings, options.seed, seconds, recorder))
    write_answer(report, asked.output, _write_shadow, asked.html)


def _for_schedulers(
    setup: SchedulerSetup, profile: str | None, names: Sequence[str]
) -> SchedulerSetup:
    """Return a setup with one profile for each of some schedulers, and with their names.

    Without `profile`, each gets the profile of its name, or the only one; raises UserError if there
    is none for one of them.
    """
    given = {each.scheduler_name: each for each in setup.configuration.profiles}
    only = next(iter(given.values())) if len(given) == 1 else None
    profiles, errors = [], []
    for name in dict.fromkeys(names):
        found = given.get(profile or name, only)
        if found is not None:
            profiles.append(replace(found, scheduler_name=name))
        else:
            known = ", ".join(given)
            errors.append(f"--config has no profile {name}; name one with --profile: {known}")
    if errors:
        raise UserError(*errors)
    configuration = replace(setup.configuration, profiles=tuple(profiles))
    return setup._replace(configuration=configuration)


async def _shadow(
    setup: SchedulerSetup,
    settings: ConnectionSettings,
    seed: int,
    seconds: float | None,
    recorder: DecisionRecorder | None,
) -> ShadowReport:
    shadow = Shadow(settings, setup, seed, recorder)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def begin() -> None:
        # Before, there is nothing to report: signals end the process.
        signals.enter_context(handled_signals(stop.set))
        click.echo(f"Comparing, on {settings.server}; Ctrl-C ends it with the report.", err=True)
        if seconds is not None:
            loop.call_later(seconds, stop.set)

    def compared() -> str:
        counts = shadow.watch.judge.counts.items()
        listed = ", ".join(f"{number} {verdict.lower()}" for verdict, number in counts)
        return f"Compared: {listed or 'nothing yet'}"

    async with showing(compared):
        with ExitStack() as signals:
            await shadow.run(stop, begin, lambda problem: write_warnings([problem]))
    return shadow.report()


def _write_shadow(writer: Writer, report: ShadowReport) -> None:
    agreed = f"all but {report.different:,}" if report.different else "all"
    verdict = f"{agreed} as kubesched's"
    writer.headline(_headline(report.scheduler_name, f"{report.seconds:.0f} s", report, verdict))
    writer.notes(report.notes)
    rows = (
        ("agreed", report.agreed),
        ("another node of the same score", report.ties),
        ("the cluster changed in between", report.changed),
        ("lower score, nodes were sampled", report.sampled),
        ("different", report.different),
        ("still pending at the end", report.pending),
    )
    _write_decisions(writer, "pods", rows)
    if report.agreed_late:
        late = count(report.agreed_late, "agreement")
        writer.item(f"{late} after the cluster had changed since the pod appeared")
    _write_disagreements(writer, report, _HEADINGS)


# What reports have in common.


def _headline(who: str, time: str, report: ShadowReport | ReplayReport, verdict: str) -> str:
    where = f"in {time}, on {count(report.nodes, 'node')}"
    if not report.judged:
        return f"{who} decided nothing {where}."
    return f"{count(report.judged, 'decision')} of {who} {where}: {verdict}."


def _write_decisions(writer: Writer, what: str, rows: Iterable[tuple[str, int]]) -> None:
    writer.heading("Decisions")
    shown = [(outcome, f"{number:,}") for outcome, number in rows]
    writer.table(TextTable(("outcome", what), shown, (what,)))


def _write_disagreements(
    writer: Writer, report: ShadowReport | ReplayReport, verdicts: Iterable[ShadowVerdict]
) -> None:
    """Write how many pods were not judged, and the first disagreements of these verdicts."""
    if report.skipped:
        writer.item(f"{count(report.skipped, 'pod')} of pod groups not judged")
    totals = {
        ShadowVerdict.DIFFERENT: report.different,
        ShadowVerdict.SAMPLED: report.sampled,
        ShadowVerdict.CHANGED: report.changed,
        ShadowVerdict.TIE: report.ties,
    }
    for verdict in verdicts:
        kept = [each for each in report.disagreements if each.verdict is verdict]
        texts = [f"{each.pod}: {each.sentence}" for each in kept[:_EXAMPLES_MAX]]
        writer.section(_HEADINGS[verdict], texts)
        those = "them" if len(kept) == totals[verdict] else f"the first {len(kept):,}"
        writer.rest(totals[verdict] - len(texts), f"-o json has {those}")


# Replay.


def replay(asked: AnswerOptions, recording: Path) -> int:
    """Replay a recording to its end, or until Ctrl-C; write the report, return the exit code."""
    options = asked.scheduler
    inputs = [recording, options.config]
    check_inputs(inputs)
    check_outputs({"--html": asked.html}, inputs)
    setup = load_scheduler(options)
    with RecordingInput(recording) as found:
        setup = _for_schedulers(setup, options.profile, found.header.scheduler_names)
        recorded_by = found.header.recorded_by
        assert recorded_by is not None, "the header was checked"

        def text() -> str:
            return f"{percent(found.share_read)} read, {found.decisions:,} decisions"

        with in_file(options.config), watched() as show:
            report = virtual_loop.run(
                replayed(recorded_by, setup, options.seed, found.events(), lambda: show(text))
            )
    write_warnings(f"no --plugin declares {kind}; it is left out" for kind in found.skipped)
    write_answer(report, asked.output, _write_replay, asked.html)
    if report.partial:
        return EXIT_INTERRUPTED
    return EXIT_DIFFERENT if report.different else 0


def _write_replay(writer: Writer, report: ReplayReport) -> None:
    who = ", ".join(report.scheduler_names)
    differing = f"{report.different:,}" if report.different else "none"
    verdict = f"{differing} would differ now"
    writer.headline(_headline(who, duration(report.seconds), report, verdict))
    if report.partial:
        writer.line("Interrupted: the rest of the recording was not replayed.")
    writer.notes(report.notes)
    other = report.different - report.no_longer_placed - report.now_placed
    rows = [
        ("same", report.same),
        ("another node of the same score", report.ties),
        ("same shortly before or after", report.changed),
        ("nodes were sampled", report.sampled),
        ("different node or reasons", other),
        ("no node any more", report.no_longer_placed),
        ("a node now", report.now_placed),
    ]
    _write_decisions(writer, "decisions", [row for row in rows if row[1]])
    # Which of equal nodes was drawn is chance; -o json lists ties.
    verdicts = [verdict for verdict in _HEADINGS if verdict is not ShadowVerdict.TIE]
    _write_disagreements(writer, report, verdicts)
