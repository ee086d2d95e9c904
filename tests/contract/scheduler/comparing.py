"""Comparable forms of a recording and of its replay.

What is compared, per pod (FORMAT.md: requests about different pods may interleave, and events
travel apart from the other writes):

* the writes in their order: method, path, query, body, code and answer, and after which step of
  the script;
* the events in their order: the whole body and the answer, and when they became a series;
* every change of the pod: phase, node, nomination, deletion, the two conditions;
* what an extender was asked, in order, about which nodes in any order (upstream filters them in
  parallel);

what is read, with its parameters, in any order; the order in which victims are deleted; and the
whole objects at the end. Uids stand for what they belong to, versions for their number in the
history of their object, and current times for nothing.

The order of bindings is not compared: upstream's goroutines send them in any order. Requests of
the secure port (`client` without a name of its own) and of elections are compared elsewhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kubesched.api.codec import decode_object
from kubesched.api.scheme import kind_of

from .in_process_connection import Plain, Sent
from .names import Names, calm_name, identities
from .recorded_extender import Asked
from .replay import Replayed

_ROUNDING_SECONDS: Final = 0.006
_NAMED: Final = ("pods", "persistentvolumes", "persistentvolumeclaims")
_CONDITION: Final = ("status", "reason", "message")
_READS: Final = ("GET",)

ByPod = dict[str, list[Any]]


class Story:
    """The comparable content of a recording or replay.

    Attributes:
        writes, events, changes, asked: By pod, or other object written to.
        reads: Client, path and parameters of what was read.
        bindings, deletions: Names of pods, in the order in which the scheduler asked for it.
        final: Objects by kind, then name.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._event_names: dict[str, tuple[str, int]] = {}
        self.reads: set[tuple[str, str, str]] = set()
        self.writes: ByPod = {}
        self.events: ByPod = {}
        self.changes: ByPod = {}
        self.asked: ByPod = {}
        self.bindings: list[str] = []
        self.deletions: list[str] = []
        self.final: dict[str, dict[str, Any]] = {}

    def request(self, sent: Sent) -> None:
        """Add a request of the scheduler."""
        if sent.client != "scheduler" or is_about_leases(sent):
            return
        if sent.method in _READS:
            self._read(sent)
        elif "/events" in sent.path:
            self._event(sent)
        else:
            self._write(sent)

    def _read(self, sent: Sent) -> None:
        parts = [(name, calm_parameter(name, value)) for name, value in sent.query.items()]
        self.reads.add((sent.client, sent.path, repr(sorted(parts))))

    def _write(self, sent: Sent) -> None:
        parts = sent.path.split("/")
        name = next(parts[at + 1] for at in (-3, -2) if parts[at] in _NAMED)
        if sent.path.endswith("/binding"):
            self.bindings.append(name)
        if sent.method == "DELETE":
            self.deletions.append(name)
        self.writes.setdefault(name, []).append((sent.steps, *self._told(sent)))

    def _told(self, sent: Sent) -> tuple[Any, ...]:
        path = calm_name(sent.path)
        body, answer = self._names.calm(sent.body), self._names.calm(sent.response)
        return sent.client, sent.method, path, sent.query, sent.code, body, answer

    def _event(self, sent: Sent) -> None:
        if sent.method == "POST":
            about = sent.body["regarding"]
            told = self.events.setdefault(about["name"], [])
            self._event_names[sent.body["metadata"]["name"]] = (about["name"], len(told))
            told.append((sent.steps, *self._told(sent)))
            return
        pod, at = self._event_names[sent.path.rpartition("/")[2]]
        self.events[pod].append((sent.steps, *self._told(sent), "series", at))

    def change(
        self, kind: str, pod: str, phase: str, node: str | None, nominated: str | None,
        deleting: object, grace: int | None, conditions: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Add a change of a pod."""
        told = {
            name: [self._names.calm(conditions[name].get(part, "")) for part in _CONDITION]
            for name in ("PodScheduled", "DisruptionTarget")
            if name in conditions
        }
        change = (kind, phase, node, nominated, bool(deleting), grace, told)
        self.changes.setdefault(pod.rpartition("/")[2], []).append(change)

    def end(self, final: Mapping[str, Sequence[Plain]]) -> None:
        """Add the final objects."""
        for kind, items in final.items():
            named = self.final.setdefault(kind, {})
            for item in items:
                calm = self._names.calm(item)
                # Events are identified by their content.
                name = (
                    json.dumps(calm, sort_keys=True)
                    if kind == "events"
                    else calm["metadata"]["name"]
                )
                named[name] = calm

    def question(self, asked: Asked) -> None:
        """Add a request to an extender."""
        body = {name: _full(self._names.calm(_asked(value))) for name, value in asked.body.items()}
        if body.get("NodeNames"):
            body["NodeNames"].sort()
        self.asked.setdefault(asked.pod, []).append((asked.path, body))


def is_about_leases(sent: Sent) -> bool:
    """Whether a request is about an election."""
    about: Plain = sent.body.get("involvedObject", {})
    return "/leases" in sent.path or about.get("kind") == "Lease"


def calm_parameter(name: str, value: str) -> str:
    """Return a parameter's value without versions and random parts."""
    if name == "timeoutSeconds":
        is_usual = value == "<300..600>" or 300 <= int(value) <= 600
        return "<300..600>" if is_usual else value
    return "<rv>" if name == "resourceVersion" and value != "0" else value


def _full(value: Any) -> Any:
    """Return a value without its empty mappings, which our objects do not have."""
    if isinstance(value, dict):
        return {name: _full(item) for name, item in value.items() if item != {}}
    return [_full(item) for item in value] if isinstance(value, list) else value


def _projected(item: Plain) -> Plain:
    """Return an object with only the fields that the scheduler's classes have."""
    found = decode_object(item)
    values: Plain = msgspec.to_builtins(found)
    kind = kind_of(type(found))
    return {**values, "apiVersion": kind.api_version, "kind": kind.kind}


def _asked(value: Any) -> Any:
    """Project the objects of a request to an extender."""
    match value:
        case {"items": items}:
            return sorted(
                (_asked(item) for item in items), key=lambda node: node["metadata"]["name"]
            )
        case {"metadata": _, "spec": {"containers": _}}:
            return _projected({**value, "apiVersion": "v1", "kind": "Pod"})
        case {"metadata": _, "status": _}:
            return _projected({**value, "apiVersion": "v1", "kind": "Node"})
        case dict():
            return {name: _asked(item) for name, item in value.items()}
        case list():
            return [_asked(item) for item in value]
    return value


# The two sources.


def recorded_story(record: Plain) -> Story:
    """Return the recording."""
    history = record.get("pod_history", ())
    story = Story(Names([record, _pods_of_history(record)]))
    for sent in recorded_requests(record):
        story.request(sent)
    for item in history:
        story.change(
            item["type"], item["pod"], item["phase"], item.get("node"), item.get("nominated"),
            item.get("deleting"), item.get("grace"), item.get("conditions", {}),
        )  # fmt: skip
    for exchange in record.get("extender_exchanges", ()):
        story.question(Asked(exchange["request"]["path"], exchange["request"]["body"]))
    story.end(record["final"])
    return story


def recorded_requests(record: Plain) -> list[Sent]:
    """Return the recorded requests of the schedulers."""
    acts = [step["t"] for step in record["steps"] if _is_act(step)]
    ends = [step["t"] for step in record["steps"] if "api_server" in step]
    # An earlier scheduler's watch may have ended late, and one of a leader that is cut off may
    # get through once more.
    until = min(ends, default=math.inf)
    return [
        _as_sent(one, sum(t <= one["t"] + _ROUNDING_SECONDS for t in acts))
        for one in record["requests"]
        if 0 <= one["t"] <= until
    ]


def _as_sent(one: Plain, steps: int) -> Sent:
    client = "" if one["client"] == "$Format" else one["client"]
    return Sent(
        steps, client, one["method"], one["path"], one.get("query", {}), one.get("body", {}),
        one["code"], one.get("response", {}),
    )  # fmt: skip


def _pods_of_history(record: Plain) -> list[Plain]:
    """Return the versions of pods; the history lacks the pods' uids."""
    uids = {name: uid for uid, name, _ in identities(record) if name.startswith("Pod ")}
    return [
        {
            "kind": "Pod",
            "metadata": {
                "name": item["pod"].rpartition("/")[2],
                "uid": uids.get("Pod " + item["pod"].rpartition("/")[2], ""),
                "resourceVersion": item["resourceVersion"],
            },
        }
        for item in record.get("pod_history", ())
    ]


def replayed_story(record: Plain, replayed: Replayed, asked: Sequence[Asked]) -> Story:
    """Return the replay."""
    pods = [pod | {"kind": "Pod"} for _, pod in replayed.pods]
    questions = [question.body for question in asked]
    sent_parts = [part for sent in replayed.sent for part in (sent.body, sent.response)]
    story = Story(Names([pods, sent_parts, replayed.final, questions]))
    for sent in replayed.sent:
        sent.steps = sum(map(_is_act, record["steps"][: sent.steps + 1]))
        if sent.code != 422 or sent.method != "GET":
            story.request(sent)
    for kind, pod in replayed.pods:
        metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
        conditions = {item["type"]: item for item in status.get("conditions", ())}
        story.change(
            kind, metadata["name"], status["phase"], spec.get("nodeName"),
            status.get("nominatedNodeName"), metadata.get("deletionTimestamp"),
            metadata.get("deletionGracePeriodSeconds"), conditions,
        )  # fmt: skip
    if "extender_exchanges" in record:
        for question in asked:
            story.question(question)
    story.end(replayed.final)
    return story


def _is_act(step: Plain) -> bool:
    """Whether a step does something; other steps wait."""
    return "request" in step or "extender" in step or step.get("scheduler") == "start"
