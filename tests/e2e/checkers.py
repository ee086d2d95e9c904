"""Invariants of every history, whatever failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from .history import Bound, Entry, LeaseWrite, Pod

# Candidates tell renewals apart by the whole second of their time only.
_EARLY_SECONDS: Final = 1.05


def violations(entries: Iterable[Entry]) -> list[str]:
    """Return the violations in a history that has ended."""
    known = list(entries)
    return [*_two_leaders(known), *_bound_twice(known), *_lost(known), *_wrong_leases(known)]


def _two_leaders(entries: list[Entry]) -> Iterator[str]:
    """A replica's bindings are accepted only while no other one has acquired the lease."""
    leader = ""
    for entry in entries:
        if isinstance(entry, LeaseWrite) and entry.holder:
            leader = entry.writer
        elif isinstance(entry, Bound) and entry.writer != leader:
            yield f"{entry.writer} bound {entry.pod} while {leader or 'nobody'} was the leader"


def _bound_twice(entries: list[Entry]) -> Iterator[str]:
    nodes: dict[str, str] = {}
    for entry in entries:
        if not isinstance(entry, Bound):
            continue
        if entry.uid in nodes or entry.former_node:
            before = nodes.get(entry.uid, entry.former_node)
            yield f"{entry.pod} was bound to {before} and again to {entry.node}"
        nodes[entry.uid] = entry.node


def _lost(entries: list[Entry]) -> Iterator[str]:
    waiting: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, Pod) and entry.is_there:
            waiting[entry.uid] = entry.name
        elif isinstance(entry, Pod | Bound):
            waiting.pop(entry.uid, None)
    if waiting:
        yield f"{len(waiting)} pods were never bound, such as {next(iter(waiting.values()))}"


def _wrong_leases(entries: list[Entry]) -> Iterator[str]:
    """A lease is taken over only if it has expired or was released, and each time is counted."""
    last: LeaseWrite | None = None
    names: dict[str, str] = {}
    for entry in entries:
        if not isinstance(entry, LeaseWrite):
            continue
        if entry.holder and names.setdefault(entry.writer, entry.holder) != entry.holder:
            yield f"{entry.writer} wrote a lease for {entry.holder}"
        if last is not None:
            yield from _wrong_step(last, entry)
        last = entry


def _wrong_step(last: LeaseWrite, entry: LeaseWrite) -> Iterator[str]:
    is_taken = entry.holder not in {"", last.holder}
    if is_taken and last.holder:
        age = entry.seconds - last.seconds
        if age < last.lease_seconds - _EARLY_SECONDS:
            yield f"{entry.writer} took the lease of {last.writer} after {age:.2f} s"
    if not entry.holder and entry.writer != last.writer:
        yield f"{entry.writer} gave back the lease of {last.writer}"
    expected = last.transitions + is_taken
    if entry.transitions != expected:
        yield f"{entry.writer} counted {entry.transitions} transitions instead of {expected}"
