"""The normalisation of scores that most score plugins use.

Upstream: pkg/scheduler/framework/plugins/helper/normalize_score.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

NODE_SCORE_MAX: Final = 100
NODE_SCORE_MIN: Final = 0
_UNSIGNED: Final = np.dtype(np.uint64)


def are_valid_scores(scores: NDArray[np.int64]) -> bool:
    """Whether every score is from 0 to 100."""
    if scores.dtype.char == "l":
        # Read as unsigned, a negative score is above all others, so that one pass is enough.
        unsigned = scores.view(_UNSIGNED)
        return not len(unsigned) or unsigned.item(unsigned.argmax()) <= NODE_SCORE_MAX
    # A plugin may have returned another type of numbers.
    least = np.minimum.reduce(scores, initial=NODE_SCORE_MAX)
    return bool(least >= NODE_SCORE_MIN and np.maximum.reduce(scores, initial=0) <= NODE_SCORE_MAX)


def normalize_scores(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return scores (int64 per row, none negative) scaled so that the largest becomes 100.

    Returns them unchanged if all are 0.
    """
    largest = int(scores.max(initial=0))
    return scores if largest == 0 else scores * NODE_SCORE_MAX // largest


def normalize_reversed(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return scores scaled so that the largest becomes 0; all become 100 if all are 0."""
    return NODE_SCORE_MAX - normalize_scores(scores)
