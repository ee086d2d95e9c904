"""Transcript is a text file of commands and their results, like CockroachDB's datadriven tests.

    # A remark.
    node a cpu=2
    pod p cpu=1
    ----
    0       decided  p: placed on a, 1 feasible

Lines up to `----` are commands; a line that is indented goes with the command above it, as YAML.
Lines from there up to an empty line are what followed. Lines with `#` in front are remarks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import dedent

import msgspec

RULE = "----"


class Command(msgspec.Struct, frozen=True):
    """One command.

    Attributes:
        line: Its words.
        body: The indented lines under it, as far to the left as they go.
    """

    line: str
    body: str = ""


class Step(msgspec.Struct, frozen=True):
    """Commands that are given at one time.

    Attributes:
        text: As it stands in the file, remarks and all, up to the rule.
        commands: The commands.
        expected: The lines that follow.
    """

    text: str
    commands: Sequence[Command]
    expected: Sequence[str]


def steps_of(transcript: str) -> list[Step]:
    """Return the steps of a transcript.

    Raises:
        ValueError: There are commands without a rule.
    """
    steps: list[Step] = []
    lines: list[str] = []
    rest = iter(transcript.splitlines())
    for line in rest:
        if line != RULE:
            lines.append(line)
            continue
        expected: list[str] = []
        for follows in rest:
            if not follows:
                break
            expected.append(follows)
        steps.append(Step("\n".join(lines), commands_in(lines), expected))
        lines = []
    if commands_in(lines):
        raise ValueError(f"there is no {RULE} after {lines[-1]!r}")
    return steps


def commands_in(lines: Sequence[str]) -> list[Command]:
    """Return the commands in some lines, each with its body."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            found[-1][1].append(line)
        else:
            found.append((line, []))
    return [Command(line, dedent("\n".join(body))) for line, body in found]


def rewritten(steps: Sequence[Step], play: Callable[[Step], Sequence[str]]) -> str:
    """Return a transcript with the actual results of each step."""
    parts = ["\n".join([step.text, RULE, *play(step), ""]) for step in steps]
    return "\n".join(parts)
