"""Comparable forms of what was recorded and of what came of a replay.

What is compared, per pod (FORMAT.md: requests about different pods may interleave, and events
travel apart from the other writes):

* the writes in their order: method, path, code and body, and after which step of the script;
* the events in their order: all that they say, the version of the pod they are about, and when
  they became a series;
* every change of the pod: phase, node, nomination, deletion, the two conditions;
* what an extender was asked, in order, about which nodes in any order (upstream filters them in
  parallel);

the order in which victims are deleted, and the objects at the end. Uids stand for what they belong
to, versions of pods for their number in the pod's history, and current times for nothing. Where
the recorded runs disagreed in their events (`runs_agree`), repetitions of an event count once.

The order of bindings is not compared: upstream's goroutines send them in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, cast

from kubesched.api.codec import decode_object
from kubesched.snapshot.objects import KubernetesObject

from .recorded_extender import Asked
from .replay import Replayed
from .requests_on_objects import Plain, plain

_UID: Final = re.compile(r"<uid:\d+>|00000000-0000-4000-8000-[0-9a-f]{12}")
_TIME: Final = re.compile(r"20(?!24)\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_ROUNDING_SECONDS: Final = 0.006
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "persistentvolumes": ("v1", "PersistentVolume"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
}
_VOLATILE: Final = ("resourceVersion", "creationTimestamp", "lastPhaseTransitionTime")
_CONDITION: Final = ("status", "reason", "message")
_EVENT: Final = ("type", "reason", "action", "note", "reportingController", "related")

ByPod = dict[str, list[Any]]


class Versions:
    """The versions of each pod, numbered from 1."""

    def __init__(self, history: Iterable[tuple[str, str]]) -> None:
        """Take (pod, resource version), in order."""
        self._numbers: dict[str, int] = {}
        counts: dict[str, int] = {}
        for pod, version in history:
            counts[pod] = self._numbers[version] = counts.get(pod, 0) + 1

    def number(self, version: str) -> int:
        """Return the number of a version."""
        return self._numbers[version]


class Story:
    """What happened, comparable.

    Attributes:
        writes, events, changes, asked: By pod, or other object written to.
        bindings, deletions: Names of pods, in the order in which the scheduler asked for it.
        final: Objects by kind, then name.
    """

    def __init__(self, uids: Mapping[str, str], versions: Versions) -> None:
        self._uids = uids
        self._versions = versions
        self._event_names: dict[str, tuple[str, int]] = {}
        self.writes: ByPod = {}
        self.events: ByPod = {}
        self.changes: ByPod = {}
        self.asked: ByPod = {}
        self.bindings: list[str] = []
        self.deletions: list[str] = []
        self.final: dict[str, dict[str, Any]] = {}

    def request(self, method: str, path: str, code: int, body: Plain, steps: int) -> None:
        """Take in a request of the scheduler."""
        if "/events" in path:
            self._event(method, path, body, steps)
            return
        parts = path.split("/")
        name = next(parts[at + 1] for at in (-3, -2) if parts[at] in _KINDS)
        if path.endswith("/binding"):
            self.bindings.append(name)
        if method == "DELETE":
            self.deletions.append(name)
            body = {}
        elif method == "PUT":
            body = _projected(body)
        self.writes.setdefault(name, []).append((steps, method, path, code, self._calm(body)))

    def _event(self, method: str, path: str, body: Plain, steps: int) -> None:
        if method == "POST":
            pod = body["regarding"]["name"]
            said = [self._calm(body.get(name)) for name in _EVENT]
            version = self._versions.number(body["regarding"]["resourceVersion"])
            told = self.events.setdefault(pod, [])
            self._event_names[body["metadata"]["name"]] = (pod, len(told))
            told.append((steps, *said, version))
            return
        pod, at = self._event_names[path.rpartition("/")[2]]
        self.events[pod].append((steps, "series", at, body["series"]["count"]))

    def change(
        self, kind: str, pod: str, phase: str, node: str | None, nominated: str | None,
        deleting: object, grace: int | None, conditions: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Take in a change of a pod."""
        told = {
            name: [self._calm(conditions[name].get(part, "")) for part in _CONDITION]
            for name in ("PodScheduled", "DisruptionTarget")
            if name in conditions
        }
        change = (kind, phase, node, nominated, bool(deleting), grace, told)
        self.changes.setdefault(pod.rpartition("/")[2], []).append(change)

    def end(self, final: Mapping[str, Sequence[Plain]]) -> None:
        """Take in the objects at the end."""
        for kind, (api_version, name) in _KINDS.items():
            items = [
                _projected({**item, "apiVersion": api_version, "kind": name})
                for item in final.get(kind, ())
            ]
            if items:
                self.final[kind] = {i["metadata"]["name"]: self._calm(i) for i in items}

    def question(self, asked: Asked) -> None:
        """Take in what an extender was asked."""
        body = {name: self._calm(_asked(value)) for name, value in asked.body.items()}
        if body.get("NodeNames"):
            body["NodeNames"].sort()
        self.asked.setdefault(asked.pod, []).append((asked.path, body))

    def without_repetitions(self) -> None:
        """Let events that say the same as those before count once."""
        for pod, told in self.events.items():
            once = [event[:-1] for event in told if event[1] != "series"]
            self.events[pod] = [event for event, _ in groupby(once)]

    def _calm(self, value: Any) -> Any:
        """Take uids, versions and times out."""
        match value:
            case dict():
                calm = {
                    name: self._calm(item) for name, item in value.items() if name not in _VOLATILE
                }
                # Our objects do not tell what is empty from what is absent.
                return {name: item for name, item in calm.items() if item != {}}
            case list() | tuple():
                return [self._calm(item) for item in value]
            case str():
                text = _UID.sub(lambda found: f"<uid of {self._uids[found[0]]}>", value)
                return _TIME.sub("<time>", text)
        return value


def _projected(item: Plain) -> Plain:
    """Return an object with only the fields that the scheduler's classes hold."""
    return plain(cast("KubernetesObject", decode_object(item)))


def _asked(value: Any) -> Any:
    """Project the objects of a question."""
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
    """Return what was recorded."""
    history = record.get("pod_history", ())
    versions = Versions((item["pod"], item["resourceVersion"]) for item in history)
    story = Story(dict(_recorded_uids(record, "")), versions)
    acts = [step["t"] for step in record["steps"] if _is_act(step)]
    for sent in record["requests"]:
        if sent["verb"] not in ("get", "list", "watch") and not _is_review(sent["path"]):
            steps = sum(t <= sent["t"] + _ROUNDING_SECONDS for t in acts)
            story.request(sent["method"], sent["path"], sent["code"], sent["body"], steps)
    for item in history:
        story.change(
            item["type"], item["pod"], item["phase"], item.get("node"), item.get("nominated"),
            item.get("deleting"), item.get("grace"), item.get("conditions", {}),
        )  # fmt: skip
    for exchange in record.get("extender_exchanges", ()):
        story.question(Asked(exchange["request"]["path"], exchange["request"]["body"]))
    story.end(record["final"])
    return story


def replayed_story(record: Plain, replayed: Replayed, asked: Sequence[Asked]) -> Story:
    """Return what came of the replay."""
    pods = [pod for _, pod in replayed.pods]
    versions = Versions((p["metadata"]["name"], p["metadata"]["resourceVersion"]) for p in pods)
    story = Story(replayed.uids, versions)
    for sent in replayed.sent:
        steps = sum(map(_is_act, record["steps"][: sent.steps + 1]))
        story.request(sent.method, sent.path, sent.code, sent.body, steps)
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


def _is_review(path: str) -> bool:
    """Whether the secure port asks who may look at it."""
    return path.endswith("reviews")


def _is_act(step: Plain) -> bool:
    """Whether a step does something; the others wait."""
    return "request" in step or "extender" in step or step.get("scheduler") == "start"


def _recorded_uids(value: Any, kind: str) -> Iterable[tuple[str, str]]:
    """Yield uid and what it belongs to, for every object that the record mentions."""
    match value:
        case {"kind": "Binding", "metadata": {"uid": uid, "name": name}}:
            yield uid, f"Pod {name}"
        case {"metadata": {"uid": uid, "name": name}} if value.get("kind", kind):
            yield uid, f"{value.get('kind', kind)} {name}"
        case {"uid": uid, "name": name, "kind": of}:
            yield uid, f"{of} {name}"
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _recorded_uids(item, _KINDS[name][1] if name in _KINDS else kind)
    elif isinstance(value, list):
        for item in value:
            yield from _recorded_uids(item, kind)
