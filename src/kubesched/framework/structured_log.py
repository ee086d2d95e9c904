"""Structured log lines: a message, and keys with values that machines can read.

Verbosity is Kubernetes' (`-v`): V0 is INFO, and each step more is one level of the standard
library less, so that V10 is DEBUG. Whoever logs asks first, so that a line that nobody wants
costs a look into a cache:

    if log.isEnabledFor(V5):
        write(log, V5, "Pod moved to an internal scheduling queue", pod=ObjectRef.of(key))

Upstream: k8s.io/klog/v2, as vendored (v1.36)
Differs:  lines are written by the standard library's handlers.
"""

from __future__ import annotations

import logging
from typing import Final, Self

import msgspec

V0: Final = logging.INFO
V1: Final = V0 - 1
V2: Final = V0 - 2
V3: Final = V0 - 3
V4: Final = V0 - 4
V5: Final = V0 - 5
V6: Final = V0 - 6
V10: Final = V0 - 10

FIELDS: Final = "fields"
"""The attribute of a log record that holds keys and values."""


class ObjectRef(msgspec.Struct, frozen=True):
    """An object by its name, for a log line.

    Attributes:
        name: Its name.
        namespace: "" for objects that live in none.
    """

    name: str
    namespace: str = ""

    @classmethod
    def of(cls, key: str) -> Self:
        """Return the reference for `namespace/name`, or for a name alone."""
        namespace, _, name = key.rpartition("/")
        return cls(name, namespace)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def level_of(verbosity: int) -> int:
    """Return the level of a verbosity; never 0, which would mean that nothing is set."""
    return max(V0 - verbosity, 1)


def verbosity_of(level: int) -> int:
    """Return the verbosity of a level; 0 for everything from INFO up."""
    return max(V0 - level, 0)


def write(log: logging.Logger, level: int, message: str, /, **fields: object) -> None:
    """Write a line if the level is wanted.

    Args:
        log: Where to.
        level: V0 to V10, or a level of the standard library.
        message: One sentence without values.
        fields: Texts, numbers, references, or anything that JSON knows.
    """
    log.log(level, message, extra={FIELDS: fields}, stacklevel=2)
