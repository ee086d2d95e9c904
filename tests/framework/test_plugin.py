"""The defaults of a plugin that declares nothing, and the normalisation of scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.field_errors import ConfigError, FieldError, child, invalid
from kubesched.config.args import PluginArgs
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    PRE_SCORE_SKIP,
    UNSIGNED,
    FilterPlugin,
    PostFilterResult,
    PreFilterResult,
    PreScoreResult,
    Scope,
    ScorePlugin,
    normalize_reversed,
    normalize_scores,
)
from kubesched.framework.status import SUCCESS, NodeToStatus, Status, unschedulable
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod_info, make_table
from kubesched.testing.handle import FakeHandle


class Silent(FilterPlugin[None], ScorePlugin[None]):
    """Only the abstract methods."""

    name: ClassVar = "Silent"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Pass."""
        return NodeToStatus.passing(len(nodes))

    def score(
        self, state: None, pod: PodInfo, nodes: NodeTable
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return zeros."""
        return np.zeros(len(nodes), np.int64)


class ByRow(Silent):
    """Answers for one row without a table."""

    def filter_row(self, state: None, pod: PodInfo, nodes: NodeTable, row: int) -> Status:
        """Reject."""
        return unschedulable("one")

    def score_row(self, state: None, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Return 1."""
        return 1


class ReadsTheTemplate(Silent):
    """Declares that it reads nothing else of a pod."""

    per_template: ClassVar = True


class ReadsMore(ReadsTheTemplate):
    """Declares nothing."""


def test_a_subclass_does_not_inherit_what_its_parent_reads() -> None:
    """It may override any method."""
    assert [True, False] == [one.per_template for one in (ReadsTheTemplate, ReadsMore)]


class Otherwise(ByRow):
    """Overrides what `ByRow` answers for tables."""

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject."""
        return NodeToStatus.everywhere(len(nodes), unschedulable("all"))

    def score(
        self, state: None, pod: PodInfo, nodes: NodeTable
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return 7 for each."""
        return np.full(len(nodes), 7)


class _RejectsAll:
    """No plugin by itself."""

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject."""
        return NodeToStatus.everywhere(len(nodes), unschedulable("all"))


class Mixed(_RejectsAll, ByRow):
    """Inherits `filter` from a class that knows no `filter_row`."""


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (Silent, (SUCCESS, 0)),
        (ByRow, (unschedulable("one"), 1)),
        (Otherwise, (unschedulable("all"), 7)),
        (Mixed, (unschedulable("all"), 1)),
    ],
)
def test_one_row_has_its_answer_of_the_table(plugin: type[Silent], expected: object) -> None:
    """Unless the class itself, or one derived from it, answers for single rows."""
    one, table = plugin(None, FakeHandle()), make_table([make_node("n")])
    pod = make_pod_info()
    assert expected == (one.filter_row(None, pod, table, 0), one.score_row(None, pod, table, 0))


def test_nothing_is_remembered_of_it() -> None:
    """Without scope and signature, nothing is cached."""
    plugin = Silent(None, FakeHandle())
    assert (Scope.CLUSTER, None, ()) == (plugin.scope, plugin.score_scope, plugin.signed_kinds)
    assert UNSIGNED is plugin.sign(make_pod_info())
    assert not plugin.survivors_only


def test_any_event_may_help() -> None:
    """Without registered events, every event causes a retry."""
    assert Silent(None, FakeHandle()).events_to_register() is None


def test_arguments_are_handed_on() -> None:
    """Arguments that are not decoded reach the constructor unchanged."""
    raw: dict[str, object] = {"a": 1}
    assert raw is Silent.decode_args(raw, FakeHandle(), "path")
    assert Silent.decode_args(None, FakeHandle(), "path") is None


class WaitArgs(PluginArgs, frozen=True, kw_only=True):
    """A time."""

    seconds: int = 5

    def errors(self, path: str) -> Iterator[FieldError]:
        """Yield an error for times that are negative or odd."""
        place = child(path, "seconds")
        if self.seconds < 0:
            yield invalid(place, self.seconds, "is negative")
        if self.seconds % 2 == 0:
            yield invalid(place, self.seconds, "is even")


class Patient(Silent):
    """Has arguments."""

    args_type: ClassVar = WaitArgs


def test_arguments_are_decoded_into_their_type() -> None:
    """Absent ones have their defaults."""
    assert WaitArgs() == Patient.decode_args(None, FakeHandle(), "path")
    assert WaitArgs(seconds=7) == Patient.decode_args({"seconds": 7}, FakeHandle(), "path")


def test_all_errors_in_arguments_are_reported() -> None:
    """Those of the type's own rules, too."""
    with pytest.raises(ConfigError) as caught:
        Patient.decode_args({"seconds": -2}, FakeHandle(), "path")
    assert ["is negative", "is even"] == [
        str(error).rpartition(": ")[2] for error in caught.value.errors
    ]


def test_scores_stay_as_they_are() -> None:
    """Without normalizing, scores stay unchanged, and explain shows no details."""
    plugin, pod, scores = Silent(None, FakeHandle()), make_pod_info(), np.array([3, 5])
    assert not plugin.normalizes
    assert scores is plugin.normalize_score(None, pod, scores, np.arange(2))
    assert "" == plugin.describe(None, pod, make_table([]))


def test_results() -> None:
    """Results have status success by default."""
    assert (None, SUCCESS, None) == (
        PreFilterResult[None]().state,
        PreFilterResult[None]().status,
        PreFilterResult[None]().node_names,
    )
    assert (True, True) == (PRE_FILTER_SKIP.status.is_skip, PRE_SCORE_SKIP.status.is_skip)
    assert SUCCESS == PreScoreResult[None]().status
    result = PostFilterResult(SUCCESS)
    assert (None, ()) == (result.nominated_node_name, result.victims)


# Normalisation, compared with plain integers.


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
