"""Messages to users: UserError with the remedy, suggestions for misspelt names, slow plugins."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

EXIT_INPUT: Final = 2
"""What a command ends with if its input is wrong."""


class UserError(Exception):
    """An error in the input that the user can correct.

    Attributes:
        messages: One line per field error: what, where, and the remedy.
        exit_code: What the command ends with.
    """

    def __init__(self, *messages: str, exit_code: int = EXIT_INPUT) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages
        self.exit_code = exit_code


def cannot_listen(error: OSError, host: str, port: int) -> UserError:
    """Return why a port cannot be used, with the remedy."""
    if error.errno == errno.EADDRINUSE:
        return UserError(
            f"port {port} of {host} is taken; name another with --port, or leave it out for a free "
            "one"
        )
    if error.errno == errno.EACCES:
        return UserError(f"port {port} is not yours to use; name one above 1023 with --port")
    return UserError(f"port {port}: {error.strerror}")


_MESSAGES_MAX: Final = 10


def first_of(messages: Sequence[str], words: str) -> list[str]:
    """Return the first messages, and a line with the number of others, which `words` names."""
    more = len(messages) - _MESSAGES_MAX
    return [*messages[:_MESSAGES_MAX], *([f"and {more} more {words}"] if more > 0 else [])]


# Misspelt names.

NEAR_MAX: Final = 5
# Comparing is slow: with a million pods, a typing error must not take minutes.
_COMPARED_MAX: Final = 10_000
# A name that is this much less similar than the nearest one is not suggested.
_LESS_SIMILAR: Final = 0.15


def near_names(text: str, existing: Iterable[str]) -> list[str]:
    """Return similar names, best first: those that are nearly as similar as the best.

    Of many names, only those with the longest beginning in common are compared.
    """
    # Imported late: most names are written well.
    from difflib import SequenceMatcher, get_close_matches

    names = list(dict.fromkeys(existing))
    if len(names) > _COMPARED_MAX:
        names = [name for name in names if name[:2] == text[:2]]
        names.sort(key=lambda name: _in_common(name, text), reverse=True)
        del names[_COMPARED_MAX:]
    near = get_close_matches(text, names, n=NEAR_MAX)
    similar = [SequenceMatcher(None, name, text).ratio() for name in near]
    return [name for name, at in zip(near, similar, strict=True) if at > similar[0] - _LESS_SIMILAR]


def _in_common(name: str, other: str) -> int:
    """Return how many letters of their beginnings are equal."""
    letters = enumerate(zip(name, other, strict=False))
    return next((at for at, (one, two) in letters if one != two), min(len(name), len(other)))


def did_you_mean(text: str, existing: Iterable[str], otherwise: str, most: int = NEAR_MAX) -> str:
    """Return a question that suggests similar names, or another hint if there are none."""
    near = near_names(text, existing)[:most]
    return f"did you mean {' or '.join(near)}?" if near else otherwise


# Slow plugins, for commands that write no log.

_Report = Callable[[str, str], object]
_LOGGER: Final = "kubesched.framework.plugin_answers"
"""The module's name: to import it would take long, even for `--help`."""


class _SlowPlugins(logging.Handler):
    def __init__(self, report: _Report) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self._named: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, str] = vars(record)["fields"]
        method = f"{fields['plugin']}.{fields['method']}"
        if method not in self._named:
            self._named.add(method)
            self._report(method, fields["mean"])


@contextmanager
def naming_slow_plugins(report: _Report) -> Iterator[None]:
    """Call `report` for each slow method: `Plugin.method`, and its mean time, such as `0.3s`."""
    handler, log = _SlowPlugins(report), logging.getLogger(_LOGGER)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
