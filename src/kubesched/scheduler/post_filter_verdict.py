"""PostFilterVerdict makes one result of what the PostFilter plugins say, one after another.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunPostFilterPlugins (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import msgspec

from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.status import Code, Status


class PostFilterVerdict:
    """What has been said so far."""

    __slots__ = ("_last", "_reasons", "_rejector")

    def __init__(self) -> None:
        self._reasons: list[str] = []
        self._last: PostFilterResult | None = None
        self._rejector = ""

    def add(self, plugin: str, result: PostFilterResult) -> PostFilterResult | None:
        """Take in what a plugin says; return the outcome if nobody else is to be asked."""
        status = result.status.by(plugin)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return result
        if not status.is_rejected:
            return PostFilterResult(Status(Code.ERROR, plugin=plugin, error=status.message))
        if result.nominated_node_name is not None:
            self._last = result
        self._reasons.extend(status.all_reasons)
        self._rejector = self._rejector or plugin
        return None

    def outcome(self) -> PostFilterResult:
        """Return the outcome after every plugin was asked."""
        status = Status(Code.UNSCHEDULABLE, tuple(self._reasons), self._rejector)
        if self._last is None:
            return PostFilterResult(status)
        return msgspec.structs.replace(self._last, status=status)
