"""The work of `kubesched replay`: recording, progress, Ctrl-C, report.

Rejects:  configurations without a profile for a scheduler of the recording.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubesched.app.replay import Replay
from kubesched.cli.output import StatusLine, Writer, simple_table
from kubesched.cli.shadow_run import for_schedulers, samples, write_disagreements
from kubesched.cli.simulate_run import catching_interrupt
from kubesched.config.field_errors import ConfigError
from kubesched.explain.sentences import count
from kubesched.explain.shadow_report import ReplayReport, ShadowVerdict
from kubesched.inputs.loading import SchedulerSetup, in_file, load_scheduler
from kubesched.inputs.recording_input import RecordingInput
from kubesched.inputs.sources import SchedulerOptions
from kubesched.scheduler.decision_recorder import RecordedBy
from kubesched.simulator import virtual_loop
from kubesched.simulator.evaluate import exhaustive
from kubesched.simulator.figures import duration, percent

_INDENT: Final = 2


def run_replay(options: SchedulerOptions, file: Path) -> ReplayReport:
    """Replay a recording to its end, or until Ctrl-C; then the report is partial.

    Raises:
        UserError: A line of the recording is invalid, or the configuration has no profile for it.
        OSError: The recording cannot be read.
    """
    setup = load_scheduler(options)
    with RecordingInput(file) as recording:
        setup = for_schedulers(setup, options.profile, recording.header.scheduler_names)
        try:
            return virtual_loop.run(_replayed(setup, recording, options.seed))
        except ConfigError as error:
            raise in_file(error, options.config) from error


async def _replayed(setup: SchedulerSetup, recording: RecordingInput, seed: int) -> ReplayReport:
    recorded_by = recording.header.recorded_by
    assert recorded_by is not None, "the header was checked"
    given = setup.configuration
    replay = Replay(
        recorded_by,
        # Where another scheduler begins to search is not known.
        exhaustive(given) if recorded_by is RecordedBy.SHADOW else given,
        setup.registry,
        setup.feature_gates,
        seed=seed,
        samples=samples(given),
    )
    with catching_interrupt() as interruption, StatusLine() as status:

        def goes_on() -> bool:
            status.show(
                lambda: f"{percent(recording.share_read)} read, {replay.decisions:,} decisions"
            )
            return not interruption.requested

        is_whole = await replay.run(recording.events(), goes_on)
    return replay.report(partial=not is_whole)


def write_replay(writer: Writer, report: ReplayReport) -> None:
    """Write the report."""
    writer.headline(_headline(report))
    if report.partial:
        writer.line("Interrupted: the rest of the recording was not replayed.")
    for note in report.notes:
        writer.line(f"Note: {note}", dim=True)
    writer.heading("Decisions")
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
    shown = [(outcome, str(number)) for outcome, number in rows if number]
    writer.table(simple_table(("outcome", "decisions"), shown, "decisions"), indent=_INDENT)
    if report.skipped:
        writer.line(f"{count(report.skipped, 'pod')} of pod groups not judged", indent=_INDENT)
    # Which of equal nodes was drawn is chance; -o json lists ties.
    write_disagreements(
        writer, [each for each in report.disagreements if each.verdict is not ShadowVerdict.TIE]
    )


def _headline(report: ReplayReport) -> str:
    who = ", ".join(report.scheduler_names)
    where = f"in {duration(report.seconds)}, on {count(report.nodes, 'node')}"
    if not report.judged:
        return f"{who} decided nothing {where}."
    judged = count(report.judged, "decision")
    if not report.different:
        return f"{judged} of {who} {where}: none would differ now."
    return f"{judged} of {who} {where}: {report.different} would differ now."
