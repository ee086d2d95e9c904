"""Comparable forms of elections: how often a lease is renewed or read is left to chance.

Compared are the requests about the lease and the events about it, in their order, and what became
of the lease. Repetitions of what changes nothing but times count once; so do, where there are
two replicas, reads that found the lease, since a candidate reads it at random moments.

Differs:  an update that the recorded server gave up, as the client had gone away, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final

import msgspec

from .comparing import is_about_leases, recorded_requests
from .in_process_connection import Plain, Sent
from .names import Names
from .replay import Replayed

_GIVEN_UP: Final = 504
_TERM: Final = ("holderIdentity", "leaseDurationSeconds", "leaseTransitions")


class Terms(msgspec.Struct):
    """The states of a lease, without renewals.

    Attributes:
        states: Holder, duration and transitions, one after the other.
        renewals: The seconds between two renewals by the same holder.
    """

    states: list[tuple[Any, ...]]
    renewals: list[float]


def recorded_exchanges(record: Plain) -> list[Any]:
    """Return the recorded requests and events."""
    return _exchanges(record, recorded_requests(record), Names([record]))


def replayed_exchanges(record: Plain, replayed: Replayed) -> list[Any]:
    """Return the requests and events of a replay."""
    parts = [part for sent in replayed.sent for part in (sent.body, sent.response)]
    names = Names([parts, replayed.final])
    return _exchanges(record, replayed.sent, names)


def _exchanges(record: Plain, requests: Iterable[Sent], names: Names) -> list[Any]:
    replicas = sum(step.get("scheduler") == "start" for step in record["steps"])
    told = [
        (
            *(sent.client, sent.method, sent.path, sent.query, sent.code),
            *(names.calm(sent.body), names.calm(sent.response) if sent.method != "GET" else {}),
        )
        for sent in requests
        if is_about_leases(sent)
        and sent.code != _GIVEN_UP
        and not (replicas > 1 and sent.method == "GET" and sent.code == 200)
    ]
    # Events travel apart from the rest.
    leases = [one for one in told if one[0] == "leader-election"]
    events = [one for one in told if one[0] != "leader-election"]
    return [one for one, _ in groupby([*leases, *events])]


def recorded_terms(record: Plain) -> Terms:
    """Return the recorded history of the lease."""
    history = record["lease_history"]
    return _terms([(one["t"], one["spec"]) for one in history], Names([record]))


def replayed_terms(replayed: Replayed) -> Terms:
    """Return the states of the lease in a replay."""
    history = [(moment, lease["spec"]) for moment, lease in replayed.leases]
    return _terms(history, Names([replayed.final]))


def _terms(history: Sequence[tuple[float, Mapping[str, Any]]], names: Names) -> Terms:
    states = [tuple(names.calm(spec.get(name, "")) for name in _TERM) for _, spec in history]
    renewals = [
        after[0] - before[0]
        for before, after in pairwise(history)
        if before[1].get("holderIdentity") == after[1].get("holderIdentity")
    ]
    return Terms([state for state, _ in groupby(states)], renewals)
