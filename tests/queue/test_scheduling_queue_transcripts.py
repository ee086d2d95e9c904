"""Transcripts of pods as tables: time, command, and the moves that follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.queue.backoff_queue import QueueOptions

from .scene import EVENTS, Scene

STORIES = {
    "a pod is rejected, waits for a node, backs off and is placed": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.2 | pop                        | web: active > in flight by PodPopped
 0.3 | fail web Fit               | web: in flight > unschedulable by ScheduleAttemptFailure
 0.5 | event AssignedPodAdd Fit   |
 0.7 | event NodeAdd Fit          | web: unschedulable > backoff by NodeAdd
 1.0 | flush-backoff              |
 2.0 | flush-backoff              | web: backoff > active by BackoffComplete
 2.1 | pop                        | web: active > in flight by PodPopped
 2.2 | done web                   | web: in flight > - by Done
""",
    "an idle scheduler does not wait for the backoff to end": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.0 | fail web Fit               | web: in flight > unschedulable by ScheduleAttemptFailure
 0.1 | event NodeAdd Fit          | web: unschedulable > backoff by NodeAdd
 0.1 | pop                        | web: backoff > active by PopFromBackoffQ
                                  | web: active > in flight by PodPopped
""",
    "an error backs off to the end, however idle the scheduler": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.9 | fail web                   | web: in flight > backoff by ScheduleAttemptFailure
 1.0 | pop                        |
 1.9 | flush-backoff              |
 2.0 | flush-backoff              | web: backoff > active by BackoffComplete
""",
    "scheduling gates hold a pod until the last one is gone": """
 0.0 | add web gates=a,b          | web: - > unschedulable by UnschedulablePodAdd, gated by Gates
 1.0 | event NodeAdd Fit          |
 2.0 | activate web               |
 3.0 | update web gates=b         |
 4.0 | update web                 | web: unschedulable > active by \
UnschedulablePodUpdatePodSchedulingGatesEliminated
""",
    "a preemptor is gated until its victims are gone": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.0 | close Preemption web       |
 0.1 | fail web Fit               | web: in flight > unschedulable by ScheduleAttemptFailure
 0.2 | activate web               |
 1.0 | event NodeAdd Fit          |
 5.0 | event AssignedPodDelete Fit | web: unschedulable > unschedulable by AssignedPodDelete, \
gated by Preemption
 6.0 | open Preemption web        |
 6.1 | event AssignedPodDelete Fit | web: unschedulable > active by AssignedPodDelete
""",
    "what a pending plugin waited for brings the pod back at once": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.0 | fail web pending=Volumes   | web: in flight > unschedulable by ScheduleAttemptFailure
 0.1 | event PersistentVolumeClaimAdd Volumes | \
web: unschedulable > active by PersistentVolumeClaimAdd
""",
    "an event during the attempt counts for the pods it helps": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | add db                     | db: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.1 | event NodeAdd              |
 0.2 | pop                        | db: active > in flight by PodPopped
 0.3 | help Fit                   |
 0.4 | fail db Fit                | db: in flight > unschedulable by ScheduleAttemptFailure
 0.5 | fail web Fit               | web: in flight > backoff by ScheduleAttemptFailure
""",
    "nobody waits for ever": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.0 | fail web Fit               | web: in flight > unschedulable by ScheduleAttemptFailure
 0.0 | add db gates=a             | db: - > unschedulable by UnschedulablePodAdd, gated by Gates
300.0 | flush-unschedulable       |
330.0 | flush-unschedulable       | web: unschedulable > active by UnschedulableTimeout
""",
    "the most important pod of a second is tried first, others in the order of their backoff": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | add db priority=5          | db: - > active by UnschedulablePodAdd
 0.0 | add job                    | job: - > active by UnschedulablePodAdd
 0.0 | pop                        | db: active > in flight by PodPopped
 0.0 | pop                        | web: active > in flight by PodPopped
 0.0 | pop                        | job: active > in flight by PodPopped
 0.1 | help Fit                   |
 0.1 | event NodeAdd Fit          |
 0.2 | fail web Fit               | web: in flight > backoff by ScheduleAttemptFailure
 0.3 | fail db Fit                | db: in flight > backoff by ScheduleAttemptFailure
 1.5 | fail job Fit               | job: in flight > backoff by ScheduleAttemptFailure
 1.6 | pop                        | db: backoff > active by PopFromBackoffQ
                                  | db: active > in flight by PodPopped
 1.7 | flush-backoff              |
 2.0 | flush-backoff              | web: backoff > active by BackoffComplete
 3.0 | flush-backoff              | job: backoff > active by BackoffComplete
""",
    "a pod is deleted and born again while it is tried": """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.1 | delete web                 |
 0.2 | add web uid=second         | web: - > active by UnschedulablePodAdd
 0.3 | done web                   | web: in flight > - by Done
 0.4 | pop                        | web: active > in flight by PodPopped
""",
}
WITHOUT_EARLY_POPS = """
 0.0 | add web                    | web: - > active by UnschedulablePodAdd
 0.0 | pop                        | web: active > in flight by PodPopped
 0.3 | fail web Fit               | web: in flight > unschedulable by ScheduleAttemptFailure
 0.4 | event NodeAdd Fit          | web: unschedulable > backoff by NodeAdd
 0.4 | pop                        |
 1.0 | close Preemption web       |
 1.3 | flush-backoff              |
 1.4 | flush-backoff              | web: backoff > unschedulable by BackoffComplete, \
gated by Preemption
"""


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_transcript(story: str) -> None:
    """The queue makes every recorded move, in order."""
    assert story == played(Scene(), story)


def test_transcript_without_early_pops() -> None:
    """Expirations are exact then, and PreEnqueue runs after backoffQ."""
    scene = Scene(QueueOptions(pops_from_backoff=False))
    assert WITHOUT_EARLY_POPS == played(scene, WITHOUT_EARLY_POPS)


def played(scene: Scene, story: str) -> str:
    """Play a transcript and return it with the actual moves."""
    lines = [""]
    for line in story.strip("\n").split("\n"):
        when, command, *_ = line.split("|")
        if command and not when.strip():
            continue
        scene.now = float(when)
        before = len(scene.moves)
        perform(scene, *command.split())
        scene.queue.check()
        moves = [written(scene, at) for at in range(before, len(scene.moves))] or [""]
        head = f"{when}|{command}| "
        lines += [(head + moves[0]).rstrip()]
        lines += [" " * (len(head) - 2) + "| " + move for move in moves[1:]]
    return "\n".join(lines) + "\n"


def written(scene: Scene, at: int) -> str:
    """Return a move as text."""
    move = scene.moves[at]
    name = move.pod.removeprefix("default/")
    gate = f", gated by {move.gating_plugin}" if move.gating_plugin else ""
    origin, destination = move.origin.value or "-", move.destination.value or "-"
    return f"{name}: {origin} > {destination} by {move.event}{gate}"


def perform(scene: Scene, verb: str, *words: str) -> None:
    """Run one command."""
    settings = dict(word.split("=") for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    commands: dict[str, Callable[[], object]] = {
        "add": lambda: scene.add(plain[0], **fields(settings)),
        "update": lambda: scene.update(plain[0], **fields(settings)),
        "delete": lambda: scene.delete(plain[0]),
        "activate": lambda: scene.activate(*plain),
        "pop": scene.pop,
        "done": lambda: scene.done(plain[0]),
        "fail": lambda: scene.fail(*plain, pending=settings.get("pending", "").split()),
        "event": lambda: scene.event(EVENTS[plain[0]], helps=plain[1:]),
        "help": lambda: scene.answers.helped.update(plain),
        "close": lambda: scene.answers.closed[plain[0]].add(plain[1]),
        "open": lambda: scene.answers.closed[plain[0]].discard(plain[1]),
        "flush-backoff": lambda: scene.queue.flush_backoff(scene.now),
        "flush-unschedulable": lambda: scene.queue.flush_unschedulable(scene.now),
    }
    if verb == "update" and "Gates" not in scene.answers.helped:
        scene.answers.helped.add("Gates")
    commands[verb]()


def fields(settings: dict[str, str]) -> dict[str, object]:
    """Return a pod's fields."""
    found: dict[str, object] = {}
    if "gates" in settings:
        found["scheduling_gates"] = settings["gates"].split(",")
    if "priority" in settings:
        found["priority"] = int(settings["priority"])
    if "uid" in settings:
        found["uid"] = settings["uid"]
    return found
