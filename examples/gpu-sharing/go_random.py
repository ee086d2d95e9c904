"""The random source of Go's math/rand, so that a seed gives the orders that the paper's runs used.

It is an additive generator: each number is the sum, modulo 2^64, of those 607 and 273 draws before.
Go starts it from the seed and from the state that the generator itself reaches from seed 1 after
7.8e12 draws. Here that state is computed with powers of the generator's polynomial.
"""

from collections.abc import Iterator, MutableSequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LENGTH: Final = 607
TAP: Final = 273
JUMP: Final = 7_800_000_000_000
_PRIME: Final = (1 << 31) - 1
_SEED_OF_ZERO: Final = 89_482_311
_WORD: Final = (1 << 64) - 1

Words = NDArray[np.uint64]


class GoRandom:
    """Draws what a `rand.Rand` with the same seed draws."""

    def __init__(self, seed: int) -> None:
        # Oldest first; Go's array has the newest first, from the middle on.
        self._words = (_seeded(seed, 40, 20) ^ _cooked()).tolist()
        self._at = 0

    def word(self) -> int:
        """Return the next 64 bits."""
        words, at = self._words, self._at
        words[at] = found = (words[at] + words[at - TAP]) & _WORD
        self._at = (at + 1) % LENGTH
        return int(found)

    def below(self, limit: int) -> int:
        """Return what `Intn` returns: a number from 0 to `limit` - 1."""
        if limit & (limit - 1) == 0:
            return self._bits31() & (limit - 1)
        largest = _PRIME - (1 << 31) % limit
        while (found := self._bits31()) > largest:
            pass
        return found % limit

    def permutation(self, size: int) -> list[int]:
        """Return what `Perm` returns: the numbers from 0 to `size` - 1 in random order."""
        found: list[int] = []
        for number in range(size):
            at = self.below(number + 1)
            found.append(number)
            found[at], found[number] = number, found[at]
        return found

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle in place as `Shuffle` does; it scales 32 bits where `Intn` divides 31."""
        for last in range(len(items) - 1, 0, -1):
            at = self._scaled(last + 1)
            items[last], items[at] = items[at], items[last]

    def _bits31(self) -> int:
        return (self.word() >> 32) & _PRIME

    def _scaled(self, limit: int) -> int:
        while True:
            product = ((self.word() >> 31) & 0xFFFF_FFFF) * limit
            if product & 0xFFFF_FFFF >= (1 << 32) % limit:
                return product >> 32


def _seeded(seed: int, first: int, second: int) -> Words:
    """Return 607 words, oldest first, each mixed from three numbers of a small generator."""
    numbers = _small(seed % _PRIME or _SEED_OF_ZERO)
    for _ in range(20):
        next(numbers)
    words = [
        (next(numbers) << first) ^ (next(numbers) << second) ^ next(numbers) for _ in range(LENGTH)
    ]
    return _oldest_first(np.array([word & _WORD for word in words], np.uint64))


def _small(number: int) -> Iterator[int]:
    while True:
        number = 48_271 * number % _PRIME
        yield number


def _oldest_first(words: Words) -> Words:
    """Turn Go's order, in which draws go down from the middle, into the order of drawing."""
    return words[(LENGTH - TAP - 1 - np.arange(LENGTH)) % LENGTH]


@lru_cache(maxsize=1)
def _cooked() -> Words:
    """Return the words after `JUMP` draws from seed 1, at the places where Go leaves them."""
    later = _after(_seeded(1, 20, 10), JUMP)
    return np.roll(later, JUMP % LENGTH)


def _after(words: Words, draws: int) -> Words:
    """Return the words, oldest first, after a number of draws."""
    power = np.zeros(LENGTH, np.uint64)
    power[0] = 1
    for bit in f"{draws:b}":
        power = _reduced(np.convolve(power, power))
        if bit == "1":
            power = _reduced(np.concatenate([np.zeros(1, np.uint64), power]))
    drawn = [*words.tolist()]
    for at in range(LENGTH - 1):
        drawn.append((drawn[at] + drawn[at + LENGTH - TAP]) & _WORD)
    windows = np.lib.stride_tricks.sliding_window_view(np.array(drawn, np.uint64), LENGTH)
    return (windows * power).sum(axis=1, dtype=np.uint64)


def _reduced(power: Words) -> Words:
    """Replace x^607 by x^334 + 1, the generator's rule, until no such power is left."""
    while len(power) > LENGTH:
        low, high = power[:LENGTH], power[LENGTH:]
        power = np.zeros(max(LENGTH, LENGTH - TAP + len(high)), np.uint64)
        power[:LENGTH] = low
        power[: len(high)] += high
        power[LENGTH - TAP : LENGTH - TAP + len(high)] += high
    return power
