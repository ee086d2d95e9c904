"""The garbage collector of a process that serves: most of its objects are permanent."""

import gc
from typing import Final

_THRESHOLDS: Final = (10_000, 10, 1000)
"""The second generation has at most 100,000 objects, so collecting it takes some 20 ms."""


def tune_collector() -> None:
    """Tune the garbage collector after start-up, when most objects are permanent."""
    # Objects from the start are permanent; exclude them from collections.
    gc.collect()
    gc.freeze()
    # Most later objects live long too, and few of them are in cycles.
    gc.set_threshold(*_THRESHOLDS)
