"""PluginFailure ends a cycle because a plugin failed; it carries upstream's message.

Upstream: pkg/scheduler/framework/runtime/framework.go (v1.36)
Differs:  a status without a reason is named by its code; upstream's message ends with %!w(<nil>).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.plugin import NODE_SCORE_MAX, NODE_SCORE_MIN, are_valid_scores
from kubesched.framework.status import Code, Status

_PREFIXES: Final = {
    "pre_enqueue": 'running PreEnqueue plugin "{}": ',
    "pre_filter": 'running PreFilter plugin "{}": ',
    "add_pod": 'running AddPod on PreFilter plugin "{}": ',
    "remove_pod": 'running RemovePod on PreFilter plugin "{}": ',
    "filter": 'running "{}" filter plugin: ',
    "filter_row": 'running "{}" filter plugin: ',
    "pre_score": 'running PreScore plugin "{}": ',
    "score": 'running Score plugins: plugin "{}" failed with: ',
    "score_row": 'running Score plugins: plugin "{}" failed with: ',
    "normalize_score": 'running Normalize on Score plugins: plugin "{}" failed with: ',
    "sign": 'running Sign plugin "{}": ',
    "reserve": 'running Reserve plugin "{}": ',
    "permit": 'running Permit plugin "{}": ',
    "pre_bind_pre_flight": 'running PreBindPreFlight "{}": ',
    "pre_bind": 'running PreBind plugin "{}": ',
    "bind": 'running Bind plugin "{}": ',
    "generate_placements": 'running PlacementGenerate plugin "{}": ',
    "score_placement": 'running PlacementScore plugins: plugin "{}" failed with: ',
    "normalize_placement_scores": "running NormalizePlacementScore on PlacementScore plugins: "
    'plugin "{}" failed with: ',
}
"""Method -> upstream's prefix of its failures; {} is the plugin's name.

Of other methods, such as `post_filter`, upstream reports the plugin's error alone.
"""


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


def prefix_of(method: str, plugin: str) -> str:
    """Return what upstream writes before the text of a failure of a plugin's method."""
    return _PREFIXES.get(method, "").format(plugin)


def failure_of(method: str, plugin: str, text: str) -> Status:
    """Return the failure status of a plugin's method with upstream's message."""
    return Status(Code.ERROR, plugin=plugin, error=prefix_of(method, plugin) + text)


def failed_with(method: str, plugin: str, status: Status) -> Status:
    """Return the failure of a plugin whose status is neither a success nor a rejection."""
    text = status.message or f"the plugin returned {status.code.label} without a reason"
    return failure_of(method, plugin, text)


def reported(method: str, plugin: str, status: Status) -> Status:
    """Return a plugin's status with its name; a failure gets upstream's message."""
    if status.is_success or status.is_rejected:
        return status.by(plugin)
    return failed_with(method, plugin, status)


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
