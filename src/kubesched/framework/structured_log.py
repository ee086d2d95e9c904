"""Structured log lines: a message with machine-readable keys and values.

Verbosity is that of Kubernetes (`-v`): V0 is INFO, and each further step is one level of the
standard library lower, so V10 is DEBUG. Callers check the level first, which makes a disabled
line almost free:

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
V2: Final = V0 - 2
V3: Final = V0 - 3
V4: Final = V0 - 4
V5: Final = V0 - 5
V6: Final = V0 - 6
V10: Final = V0 - 10

FIELDS: Final = "fields"
"""The attribute of a log record that holds keys and values."""


class ObjectRef(msgspec.Struct, frozen=True):
    """A reference to an object, for a log line.

    Attributes:
        name: Its name.
        namespace: "" for cluster-scoped objects.
    """

    name: str
    namespace: str = ""

    @classmethod
    def of(cls, key: str) -> Self:
        """Return the reference for `namespace/name` or `name`."""
        namespace, _, name = key.rpartition("/")
        return cls(name, namespace)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def level_of(verbosity: int) -> int:
    """Return the logging level of a verbosity; never 0, which would mean unset."""
    return max(V0 - verbosity, 1)


def verbosity_of(level: int) -> int:
    """Return the verbosity of a logging level; 0 for INFO and above."""
    return max(V0 - level, 0)


def write(log: logging.Logger, level: int, message: str, /, **fields: object) -> None:
    """Write one sentence without values, and fields, if the level is enabled.

    Levels are V0 to V10 and those of the standard library. Fields are texts, numbers, references,
    or other JSON values.
    """
    log.log(level, message, extra={FIELDS: fields}, stacklevel=2)
