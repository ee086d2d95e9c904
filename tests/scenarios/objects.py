"""Objects of transcripts: short forms of pods and nodes, and changes, as merge patches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

import yaml

from kubesched.api.codec import Skipped, decode_object, encode_json
from kubesched.api.decode import load_bytes
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import KINDS, Kind
from kubesched.simulator.virtual_loop import timestamp

Json: TypeAlias = "dict[str, Any]"

# (key, value, the patch so far) -> what an option adds.
_Option: TypeAlias = "Callable[[str, str, Json], Json]"

_APPENDED: Final = ("tolerations",)


def kind_of_word(word: str) -> Kind:
    """Return the kind that a command names, such as `node`."""
    return next(kind for kind in KINDS if kind.kind.lower() == word.lower())


def merged(base: Json, patch: Mapping[str, Any]) -> Json:
    """Return an object with a merge patch; tolerations are added, as the API only allows that."""
    result = dict(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key) or {}, value)
        elif key in _APPENDED:
            result[key] = [*result.get(key, []), *value]
        else:
            result[key] = value
    return result


def plain_of(item: KubeObject) -> Json:
    """Return an object as JSON."""
    return cast("Json", json.loads(encode_json(item)))


def object_of(plain: Json) -> KubeObject:
    """Return the object of JSON, with a uid made from its name if it has none."""
    metadata = plain["metadata"]
    metadata.setdefault("uid", f"uid-{metadata['name']}")
    return decode_object(plain)


def objects_of(body: str) -> Iterable[KubeObject]:
    """Return the objects of YAML documents."""
    for item, _ in load_bytes(body.encode(), "transcript.yaml", Skipped()):
        yield object_of(plain_of(item))


def node_of(name: str, options: Iterable[str], body: str) -> KubeObject:
    """Return a node; by default with 4 cpu, 32Gi and 110 pods."""
    base = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": 110}},
    }
    return object_of(merged(merged(base, node_patch(options)), patch_of(body)))


def pod_of(name: str, options: Iterable[str], body: str) -> KubeObject:
    """Return a pod with one container; a pod with a node runs."""
    base = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    plain = merged(merged(base, pod_patch(options)), patch_of(body))
    if plain["spec"].get("nodeName"):
        plain = merged({"status": {"phase": "Running"}}, plain)
    return object_of(plain)


def patch_of(body: str) -> Json:
    """Return a merge patch from YAML."""
    return cast("Json", yaml.safe_load(body) or {})


def node_patch(options: Iterable[str]) -> Json:
    """Return the merge patch of options such as `cpu=2 label:zone=a taint=k=v:NoSchedule`."""
    return _patch(options, _NODE_OPTIONS)


def pod_patch(options: Iterable[str]) -> Json:
    """Return the merge patch of options such as `cpu=1 priority=5 node=a`."""
    return _patch(options, _POD_OPTIONS)


def _patch(options: Iterable[str], table: Mapping[str, _Option]) -> Json:
    """Parse `word=value` and `word:key=value`; a word alone has neither."""
    patch: Json = {}
    for option in options:
        name, _, value = option.partition("=")
        word, _, key = name.partition(":")
        patch = joined(patch, table[word](key, value, patch))
    return patch


def joined(patch: Json, other: Json) -> Json:
    """Return the merge patch equal to two in sequence."""
    result = dict(patch)
    for key, value in other.items():
        before = result.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            result[key] = joined(before, value)
        elif key in _APPENDED:
            result[key] = [*(before or []), *value]
        else:
            result[key] = value
    return result


_NODE_OPTIONS: Final[dict[str, _Option]] = {
    "label": lambda key, value, _: {"metadata": {"labels": {key: value or None}}},
    "annotation": lambda key, value, _: {"metadata": {"annotations": {key: value or None}}},
    "taint": lambda _, value, so_far: {"spec": {"taints": _more(so_far, "spec.taints", value)}},
    "unschedulable": lambda _, value, _so_far: {"spec": {"unschedulable": value != "no"}},
    "feature": lambda _, value, so_far: {
        "status": {"declaredFeatures": _more(so_far, "status.declaredFeatures", value)}
    },
    "cpu": lambda _, value, _so_far: {"status": {"allocatable": {"cpu": value}}},
    "memory": lambda _, value, _so_far: {"status": {"allocatable": {"memory": value}}},
    "pods": lambda _, value, _so_far: {"status": {"allocatable": {"pods": value}}},
    "allocatable": lambda key, value, _: {"status": {"allocatable": {key: value}}},
    "condition": lambda key, value, _: {"status": {"conditions": [{"type": key, "status": value}]}},
}


def _more(so_far: Json, path: str, value: str) -> list[Any]:
    """Return a list with one more item; `none` makes it empty."""
    section, field = path.split(".")
    if value == "none":
        return []
    item = _ITEMS.get(field, str)(value)
    return [*so_far.get(section, {}).get(field, []), item]


def _taint(text: str) -> Json:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _asks(so_far: Json, resource: str, amount: str) -> Json:
    return _contained(so_far, {"resources": {"requests": {resource: amount}}})


def _opens(so_far: Json, port: int) -> Json:
    ports = _container(so_far).get("ports", [])
    return _contained(so_far, {"ports": [*ports, {"containerPort": port, "hostPort": port}]})


def _container(so_far: Json) -> Json:
    containers = so_far.get("spec", {}).get("containers", [{"name": "c", "image": "i"}])
    return cast("Json", containers[0])


def _contained(so_far: Json, patch: Json) -> Json:
    return {"spec": {"containers": [joined(_container(so_far), patch)]}}


_POD_OPTIONS: Final[dict[str, _Option]] = {
    "cpu": lambda _, value, so_far: _asks(so_far, "cpu", value),
    "memory": lambda _, value, so_far: _asks(so_far, "memory", value),
    "request": lambda key, value, so_far: _asks(so_far, key, value),
    "port": lambda _, value, so_far: _opens(so_far, int(value)),
    "label": lambda key, value, _: {"metadata": {"labels": {key: value or None}}},
    "annotation": lambda key, value, _: {"metadata": {"annotations": {key: value or None}}},
    "uid": lambda _, value, _so_far: {"metadata": {"uid": value}},
    "namespace": lambda _, value, _so_far: {"metadata": {"namespace": value}},
    "nominated": lambda _, value, _so_far: {"status": {"nominatedNodeName": value}},
    "start": lambda _, value, _so_far: {"status": {"startTime": timestamp(float(value))}},
    "claim": lambda _, value, so_far: {"spec": {"volumes": _more(so_far, "spec.volumes", value)}},
    "gate": lambda _, value, so_far: {
        "spec": {"schedulingGates": _more(so_far, "spec.schedulingGates", value)}
    },
    "toleration": lambda _, value, _so_far: {"spec": {"tolerations": [_toleration(value)]}},
    "near": lambda key, value, _: {"spec": {"affinity": {"podAffinity": _affinity(value, key)}}},
    "far": lambda key, value, _: {"spec": {"affinity": {"podAntiAffinity": _affinity(value, key)}}},
    "spread": lambda key, value, _: {"spec": {"topologySpreadConstraints": [_spread(value, key)]}},
    "priority": lambda _, value, _so_far: {"spec": {"priority": int(value)}},
    "grace": lambda _, value, _so_far: {"spec": {"terminationGracePeriodSeconds": int(value)}},
    "node": lambda _, value, _so_far: {"spec": {"nodeName": value}},
    "scheduler": lambda _, value, _so_far: {"spec": {"schedulerName": value}},
    "never-preempts": lambda _, _value, _so_far: {"spec": {"preemptionPolicy": "Never"}},
    "group": lambda _, value, _so_far: {"spec": {"schedulingGroup": {"podGroupName": value}}},
    "selector": lambda key, value, _: {"spec": {"nodeSelector": {key: value}}},
}


def _toleration(text: str) -> Json:
    """`k=v:NoSchedule`, `k:NoSchedule`, `k`."""
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    found = {"key": key, "operator": "Equal", "value": value}
    if not value:
        found = {"key": key, "operator": "Exists"}
    return {**found, "effect": effect} if effect else found


def _selector(text: str) -> Json:
    key, _, value = text.partition("=")
    return {"matchLabels": {key: value}}


def _affinity(text: str, topology_key: str) -> Json:
    """`near:zone=app=a`: in the same zone as pods with that label."""
    term = {"topologyKey": topology_key, "labelSelector": _selector(text)}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _spread(text: str, topology_key: str) -> Json:
    """`spread:zone=app=a`: pods with that label evenly over zones."""
    return {
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(text),
    }


def _gate(name: str) -> Json:
    return {"name": name}


def _claim(name: str) -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


_ITEMS: Final[dict[str, Callable[[str], Any]]] = {
    "taints": _taint,
    "schedulingGates": _gate,
    "volumes": _claim,
}
