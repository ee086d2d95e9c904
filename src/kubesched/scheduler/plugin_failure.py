"""PluginFailure ends a cycle because a plugin failed; it carries upstream's message.

Upstream: pkg/scheduler/framework/runtime/framework.go (v1.36)
Differs:  a status without a reason is named by its code; upstream's message ends with %!w(<nil>).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.normalize import NODE_SCORE_MAX, NODE_SCORE_MIN, are_valid_scores
from kubesched.framework.status import Code, NodeToStatus, Status
from kubesched.scheduler.row_answers import RowAnswers

# Upstream's message prefix of a failure at each extension point; {} is the plugin's name.
PRE_ENQUEUE: Final = 'running PreEnqueue plugin "{}": '
PRE_FILTER: Final = 'running PreFilter plugin "{}": '
FILTER: Final = 'running "{}" filter plugin: '
ADD_POD: Final = 'running AddPod on PreFilter plugin "{}": '
REMOVE_POD: Final = 'running RemovePod on PreFilter plugin "{}": '
PRE_SCORE: Final = 'running PreScore plugin "{}": '
SCORE: Final = 'running Score plugins: plugin "{}" failed with: '
SIGN: Final = 'running Sign plugin "{}": '
NORMALIZE: Final = 'running Normalize on Score plugins: plugin "{}" failed with: '
RESERVE: Final = 'running Reserve plugin "{}": '
PERMIT: Final = 'running Permit plugin "{}": '
PRE_BIND_PRE_FLIGHT: Final = 'running PreBindPreFlight "{}": '
PRE_BIND: Final = 'running PreBind plugin "{}": '
BIND: Final = 'running Bind plugin "{}": '
PLACEMENT_GENERATE: Final = 'running PlacementGenerate plugin "{}": '
PLACEMENT_SCORE: Final = 'running PlacementScore plugins: plugin "{}" failed with: '
PLACEMENT_NORMALIZE: Final = (
    'running NormalizePlacementScore on PlacementScore plugins: plugin "{}" failed with: '
)
PLAIN: Final = ""
"""No prefix: upstream reports the error of the plugin alone."""


class PluginFailure(Exception):  # noqa: N818 - upstream calls this outcome a failure
    """A plugin failed.

    Attributes:
        status: The status to report.
        reported: The text of the exception that was reported; "" if none was.
    """

    def __init__(self, status: Status, reported: str = "") -> None:
        super().__init__(status.message)
        self.status = status
        self.reported = reported


def failure_of(prefix: str, plugin: str, text: str) -> Status:
    """Return the failure status of a plugin with upstream's message."""
    return Status(Code.ERROR, plugin=plugin, error=prefix.format(plugin) + text)


def failed_with(prefix: str, plugin: str, status: Status) -> Status:
    """Return the failure of a plugin whose status is no success and no rejection."""
    text = status.message or f"the plugin returned {status.code.label} without a reason"
    return failure_of(prefix, plugin, text)


def reported(prefix: str, plugin: str, status: Status) -> Status:
    """Return a plugin's status with its name; a failure gets upstream's message."""
    if status.is_success or status.is_rejected:
        return status.by(plugin)
    return failed_with(prefix, plugin, status)


def raise_failures(answers: RowAnswers, found: NodeToStatus, position: int, plugin: str) -> None:
    """Raise if a row's first non-success status is a failure of this filter."""
    for status in found.statuses[1:]:
        if status.is_rejected:
            continue
        code = answers.table.codes.get(status.by(plugin))
        if code is not None and ((answers.index == code) & (answers.failed_at == position)).any():
            raise PluginFailure(failed_with(FILTER, plugin, status))


def check_scores(plugin: str, scores: NDArray[np.int64]) -> None:
    """Raise if a score is outside 0..100 after normalising."""
    if are_valid_scores(scores):
        return
    bad = scores[(scores < NODE_SCORE_MIN) | (scores > NODE_SCORE_MAX)]
    raise PluginFailure(
        Status(
            Code.ERROR,
            error=f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns '
            f"an invalid score {bad[0]}, it should in the range of "
            f"[{NODE_SCORE_MIN}, {NODE_SCORE_MAX}] after normalizing",
        )
    )
