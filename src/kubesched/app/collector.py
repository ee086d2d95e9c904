"""The garbage collector of a process that serves: most of its objects are permanent."""

import gc
from typing import Final

_THRESHOLDS: Final = (10_000, 1, 5000)
"""The second generation has at most 30,000 objects, so collecting it takes 5 to 20 ms."""


def tune_collector() -> None:
    """Tune the garbage collector when most objects are permanent.

    That is so after the imports, and again after start-up.
    """
    # What there is now is permanent; exclude it from collections. Hardly any of it is garbage.
    gc.freeze()
    # Most later objects live long too, and few of them are in cycles.
    gc.set_threshold(*_THRESHOLDS)
