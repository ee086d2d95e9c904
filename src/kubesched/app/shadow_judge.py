"""ShadowJudge decides what another scheduler decides, in the same cluster, and compares.

A decision is compared in the cluster as it is when the decision is seen, before it is applied. The
other scheduler decided earlier, seconds earlier when its client throttles writes: it knows its own
bindings and nominations at once, and one write can overtake another. Where the answers differ, the
judge decides again without the last changes, without the pods that were queued behind, and, a
second later, with changes that were seen late, and with what was decided before but written later.

Reads:    the cache of a scheduler that the event handlers keep current
Differs:  states of the cluster are tried, not reconstructed, so the state in which both agree need
          not be the one that the other scheduler saw.
Invariants: cache and nominations are unchanged after each comparison.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from time import perf_counter
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.core import FINISHED, Node, Pod
from kubesched.cache.cache import Cache
from kubesched.explain.explain import explain_decision
from kubesched.explain.report import PodExplanation
from kubesched.explain.sentences import count
from kubesched.explain.shadow_report import Disagreement, ScoreDifference, ShadowVerdict
from kubesched.framework.disabled_fields import without_disabled_fields
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.decision_recorder import RecordedDecision
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.pod_info import PodInfo, uid_of

SETTLE_SECONDS: Final = 1.0
"""How long the judge waits for changes that are seen late."""
KEPT_MAX: Final = 1000
"""How many disagreements of each verdict are kept."""

_SAME: Final = "kubesched decides the same"
_RECENT_MAX: Final = 2048
_STEPS_MAX: Final = 16
_STEPS: Final = (*range(1, 33), *(int(32 * 1.08**power) for power in range(1, 46)))
"""How many of the last changes are undone, in turn."""
_STEPS_MIN: Final = 2
"""Up to here, states are tried even when time is short: most agree after one or two changes."""
_LAG_SECONDS_MAX: Final = 10.0
"""The age up to which changes are undone: a throttled client writes decisions this late."""
_SEARCH_SHARE: Final = 0.3
"""The share of time in which states are tried. A judge that falls behind sees changes late."""
_SEARCH_SECONDS_MAX: Final = 5.0
"""How much of that time can be saved up."""
_PAUSE_SECONDS_MAX: Final = 0.5
"""How long one search may keep the judge from seeing changes."""
_SAMPLED_NODES_MIN: Final = 100
"""Schedulers look at all nodes of clusters of this size, whatever the configuration says."""


class ShadowChoice(msgspec.Struct, frozen=True):
    """A decision of kubesched.

    Attributes:
        node: The node; "" if there is none.
        message: Why there is none.
        best: All nodes of the highest score.
        version: The last resource version in the cluster that it was made on.
        changes: How many changes had been noted then.
        nominated: The node to which the pod would be nominated, "" for none.
    """

    node: str
    message: str
    best: frozenset[str]
    version: str
    changes: int
    nominated: str = ""

    def equals(self, theirs: RecordedDecision) -> bool:
        """Whether it has the same node or message."""
        return (self.node, self.message) == (theirs.node, theirs.message)

    def agrees(self, theirs: RecordedDecision) -> bool:
        """Whether the other scheduler may have made this decision."""
        return self.equals(theirs) or theirs.node in self.best


class _Chosen(NamedTuple):
    """A decision of kubesched, and a function that explains it while the cluster is unchanged."""

    choice: ShadowChoice
    decision: Decision
    explain: Callable[[], PodExplanation]


class _Change(msgspec.Struct, frozen=True):
    """A change of a node, of a pod on a node, or of a nomination; `at` is on the loop's clock.

    `place` is that of the pod in the other scheduler's queue, if the change is its binding or
    nomination. `old` is None for a new object, or a pod that was neither bound nor nominated; `new`
    is None for a deleted one.
    """

    number: int
    at: float
    place: tuple[int, int] | None
    old: Pod | Node | None
    new: Pod | Node | None

    @property
    def inverse(self) -> _Change:
        """The change that undoes it."""
        return replace(self, old=self.new, new=self.old)

    def is_ahead_of(self, place: tuple[int, int]) -> bool:
        """Whether it was decided for a pod that was queued before this place."""
        return self.place is not None and self.place < place


class _Open(msgspec.Struct, frozen=True):
    """A comparison that bindings may still explain; `is_hurried` if states were left out."""

    info: PodInfo
    theirs: RecordedDecision
    number: int
    place: tuple[int, int]
    behind: frozenset[str]
    found: Disagreement
    is_hurried: bool


class _SearchTime:
    """Limits the time for trying states of a live cluster, which does not wait.

    `was_short` says whether the last search ended before it had tried all states.
    """

    def __init__(self, *, is_live: bool) -> None:
        self.was_short = False
        self._is_live = is_live
        self._left = _SEARCH_SECONDS_MAX
        self._seen = self._end = perf_counter()

    @contextmanager
    def search(self) -> Iterator[None]:
        self.was_short = False
        began = perf_counter()
        saved = self._left + _SEARCH_SHARE * (began - self._seen)
        self._left = min(saved, _SEARCH_SECONDS_MAX)
        self._end = began + min(self._left, _PAUSE_SECONDS_MAX)
        try:
            yield
        finally:
            self._seen = perf_counter()
            self._left -= self._seen - began

    def is_over(self, steps: int) -> bool:
        """Whether the search has to end before it goes so many steps from the present."""
        if self._is_live and steps > _STEPS_MIN and perf_counter() >= self._end:
            self.was_short = True
        return self.was_short


class ShadowJudge:
    """Compares decisions.

    Attributes:
        version: The last resource version that was applied to the cache.
        counts: Judged decisions by verdict.
        bound: Number of bindings among them.
        agreed_late: Number of agreements where kubesched's first decision had differed.
        hurried: Number of decisions called Different for which not all states were tried.
        lost: Number of pods that the other scheduler placed and kubesched did not.
        gained: Number of pods that kubesched placed and the other scheduler did not.
        disagreements: The first ones of each verdict.
    """

    def __init__(self, scheduler: Scheduler, *, samples: bool, is_live: bool) -> None:
        """Set up; the scheduler's cache and nominator are the cluster, and its loop does not run.

        `samples` says whether the other scheduler looks at a part of the nodes of a large cluster,
        `is_live` whether the cluster goes on while decisions are compared.
        """
        self._scheduler = scheduler
        self._cache: Cache = scheduler.cache
        # All profiles share them.
        self._gates = next(iter(scheduler.profiles.values())).feature_gates
        self._samples = samples
        self._recent: deque[_Change] = deque(maxlen=_RECENT_MAX)
        self._open: dict[int, _Open] = {}
        self._opened = 0
        # The nodes of pods that were left pending while kubesched would have preempted for them.
        self._nominated: dict[str, str] = {}
        self._numbers = 0
        self.version = ""
        self.counts: Counter[ShadowVerdict] = Counter()
        self.bound = 0
        self.agreed_late = 0
        self.hurried = 0
        self._time = _SearchTime(is_live=is_live)
        self.lost = self.gained = 0
        self.disagreements: list[Disagreement] = []

    def choose(self, info: PodInfo) -> ShadowChoice:
        """Decide in the cluster as it is now."""
        return self._choose(info).choice

    def _choose(self, info: PodInfo) -> _Chosen:
        snapshot = self._cache.snapshot(self._scheduler.queue.nominator)
        trace = Trace()
        decision = self._scheduler.cycles[info.scheduler_name].schedule_one(info, snapshot, trace)
        if isinstance(decision, Placed):
            best = frozenset({decision.node_name})
            if trace.totals is not None:
                rows = trace.feasible_rows[trace.totals == np.max(trace.totals)]
                best = frozenset(snapshot.nodes.names[row] for row in rows.tolist())
            choice = ShadowChoice(decision.node_name, "", best, self.version, self._numbers)
        else:
            nominated = decision.nominated_node_name if isinstance(decision, Rejected) else ""
            choice = ShadowChoice(
                "", decision.message, frozenset(), self.version, self._numbers, nominated or ""
            )
        profile = self._scheduler.profiles[info.scheduler_name]
        explain = partial(explain_decision, profile, snapshot, trace, decision)
        return _Chosen(choice, decision, explain)

    def judge(
        self, info: PodInfo, theirs: RecordedDecision, first: ShadowChoice, number: int
    ) -> None:
        """Compare a decision of the other scheduler that is not yet applied to the cache.

        `first` is what kubesched decided when the pod appeared, as the `number`th.
        """
        self.bound += bool(theirs.node)
        chosen = self._choose(info)
        choice = chosen.choice
        nominated = self._nominated.pop(info.uid, first.nominated)
        if choice.nominated and not theirs.node:
            self._nominated[info.uid] = choice.nominated
        found = _compared(info, theirs, chosen)
        if found is None:
            self.counts[ShadowVerdict.AGREED] += 1
            self.agreed_late += not first.agrees(theirs)
            return
        if found.verdict is ShadowVerdict.TIE:
            self._keep(found)
            return
        place = _place_of(info.pod, number)
        behind = self._done_behind(place, first.changes)
        with self._time.search():
            words = self._agrees_earlier(info, theirs, behind)
        if not words and first.agrees(theirs):
            words = f"kubesched decided the same when the pod appeared, at version {first.version}"
        if not words and theirs.node and theirs.node == nominated:
            words = "kubesched nominated it to that node, too, when it preempted"
        if words:
            self._keep_changed(found, words)
        else:
            is_hurried = self._time.was_short
            opened = _Open(info, theirs, self._numbers, place, behind, found, is_hurried)
            self._opened += 1
            self._open[self._opened] = opened
            loop = asyncio.get_running_loop()
            loop.call_later(SETTLE_SECONDS, self._settle, self._opened)

    def judge_exactly(self, info: PodInfo, theirs: RecordedDecision) -> Decision:
        """Compare a decision that was made in the cluster as it is now; return kubesched's."""
        self.bound += bool(theirs.node)
        chosen = self._choose(info)
        found = _compared(info, theirs, chosen)
        nominated, ours = theirs.nominated_node or "", chosen.choice.nominated
        if found is not None:
            self._keep(found)
        elif nominated != ours:
            words = f"nominated to {nominated or 'no node'}; kubesched nominates {ours or 'none'}"
            found = _disagreement(info, theirs, chosen.choice, words)
            # Which nodes are tried for preemption begins at a random one.
            self._keep(self._sampled(found) if nominated and ours else found)
        else:
            self.counts[ShadowVerdict.AGREED] += 1
        return chosen.decision

    def judge_held(self, info: PodInfo, theirs: RecordedDecision, plugin: str) -> None:
        """Compare a decision with a PreEnqueue plugin that holds the pod back."""
        self.bound += bool(theirs.node)
        held = f"held back by {plugin}"
        words = f"bound to {theirs.node}" if theirs.node else f"left pending ({theirs.message})"
        self._keep(
            Disagreement(
                pod=info.key,
                uid=info.uid,
                verdict=ShadowVerdict.DIFFERENT,
                sentence=f"{words}; kubesched: {held}",
                their_node=theirs.node,
                their_message=theirs.message,
                our_message=held,
                decided_version=self.version,
            )
        )

    def note_change(
        self, old: Pod | Node | None, new: Pod | Node | None, number: int | None = None
    ) -> None:
        """Remember a change that was applied to the cache; None for a missing object.

        `number` is that of the pod, if it was pending.
        """
        old, new = self._in_cache(old), self._in_cache(new)
        if old is None and new is None:
            return
        place = None
        if number is not None and isinstance(new, Pod):
            place = _place_of(new, number)
        self._numbers += 1
        self._recent.append(
            _Change(self._numbers, asyncio.get_running_loop().time(), place, old, new)
        )

    def _in_cache(self, item: Pod | Node | None) -> Pod | Node | None:
        """Return an object as it is in the cache or nominator, None if it is in neither."""
        if not isinstance(item, Pod):
            return item
        is_there = item.spec.node_name or item.status.nominated_node_name
        if not is_there or item.status.phase in FINISHED:
            return None
        return without_disabled_fields(item, self._gates)

    def settle_all(self) -> None:
        """Judge what is still open, at the end."""
        for number in tuple(self._open):
            self._settle(number)

    # The cluster a little earlier or later.

    def _agrees_earlier(
        self, info: PodInfo, theirs: RecordedDecision, behind: frozenset[str]
    ) -> str:
        """Return in which earlier state of the cluster the decisions agree, "" if in none."""
        with self._without(behind):
            if behind and self.choose(info).agrees(theirs):
                return f"without {count(len(behind), 'pod')} queued behind it, {_SAME}"
        with closing(self._states_before(list(self._recent))) as states:
            for steps in states:
                if self.choose(info).agrees(theirs):
                    return f"{count(steps, 'change')} earlier, {_SAME}"
        return ""

    def _agrees_later(self, opened: _Open) -> str:
        """Return with which later changes the decisions agree, "" if with none."""
        info, theirs = opened.info, opened.theirs
        later = [change for change in self._recent if change.number > opened.number]
        for steps in range(1, min(_STEPS_MAX, len(later)) + 1):
            if self._time.is_over(steps):
                return ""
            with self._undone(later[steps:]), self._without({info.uid}):
                if self.choose(info).agrees(theirs):
                    return f"{count(steps, 'change')} later, {_SAME}"
        return self._agrees_in_order(opened, later)

    def _agrees_in_order(self, opened: _Open, later: Sequence[_Change]) -> str:
        """Return the earlier state in which both agree, given decisions that were made before.

        The other scheduler knows its own decisions at once, and writes them later. It had decided
        about pods that were ahead in the queue, or whose decisions were written before.
        """
        info, theirs, place = opened.info, opened.theirs, opened.place
        before = [change for change in self._recent if change.number <= opened.number]
        with self._undone(later), closing(self._states_before(before, now=True)) as states:
            for steps in states:
                written = before[len(before) - steps :]
                undone = [*written, *later]
                orders = (
                    ([each for each in undone if each.is_ahead_of(place)], opened.behind),
                    ([each for each in written if each.place is not None], frozenset[str]()),
                )
                for ahead, gone in orders:
                    with self._changed(ahead), self._without({info.uid, *gone}):
                        if self.choose(info).agrees(theirs):
                            words = f"{count(steps, 'change')} earlier, " if steps else ""
                            return f"{words}with what it had decided before, {_SAME}"
        return ""

    def _states_before(
        self, changes: Sequence[_Change], *, now: bool = False
    ) -> Generator[int, None, None]:
        """Undo ever more of the last changes; yield their number, and redo them when closed."""
        oldest = _oldest()
        young = sum(change.at >= oldest for change in changes)
        most = min(len(changes), max(young, _STEPS_MAX))
        undone = 0
        with ExitStack() as stack:
            if now:
                yield 0
            for steps in _STEPS:
                first = len(changes) - min(steps, most)
                last = len(changes) - undone
                if first == last or self._time.is_over(steps):
                    return
                stack.enter_context(self._undone(changes[first:last]))
                undone = len(changes) - first
                yield undone

    def _done_behind(self, place: tuple[int, int], since: int) -> frozenset[str]:
        """Return the pods that were bound or nominated recently although queued behind.

        The first `since` changes were seen before the pod of that place appeared.
        """
        oldest = _oldest()
        return frozenset(
            uid_of(change.new)
            for change in self._recent
            if change.place is not None
            and change.place > place
            and change.number > since
            and change.at >= oldest
            and isinstance(change.new, Pod)
        )

    @contextmanager
    def _without(self, uids: Collection[str]) -> Iterator[None]:
        """Take pods off their nodes, and off those they are nominated to, for a moment."""
        nominator = self._scheduler.queue.nominator
        found = [self._cache.remove_pod(uid) for uid in sorted(uids)]
        nominations = [
            (nominee, node)
            for node in sorted({nominator.node_of(uid) for uid in uids} - {""})
            for nominee in nominator.on_node(node)
            if nominee.uid in uids
        ]
        for nominee, _ in nominations:
            nominator.delete(nominee.uid)
        try:
            yield
        finally:
            for info in found:
                if info is not None:
                    self._cache.add_pod(info.pod)
            for nominee, node in nominations:
                nominator.put(nominee, node)

    @contextmanager
    def _changed(self, changes: Sequence[_Change]) -> Iterator[None]:
        for change in changes:
            self._apply(change.old, change.new)
        try:
            yield
        finally:
            for change in reversed(changes):
                self._apply(change.new, change.old)

    def _undone(self, changes: Sequence[_Change]) -> AbstractContextManager[None]:
        return self._changed([change.inverse for change in reversed(changes)])

    def _apply(self, old: Pod | Node | None, new: Pod | Node | None) -> None:
        if isinstance(new, Node):
            # Added and removed nodes are not undone.
            if old is not None:
                self._cache.add_node(new)
            return
        nominator = self._scheduler.queue.nominator
        if isinstance(old, Pod) and not old.spec.node_name:
            nominator.delete(uid_of(old))
        if isinstance(new, Pod) and new.spec.node_name:
            if self._cache.get_pod(uid_of(new)) is None:
                self._cache.add_pod(new)
            else:
                self._cache.update_pod(new)
            return
        if isinstance(old, Pod) and old.spec.node_name:
            self._cache.remove_pod(uid_of(old))
        if isinstance(new, Pod):
            nominator.put(PodInfo(new), new.status.nominated_node_name)

    def _settle(self, number: int) -> None:
        opened = self._open.pop(number, None)
        if opened is None:
            return
        with self._time.search():
            words = self._agrees_later(opened)
        if words:
            self._keep_changed(opened.found, words)
            return
        found = self._sampled(opened.found) if opened.found.scores else opened.found
        if found.verdict is ShadowVerdict.DIFFERENT:
            self.hurried += opened.is_hurried or self._time.was_short
        self._keep(found)

    def _sampled(self, found: Disagreement) -> Disagreement:
        """Return it as Sampled, if the other scheduler looks at a part of the nodes."""
        if not self._samples or len(self._cache.nodes) <= _SAMPLED_NODES_MIN:
            return found
        return replace(found, verdict=ShadowVerdict.SAMPLED)

    def _keep_changed(self, found: Disagreement, words: str) -> None:
        sentence = f"{found.sentence}; {words}"
        self._keep(replace(found, verdict=ShadowVerdict.CHANGED, sentence=sentence))

    def _keep(self, found: Disagreement) -> None:
        if self.counts[found.verdict] < KEPT_MAX:
            self.disagreements.append(found)
        self.counts[found.verdict] += 1
        if found.verdict is ShadowVerdict.DIFFERENT and found.their_node != found.our_node:
            self.lost += not found.our_node
            self.gained += not found.their_node


def _compared(info: PodInfo, theirs: RecordedDecision, chosen: _Chosen) -> Disagreement | None:
    """Return how two decisions disagree, None if they do not."""
    choice = chosen.choice
    if choice.equals(theirs):
        return None
    if choice.agrees(theirs):
        words = f"{theirs.node} and {choice.node} have the same score"
        return _disagreement(info, theirs, choice, words, ShadowVerdict.TIE)
    return _explained(_disagreement(info, theirs, choice), chosen.explain())


def _disagreement(
    info: PodInfo,
    theirs: RecordedDecision,
    ours: ShadowChoice,
    sentence: str = "",
    verdict: ShadowVerdict = ShadowVerdict.DIFFERENT,
) -> Disagreement:
    return Disagreement(
        pod=info.key,
        uid=info.uid,
        verdict=verdict,
        sentence=sentence,
        their_node=theirs.node,
        their_message=theirs.message,
        our_node=ours.node,
        our_message=ours.message,
        seen_version=theirs.version or info.pod.metadata.resource_version,
        decided_version=ours.version,
    )


def _oldest() -> float:
    """Return the time of the oldest change that a decision seen now may have missed."""
    return asyncio.get_running_loop().time() - _LAG_SECONDS_MAX


def _place_of(pod: Pod, number: int) -> tuple[int, int]:
    return -(pod.spec.priority or 0), number


def _explained(found: Disagreement, report: PodExplanation) -> Disagreement:
    """Return a disagreement that is not a tie, with its reasons."""
    theirs, ours = found.their_node, found.our_node
    differences: tuple[ScoreDifference, ...] = ()
    if not theirs and ours:
        words = f"left pending ({found.their_message}); kubesched chooses {ours}"
    elif not theirs:
        words = f"left pending: {found.their_message} kubesched's reasons: {found.our_message}"
    else:
        by_node = {score.node: score for score in report.scores}
        lower, higher = by_node.get(theirs), by_node.get(ours)
        if lower is not None and higher is not None:
            differences = tuple(
                ScoreDifference(low.plugin, low.weighted, high.weighted)
                for low, high in zip(lower.scores, higher.scores, strict=True)
                if low.weighted != high.weighted
            )
            listed = ", ".join(f"{one.plugin} {one.theirs} to {one.ours}" for one in differences)
            totals = f"{lower.total} to {higher.total} ({listed})"
            words = f"bound to {theirs}, which scores lower than {ours}: {totals}"
        else:
            instead = f"kubesched chooses {ours}" if ours else f"kubesched: {found.our_message}"
            words = f"bound to {theirs}, {_why_not(theirs, report)}; {instead}"
    return replace(found, sentence=words, scores=differences)


def _why_not(node: str, report: PodExplanation) -> str:
    verdict = next((verdict for verdict in report.nodes if verdict.node == node), None)
    if verdict is None:
        return "which is not known"
    if verdict.feasible:
        return "which fits too"
    if not verdict.tried:
        return "which was not tried"
    reasons = "; ".join(
        f"{answer.plugin}: {answer.detail or answer.message}" for answer in verdict.rejections
    )
    return f"which does not fit ({reasons})"
