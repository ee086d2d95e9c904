"""The normalisation of scores, compared with plain integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.plugin import normalize_reversed, normalize_scores

_scores = st.lists(st.integers(0, 10**9), max_size=10)


@given(_scores)
def test_normalize(scores: list[int]) -> None:
    """The largest becomes 100, the others their share of it, rounded down."""
    largest = max(scores, default=0)
    expected = [score * 100 // largest if largest else score for score in scores]
    assert expected == normalize_scores(np.array(scores, np.int64)).tolist()


@given(_scores)
def test_normalize_reversed(scores: list[int]) -> None:
    """The largest becomes 0; without any score above 0 all become 100."""
    largest = max(scores, default=0)
    expected = [100 - (score * 100 // largest if largest else 0) for score in scores]
    assert expected == normalize_reversed(np.array(scores, np.int64)).tolist()
