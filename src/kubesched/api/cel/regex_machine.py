"""Match a regular expression in time that is linear in the text, whatever the expression.

Upstream: Go's package regexp (the machine that runs all threads at once), regexp/syntax/compile.go
Invariants: of the threads at one place of the program, the one with the highest priority goes on.
Differs:  nothing.
"""

from bisect import bisect_right
from dataclasses import dataclass

from kubesched.api.cel.regex_classes import PERL, Ranges
from kubesched.api.cel.regex_syntax import Alternate, Chars, Concat, Look, Regex, Repeat

Span = tuple[int, int]

_WORD = PERL["w"]


@dataclass(slots=True)
class _Step:
    """One instruction: take a character, look, or go on at other steps, the preferred first."""

    chars: Ranges | None = None
    look: str = ""
    following: tuple[int, ...] = ()


_MATCH = _Step()


def includes(ranges: Ranges, code: int) -> bool:
    """Whether the character is in the set."""
    at = bisect_right(ranges, code, key=lambda piece: piece[0])
    return at > 0 and code <= ranges[at - 1][1]


class Machine:
    """A program for one expression."""

    __slots__ = ("_start", "_steps")

    def __init__(self, regex: Regex) -> None:
        self._steps = [_MATCH]
        self._start = self._compile(regex, 0)

    # Compilation, from the end: each part is told where to go on.

    def _add(self, step: _Step) -> int:
        self._steps.append(step)
        return len(self._steps) - 1

    def _compile(self, regex: Regex, then: int) -> int:
        match regex:
            case Chars(ranges):
                return self._add(_Step(chars=ranges, following=(then,)))
            case Look(kind):
                return self._add(_Step(look=kind, following=(then,)))
            case Concat(parts):
                for part in reversed(parts):
                    then = self._compile(part, then)
                return then
            case Alternate(choices):
                return self._add(
                    _Step(following=tuple(self._compile(choice, then) for choice in choices))
                )
            case Repeat():
                return self._compile_repeat(regex, then)

    def _compile_repeat(self, repeat: Repeat, then: int) -> int:
        end, most = then, repeat.most
        if most is None:
            then = self._compile_loop(repeat, then)
        else:
            # x{2,4} is xx(x(x)?)?
            for _ in range(most - repeat.least):
                then = self._either(self._compile(repeat.part, then), end, repeat)
        copies = repeat.least if most is not None else max(repeat.least - 1, 0)
        for _ in range(copies):
            then = self._compile(repeat.part, then)
        return then

    def _compile_loop(self, repeat: Repeat, then: int) -> int:
        """One time or more; or any times, if that is asked for."""
        choice = self._add(_Step())
        body = self._compile(repeat.part, choice)
        self._steps[choice].following = self._preferred(body, then, repeat)
        if repeat.least:
            return body
        # Upstream takes x* for (x+)? if x may be empty.
        return self._either(body, then, repeat) if may_be_empty(repeat.part) else choice

    def _either(self, body: int, then: int, repeat: Repeat) -> int:
        return self._add(_Step(following=self._preferred(body, then, repeat)))

    @staticmethod
    def _preferred(body: int, then: int, repeat: Repeat) -> tuple[int, int]:
        return (body, then) if repeat.greedy else (then, body)

    # Execution.

    def search(self, text: str, start: int) -> Span | None:
        """The first match at or after `start`, as Perl would choose it; None if there is none."""
        found: Span | None = None
        threads: dict[int, int] = {}
        for at in range(start, len(text) + 1):
            if found is None:
                self._enter(threads, self._start, at, text, at)
            if not threads:
                break
            threads, match_start = self._advance(threads, text, at)
            if match_start is not None:
                found = (match_start, at)
        return found

    def _advance(
        self, threads: dict[int, int], text: str, at: int
    ) -> tuple[dict[int, int], int | None]:
        """The threads after the next character, and where a match began that ends before it."""
        following: dict[int, int] = {}
        code = ord(text[at]) if at < len(text) else -1
        for place, began in threads.items():
            step = self._steps[place]
            if step is _MATCH:
                # Threads with less priority are of no more use.
                return following, began
            if step.chars is not None and includes(step.chars, code):
                self._enter(following, step.following[0], began, text, at + 1)
        return following, None

    def _enter(self, threads: dict[int, int], place: int, began: int, text: str, at: int) -> None:
        """Let a thread go on from `place` up to where it needs a character."""
        waiting = [place]
        while waiting:
            place = waiting.pop()
            if place in threads:
                continue
            threads[place] = began
            step = self._steps[place]
            if step.chars is None and (not step.look or looks_so(step.look, text, at)):
                waiting.extend(reversed(step.following))


def may_be_empty(regex: Regex) -> bool:
    """Whether the expression may match without a character."""
    match regex:
        case Chars():
            return False
        case Look():
            return True
        case Concat(parts):
            return all(map(may_be_empty, parts))
        case Alternate(choices):
            return any(map(may_be_empty, choices))
        case Repeat():
            return regex.least == 0 or may_be_empty(regex.part)


def looks_so(kind: str, text: str, at: int) -> bool:
    """Whether a place in the text is of a kind."""
    match kind:
        case "begin_text":
            return at == 0
        case "end_text":
            return at == len(text)
        case "begin_line":
            return at == 0 or text[at - 1] == "\n"
        case "end_line":
            return at == len(text) or text[at] == "\n"
    before = at > 0 and includes(_WORD, ord(text[at - 1]))
    after = at < len(text) and includes(_WORD, ord(text[at]))
    return (before != after) == (kind == "boundary")
