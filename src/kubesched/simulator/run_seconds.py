"""The annotation of a simulated pod that says for how long it runs."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta

RUN_SECONDS: Final = "simulation/run-seconds"
"""The annotation that sets for how many seconds a pod runs."""


def with_run_seconds(metadata: ObjectMeta, seconds: float) -> ObjectMeta:
    """Return the metadata of a pod that runs for some seconds."""
    return replace(metadata, annotations={**metadata.annotations, RUN_SECONDS: repr(seconds)})


def run_seconds_of(pod: Pod) -> float | None:
    """Return for how long a pod runs, None if until it is deleted."""
    text = pod.metadata.annotations.get(RUN_SECONDS)
    return None if text is None else float(text)
