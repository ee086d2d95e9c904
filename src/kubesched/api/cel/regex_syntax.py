"""Read regular expressions in the syntax of RE2.

Upstream: Go's package regexp/syntax (flags Perl)
Rejects:  what RE2 does not know: backreferences, lookaround, possessive repetitions
Differs:  see `regex_classes`; the limit of a program's size is not kept.
"""

import re
from dataclasses import dataclass, replace
from typing import NoReturn

from kubesched.api.cel.regex_classes import (
    CODE_MAX,
    PERL,
    POSIX,
    Ranges,
    fold,
    merge,
    negate,
    unicode_class,
)

_REPEAT_MAX = 1000
_DEPTH_MAX = 1000
_COUNTED = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_NAME = re.compile("[0-9A-Za-z_]+")
_HEX_IN_BRACES = re.compile(r"x\{([0-9A-Fa-f]+)\}")
_HEX = re.compile("x([0-9A-Fa-f]{2})")
_OCTAL = re.compile("0[0-7]{0,2}|[1-7][0-7]{1,2}")
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NOT_NEWLINE = negate([(10, 10)])


class RegexError(ValueError):
    """A pattern that is none; the text is upstream's."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Look:
    r"""A place without a character: `\A`, `\z`, `^` and `$` of lines, `\b`, `\B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Concat:
    """One after the other."""

    parts: "tuple[Regex, ...]"


@dataclass(frozen=True, slots=True)
class Alternate:
    """The first that leads to a match."""

    choices: "tuple[Regex, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` to `most` times, without an upper bound if that is None."""

    part: "Regex"
    least: int
    most: int | None
    greedy: bool


Regex = Chars | Look | Concat | Alternate | Repeat


def parse_regex(pattern: str) -> Regex:
    """The expression that the pattern is. Raises RegexError."""
    return _Parser(pattern).parse()


@dataclass(frozen=True, slots=True)
class _Flags:
    fold_case: bool = False
    multi_line: bool = False
    dot_matches_newline: bool = False
    ungreedy: bool = False


_FLAG_NAMES = {
    "i": "fold_case",
    "m": "multi_line",
    "s": "dot_matches_newline",
    "U": "ungreedy",
}


class _Group:
    """An open parenthesis: the choices so far and the flags to go back to."""

    def __init__(self, flags: _Flags) -> None:
        self.flags = flags
        self.choices: list[Regex] = []
        self.parts: list[Regex] = []

    def next_choice(self) -> None:
        self.choices.append(_concat(self.parts))
        self.parts = []

    def close(self) -> Regex:
        self.next_choice()
        return self.choices[0] if len(self.choices) == 1 else Alternate(tuple(self.choices))


def _concat(parts: list[Regex]) -> Regex:
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags = _Flags()
        self._groups = [_Group(self._flags)]

    def parse(self) -> Regex:
        """The whole expression. Raises RegexError."""
        repeat_start: int | None = None
        while self._at < len(self._pattern):
            start = self._at
            repeats = self._parse_repeat(repeat_start)
            if not repeats:
                self._parse_other()
            repeat_start = start if repeats else None
        if len(self._groups) != 1:
            raise RegexError("missing closing )", self._pattern)
        return self._groups[0].close()

    def _fail(self, problem: str, start: int, end: int | None = None) -> NoReturn:
        raise RegexError(problem, self._pattern[start:end])

    def _push(self, part: Regex) -> None:
        self._groups[-1].parts.append(part)

    def _literal(self, code: int) -> Chars:
        ranges: Ranges = ((code, code),)
        return Chars(fold(ranges) if self._flags.fold_case else ranges)

    # Repetitions.

    def _parse_repeat(self, previous_start: int | None) -> bool:
        """Read a repetition, if there is one."""
        start = self._at
        bounds = self._read_bounds()
        if bounds is None:
            return False
        greedy = not self._flags.ungreedy
        if self._pattern.startswith("?", self._at):
            greedy = not greedy
            self._at += 1
        if previous_start is not None:
            self._fail("invalid nested repetition operator", previous_start, self._at)
        parts = self._groups[-1].parts
        if not parts:
            self._fail("missing argument to repetition operator", start, self._at)
        parts[-1] = Repeat(parts[-1], *bounds, greedy)
        if max(bounds[0], bounds[1] or 0) >= 2 and not _is_repeat_valid(parts[-1], _REPEAT_MAX):
            self._fail("invalid repeat count", start, self._at)
        return True

    def _read_bounds(self) -> tuple[int, int | None] | None:
        start = self._at
        char = self._pattern[start]
        if char in "*+?":
            self._at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        match = _COUNTED.match(self._pattern, start)
        if match is None:
            return None
        self._at = match.end()
        least_text, comma, most_text = match.groups()
        most_text = most_text if comma else least_text
        if len(least_text) > 8 or len(most_text or "") > 8:
            self._fail("invalid repeat count", start, self._at)
        least, most = int(least_text), None if most_text is None else int(most_text)
        if max(least, most or 0) > _REPEAT_MAX or (most is not None and least > most):
            self._fail("invalid repeat count", start, self._at)
        return least, most

    # Everything else.

    def _parse_other(self) -> None:
        start = self._at
        char = self._pattern[start]
        self._at += 1
        match char:
            case "(":
                self._open(start)
            case ")":
                self._close()
            case "|":
                self._groups[-1].next_choice()
            case "^":
                self._push(Look("begin_line" if self._flags.multi_line else "begin_text"))
            case "$":
                self._push(Look("end_line" if self._flags.multi_line else "end_text"))
            case ".":
                dot: Ranges = ((0, CODE_MAX),)
                self._push(Chars(dot if self._flags.dot_matches_newline else _NOT_NEWLINE))
            case "[":
                self._push(Chars(self._parse_class(start)))
            case "\\":
                self._parse_escape(start)
            case _:
                self._push(self._literal(ord(char)))

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise RegexError("unexpected )", self._pattern)
        group = self._groups.pop()
        self._flags = group.flags
        self._push(group.close())

    def _open(self, start: int) -> None:
        if not self._pattern.startswith("?", self._at):
            self._open_group()
            return
        named = next((n for n in ("?P<", "?<") if self._pattern.startswith(n, self._at)), None)
        if named is not None and len(self._pattern) > self._at + len(named):
            self._open_named(start, self._at + len(named))
        else:
            self._parse_flags(start)

    def _open_group(self) -> None:
        if len(self._groups) > _DEPTH_MAX:
            raise RegexError("expression nests too deeply", self._pattern)
        self._groups.append(_Group(self._flags))

    def _open_named(self, start: int, name_start: int) -> None:
        end = self._pattern.find(">", start)
        if end < 0:
            self._fail("invalid named capture", start)
        if _NAME.fullmatch(self._pattern, name_start, end) is None:
            self._fail("invalid named capture", start, end + 1)
        self._at = end + 1
        self._open_group()

    def _parse_flags(self, start: int) -> None:
        """Read `(?flags)` or `(?flags:`."""
        self._at += 1
        flags, value, is_complete = self._flags, True, True
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            self._at += 1
            if char in _FLAG_NAMES:
                flags = replace(flags, **{_FLAG_NAMES[char]: value})
                is_complete = True
            elif char == "-" and value:
                value = is_complete = False
            elif char in ":)" and is_complete:
                if char == ":":
                    self._open_group()
                self._flags = flags
                return
            else:
                break
        self._fail("invalid or unsupported Perl syntax", start, self._at)

    # Escapes.

    def _parse_escape(self, start: int) -> None:
        char = self._pattern[self._at : self._at + 1]
        looks = {"A": "begin_text", "z": "end_text", "b": "boundary", "B": "no_boundary"}
        if char in looks and char:
            self._at += 1
            self._push(Look(looks[char]))
        elif char == "Q":
            literal, quote_end, _ = self._pattern[self._at + 1 :].partition("\\E")
            self._at += 1 + len(literal) + len(quote_end)
            for part in literal:
                self._push(self._literal(ord(part)))
        else:
            self._at = start
            ranges = self._escaped_class()
            self._push(self._literal(self._escaped_char()) if ranges is None else Chars(ranges))

    def _escaped_class(self) -> Ranges | None:
        r"""Read `\d`, `\pL` and the like, if there is one."""
        kind = self._pattern[self._at + 1 : self._at + 2]
        if self._pattern[self._at] != "\\" or not kind:
            return None
        if kind.lower() == "p":
            return self._unicode_class()
        if kind.lower() not in PERL:
            return None
        self._at += 2
        return self._signed(PERL[kind.lower()], is_negated=kind.isupper())

    def _signed(self, ranges: Ranges, *, is_negated: bool) -> Ranges:
        folded = fold(ranges) if self._flags.fold_case else ranges
        return negate(folded) if is_negated else folded

    def _unicode_class(self) -> Ranges:
        start = self._at
        is_negated = self._pattern[start + 1] == "P"
        end = start + 3
        name = self._pattern[start + 2 : end]
        if name == "{":
            end = self._pattern.find("}", start) + 1
            if not end:
                self._fail("invalid character class range", start)
            name = self._pattern[start + 3 : end - 1]
        ranges = unicode_class(name.removeprefix("^"))
        if ranges is None:
            self._fail("invalid character class range", start, end)
        self._at = end
        return self._signed(ranges, is_negated=is_negated != name.startswith("^"))

    def _escaped_char(self) -> int:
        """Read a backslash and the character it stands before. Raises RegexError."""
        start = self._at
        self._at += 1
        if self._at == len(self._pattern):
            raise RegexError("trailing backslash at end of expression", "")
        char = self._pattern[self._at]
        for form, base in ((_OCTAL, 8), (_HEX_IN_BRACES, 16), (_HEX, 16)):
            match = form.match(self._pattern, self._at)
            code = None if match is None else int(match[form.groups], base)
            if match is not None and code is not None and code <= CODE_MAX:
                self._at = match.end()
                return code
        self._at += 1
        if char not in _CONTROLS and (not char.isascii() or char.isalnum()):
            self._fail("invalid escape sequence", start, self._bad_escape_end(char))
        return ord(_CONTROLS.get(char, char))

    def _bad_escape_end(self, char: str) -> int:
        """Where upstream gives up an escape."""
        if char != "x":
            return self._at
        if not self._pattern.startswith("{", self._at):
            return min(self._at + 2, len(self._pattern))
        code, at = 0, self._at + 1
        while at < len(self._pattern):
            digit = self._pattern[at]
            at += 1
            if digit not in "0123456789abcdefABCDEF":
                break
            code = code * 16 + int(digit, 16)
            if code > CODE_MAX:
                break
        return at

    # Classes in brackets.

    def _parse_class(self, start: int) -> Ranges:
        is_negated = self._pattern.startswith("^", self._at)
        self._at += is_negated
        first, found = self._at, list[tuple[int, int]]()
        while self._at == first or not self._pattern.startswith("]", self._at):
            found += self._class_part(start)
        self._at += 1
        return negate(found) if is_negated else merge(found)

    def _class_part(self, start: int) -> Ranges:
        part_start = self._at
        if part_start < len(self._pattern):
            ranges = self._posix_class() or self._escaped_class()
            if ranges is not None:
                return ranges
        low = high = self._class_char(start)
        following = self._pattern[self._at + 1 : self._at + 2]
        if self._pattern.startswith("-", self._at) and following not in {"", "]"}:
            self._at += 1
            high = self._class_char(start)
            if high < low:
                self._fail("invalid character class range", part_start, self._at)
        return fold([(low, high)]) if self._flags.fold_case else ((low, high),)

    def _posix_class(self) -> Ranges | None:
        start = self._at
        end = self._pattern.find(":]", start + 2)
        if not self._pattern.startswith("[:", start) or end < 0:
            return None
        name = self._pattern[start + 2 : end]
        if name.removeprefix("^") not in POSIX:
            self._fail("invalid character class range", start, end + 2)
        self._at = end + 2
        return self._signed(POSIX[name.removeprefix("^")], is_negated=name.startswith("^"))

    def _class_char(self, start: int) -> int:
        if self._at == len(self._pattern):
            self._fail("missing closing ]", start)
        if self._pattern[self._at] == "\\":
            return self._escaped_char()
        self._at += 1
        return ord(self._pattern[self._at - 1])


def _is_repeat_valid(regex: Regex, copies_max: int) -> bool:
    """Whether nested repetitions come to no more copies than allowed."""
    if isinstance(regex, Repeat):
        count = regex.least if regex.most is None else regex.most
        if regex.most == 0:
            return True
        if count > copies_max:
            return False
        return _is_repeat_valid(regex.part, copies_max // count if count else copies_max)
    if isinstance(regex, Concat):
        return all(_is_repeat_valid(part, copies_max) for part in regex.parts)
    if isinstance(regex, Alternate):
        return all(_is_repeat_valid(choice, copies_max) for choice in regex.choices)
    return True
