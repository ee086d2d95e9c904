"""ScenarioPlay plays a scenario on virtual time, and compare puts several answers side by side.

from kubesched import ScenarioPlay, compare

spread, pack = (ScenarioPlay.from_scenario("day.yaml", config=file) for file in files)
print(compare({"spread": spread, "pack": pack}).table("measures"))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, Unpack, overload

from kubesched.answers.cluster import Cluster
from kubesched.answers.cluster_comparison import ClusterComparison, ClusterEnd, compared_clusters
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import in_file
from kubesched.inputs.scenario_input import Play, read_scenario, with_scheduler
from kubesched.inputs.sources import SchedulerArguments, SchedulerOptions
from kubesched.scheduler.decision_recorder import DecisionRecorder
from kubesched.simulator.playback import Playback, PlaybackRecorder
from kubesched.simulator.run import Watch, simulate
from kubesched.simulator.timeline_report import TimelineComparison, TimelineReport, compared


class ScenarioPlay:
    """A scenario: what happens to a cluster over time, and the scheduler that decides on it."""

    def __init__(self, play: Play) -> None:
        """Prepare to play a scenario that `from_scenario` has read."""
        self._play = play

    @classmethod
    def from_scenario(
        cls,
        file: str | os.PathLike[str] | Mapping[str, Any],
        *,
        duration_seconds: float | None = None,
        **scheduler: Unpack[SchedulerArguments],
    ) -> Self:
        """Read a scenario.

        Args:
            file: The scenario, as `kubesched simulate` reads it, or what such a file says, as a
                mapping.
            duration_seconds: Virtual time to simulate; None for the scenario's.
            **scheduler: See `SchedulerArguments`; what is left out is the scenario's.

        Raises:
            UserError: The scenario is wrong, or a file or plugin is.
        """
        options = SchedulerOptions.of(scheduler)
        try:
            play = read_scenario(file if isinstance(file, Mapping) else Path(file))
        except OSError as error:
            raise UserError(f"{file}: it cannot be read: {error.strerror}") from error
        changed = with_scheduler(play, options)
        return cls(changed.changed(scheduler.get("seed"), duration_seconds))

    def simulate(self) -> TimelineReport:
        """Play the scenario to its end.

        Raises:
            UserError: The configuration is invalid.
            DecodeError: A file of the scenario cannot be read.
            PluginError: A plugin raised.
        """
        return self.simulated()

    def playback(self) -> Playback:
        """Play the scenario to its end, and return what happened to nodes and pods.

        Raises:
            UserError: The configuration is invalid; like `simulate` otherwise.
        """
        recorder = PlaybackRecorder()
        report = self.simulated(recorder=recorder)
        return recorder.playback(report.scenario, report.duration_seconds)

    def simulated(
        self,
        *,
        watch: Watch | None = None,
        write_decision: Callable[[bytes], object] | None = None,
        recorder: PlaybackRecorder | None = None,
        recording: DecisionRecorder | None = None,
    ) -> TimelineReport:
        """Play the scenario as `simulate` does, watched and recorded; see `simulator.run`."""
        with in_file(self._play.file):
            return simulate(
                self._play.scenario,
                self._play.registry,
                watch=watch,
                write_decision=write_decision,
                recorder=recorder,
                recording=recording,
            )


@overload
def compare(subjects: Mapping[str, Cluster]) -> ClusterComparison: ...
@overload
def compare(subjects: Mapping[str, ScenarioPlay]) -> TimelineComparison: ...
def compare(
    subjects: Mapping[str, Cluster] | Mapping[str, ScenarioPlay],
) -> ClusterComparison | TimelineComparison:
    """Simulate each, and compare the others with the first.

    The subjects have names in the answer. They are clusters, whose pending pods are placed, or
    scenarios of the same seed and duration.

    Raises:
        UserError: There are fewer than two, of both sorts, or of different seeds or durations.
        PluginError: A plugin raised.
    """
    if len(subjects) < 2:
        raise UserError("compare: there is nothing to compare; give at least two")
    clusters = {name: one for name, one in subjects.items() if isinstance(one, Cluster)}
    plays = {name: one for name, one in subjects.items() if isinstance(one, ScenarioPlay)}
    if max(len(clusters), len(plays)) < len(subjects):
        raise UserError("compare: clusters are compared with clusters, scenarios with scenarios")
    ends = [ClusterEnd(name, one.objects, one.simulated()) for name, one in clusters.items()]
    reports = [one.simulate() for one in plays.values()]
    seeds = {end.end.report.seed for end in ends} | {report.seed for report in reports}
    if len(seeds) > 1 or len({report.duration_seconds for report in reports}) > 1:
        raise UserError("compare: give all the same seed, and scenarios the same duration_seconds")
    return compared_clusters(ends, *seeds) if ends else compared([*plays], reports)
