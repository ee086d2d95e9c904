"""The JSON that scheduler and HTTP extenders exchange: Go's field names, read in any case.

Upstream: staging/src/k8s.io/kube-scheduler/extender/v1/types.go (v1.36)
Reads:    what extenders answer
Differs:  pods and nodes are sent with the fields that are kept of them; of nodes that an extender
          sends back only the names are read; the wording where a value is not of the type that
          its field has; null among victims is no victim, upstream crashes on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.framework.preemption.candidate import Candidate
from kubesched.scheduler.json_syntax import json_error
from kubesched.snapshot.pod_info import PodInfo

T = TypeVar("T")

_INT64: Final = 1 << 63
_BLANKS: Final = " \t\r\n"


class WireError(ValueError):
    """An answer that is not what the protocol says."""


class _WireStruct(msgspec.Struct, frozen=True, rename="pascal"):
    """A value with Go's field names; all of them are sent."""


class _ListMeta(msgspec.Struct, frozen=True):
    """Lists that are sent have no metadata."""


class _NodeList(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: Sequence[Node]


class _ExtenderArgs(_WireStruct, frozen=True):
    pod: Pod
    nodes: _NodeList | None
    node_names: Sequence[str] | None


class _Victims(_WireStruct, frozen=True):
    pods: Sequence[Pod]
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class _MetaPod(_WireStruct, frozen=True):
    uid: str = msgspec.field(name="UID")


class _MetaVictims(_WireStruct, frozen=True):
    pods: Sequence[_MetaPod]
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class _PreemptionArgs(_WireStruct, frozen=True):
    pod: Pod
    node_name_to_victims: Mapping[str, _Victims] | None
    node_name_to_meta_victims: Mapping[str, _MetaVictims] | None


class _BindingArgs(_WireStruct, frozen=True):
    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class FilterResult(msgspec.Struct, frozen=True):
    """An answer to filter.

    Attributes:
        nodes: Names of the nodes sent back whole; None if there is no such list.
        node_names: Names sent back; None if there is no such list.
        failed: Node name -> why evicting pods there may help.
        failed_and_unresolvable: Node name -> why nothing helps.
        error: Why there is no answer; empty if there is one.
    """

    nodes: tuple[str, ...] | None = None
    node_names: tuple[str, ...] | None = None
    failed: Mapping[str, str] = msgspec.field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class MetaVictims(msgspec.Struct, frozen=True):
    """The victims on one node, by uid, the most important first."""

    uids: tuple[str, ...] = ()
    pdb_violations: int = 0


# Questions.


def encode_args(pod: Pod, nodes: Sequence[Node], *, names_only: bool) -> bytes:
    """Return the question of filter and prioritize."""
    if names_only:
        names = [node.metadata.name for node in nodes]
        return msgspec.json.encode(_ExtenderArgs(pod, None, names))
    return msgspec.json.encode(_ExtenderArgs(pod, _NodeList(_ListMeta(), nodes), None))


def encode_preemption_args(pod: Pod, candidates: Sequence[Candidate], *, uids_only: bool) -> bytes:
    """Return the question of preempt: the victims by node name, sorted."""
    by_name = sorted(candidates, key=lambda candidate: candidate.node_name)
    if uids_only:
        meta = {each.node_name: _meta_victims(each) for each in by_name}
        return msgspec.json.encode(_PreemptionArgs(pod, None, meta))
    victims = {each.node_name: _whole_victims(each) for each in by_name}
    return msgspec.json.encode(_PreemptionArgs(pod, victims, None))


def _meta_victims(candidate: Candidate) -> _MetaVictims:
    pods = [_MetaPod(uid=victim.uid) for victim in candidate.victims]
    return _MetaVictims(pods, num_pdb_violations=candidate.pdb_violations)


def _whole_victims(candidate: Candidate) -> _Victims:
    pods = [victim.pod for victim in candidate.victims]
    return _Victims(pods, num_pdb_violations=candidate.pdb_violations)


def encode_binding_args(pod: PodInfo, node_name: str) -> bytes:
    """Return the question of bind."""
    return msgspec.json.encode(
        _BindingArgs(pod.name, pod.namespace, pod_uid=pod.uid, node=node_name)
    )


# Answers.


def decode_filter_result(body: bytes) -> FilterResult:
    """Read the answer to filter.

    Raises:
        WireError: if it is none.
    """
    fields = _object(_first_value(body), "the answer")
    nodes = fields.get("nodes")
    names = fields.get("nodenames")
    return FilterResult(
        None if nodes is None else _node_list(nodes),
        None if names is None else _list(names, "NodeNames", _text),
        _messages(fields.get("failednodes"), "FailedNodes"),
        _messages(fields.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"),
        _text(fields.get("error"), "Error"),
    )


def decode_host_priorities(body: bytes) -> tuple[tuple[str, int], ...]:
    """Read the answer to prioritize: node names and their scores, in the order given.

    Raises:
        WireError: if it is none.
    """
    return _list(_first_value(body), "the answer", _host_priority)


def decode_preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Read the answer to preempt: the victims by node name.

    Raises:
        WireError: if it is none.
    """
    fields = _object(_first_value(body), "the answer")
    nodes = _map(fields.get("nodenametometavictims"), "NodeNameToMetaVictims")
    return {name: _decoded_victims(victims) for name, victims in nodes.items()}


def decode_binding_error(body: bytes) -> str:
    """Read the answer to bind: why it failed, empty if it did not.

    Raises:
        WireError: if it is none.
    """
    return _text(_object(_first_value(body), "the answer").get("error"), "Error")


def _host_priority(value: object, where: str) -> tuple[str, int]:
    fields = _object(value, where)
    return _text(fields.get("host"), "Host"), _int64(fields.get("score"), "Score")


def _decoded_victims(value: object) -> MetaVictims:
    fields = _object(value, "NodeNameToMetaVictims")
    violations = _int64(fields.get("numpdbviolations"), "NumPDBViolations")
    return MetaVictims(_list(fields.get("pods"), "Pods", _uid), violations)


def _uid(value: object, where: str) -> str:
    return _text(_object(value, where).get("uid"), "UID")


def _node_list(value: object) -> tuple[str, ...]:
    return _list(_object(value, "Nodes").get("items"), "items", _node_name)


def _node_name(value: object, where: str) -> str:
    metadata = _object(_object(value, where).get("metadata"), "metadata")
    return _text(metadata.get("name"), "name")


# As Go reads JSON: the first value counts, field names in any case, null is as good as absent.


def _first_value(body: bytes) -> object:
    text = body.decode(errors="replace").lstrip(_BLANKS)
    try:
        value: object = _JSON.raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise WireError(json_error(body) or f"the answer cannot be read: {error}") from error
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_JSON: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def _object(value: object, where: str) -> dict[str, object]:
    return {name.casefold(): found for name, found in _map(value, where).items()}


def _map(value: object, where: str) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WireError(f"{where}: expected an object")
    return value


def _list(value: object, where: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise WireError(f"{where}: expected an array")
    return tuple(read(item, where) for item in value)


def _messages(value: object, where: str) -> dict[str, str]:
    return {name: _text(message, where) for name, message in _map(value, where).items()}


def _text(value: object, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WireError(f"{where}: expected a string")
    return value


def _int64(value: object, where: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not -_INT64 <= value < _INT64:
        raise WireError(f"{where}: expected an integer of 64 bits")
    return value
