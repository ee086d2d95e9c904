"""Random sources of a simulation: one stream per concern, all derived from one seed.

Invariants: a stream depends only on the seed and its name, so drawing from one does not affect the
            others; streams are the same on every machine and under any PYTHONHASHSEED.
"""

from __future__ import annotations

from random import Random


class RandomStreams:
    """Creates streams by name from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Random] = {}

    def stream(self, concern: str) -> Random:
        """Return the stream of a concern; later calls return the same object."""
        found = self._streams.get(concern)
        if found is None:
            # Text is hashed with SHA-512 by `Random`, never with Python's own hash.
            found = self._streams[concern] = Random(f"{self.seed}/{concern}")
        return found
