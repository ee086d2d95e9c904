"""Random numbers of a simulation: one stream per concern, all from one seed.

Invariants: a stream depends on the seed and its name alone, so that drawing once more in one leaves
            the others as they are; streams are the same on every machine and under any
            PYTHONHASHSEED.
"""

from __future__ import annotations

from random import Random


class RandomStreams:
    """Hands out streams.

    Attributes:
        seed: What all streams come from.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Random] = {}

    def stream(self, concern: str) -> Random:
        """Return the stream of a concern; asking again returns the same one, where it stands."""
        found = self._streams.get(concern)
        if found is None:
            # Text is hashed with SHA-512 by `Random`, never with Python's own hash.
            found = self._streams[concern] = Random(f"{self.seed}/{concern}")
        return found
